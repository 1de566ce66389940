"""What lies outside the outermost edges of bars or quantiles: probability that falls like an exponential or like a Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from uqprism.arrays import LOG_2PI, SQRT_2, SQRT_PI, Array, constant, namespace, normal_cdf, normal_quantile


@dataclass(frozen=True)
class Tail:
    """The distribution of the distance from an edge, outwards: exponential, or a Gaussian cut off `start` scales from its centre.

    A half-normal distribution starts at the centre. Functions take distances in scales, or the scale itself.
    """

    kind: Literal["exponential", "gaussian"]
    start: float = 0.0

    @property
    def is_gaussian(self) -> bool:
        """True if it falls like a Gaussian."""
        return self.kind == "gaussian"

    @cached_property
    def _above(self) -> float:
        """The probability of a standard Gaussian above the start."""
        return 0.5 * math.erfc(self.start / SQRT_2)

    @cached_property
    def _hazard(self) -> float:
        """A standard Gaussian's density at the start over the probability above it, which is its mean there."""
        return math.exp(-0.5 * (self.start**2 + LOG_2PI)) / self._above

    @cached_property
    def half(self) -> float:
        """The distance in scales within which half of the probability lies."""
        if not self.is_gaussian:
            return math.log(2.0)
        from scipy.special import ndtri

        return float(-ndtri(0.5 * self._above)) - self.start

    @property
    def reach(self) -> float:
        """The distance in scales beyond which nothing counts."""
        return 9.0 - min(self.start, 8.0) if self.is_gaussian else 40.0

    @property
    def places(self) -> tuple[tuple[float, float], ...]:
        """Distances in scales, each with the length over which this and any other tail there are smooth together."""
        # Where two tails of different scales cross, the logarithm of their sum bends within about one scale.
        step, width = (1.2, 0.6) if self.is_gaussian else (5.0, 2.5)
        return tuple((i * step, width) for i in range(math.ceil(self.reach / step)))

    @property
    def mean(self) -> float:
        """The mean distance in scales."""
        return self._hazard - self.start if self.is_gaussian else 1.0

    @property
    def square(self) -> float:
        """The mean squared distance in squared scales."""
        return 1.0 + self.start * (self.start - self._hazard) if self.is_gaussian else 2.0

    @property
    def squared_survival(self) -> float:
        """The integral of the squared probability above a distance, in scales."""
        if not self.is_gaussian:
            return 0.5
        z, density = self.start, self._hazard * self._above
        return (2.0 * density - z * self._above) / self._above - 0.5 * math.erfc(z) / SQRT_PI / self._above**2

    @property
    def squared_density(self) -> float:
        """The integral of the squared density times the scale."""
        return 0.25 * math.erfc(self.start) / SQRT_PI / self._above**2 if self.is_gaussian else 0.5

    @property
    def entropy(self) -> float:
        """The differential entropy for a scale of one."""
        if not self.is_gaussian:
            return 1.0
        return 0.5 * LOG_2PI + math.log(self._above) + 0.5 * (1.0 + self.start * self._hazard)

    def log_density(self, x: Array) -> Array:
        """The log density at a distance, for a scale of one."""
        if not self.is_gaussian:
            return -x
        z = self.start + x
        return -0.5 * (z * z + LOG_2PI) - math.log(self._above)

    def survival(self, x: Array) -> Array:
        """The probability above a distance."""
        return normal_cdf(-self.start - x) / self._above if self.is_gaussian else namespace(x).exp(-x)

    def excess(self, x: Array) -> Array:
        """The integral of the probability above a distance and beyond."""
        if not self.is_gaussian:
            return namespace(x).exp(-x)
        z = self.start + x
        density = namespace(z).exp(-0.5 * (z * z + LOG_2PI))
        return (density - z * normal_cdf(-z)) / self._above

    def quantile(self, above: Array) -> Array:
        """The distance above which so much of the probability lies."""
        if self.is_gaussian:
            return -normal_quantile(above * self._above) - self.start
        return -namespace(above).log(above)


def or_one(x: Array) -> Array:
    """x where it is positive and one elsewhere: to divide by, or to take the logarithm of."""
    xp = namespace(x)
    return xp.where(constant(x) > 0.0, x, xp.ones_like(x))
