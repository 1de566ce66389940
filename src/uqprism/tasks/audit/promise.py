"""What of a promise was kept, and the factor that corrects it: plain arithmetic on means by size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

AHEAD = 0.5  # doublings beyond the last to which a fall is followed


@dataclass(frozen=True)
class Correction:
    """How to correct the promise of a measure.

    When the training set doubles from the largest size on, the penalty falls by `factor` times the excess before, and the excess
    falls to `rate` times that. Doublings that agree within chance count together. The share falls as models learn, because the
    error that they have in common goes first: a fall beyond chance is followed half a doubling further, and of a rise the last
    doubling is taken.

    Attributes:
        factor: what one doubling removes, as a share of the excess.
        rate: what a doubling leaves of the excess; at most one.
    """

    factor: float
    rate: float

    def after(self, growth: float) -> float:
        """What so many times the rows remove, as a share of the excess before."""
        return self.factor * float(sums(self.rate, float(np.log2(growth))))


def sums(rate: float | np.ndarray, doublings: float) -> np.ndarray:
    """1 + rate + rate**2 + ..., for so many doublings; a part of a doubling counts in part."""
    rate = np.minimum(rate, 1.0)  # by rounding alone it is above
    near = np.abs(1.0 - rate) < 1e-9
    return np.where(near, doublings, (1.0 - rate**doublings) / np.where(near, 1.0, 1.0 - rate))


def doubled(promise: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """What each doubling removed of the penalty, as a share of the excess before it: (..., sizes) to (..., sizes - 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # models that agree promise nothing
        return (penalty[..., :-1] - penalty[..., 1:]) / promise[..., :-1]


def weights_of(replicates: np.ndarray | None, doublings: int) -> np.ndarray:
    """The weight of each measured doubling in the factor of the next one.

    Args:
        replicates: what each doubling removed, in resamples (resamples, doublings); without them the last doubling is taken.
        doublings: how many there are.
    """
    if replicates is None or doublings == 1:
        return np.eye(doublings)[-1]
    at = np.arange(doublings, dtype=float)
    known = 1.0 / np.maximum(replicates.var(axis=0, ddof=1), 1e-300)
    level = known / known.sum()
    away = at - level @ at
    slope = level * away / (level @ away**2)
    drift = replicates @ slope
    certain = 1.0 - min(1.0, float(drift.var(ddof=1)) / max(float(drift.mean()) ** 2, 1e-300))  # zero within its own error
    falling = level + (at[-1] + AHEAD - level @ at) * slope
    return np.asarray((1.0 - certain) * level + certain * (falling if drift.mean() < 0.0 else np.eye(doublings)[-1]))


def rate_of(promise: np.ndarray) -> np.ndarray:
    """What a doubling leaves of the excess, as a ratio: the geometric mean of all doublings, at most one."""
    doublings = promise.shape[-1] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.minimum((promise[..., -1] / promise[..., 0]) ** (1.0 / doublings), 1.0))


def correction(
    promise: np.ndarray, penalty: np.ndarray, replicates: tuple[np.ndarray, np.ndarray] | None
) -> tuple[Correction, np.ndarray | None, np.ndarray | None]:
    """The correction, and its factor and rate in resamples.

    Args:
        promise: the mean excess by size, (sizes,).
        penalty: the mean penalty by size, (sizes,).
        replicates: both in resamples, (resamples, sizes) each, or None.
    """
    shares = doubled(promise, penalty)
    drawn = None if replicates is None else doubled(*replicates)
    weights = weights_of(drawn, len(shares))
    found = Correction(float(shares @ weights), float(rate_of(promise)))
    if replicates is None or drawn is None:
        return found, None, None
    return found, drawn @ weights, rate_of(replicates[0])
