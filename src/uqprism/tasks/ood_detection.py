"""Out-of-distribution (OOD) detection: how well does a measure separate unfamiliar inputs from known ones?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.tasks.resampling import MOST_STEPS, RESAMPLES, Ranking, Resampling
from uqprism.tasks.result import TaskResult, with_references
from uqprism.tasks.scores import Scores, as_scores, is_table
from uqprism.tasks.task import Metric, Recommendation, ReportSection, Task, printed, register

FALSE_POSITIVE_RATES = np.linspace(0.0, 1.0, 201)  # one grid for all curves, so that those of several data sets have a mean


@dataclass(frozen=True)
class Separation:
    """Counts of points of either kind up to each score: a row per resample, from zero, a column per group of ties.

    Attributes:
        known: in-distribution points, (resamples, groups + 1).
        ood: out-of-distribution points, in the same shape.
    """

    known: np.ndarray
    ood: np.ndarray

    @classmethod
    def by(cls, ranking: Ranking, known: np.ndarray, ood: np.ndarray) -> Separation:
        """By the ranking of all points, the known ones first; `known` and `ood` count how often each is there."""
        n = known.shape[1]
        return cls(ranking.part(slice(n)).cumulative(known), ranking.part(slice(n, None)).cumulative(ood))

    def swapped(self) -> Separation:
        """Counts for the opposite question: finding the known points by low scores."""
        return Separation(self.ood[:, -1:] - self.ood[:, ::-1], self.known[:, -1:] - self.known[:, ::-1])


def auroc(separation: Separation) -> np.ndarray:
    """The probability that an OOD point scores above a known one; ties count half."""
    known, ood = separation.known, separation.ood
    below = (known[:, 1:] + known[:, :-1]) / 2.0
    return np.sum(np.diff(ood, axis=1) * below, axis=1) / (known[:, -1] * ood[:, -1])


def average_precision(separation: Separation) -> np.ndarray:
    """The mean, over OOD points, of the share of OOD points among all that score as high or higher."""
    known, ood = (counts[:, -1:] - counts[:, :-1] for counts in (separation.known, separation.ood))
    found = known + ood
    precision = ood / np.where(found > 0.0, found, 1.0)
    return np.sum(np.diff(separation.ood, axis=1) * precision, axis=1) / separation.ood[:, -1]


def false_positives(separation: Separation, share: float = 0.95) -> np.ndarray:
    """The share of known points flagged by the highest threshold that flags this share of the OOD points."""
    flagged = separation.ood[:, -1:] - separation.ood[:, :-1]
    # A whole number of points counts as enough, although its product with the share may be rounded up.
    enough = flagged >= share * (1.0 - 1e-12) * separation.ood[:, -1:]
    # The last that is true: `argmax` finds the first one from the other end.
    last = enough.shape[1] - 1 - np.argmax(enough[:, ::-1], axis=1)
    return 1.0 - separation.known[np.arange(len(last)), last] / separation.known[:, -1]


@dataclass(frozen=True, kw_only=True)
class DetectionMetric(Metric):
    """A metric computed from how points of either kind are spread over the scores.

    Attributes:
        of: the metric in each resample, (resamples,).
    """

    of: Callable[[Separation], np.ndarray]


METRICS: dict[str, DetectionMetric] = {
    metric.name: metric
    for metric in (
        DetectionMetric(
            name="auroc",
            higher_is_better=True,
            label="AUROC",
            meaning="area under the ROC curve, 0.5: chance, 1: all told apart",
            chance=0.5,
            of=auroc,
        ),
        DetectionMetric(
            name="aupr_out",
            higher_is_better=True,
            label="AUPR",
            meaning="average precision of finding OOD points",
            of=average_precision,
        ),
        DetectionMetric(
            name="aupr_in",
            higher_is_better=True,
            label="AUPR",
            meaning="average precision of finding known points",
            of=lambda separation: average_precision(separation.swapped()),
        ),
        DetectionMetric(name="fpr95", meaning="share of known points flagged with 95 % of the OOD points", of=false_positives),
        DetectionMetric(
            name="fpr95_in",
            meaning="share of OOD points let through with 95 % of the known points",
            of=lambda separation: false_positives(separation.swapped()),
        ),
    )
}


def ood_detection(
    table_in: Any, table_out: Any, *, metric: str = "auroc", resamples: int = RESAMPLES, seed: int = 0
) -> TaskResult:
    """Compare how well measures separate out-of-distribution (OOD) points from known ones.

    The metrics:

    - `auroc`: the probability that an OOD point is more uncertain than a known one; 0.5 is chance. Higher is better.
    - `aupr_out`: average precision of finding the OOD points by high uncertainty; chance is their share. Higher is better.
    - `aupr_in`: average precision of finding the known points by low uncertainty; chance is their share. Higher is better.
    - `fpr95`: the share of known points flagged when 95 % of the OOD points are. Lower is better.
    - `fpr95_in`: the share of OOD points let through when 95 % of the known points are. Lower is better.

    Args:
        table_in: a `MeasureTable`, a mapping, a data frame or an array of uncertainties: the known points.
        table_out: the same of OOD points; or a mapping of names to such tables for several data sets at once, whose mean the
            result is, with each under `result.parts`.
        metric: the one that counts; the others are in `result.metrics`.
        resamples: of the points of either kind, for spreads and paired comparisons; 0 for none.
        seed: of the resamples.
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    known = as_scores(table_in, "table_in")
    # The known points are resampled once for all sets, whose results are averaged row by row.
    drawn = Resampling.of(known.n_points, resamples, seed)
    several = isinstance(table_out, Mapping) and bool(table_out)
    # A mapping to plain arrays is one table if `table_in` is a table, and several sets if that is an array.
    several = several and (all(map(is_table, table_out.values())) or not is_table(table_in))
    parts = {}
    for stream, (name, table) in enumerate(table_out.items() if several else [("", table_out)], start=1):
        ood = as_scores(table, f"table_out[{name!r}]" if several else "table_out")
        # Each set has a stream of its own, independent of the known points'.
        both = drawn, Resampling.of(ood.n_points, resamples, seed, stream)
        parts[str(name)] = _detect(known, ood, metric, both, seed)
    return TaskResult.average(parts) if several else parts[""]


