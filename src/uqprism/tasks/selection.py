"""Choosing a measure on one's own data: the simplest that is not significantly worse than the best."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.ensemble.approximations import approximations
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import RISKS
from uqprism.rules import PAPER
from uqprism.support.optional import require
from uqprism.synonyms import named_arguments
from uqprism.tasks.ood_detection import ood_detection
from uqprism.tasks.rank_correlation import SAME, rank_alike
from uqprism.tasks.resampling import RESAMPLES
from uqprism.tasks.result import TaskResult
from uqprism.tasks.scores import Scores, as_scores, is_table
from uqprism.tasks.selective_prediction import selective_prediction
from uqprism.tasks.task import TASKS, Task, register

FEWEST = 20  # of points and of resamples, to say anything at all


@dataclass(frozen=True, repr=False)
class ChosenMeasure:
    """The chosen measure, with the reason and the alternatives.

    Attributes:
        measure: the chosen measure.
        reason: in sentences.
        candidates: measures with rankings of their own that are not significantly worse than the best, the simplest first.
        duplicates: measures that are not worse either, but rank the points as a candidate does: name, and that candidate.
        result: all measures' values and spreads.
    """

    measure: str
    reason: str
    candidates: tuple[str, ...]
    duplicates: Mapping[str, str]
    result: TaskResult

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure, the best first."""
        kept = {name: "chosen" if name == self.measure else "not worse" for name in self.candidates}
        status = {**{name: f"ranks as {other}" for name, other in self.duplicates.items()}, **kept}
        return [{**row, "status": status.get(row["measure"], "worse")} for row in self.result.rows()]

    def summary(self) -> list[dict[str, Any]]:
        """The chosen measure, the best, and others with rankings of their own, without further metrics.

        `rank_alike` counts the measures that a row stands for: those that are not worse and rank the points alike.
        """
        left_out, best = {"not_worse", *self.result.metrics}, self.result.best()
        alike = Counter(self.duplicates.values())
        rows = [row for row in self.rows() if row["measure"] not in self.duplicates or row["measure"] == best]
        rows.sort(key=lambda row: (row["measure"] != self.measure, row["measure"] != best))
        for row in rows:
            name = row["measure"]
            row["rank_alike"] = 1 + alike[self.duplicates.get(name, name)]
            row["status"] = f"best, {row['status']}" if name == best else row["status"]
        return [{name: value for name, value in row.items() if name not in left_out} for row in rows]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row per measure, the best first."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index("measure")

    def to_json(self) -> str:
        """All of it as JSON text."""
        about = {"measure": self.measure, "reason": self.reason, "candidates": self.candidates}
        return json.dumps({**about, "task": self.result.task, "metric": self.result.metric, "measures": self.rows()}, indent=2)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """The values of all measures but duplicates, with their intervals; returns the axes."""
        distinct = self.result.select(name for name in self.result if name not in self.duplicates)
        return dataclasses.replace(distinct, figure="intervals").plot(ax, **options)

    def __str__(self) -> str:
        return f"{self.measure}\n{self.reason}"

    def __repr__(self) -> str:
        return f"<ChosenMeasure: {self.measure}, one of {len(self.candidates)} not worse than the best>"


