"""Choosing a measure on one's own data: the simplest that is not significantly worse than the best."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.measures import APPROXIMATIONS, RISKS
from uqprism.rules import PAPER
from uqprism.storage import require
from uqprism.tasks.command import Command
from uqprism.tasks.ood_detection import ood_detection
from uqprism.tasks.rank_correlation import rank_correlation
from uqprism.tasks.recommendation import recommend
from uqprism.tasks.resampling import RESAMPLES
from uqprism.tasks.result import TaskResult
from uqprism.tasks.scores import Scores, as_scores
from uqprism.tasks.selective_prediction import selective_prediction

POINTS_COMPARED = 2_000  # enough to tell whether two measures rank alike


@dataclass(frozen=True)
class Selection:
    """The measure to use, and how it came to be chosen.

    Attributes:
        measure: the chosen one.
        reason: in sentences.
        candidates: measures with rankings of their own that are not significantly worse than the best, the simplest first.
        duplicates: measures that were left out because they rank points as another does: name, and that other.
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

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row per measure, the best first."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index("measure")

    def to_json(self) -> str:
        """All of it as JSON text."""
        about = {"measure": self.measure, "reason": self.reason, "candidates": self.candidates}
        return json.dumps({**about, "task": self.result.task, "metric": self.result.metric, "measures": self.rows()}, indent=2)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """The values of all measures with their intervals; returns the axes."""
        return dataclasses.replace(self.result, figure="intervals").plot(ax, **options)

    def __str__(self) -> str:
        return f"{self.measure}\n{self.reason}"


def select_measure(
    table: Any,
    *,
    error: Any = None,
    ood: Any = None,
    metric: str | None = None,
    same: float = 0.99,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Selection:
    """The simplest measure that is not significantly worse than the best on your own validation data.

    All measures are ranked by the task, with resamples that they share. Of measures that rank the points alike one is kept. A
    measure stays a candidate unless another beats it by more than the luck of being picked among so many explains. Of those the
    simplest is chosen: what `recommend` names comes first, then measures with members in both roles, and so on; so that
    without evidence the choice is the recommended one, not whatever happened to come out on top.

    Args:
        table: measures of validation points: a `MeasureTable`, a mapping, a data frame.
        error: of each point, to choose for selective prediction.
        ood: a table of points from outside, or several by name, to choose for out-of-distribution detection.
        metric: of the task; by default the paper's.
        same: measures whose rankings agree to this Kendall tau-b are one.
        level: of the comparison: how often the truly best measure stays a candidate.
        resamples: of the points.
        seed: of the resamples.
    """
    if (error is None) == (ood is None):
        given = "neither" if error is None else "both"
        raise ArgumentError(f"select_measure needs either error= (selective prediction) or ood= (detection), got {given}")
    scores = as_scores(table)
    how: dict[str, Any] = {"resamples": max(resamples, 2), "seed": seed} | ({} if metric is None else {"metric": metric})
    if error is not None:
        result = selective_prediction(scores.columns, error=error, **how)
    else:
        result = ood_detection(scores.columns, ood, **how)
    simplest = sorted(scores.names, key=lambda name: simplicity(name, result.task))
    duplicates = _duplicates(scores, simplest, same, seed)
    kept = [name for name in scores.names if name not in duplicates]
    good = set(_only(result, kept).not_worse(level))
    candidates = tuple(name for name in simplest if name in good)
    reason = _reason(result, candidates, len(kept), level)
    return Selection(candidates[0], reason, candidates, duplicates, result)


def simplicity(name: str, task: str) -> tuple[int, ...]:
    """What comes first when measures are equally good: sorts low for simple ones.

    Recommended measures in the order of the advice, then members in both roles, then Gaussian stand-ins, then mixtures, which
    need quadrature; a name that is no measure keeps the order of the table, after all that are.
    """
    advice = recommend(task)
    advised = [advice.measure, *advice.alternatives]
    rule, risk, *roles = [*name.split("."), "", ""]
    known = rule in PAPER and risk in RISKS
    effort = [("members", "pooled", "matched", "mixture").index(role) for role in roles if role in APPROXIMATIONS]
    return (
        advised.index(name) if name in advised else len(advised),
        0 if known else 1,
        sum(effort),
        RISKS.index(risk) if known else 0,
        PAPER.index(rule) if known else 0,
    )


def _duplicates(scores: Scores, simplest: list[str], same: float, seed: int) -> dict[str, str]:
    """Measures that rank as a simpler one does."""
    rows: Any = slice(None)
    if scores.n_points > POINTS_COMPARED:
        rows = np.random.default_rng(seed).choice(scores.n_points, POINTS_COMPARED, replace=False)
    tau = rank_correlation({name: column[rows] for name, column in scores.columns.items()})
    kept: list[str] = []
    found = {}
    for name in simplest:
        twin = next((other for other in kept if tau[name, other] >= same), None)
        if twin is None:
            kept.append(name)
        else:
            found[name] = twin
    return found


def _only(result: TaskResult, names: list[str]) -> TaskResult:
    """The result of these measures alone."""
    at = [list(result).index(name) for name in names]
    replicates = None if result.replicates is None else result.replicates[:, at]
    return dataclasses.replace(
        result, measured={name: result[name] for name in names}, replicates=replicates, metrics={}, curves={}, parts={}
    )


def _reason(result: TaskResult, candidates: tuple[str, ...], distinct: int, level: float) -> str:
    chosen, spread = candidates[0], result.spread()
    best = min(candidates, key=result.ranked().index)

    def told(name: str) -> str:
        return f"{result.metric} {result[name]:.4f} +- {spread[name]:.4f}"

    head = f"Of {len(result)} measures, {distinct} rank the points differently"
    if best == chosen:
        return f"{head}; {chosen} is the best of them ({told(chosen)})."
    return (
        f"{head}, and {len(candidates)} of these are not significantly worse than the best, {best} ({told(best)}), at the "
        f"{level:.0%} level. {chosen} is the simplest of them ({told(chosen)})."
    )


COMMAND = Command(
    "select",
    select_measure,
    {"table": "table", "error": "error?", "ood": "tables?"},
    options=("resamples", "seed"),
)
