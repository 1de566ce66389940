"""Gaussians whose values outside two bounds lie at the bounds."""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar

from uqprism.arrays import LOG_2PI, Array, constant, log_normal_cdf, namespace, normal_cdf, normal_quantile
from uqprism.families.base import families
from uqprism.families.elementwise import PointwiseForm
from uqprism.families.truncated_gaussian import FAR, Bounded, log_density_between, log_mass


def _log_shape(z: Array) -> Array:
    return -0.5 * z * z


def _numbers(d: CensoredGaussian) -> tuple[Array, ...]:
    """Of the density between the bounds; `atoms` holds the rest."""
    return d.low, d.high, d.location, 1.0 / d.scale, -0.5 * LOG_2PI - namespace(d.scale).log(d.scale)


@families.register("censored_gaussian")
class CensoredGaussian(Bounded):
    """Gaussians of which values outside two bounds are seen as the bounds, which then have probabilities of their own.

    The log density of a value at a bound is the logarithm of its probability. The quadratic rule is refused.

    Args:
        location: the mean of the Gaussian before it is censored.
        scale: its standard deviation.
        low: the lower bound, perhaps minus infinity.
        high: the upper bound, perhaps infinity.
    """

    name = "censored_gaussian"
    form = PointwiseForm(_numbers, log_density_between)
    given: ClassVar[dict[str, str]] = dict(Bounded.parameters)
    # A probability counts as a density over one unit of y, whatever the unit in which y is expressed.
    parameters: ClassVar[dict[str, str]] = {**Bounded.parameters, "atom": "scale"}
    atom: Array

    def __init__(
        self, *, location: Array, scale: Array, low: Array = -math.inf, high: Array = math.inf, check: bool = True
    ) -> None:
        super().__init__(location=location, scale=scale, low=low, high=high, check=check)
        self.atom = namespace(self.scale).ones_like(self.scale)

    @cached_property
    def atoms(self) -> list[tuple[Array, Array]]:
        """The bounds and the logarithms of their probabilities."""
        a, b = self.ends
        xp = namespace(a)
        found = []
        for bound, z in ((self.low, a), (self.high, -b)):
            there = constant(xp.abs(z)) < FAR
            log_probability = log_normal_cdf(xp.where(there, z, xp.zeros_like(z)))
            # A bound at which all lies has probability one also where it is far.
            beyond = xp.where(z > 0.0, xp.zeros_like(z), xp.full_like(z, -math.inf))
            found.append((bound, xp.where(there, log_probability, beyond)))
        return found

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self._pivot + self._offset

    @property
    def _pivot(self) -> Array:
        return self.top

    @cached_property
    def _parts(self) -> list[tuple[Array, Array, Array]]:
        """Probability, offset from the pivot and variance of what lies at the bounds and between them."""
        xp = namespace(self.scale)
        parts = []
        for bound, log_probability in self.atoms:
            there = log_probability > -math.inf
            offset = xp.where(there, xp.where(there, bound, self._pivot) - self._pivot, xp.zeros_like(self.scale))
            parts.append((xp.exp(log_probability), offset, 0.0 * offset))
        inside = xp.exp(log_mass(*self.ends))
        return [*parts, (inside, self.scale * self.moments.mean, self.scale * self.scale * self.moments.variance)]

    @cached_property
    def _offset(self) -> Array:
        return sum(p * offset for p, offset, _ in self._parts)

    @cached_property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        mean = self._offset
        return sum(p * (variance + (offset - mean) ** 2) for p, offset, variance in self._parts)

    def log_density(self, y: Array) -> Array:
        """The log density at y; at a bound, the logarithm of its probability over a length of one."""
        z = self._between(y)
        xp = namespace(z)
        value = _log_shape(z) - 0.5 * LOG_2PI - xp.log(self.scale)
        value = xp.where((y > self.low) & (y < self.high), value, xp.full_like(value, -math.inf))
        for bound, log_probability in self.atoms:
            value = xp.where(y == bound, log_probability - xp.log(self.atom), value)
        return value

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        value = normal_cdf(self._between(y))
        xp = namespace(value)
        return xp.where(y >= self.high, xp.ones_like(value), xp.where(y < self.low, xp.zeros_like(value), value))

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        value = normal_cdf(-self._between(y))
        xp = namespace(value)
        return xp.where(y >= self.high, xp.zeros_like(value), xp.where(y < self.low, xp.ones_like(value), value))

    def quantile(self, level: Array) -> Array:
        """The smallest value that Y does not exceed with at least this probability."""
        value = self.location + self.scale * normal_quantile(level + 0.0 * self.scale)
        xp = namespace(value)
        return xp.minimum(xp.maximum(value, self.low), self.high)