@named_arguments()
def select_measure(
    table: Any,
    *,
    error: Any = None,
    ood: Any = None,
    metric: str | None = None,
    same: float = SAME,
    level: float = 0.95,
    margin: float = 0.0,
    may_be_negative: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ChosenMeasure:
    """Find the simplest measure that is not significantly worse than the best on your own validation data.

    All measures are ranked by the task, with shared resamples. A measure is a candidate unless another beats it by more than
    the luck of being the best of many explains; of candidates that rank the points alike one is kept. The simplest of those is
    chosen: first the measures that `recommend` names, then those with members in both roles, and so on. Without evidence the
    choice is therefore the recommended measure, not the luckiest.

    Args:
        table: measures of validation points: a `MeasureTable`, a mapping, a data frame.
        error: of each point, to choose for selective prediction.
        ood: a table of OOD points, or several by name, to choose for out-of-distribution detection.
        metric: of the task; by default the paper's.
        same: measures whose rankings agree to this Kendall tau-b count as one.
        level: of the comparison: how often the truly best measure stays a candidate.
        margin: leads up to this do not count, however certain; with many points any lead is significant.
        may_be_negative: whether errors may be, as log scores are; otherwise a negative one is refused.
        resamples: of the points, 20 or more.
        seed: of the resamples.
    """
    if (error is None) == (ood is None):
        given = "neither" if error is None else "both"
        raise ArgumentError(
            f"choosing needs either error= (--target, --error-column; for selective prediction) or ood= (--ood; for detection), "
            f"got {given}"
        )
    scores = as_scores(table)
    for name, least, given_number in (("points", FEWEST, scores.n_points), ("resamples", FEWEST, resamples)):
        if given_number < least:
            raise InvalidValueError(f"choosing among measures needs {least} {name} or more, got {given_number}")
    how: dict[str, Any] = {"resamples": resamples, "seed": seed} | ({} if metric is None else {"metric": metric})
    if error is not None:
        result = selective_prediction(scores.columns, error=error, may_be_negative=may_be_negative, **how)
    else:
        result = ood_detection(scores.columns, ood, **how)
    return choose_among(scores, result, ood=ood, same=same, level=level, margin=margin, seed=seed)


def choose_among(
    scores: Scores,
    result: TaskResult,
    *,
    ood: Any = None,
    same: float = SAME,
    level: float = 0.95,
    margin: float = 0.0,
    seed: int = 0,
) -> ChosenMeasure:
    """`select_measure` for a task that has been run on these scores, with resamples."""
    good = sorted(result.not_worse(level, margin), key=lambda name: simplicity(name, result.task))
    columns = _all_points(scores, ood)
    # Among the good ones alone: a measure may rank nearly as they do and be worse, where few points carry most of the error.
    groups = rank_alike({name: columns[name] for name in good}, same=same, seed=seed)
    # The simplest comes first, because groups keep the order of the names.
    duplicates = {name: first for first, *others in groups for name in others}
    candidates = tuple(name for name in good if name not in duplicates)
    reason = _reason(result, candidates, len(good), level)
    return ChosenMeasure(candidates[0], reason, candidates, duplicates, result)


def simplicity(name: str, task: str) -> tuple[int, ...]:
    """A key that sorts simple measures before others, for a choice between equally good ones.

    Recommended measures in the order of the advice, then members in both roles, then Gaussian approximations, then mixtures,
    which need quadrature; names that are no measures come last, in the order of the table.
    """
    advice = TASKS.get(task).advice if task in TASKS else None
    advised = [] if advice is None else [advice.measure, *advice.alternatives]
    rule, risk, *roles = [*name.split("."), "", ""]  # padded, because other names have no dots
    known = rule in PAPER and risk in RISKS
    effort = [approximations.get(role).effort for role in roles if role in approximations]
    return (
        advised.index(name) if name in advised else len(advised),
        0 if known else 1,
        sum(effort),
        RISKS.index(risk) if known else 0,
        PAPER.index(rule) if known else 0,
    )


def _all_points(scores: Scores, ood: Any) -> dict[str, np.ndarray]:
    """The columns with those of OOD points, if there are any, where measures that rank the known points alike may differ."""
    if ood is None:
        return dict(scores.columns)
    several = isinstance(ood, Mapping) and all(map(is_table, ood.values()))
    outside = [as_scores(table).columns for table in (ood.values() if several else [ood])]
    return {name: np.concatenate([column, *(each[name] for each in outside)]) for name, column in scores.columns.items()}


def _reason(result: TaskResult, candidates: tuple[str, ...], good: int, level: float) -> str:
    chosen, spread = candidates[0], result.spread()
    best = result.best()

    def value_of(name: str) -> str:
        return f"{result.metric} {result[name]:.4f} +- {spread[name]:.4f}"

    if best == chosen and good == 1:
        found = f"Of {len(result)} measures, {chosen} is the best ({value_of(chosen)}), all others are significantly worse."
    else:
        ways = f"{len(candidates)} ways" if len(candidates) > 1 else "the same way"
        found = (
            f"Of {len(result)} measures, {good} are not significantly worse than the best, {best} ({value_of(best)}), at the "
            f"{level:.0%} level; they rank the points in {ways}. {chosen} is the simplest ({value_of(chosen)})."
        )
    chance, sign = result.describe().chance, 1.0 if result.higher_is_better else -1.0
    if chance is not None and sign * (result[chosen] - chance) <= 0.0:
        found += f" It is no better than chance ({chance:g}) on these points, so none of this says much."
    return found


register(
    Task(
        name="select_measure",
        command="select",
        function=select_measure,
        title="Choose a measure",
        summary="Choose a measure by your own validation data.",
        reads={"table": "table", "error": "error?", "ood": "tables?"},
        options=("metric", "margin", "may_be_negative", "resamples", "seed"),
        page="choose.md#ask-your-own-data",
        place=0,
    )
)
