"""Points in the order of a score, where equal scores are one step: the one sort on which all tasks stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError


@dataclass(frozen=True)
class Ranking:
    """Points from the lowest score to the highest, in steps.

    Attributes:
        steps: which step each point is on, (points,); equal scores are on one step.
        n_steps: how many there are.
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
            total[1:] = np.bincount(self.steps, row, self.n_steps)
        return np.cumsum(found, axis=1, out=found)


def tied_ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value (n,), 1 for the lowest; equal values have the mean of the ranks they take up together."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - 0.5 * (sizes - 1.0))[group.reshape(-1)]


@dataclass(frozen=True, eq=False)
class AverageRanks:
    """Who came first, second, ... on average over runs; 1 is the best.

    Attributes:
        mean: the mean rank by name.
        spread: the standard deviation of the ranks over runs by name; NaN with a single run.
        ranks: by name, one for each run, (runs,).
    """

    mean: Mapping[str, float]
    spread: Mapping[str, float]
    ranks: Mapping[str, np.ndarray]


def average_ranks(values: Mapping[str, Any], *, higher_is_better: bool = False) -> AverageRanks:
    """Rank what is compared in each run, ties averaged, and average the ranks over runs.

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
