"""The bootstrap over points, paired between measures, and which measures it does not tell from the best."""

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


SAME = 1e-9  # differences below this share of the usual noise are rounding


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

    A measure leaves when some other is better by more than chance explains, where chance is the largest of all its studentised
    differences in the resamples: the best of many noisy values is too good to be true, and a test of each measure against it
    alone would throw out nearly all of them on pure noise (Hsu 1981, multiple comparisons with the best; Hansen, Lunde and
    Nason 2011, the model confidence set). The best itself always stays.

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
    """What turns normal noise into that of a t distribution, as factors: how wrong a spread from few runs may be."""
    if degrees is None:
        return np.ones(shape)
    return np.sqrt(degrees / np.random.default_rng(0).chisquare(degrees, shape))
