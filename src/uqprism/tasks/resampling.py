"""Rankings of points and their resamples: ties, the paired bootstrap, which measures are as good as the best, average ranks."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError

RESAMPLES = 500
MOST_POINTS = 20_000
MOST_STEPS = 1_000
SAME = 1e-9  # differences below this share of the usual noise are rounding


@dataclass(frozen=True)
class Ranking:
    """Points from the lowest score to the highest, in steps of equal scores.

    Attributes:
        steps: the step of each point, (points,).
        n_steps: the number of steps.
    """

    steps: np.ndarray
    n_steps: int

    @classmethod
    def of(cls, scores: np.ndarray, most: int | None = None) -> Ranking:
        """The ranking by these scores, (points,); with more than `most` steps, neighbouring ones are put together."""
        order = np.argsort(scores)
        ranked = scores[order]
        begins = np.concatenate([[False], ranked[1:] != ranked[:-1]])
        along = np.cumsum(begins)
        if most is not None and along[-1] >= most:
            starts = np.concatenate([[0], np.flatnonzero(begins)])
            # Whole steps are put together, by the share of points before them, so that ties stay ties.
            along = np.unique(starts[along] * most // len(scores), return_inverse=True)[1]
        steps = np.empty(len(scores), dtype=np.intp)
        steps[order] = along
        return cls(steps, int(along[-1]) + 1)

    def part(self, points: slice) -> Ranking:
        """Some of the points, on the same steps."""
        return Ranking(self.steps[points], self.n_steps)

    def cumulative(self, values: np.ndarray) -> np.ndarray:
        """Sums of values (resamples, points) over all points up to each step: (resamples, steps + 1), from zero."""
        found = np.zeros((len(values), self.n_steps + 1))
        for total, row in zip(found, values, strict=True):
            total[1:] = np.bincount(self.steps, row, self.n_steps)  # sums by step need one pass over the points, in any order
        return np.cumsum(found, axis=1, out=found)


def tied_ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value (n,), 1 for the lowest; equal values have the mean of the ranks they take up together."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - 0.5 * (sizes - 1.0))[group.reshape(-1)]


@dataclass(frozen=True, eq=False)
class AverageRanks:
    """The average ranks over runs; 1 is the best.

    Attributes:
        mean: the mean rank by name.
        spread: the standard deviation of the ranks over runs by name; NaN with a single run.
        ranks: by name, one for each run, (runs,).
    """

    mean: Mapping[str, float]
    spread: Mapping[str, float]
    ranks: Mapping[str, np.ndarray]


def average_ranks(values: Mapping[str, Any], *, higher_is_better: bool = False) -> AverageRanks:
    """Rank the values of each run, ties averaged, and average the ranks over runs.

    Args:
        values: by name, a number for each run, (runs,), or a single number; the same runs in the same order for all.
        higher_is_better: the direction; by default the lowest value has rank 1.
    """
    table = _table(values)
    ranks = np.array([tied_ranks(-run if higher_is_better else run) for run in table.T]).T
    spread = ranks.std(axis=1, ddof=1) if ranks.shape[1] > 1 else np.full(len(ranks), np.nan)
    return AverageRanks(
        mean=dict(zip(values, ranks.mean(axis=1).tolist(), strict=True)),
        spread=dict(zip(values, spread.tolist(), strict=True)),
        ranks=dict(zip(values, ranks, strict=True)),
    )


def _table(values: Any) -> np.ndarray:
    """All values as numbers (names, runs)."""
    if not isinstance(values, Mapping) or not values:
        raise ArgumentError("values must be a mapping from names to numbers, one for each run, and hold at least one name")
    rows = {name: np.atleast_1d(to_numpy(row)).astype(np.float64) for name, row in values.items()}
    first, *_ = rows
    for name, row in rows.items():
        if row.ndim != 1 or len(row) == 0:
            raise ShapeError(f"values[{name!r}] must be one number for each run, got shape {row.shape}")
        if len(row) != len(rows[first]):
            raise ShapeError(f"values must be of the same runs, got {len(rows[first])} for {first!r} and {len(row)} for {name!r}")
        if np.isnan(row).any():
            raise InvalidValueError(f"values[{name!r}] must not be NaN, run {int(np.isnan(row).argmax())} is; leave that run out")
    return np.array(list(rows.values()))


@dataclass(frozen=True)
class Resampling:
    """The number of times each point is in each resample.

    Over more than 20,000 points the spread is measured on 20,000 of them, drawn at random, and scaled by the square root of the
    ratio: the metrics here are asymptotically normal, and at that size the difference does not show. For the same reason
    resamples see at most 1,000 steps of a ranking. Values themselves always come from all points and all steps.

    Attributes:
        rows: the points that the resamples are of.
        counts: (resamples, rows).
        n_points: the number of all points.
    """

    rows: np.ndarray
    counts: np.ndarray
    n_points: int

    @classmethod
    def of(cls, n_points: int, resamples: Any, seed: Any, stream: int = 0) -> Resampling:
        """Resamples of so many points; another `stream` of the same seed is independent."""
        if not isinstance(resamples, numbers.Integral) or resamples < 0 or resamples == 1:
            raise InvalidValueError(f"resamples must be 0, for no spread, or 2 and more; 500 is usual, got {resamples!r}")
        if not isinstance(seed, numbers.Integral) or seed < 0:
            raise InvalidValueError(f"seed must be an integer that is not negative, got {seed!r}")
        rng = np.random.default_rng([int(seed), stream])  # NumPy mixes both numbers, so that streams are independent
        n = min(n_points, MOST_POINTS)
        rows = np.arange(n) if n == n_points else np.sort(rng.choice(n_points, n, replace=False))
        counts = np.empty((resamples, n))
        for row in counts:
            # The bootstrap as counts: all measures share them, and no point is copied.
            row[:] = np.bincount(rng.integers(0, n, n), minlength=n)
        return cls(rows, counts, n_points)

    @property
    def once(self) -> np.ndarray:
        """Every row once, scaled to all points, (1, rows): the metric without resampling."""
        # Average precision depends on how many points of each kind there are, so a part stands for all.
        return np.full((1, len(self.rows)), self.n_points / len(self.rows))

    @property
    def scaled(self) -> np.ndarray:
        """The counts, scaled to all points."""
        return self.counts * (self.n_points / len(self.rows))

    @property
    def shrink(self) -> float:
        """The spread over all points, divided by that over the rows."""
        return float(np.sqrt(len(self.rows) / self.n_points))

    def replicates(self, value: float, found: np.ndarray, undisturbed: np.ndarray) -> np.ndarray:
        """The metric in each resample, (resamples,), around its value over all points.

        Args:
            value: over all points.
            found: in resamples of the rows.
            undisturbed: over the rows without resampling, (1,).
        """
        return value + (found - undisturbed) * self.shrink


def not_worse(
    values: np.ndarray,
    replicates: np.ndarray,
    higher_is_better: bool,
    *,
    level: float = 0.95,
    margin: float = 0.0,
    degrees: int | None = None,
) -> np.ndarray:
    """Whether each measure is not significantly worse than the best, (measures,).

    A measure is dropped if another is better by more than chance explains, where chance is the largest of all its studentised
    differences in the resamples: the best of many noisy values is too good, and a test of each measure against it alone would
    drop nearly all of them on pure noise (Hsu 1981, multiple comparisons with the best; Hansen, Lunde and
    Nason 2011, the model confidence set). The best measure always stays.

    Args:
        values: (measures,).
        replicates: the same in paired resamples, (resamples, measures).
        higher_is_better: the direction.
        level: how often the truly best measure stays.
        margin: leads up to this do not count, however certain.
        degrees: of freedom of the noise, where it was estimated from a few runs: two runs that agree may do so by chance.
    """
    if not 0.0 < level < 1.0:
        raise InvalidValueError(f"level must be between 0 and 1, got {level}; 0.95 is usual")
    if margin < 0.0:
        raise InvalidValueError(f"margin must not be negative, got {margin}")
    sign = 1.0 if higher_is_better else -1.0
    noise = sign * (replicates - replicates.mean(axis=0))
    # Measures that rank alike differ by rounding, which studentising would blow up.
    rounding = SAME * noise.std(axis=0).max(initial=0.0)
    doubt = few_runs(degrees, noise.shape)
    stays = np.ones(len(values), dtype=bool)
    for i in range(len(values)):
        apart = noise - noise[:, [i]]
        scale = apart.std(axis=0)
        rivals = scale > rounding
        lead = sign * (values - values[i]) - margin
        if (lead[~rivals] > SAME * np.ptp(values)).any():  # a lead without any noise is certain
            stays[i] = False
            continue
        if not rivals.any():
            continue
        by_chance = np.quantile(np.max(doubt[:, rivals] * apart[:, rivals] / scale[rivals], axis=1), level)
        stays[i] = np.max(lead[rivals] / scale[rivals]) <= max(by_chance, 0.0)
    stays[np.argmax(sign * values)] = True
    return stays


def few_runs(degrees: int | None, shape: tuple[int, ...]) -> np.ndarray:
    """Factors that turn normal noise into that of a t distribution, because a spread from few runs is uncertain itself."""
    if degrees is None:
        return np.ones(shape)
    # With a fixed seed, so that a result has the same interval every time.
    return np.sqrt(degrees / np.random.default_rng(0).chisquare(degrees, shape))
