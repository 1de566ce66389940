"""Retention curves: the mean error of the points that are kept when the most uncertain ones are rejected."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.registry import unknown
from uqprism.tasks.resampling import Ranking
from uqprism.tasks.scores import as_scores, errors_of
from uqprism.tasks.task import Metric

GRID = np.arange(1, 101) / 100.0  # divided once: steps of 0.01 added up would miss 1.0 by rounding
PAPER_RETENTIONS = np.arange(50, 101) / 100.0  # the paper averages over retentions from a half
ERRORS_AT = (80, 90, 95)
ROUNDING = 1e-12  # relative: the sum of the same errors in another order differs by less


@dataclass(frozen=True)
class Population:
    """Points that may be drawn several times, resample by resample.

    Attributes:
        counts: the number of times each point is drawn, (resamples, points).
        errors: its error times that number, in the same shape.
    """

    counts: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, error: np.ndarray, counts: np.ndarray | None = None) -> Population:
        """Points with these errors, (points,); each once unless counted."""
        counts = np.ones((1, len(error))) if counts is None else counts
        return cls(counts, counts * error)  # multiplied once, since every measure sums these products


@dataclass(frozen=True)
class Kept:
    """The summed error of the k most certain points, for every k: straight lines between steps, resample by resample.

    Each point of a group of ties counts with the group's mean error, so that the arbitrary order within it has no effect.

    Attributes:
        counts: points up to each step, (resamples, steps + 1), from zero.
        sums: their summed error, in the same shape.
    """

    counts: np.ndarray
    sums: np.ndarray

    @classmethod
    def by(cls, ranking: Ranking, points: Population) -> Kept:
        """The points kept in this order."""
        kept = cls(ranking.cumulative(points.counts), ranking.cumulative(points.errors))
        kept.sums[:, -1] = points.errors.sum(axis=1)  # the same to the last digit in any order: all tied is the random curve
        return kept

    @classmethod
    def at_random(cls, like: Kept) -> Kept:
        """Points kept in a random order."""
        return cls(like.counts[:, [0, -1]], like.sums[:, [0, -1]])

    def mean_at(self, retentions: np.ndarray) -> np.ndarray:
        """The mean error of these shares of the points, (resamples, retentions); a part of a point counts in part."""
        kept = self.counts[:, -1:] * retentions
        rows = zip(kept, self.counts, self.sums, strict=True)
        return np.array([np.interp(*row) for row in rows]).reshape(kept.shape) / kept


@dataclass(frozen=True, kw_only=True)
class RetentionMetric(Metric):
    """A metric computed from retention curves: from the area under each (or its height), of measure, oracle and random order.

    Attributes:
        area: of a curve, (resamples,).
        value: from the areas of the measure, the oracle and the random order.
        needs_positive: whether it is undefined for negative errors, such as those of the log score.
    """

    area: Callable[[Kept], np.ndarray]
    value: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    needs_positive: bool = False


@dataclass(frozen=True)
class Course:
    """Points with their best order, which other orders are compared with.

    Attributes:
        points: the points.
        best: kept in the order of their errors.
    """

    points: Population
    best: Kept

    @classmethod
    def of(cls, error: np.ndarray, counts: np.ndarray | None = None, most_steps: int | None = None) -> Course:
        """Points with these errors, (points,); each once unless counted."""
        points = Population.of(error, counts)
        return cls(points, Kept.by(Ranking.of(error, most_steps), points))

    def value(self, metric: RetentionMetric, kept: Kept) -> np.ndarray:
        """The metric of an order in each resample; NaN in a resample of equal errors."""
        with np.errstate(invalid="ignore", divide="ignore"):  # equal errors leave nothing to divide by
            found = metric.value(*(metric.area(curve) for curve in (kept, self.best, Kept.at_random(self.best))))
        return np.where(np.isfinite(found), found, np.nan)


def _mean_over(retentions: np.ndarray) -> Callable[[Kept], np.ndarray]:
    return lambda kept: kept.mean_at(retentions).mean(axis=1)


def _mean_over_every_count(kept: Kept) -> np.ndarray:
    """The mean over k = 1, 2, ... of the mean error of the first k; in closed form across a group of ties."""
    counts, sums = kept.counts, kept.sums
    n = int(counts[:, -1].max(initial=1.0))
    # Sum over k of (start + slope k) / k, from a to b, is start (H(b) - H(a)) + slope (b - a), with harmonic numbers H.
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])[counts.astype(np.intp)]
    width = np.diff(counts, axis=1)
    slope = np.diff(sums, axis=1) / np.where(width > 0.0, width, 1.0)  # no point of a step may be in a resample
    start = sums[:, :-1] - slope * counts[:, :-1]
    return np.sum(start * np.diff(harmonic, axis=1) + slope * width, axis=1) / n


def _area_with_rejected_solved(kept: Kept) -> np.ndarray:
    """The area under the error of all points when rejected ones have none, by trapezia over every count."""
    heights = (kept.sums[:, 1:] + kept.sums[:, :-1]) / 2.0
    # Divided by n for the mean over all points, and by n again for shares in place of counts.
    return np.sum(heights * np.diff(kept.counts, axis=1), axis=1) / kept.counts[:, -1] ** 2


def _lower_ratio(measure: np.ndarray, oracle: np.ndarray, chance: np.ndarray) -> np.ndarray:
    return (measure - oracle) / _room(oracle, chance)


def _upper_ratio(measure: np.ndarray, oracle: np.ndarray, chance: np.ndarray) -> np.ndarray:
    return (chance - measure) / _room(oracle, chance)


def _room(oracle: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """The difference between random order and oracle; NaN where it is only rounding, as in a resample of equal errors."""
    room = chance - oracle
    return np.where(room > ROUNDING * np.abs(chance), room, np.nan)


def prr_paper(retentions: np.ndarray) -> RetentionMetric:
    """The paper's prediction rejection ratio, from the mean error over these retentions."""
    return RetentionMetric(
        name="prr_paper",
        label="PRR",
        meaning="the paper's prediction rejection ratio, 0: oracle, 1: random",
        chance=1.0,
        area=_mean_over(retentions),
        value=_lower_ratio,
    )


