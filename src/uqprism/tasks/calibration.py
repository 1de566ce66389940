"""Calibration: do the intervals that an ensemble predicts hold as many targets as they say?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import Array, from_numpy, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import InvalidValueError
from uqprism.families import Draws
from uqprism.support.optional import require
from uqprism.tasks.scores import with_targets

LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20))  # rounded, because 0.05 * 3 is not 0.15
Levels = float | Sequence[float] | np.ndarray
VALUES_AT_ONCE = 1 << 22  # the distribution function of a mixture looks at every member


@dataclass(frozen=True, eq=False)
class Calibration:
    """The position of each target in its predicted distribution.

    Attributes:
        pit: the predicted probability of a value up to the target, (points,): the probability integral transform, which is
            uniform on [0, 1] for correct predictions.
    """

    pit: np.ndarray

    @property
    def n_points(self) -> int:
        """The number of targets."""
        return len(self.pit)

    def coverage(self, levels: Levels = LEVELS) -> np.ndarray:
        """The share of targets inside the central interval of each level, (levels,); 0.9 for 90 % intervals if they are right."""
        tail = (1.0 - _levels(levels)) / 2.0
        return np.array([np.mean((self.pit >= each) & (self.pit <= 1.0 - each)) for each in tail])

    def by_chance(self, levels: Levels = LEVELS, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest coverage, (levels,) each, expected by chance of correct predictions at independent points."""
        return _binomial(_levels(levels), self.n_points, confidence)

    def histogram(self, bins: int = 20) -> np.ndarray:
        """The number of targets in each of `bins` equally probable parts of their distributions, (bins,)."""
        if bins < 2:
            raise InvalidValueError(f"bins must be at least 2, got {bins}")
        return np.histogram(self.pit, bins=bins, range=(0.0, 1.0))[0]

    def histogram_by_chance(self, bins: int = 20, confidence: float = 0.95) -> tuple[float, float]:
        """The lowest and highest count that all bars together stay between by chance (Bonferroni), for correct predictions."""
        # Each bar alone is binomial; their joint range is only bounded.
        low, high = _binomial(np.array([1.0 / bins]), self.n_points, 1.0 - (1.0 - confidence) / bins)
        return float(low[0]) * self.n_points, float(high[0]) * self.n_points

    def verdict(self, level: float = 0.9) -> str:
        """`too narrow`, `too wide` or `about right`, where the last is any coverage that chance explains."""
        found, (low, high) = self.coverage(level)[0], self.by_chance(level)
        return "too narrow" if found < low[0] else "too wide" if found > high[0] else "about right"

    def rows(self, levels: Levels = LEVELS) -> list[dict[str, Any]]:
        """One row per level: the level, the coverage, and the range expected by chance."""
        low, high = self.by_chance(levels)
        columns = zip(_levels(levels), self.coverage(levels), low, high, strict=True)
        return [{"level": float(a), "coverage": float(b), "low": float(c), "high": float(d)} for a, b, c, d in columns]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row per level."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index("level")

    def plot(self, ax: Any = None) -> Any:
        """Draw the coverage by level; returns the axes."""
        from uqprism import plots

        return plots.coverage(self, ax=ax)

    def __repr__(self) -> str:
        return f"<Calibration: {self.n_points} targets, {self.coverage(0.9)[0]:.1%} within 90 % intervals>"


def calibration(ensemble: EnsemblePrediction, target: Array, *, seed: int = 0) -> Calibration:
    """The position of each target in its predicted mixture; exact for every family that has a distribution function.

    For members that are samples it is the rank of the target among the draws, at random among equal draws and between its two
    neighbours. It is uniform if target and draws come from one distribution, however few draws there are and however often
    they repeat.

    Args:
        ensemble: the predictions.
        target: the observed values, in the shape of the points.
        seed: of the random part of ranks among samples; nothing else is random.
    """
    flat, y = with_targets(ensemble, target)
    n_draws, rng = len(flat.members.draws) if isinstance(flat.members, Draws) else 1, np.random.default_rng(seed)
    step = max(1, VALUES_AT_ONCE // (flat.n_members * n_draws))
    found = []
    for start in range(0, len(y), step):
        part, own = flat[start : start + step], y[start : start + step]
        if isinstance(part.members, Draws):
            found.append(_ranks(part.members, part.weights, own, rng))
        else:
            found.append(to_numpy(part.mixture.cdf(from_numpy(own, part.members.centre))))
    # A weighted sum of probabilities may exceed 1 by rounding.
    return Calibration(np.clip(np.concatenate(found).astype(np.float64, copy=False), 0.0, 1.0))


def _ranks(members: Draws, member_weights: Array | None, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The weight of the draws below y, with a random part of the weight of those equal to it and of y as one draw more."""
    draws, weights = to_numpy(members.draws), to_numpy(members.weights)  # (draws, members, points)
    shares = np.full(draws.shape[1], 1.0 / draws.shape[1]) if member_weights is None else to_numpy(member_weights)
    # A target in double precision would equal no draw in single precision.
    weights, y = weights * shares.reshape(-1, 1), y.astype(draws.dtype)
    below, equal = (np.sum(weights * chosen, axis=(0, 1)) for chosen in (draws < y, draws == y))
    itself = np.sum(weights**2, axis=(0, 1))  # 1 / n for n equal weights
    # Among n draws of equal weight the target has n + 1 places; the random part makes all of them equally wide.
    return (below + rng.random(len(y)) * (equal + itself)) / (1.0 + itself)


def _levels(levels: Levels) -> np.ndarray:
    found = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    if not bool(np.all((found > 0.0) & (found < 1.0))):
        raise InvalidValueError(f"levels must be between 0 and 1, such as 0.9, got {levels!r}")
    return found


def _binomial(shares: np.ndarray, n_points: int, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    if not 0.0 < confidence < 1.0:
        raise InvalidValueError(f"confidence must be between 0 and 1, got {confidence}; 0.95 is usual")
    outside = (1.0 - confidence) / 2.0
    low, high = (_binomial_quantile(level, n_points, shares) / n_points for level in (outside, 1.0 - outside))
    return low, high


def _binomial_quantile(level: float, n: int, share: np.ndarray) -> np.ndarray:
    """The smallest count not exceeded with this probability: `scipy.stats.binom.ppf`, without its slow import."""
    from scipy.special import bdtr, bdtrik

    found = np.ceil(bdtrik(level, n, share))
    below = np.maximum(found - 1.0, 0.0)  # `bdtrik` rounds, and may be one count too high
    return np.where(bdtr(below, n, share) >= level, below, found)
