"""What of a promise was kept, and the factor that corrects it: plain arithmetic on means by size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

AGREE = 2.0  # standard errors within which an earlier doubling counts as equal to the later ones


@dataclass(frozen=True)
class Correction:
    """How to correct the promise of a measure.

    When the training set doubles from m to 2m rows, the penalty falls by `factor` times the excess at m, and the excess at 2m
    is `rate` times that at m. Both are measured on the largest training sets; smaller ones count where they agree with these
    within chance, because models of very few rows learn in other ways.

    Attributes:
        factor: what one doubling removes, as a share of the excess.
        rate: what a doubling leaves of the excess; at most one.
    """

    factor: float
    rate: float

    def after(self, growth: float) -> float:
        """What so many times the rows remove, as a share of the excess before."""
        return self.factor * sums(self.rate, np.log2(growth))


def sums(rate: float | np.ndarray, doublings: float) -> float | np.ndarray:
    """1 + rate + rate**2 + ..., for so many doublings; a part of a doubling counts in part."""
    rate = np.minimum(rate, 1.0)
    near = np.abs(1.0 - rate) < 1e-9
    found = np.where(near, doublings, (1.0 - rate**doublings) / np.where(near, 1.0, 1.0 - rate))
    return found if np.ndim(rate) else float(found)


def doubled(promise: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """What each doubling removed of the penalty, as a share of the excess before it: (..., sizes) to (..., sizes - 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # models that agree promise nothing
        return (penalty[..., :-1] - penalty[..., 1:]) / promise[..., :-1]


def weights_of(shares: np.ndarray, replicates: np.ndarray | None) -> np.ndarray:
    """The weight of each doubling in the factor: the last one, and with replicates those before it that agree with it.

    Args:
        shares: of each doubling, (doublings,).
        replicates: the same in resamples, (resamples, doublings), or None.
    """
    weights = np.zeros(len(shares))
    weights[-1] = 1.0
    if replicates is None:
        return weights
    variance = np.maximum(replicates.var(axis=0, ddof=1), 1e-300)
    for first in range(len(shares) - 2, -1, -1):
        later = replicates @ weights
        error = float(np.std(replicates[:, first] - later, ddof=1))
        if not abs(shares[first] - shares @ weights) <= AGREE * error:
            break
        weights[first:] = 1.0 / variance[first:]
        weights /= weights.sum()
    return weights


def rate_of(promise: np.ndarray, weights: np.ndarray) -> np.ndarray | float:
    """What a doubling leaves of the excess: the mean of the same doublings, as ratios."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(promise[..., 1:]) - np.log(promise[..., :-1])
    counted = np.where(weights > 0.0, logs, 0.0)
    return np.minimum(np.exp(counted @ weights), 1.0)


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
    weights = weights_of(shares, drawn)
    found = Correction(float(shares @ weights), float(rate_of(promise, weights)))
    if replicates is None or drawn is None:
        return found, None, None
    return found, drawn @ weights, np.asarray(rate_of(replicates[0], weights))
