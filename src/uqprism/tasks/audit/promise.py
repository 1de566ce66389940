"""What of a promise was kept, and the factor that corrects it: plain arithmetic on means by size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Chosen on sets of known truth, each judged by what suits the others (benchmarks/RESULTS-audit.md).
RETURN = 0.8  # what a doubling leaves of the share beyond face value
WANDER = 0.5  # how far the share wanders in a doubling, relative to itself
SPREAD = 0.25  # how far factors are off beyond what resamples tell, relative to themselves
FOUND = 0.65  # the same upwards: some models find with more rows what no audit of fewer can foresee


@dataclass(frozen=True)
class Correction:
    """How to correct the promise of a measure.

    When the training set doubles from the largest size on, the penalty falls by `factor` times the excess before, and the excess
    falls to `rate` times that. A promise that is kept at face value loses with a doubling what the excess loses, 1 - `rate` of
    it. Models that still find structure lose more, which no excess contains; with every doubling a fifth of that is found.

    Attributes:
        factor: what the next doubling removes, as a share of the excess.
        rate: what a doubling leaves of the excess; at most one.
        settles: the share to which that of later doublings returns: face value, or the factor where that is less.
    """

    factor: float
    rate: float
    settles: float

    def after(self, growth: float) -> float:
        """What so many times the rows remove, as a share of the excess before."""
        return float(removed(self.factor, self.rate, self.settles, growth))


def removed(factor: np.ndarray | float, rate: np.ndarray | float, settles: np.ndarray | float, growth: float) -> np.ndarray:
    """What so many times the rows remove, as a share of the excess before."""
    doublings = float(np.log2(growth))
    return np.asarray(settles * sums(rate, doublings) + (factor - settles) * sums(RETURN * rate, doublings))


def sums(rate: float | np.ndarray, doublings: float) -> np.ndarray:
    """1 + rate + rate**2 + ..., for so many doublings; a part of a doubling counts in part."""
    rate = np.minimum(rate, 1.0)  # by rounding alone it is above
    near = np.abs(1.0 - rate) < 1e-9
    return np.where(near, doublings, (1.0 - rate**doublings) / np.where(near, 1.0, 1.0 - rate))


def doubled(promise: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """What each doubling removed of the penalty, as a share of the excess before it: (..., sizes) to (..., sizes - 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # models that agree promise nothing
        return (penalty[..., :-1] - penalty[..., 1:]) / promise[..., :-1]


def weights_of(shares: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The weight of each measured doubling in the share beyond face value that is there at the last.

    A Kalman filter: from doubling to doubling that share returns by `RETURN` and wanders by `WANDER`, and each was measured with
    an error of its own. Exact measurements give all weight to the last; uncertain ones count together.

    Args:
        shares: what each doubling removed, (doublings,).
        variances: of their errors, (doublings,).
    """
    steps = np.eye(len(shares))
    wander = max(WANDER**2 * float(np.mean(shares**2)), 1e-300)
    weights, variance = steps[0], float(variances[0])
    for step, error in zip(steps[1:], variances[1:], strict=True):
        variance = RETURN**2 * variance + wander
        gain = variance / (variance + float(error))
        weights, variance = (1.0 - gain) * RETURN * weights + gain * step, (1.0 - gain) * variance
    return weights


def rate_of(promise: np.ndarray) -> np.ndarray:
    """What a doubling leaves of the excess, as a ratio: the geometric mean of all doublings, at most one."""
    doublings = promise.shape[-1] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.minimum((promise[..., -1] / promise[..., 0]) ** (1.0 / doublings), 1.0))


def correction(
    promise: np.ndarray, penalty: np.ndarray, replicates: tuple[np.ndarray, np.ndarray] | None
) -> tuple[Correction, tuple[np.ndarray, np.ndarray, np.ndarray] | None]:
    """The correction, and its factor, rate and settled share in resamples.

    Args:
        promise: the mean excess by size, (sizes,).
        penalty: the mean penalty by size, (sizes,).
        replicates: both in resamples, (resamples, sizes) each, or None.
    """
    shares, rate = doubled(promise, penalty), rate_of(promise)
    drawn = None if replicates is None else doubled(*replicates)
    with np.errstate(invalid="ignore"):  # models that agree promise nothing
        weights = weights_of(shares, np.zeros(len(shares)) if drawn is None else drawn.var(axis=0, ddof=1))
        found = Correction(*map(float, _next(shares, rate, weights)))
        if replicates is None or drawn is None:
            return found, None
        return found, _next(drawn, rate_of(replicates[0]), weights)


def _next(shares: np.ndarray, rate: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The factor of the next doubling, the rate, and the share to which later ones return."""
    face = 1.0 - rate
    beyond = (shares - face[..., None]) @ weights
    # Less than face value stays so: an audit promises no more than it has seen.
    factor = face + np.where(beyond > 0.0, RETURN * beyond, beyond)
    return factor, rate, np.minimum(face, factor)


def widened(value: float, ends: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval from resamples, moved apart by how far factors are off on other sets."""
    below, above = (1.96 * share * abs(value) for share in (SPREAD, FOUND))
    return value - float(np.hypot(value - ends[0], below)), value + float(np.hypot(ends[1] - value, above))