def _detect(known: Scores, ood: Scores, metric: str, drawn: tuple[Resampling, Resampling], seed: int) -> TaskResult:
    _check_measures(known, ood)  # a measure of `table_out` alone would be dropped unnoticed
    names = [metric, *(name for name in METRICS if name != metric)]

    def judge(name: str, column: np.ndarray) -> tuple[list[float], np.ndarray, np.ndarray]:
        other = ood.columns[name]
        ranking = Ranking.of(np.concatenate([column, other]))
        separation = Separation.by(ranking, np.ones((1, len(column))), np.ones((1, len(other))))
        found = [float(METRICS[each].of(separation)[0]) for each in names]
        return found, _roc(separation), _replicates(METRICS[metric].of, (column, other), drawn, found[0])

    done = known.each(judge)
    resamples = len(drawn[0].counts)
    return TaskResult(
        task="ood_detection",
        metric=metric,
        higher_is_better=METRICS[metric].higher_is_better,
        measured={name: found[0][0] for name, found in done.items()},
        replicates=np.stack([found[2] for found in done.values()], axis=1) if resamples else None,
        metrics={each: {name: found[0][i] for name, found in done.items()} for i, each in enumerate(names) if i},
        curves=with_references({"false_positive_rate": FALSE_POSITIVE_RATES}, {name: found[1] for name, found in done.items()}),
        settings={"points_in": known.n_points, "points_out": ood.n_points, "resamples": resamples, "seed": int(seed)},
        figure="roc_curves",
    )


def _replicates(
    metric: Callable[[Separation], np.ndarray],
    columns: tuple[np.ndarray, np.ndarray],
    drawn: tuple[Resampling, Resampling],
    value: float,
) -> np.ndarray:
    """The metric in resamples of both kinds, (resamples,)."""
    steps = MOST_STEPS if metric is auroc else None  # the others depend on the ends of the ranking, where steps would show
    ranking = Ranking.of(np.concatenate([column[each.rows] for column, each in zip(columns, drawn, strict=True)]), steps)
    known, ood = drawn
    base = metric(Separation.by(ranking, known.once, ood.once))
    if known.shrink == ood.shrink:
        return known.replicates(value, metric(Separation.by(ranking, known.scaled, ood.scaled)), base)
    # Each kind's part of the noise shrinks by a factor of its own, so they are taken one at a time.
    by_known = metric(Separation.by(ranking, known.scaled, np.repeat(ood.once, len(known.counts), axis=0)))
    by_ood = metric(Separation.by(ranking, np.repeat(known.once, len(ood.counts), axis=0), ood.scaled))
    return known.replicates(value, by_known, base) + ood.replicates(0.0, by_ood, base)


def _roc(separation: Separation) -> np.ndarray:
    """The share of OOD points that are flagged, at each share of known points flagged."""
    flagged, alarms = (1.0 - counts[0, ::-1] / counts[0, -1] for counts in (separation.ood, separation.known))
    return np.interp(FALSE_POSITIVE_RATES, alarms, flagged)


def _check_measures(known: Scores, ood: Scores) -> None:
    for one, other, where in ((known, ood, "table_out"), (ood, known, "table_in")):
        missing = [name for name in one.names if name not in other.columns]
        if missing:
            raise ArgumentError(
                f"table_in and table_out must have the same measures; {where} lacks {', '.join(map(repr, missing[:3]))}"
                f"{' and more' if len(missing) > 3 else ''}; evaluate both with the same measures"
            )


register(
    Task(
        name="ood_detection",
        command="ood",
        function=ood_detection,
        title="Out-of-distribution detection",
        summary="How well does each measure find unfamiliar inputs?",
        reads={"table_in": "table", "table_out": "tables"},
        metrics=tuple(METRICS.values()),
        options=("resamples", "seed"),
        section=ReportSection(
            "Are unfamiliar inputs noticed?",
            "Rows with inputs unlike those that the models were trained on (out of distribution) should look more uncertain than "
            "known rows. Of one unfamiliar and one known row, the AUROC is how often the unfamiliar one is the more uncertain. 1 "
            "is always, 0.5 is as often as by guessing.",
            short="Unfamiliar inputs",
        ),
        advice=Recommendation(
            measure="log.excess.members.members",
            alternatives=(
                "crps.excess.members.members",
                "squared_error.excess.members.members",
                "quadratic.excess.members.members",
            ),
            reason=(
                "Members that were never shown such an input have no reason to agree on it, and the pairwise excess risk "
                "measures how much they disagree. It was among the best under every rule, most of all the log score; the "
                "differences between rules are within the spread. Total risks mix in noise that known inputs have too, and "
                "Bayes risks are that noise: both do worse."
            ),
            metric="AUROC, higher is better (Table 2 of the paper, mean over its data sets)",
            evidence=printed(
                "ood_detection_mean",
                "log.excess.members.members",
                "crps.excess.members.members",
                "squared_error.excess.members.members",
                "quadratic.excess.members.members",
                "log.total.members.members",
                "crps.total.members.members",
                "crps.bayes.members",
                "log.bayes.members",
            ),
        ),
        page="ood_detection.md",
        place=20,
    )
)