def error_at(percent: float) -> RetentionMetric:
    """The mean error when so many percent of the points are kept."""
    if not 0.0 < percent <= 100.0:
        raise InvalidValueError(f"error_at_N needs a percentage above 0 and up to 100, got {percent:g}")
    return RetentionMetric(
        name=f"error_at_{percent:g}",
        label=f"error at {percent:g} %",
        meaning=f"mean error of the {percent:g} % most certain points",
        area=_mean_over(np.array([percent / 100.0])),
        value=lambda measure, _oracle, _chance: measure,
    )


METRICS: dict[str, RetentionMetric] = {
    metric.name: metric
    for metric in (
        prr_paper(PAPER_RETENTIONS),
        RetentionMetric(
            name="prr",
            higher_is_better=True,
            label="PRR",
            meaning="prediction rejection ratio, 1: oracle, 0: random",
            chance=0.0,
            area=_area_with_rejected_solved,
            value=_upper_ratio,
            needs_positive=True,
        ),
        RetentionMetric(
            name="aurc",
            label="AURC",
            meaning="area under the retention curve",
            area=_mean_over_every_count,
            value=lambda measure, _oracle, _chance: measure,
        ),
        RetentionMetric(
            name="ause",
            label="AUSE",
            meaning="area between retention curve and oracle, 0: oracle",
            area=_mean_over_every_count,
            value=lambda measure, oracle, chance: (measure - oracle) / chance,
            needs_positive=True,
        ),
        *map(error_at, ERRORS_AT),
    )
}


def resolve_metric(name: str, retentions: Any = None) -> RetentionMetric:
    """The metric of this name; `error_at_N` takes any percentage, and `prr_paper` the retentions to average over."""
    if retentions is not None:
        if name != "prr_paper":
            raise InvalidValueError(f"retentions are for metric='prr_paper', got {name!r}; error_at_N names its own")
        return prr_paper(resolve_retentions(retentions))
    if name in METRICS:
        return METRICS[name]
    percent = re.fullmatch(r"error_at_(\d+(\.\d+)?)", str(name))
    if percent is None:
        raise unknown("metric", name, METRICS)
    return error_at(float(percent[1]))


def resolve_retentions(retentions: Any) -> np.ndarray:
    """Shares of the points, each above 0 and at most 1."""
    found = np.atleast_1d(np.asarray(retentions, dtype=np.float64)).reshape(-1)
    if not len(found) or not bool(np.all((found > 0.0) & (found <= 1.0))):
        raise InvalidValueError(f"retentions must be shares above 0 and up to 1, such as 0.5 for half, got {retentions!r}")
    if found.min() == 1.0:
        raise InvalidValueError("retentions must have a share below 1: with all points kept every order is the same")
    return found


@dataclass(frozen=True)
class RetentionCurve:
    """The mean error of the points kept, at every share kept.

    Attributes:
        retention: the share of the points that are kept, the most certain first.
        error: their mean error.
        oracle: the same if the points with the largest errors went first; no order does better.
        random: the same for a random order: the mean error of all points.
    """

    retention: np.ndarray
    error: np.ndarray
    oracle: np.ndarray
    random: np.ndarray


def retention_curve(error: Any, uncertainty: Any, retentions: Any = None, *, may_be_negative: bool = False) -> RetentionCurve:
    """The mean error of the points kept as the most uncertain ones are rejected, with that of the best possible order.

    Args:
        error: of each point.
        uncertainty: of each point; equal ones count with their mean error.
        retentions: shares to keep, by default 1 %, 2 %, ... 100 %.
        may_be_negative: whether errors may be, as log scores are; otherwise a negative one is refused.
    """
    scores = as_scores(uncertainty, "uncertainty")
    if len(scores.names) > 1:
        raise ArgumentError(f"uncertainty must be of one measure, got {len(scores.names)}; selective_prediction takes tables")
    errors = errors_of(error, scores, may_be_negative=may_be_negative)
    grid = GRID if retentions is None else resolve_retentions(retentions)
    course = Course.of(errors)
    (column,) = scores.columns.values()
    kept = Kept.by(Ranking.of(column), course.points)
    means = [curve.mean_at(grid)[0] for curve in (kept, course.best, Kept.at_random(course.best))]
    return RetentionCurve(grid, *means)
