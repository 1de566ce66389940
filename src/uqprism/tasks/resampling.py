"""The bootstrap over points: every measure sees the same resamples, so that differences between measures are paired."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError

RESAMPLES = 500
MOST_POINTS = 20_000
MOST_STEPS = 1_000


@dataclass(frozen=True)
class Resampling:
    """How often each point is in each resample.

    Over more than 20,000 points the spread is measured on 20,000 of them, drawn at random, and scaled by the square root of the
    ratio: the metrics here are asymptotically normal, and at that size the difference does not show. For the same reason
    resamples see at most 1,000 steps of a ranking. Values themselves always come from all points and all steps.

    Attributes:
        rows: the points that the resamples are of.
        counts: (resamples, rows).
        n_points: of how many points.
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
        rng = np.random.default_rng([int(seed), stream])
        n = min(n_points, MOST_POINTS)
        rows = np.arange(n) if n == n_points else np.sort(rng.choice(n_points, n, replace=False))
        counts = np.empty((resamples, n))
        for row in counts:
            row[:] = np.bincount(rng.integers(0, n, n), minlength=n)
        return cls(rows, counts, n_points)

    @property
    def once(self) -> np.ndarray:
        """Every row once, as if they were all points: what the metric is without resampling, (1, rows)."""
        return np.full((1, len(self.rows)), self.n_points / len(self.rows))

    @property
    def scaled(self) -> np.ndarray:
        """The counts, as if the resamples were of all points."""
        return self.counts * (self.n_points / len(self.rows))

    @property
    def shrink(self) -> float:
        """How much narrower the spread over all points is than that over the rows."""
        return float(np.sqrt(len(self.rows) / self.n_points))

    def replicates(self, value: float, found: np.ndarray, undisturbed: np.ndarray) -> np.ndarray:
        """The metric in each resample, (resamples,), around its value over all points.

        Args:
            value: over all points.
            found: in resamples of the rows.
            undisturbed: over the rows as they are, (1,).
        """
        return value + (found - undisturbed) * self.shrink
