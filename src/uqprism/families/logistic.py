"""The logistic family."""

from __future__ import annotations

import math
from typing import ClassVar

from uqprism.arrays import Array, namespace
from uqprism.families.base import Family, families
from uqprism.families.elementwise import PointwiseForm, absolute, exp, log1p, where
from uqprism.families.panels import Landmarks
from uqprism.synonyms import named_arguments


def _numbers(d: Logistic) -> tuple[Array, ...]:
    return d.location, 1.0 / d.scale, -namespace(d.scale).log(d.scale)


def _log_density(y: Array, location: Array, inverse: Array, height: Array) -> Array:
    size = absolute(y - location) * inverse
    # The density is even; with -|z| the exponential cannot overflow.
    return height - size - 2.0 * log1p(exp(-size))


def _probability(y: Array, side: float, location: Array, inverse: Array, _: Array) -> Array:
    z = side * (y - location) * inverse
    tail = exp(-absolute(z))
    return where(z < 0.0, tail, 1.0) / (1.0 + tail)


@families.register("logistic")
class Logistic(Family):
    """Logistic distributions with this location and scale; the variance is (pi * scale)**2 / 3."""

    name = "logistic"
    parameters: ClassVar[dict[str, str]] = {"location": "location", "scale": "scale"}
    form = PointwiseForm(_numbers, _log_density, _probability)
    location: Array
    scale: Array

    @named_arguments(deviation="the standard deviation times sqrt(3) / pi")
    def __init__(self, *, location: Array, scale: Array, check: bool = True) -> None:
        super().__init__(check=check, location=location, scale=scale)

    @property
    def mean(self) -> Array:
        """The mean, which is the location."""
        return self.location

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        return math.pi**2 / 3.0 * self.scale * self.scale

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        z = (y - self.location) / self.scale
        xp = namespace(z)
        tail = xp.exp(-xp.abs(z))
        return xp.where(z < 0, tail, xp.ones_like(tail)) / (1.0 + tail)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        return self.cdf(2.0 * self.location - y)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        level = level + 0.0 * self.scale
        xp = namespace(level)
        return self.location + self.scale * (xp.log(level) - xp.log1p(-level))

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        z = (y - self.location) / self.scale
        xp = namespace(z)
        size = xp.abs(z)
        return self.scale * (size + 2.0 * xp.log1p(xp.exp(-size)))

    def landmarks(self) -> Landmarks:
        """The location, with tails that matter for 42 scales."""
        return Landmarks(self.location[None], self.scale[None], 42.0 * self.scale[None], (False,))  # exp(-42) is 6e-19
