"""The Laplace family, and the closed forms between two of its members.

The difference of two Laplace variables is a divided difference, in the squared scales, of Laplace variables; near equal
scales the quotient cancels and is replaced by the integral of its derivative, a smooth function that eight nodes integrate
to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from uqprism.arrays import Array, exp_minus_linear, gamma_tail, laplace_tail, log_gap, namespace
from uqprism.families.base import Family, families
from uqprism.families.elementwise import PointwiseForm, absolute, exp, where
from uqprism.families.functionals import (
    absolute_gap,
    closed_form,
    cramer_distance,
    cross_entropy,
    density_distance,
    overlap,
    relative_entropy,
)
from uqprism.families.gaussian import Gaussian
from uqprism.families.panels import Landmarks
from uqprism.families.quadrature import gauss_legendre
from uqprism.synonyms import named_arguments


def _numbers(d: Laplace) -> tuple[Array, ...]:
    return d.location, 1.0 / d.scale, -namespace(d.scale).log(2.0 * d.scale)


def _log_density(y: Array, location: Array, inverse: Array, height: Array) -> Array:
    return height - absolute(y - location) * inverse


def _probability(y: Array, side: float, location: Array, inverse: Array, _: Array) -> Array:
    z = side * (y - location) * inverse
    tail = 0.5 * exp(-absolute(z))
    return where(z < 0.0, tail, 1.0 - tail)


@families.register("laplace")
class Laplace(Family):
    """Double exponential distributions with this location and scale; the variance is twice the squared scale."""

    name = "laplace"
    parameters: ClassVar[dict[str, str]] = {"location": "location", "scale": "scale"}
    form = PointwiseForm(_numbers, _log_density, _probability)
    location: Array
    scale: Array

    @named_arguments(deviation="the standard deviation divided by sqrt(2)")
    def __init__(self, *, location: Array, scale: Array, check: bool = True) -> None:
        super().__init__(check=check, location=location, scale=scale)

    @property
    def mean(self) -> Array:
        """The mean, which is the location."""
        return self.location

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        return 2.0 * self.scale * self.scale

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        z = (y - self.location) / self.scale
        xp = namespace(z)
        # The exponential of -|z| cannot overflow.
        tail = 0.5 * xp.exp(-xp.abs(z))
        return xp.where(z < 0, tail, 1.0 - tail)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        return self.cdf(2.0 * self.location - y)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        level = level + 0.0 * self.scale
        xp = namespace(level)
        z = xp.where(level < 0.5, xp.log(2.0 * level), -xp.log(2.0 * (1.0 - level)))
        return self.location + self.scale * z

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        xp = namespace(self.scale)
        shift = xp.abs(self.location - y)
        return shift + self.scale * xp.exp(-shift / self.scale)

    def landmarks(self) -> Landmarks:
        """A corner at the location, with tails that matter for 40 scales."""
        return Landmarks(self.location[None], self.scale[None], 40.0 * self.scale[None], (True,))  # exp(-40) is 4e-18


def _divided(p: Laplace, q: Laplace, function: Callable[[Array, Array], Array], slope: Callable[[Array, Array], Array]) -> Array:
    """The divided difference of function(b, D/b) in b**2 between two scales b; `slope` is its derivative in b**2."""
    xp = namespace(p.scale, q.scale)
    shift = xp.abs(p.location - q.location)
    b, c = p.scale + 0.0 * shift, q.scale + 0.0 * shift
    # Near means that the scales differ by a factor below 1.5.
    near = xp.abs(b - c) < 0.2 * (b + c)
    far_c = xp.where(near, 0.5 * b, c)  # no division by zero in the branch that is not used
    direct = (function(b, shift / b) - function(far_c, shift / far_c)) / ((b - far_c) * (b + far_c))
    near_c = xp.where(near, c, b)
    # A divided difference is the mean of the derivative over the interval, here of squared scales.
    integral = xp.zeros_like(b)
    for node, weight in zip(*gauss_legendre(8), strict=True):
        scale = xp.sqrt(near_c * near_c + float(node) * (b - near_c) * (b + near_c))
        integral = integral + float(weight) * slope(scale, shift / scale)
    return xp.where(near, integral, direct)


@closed_form(cramer_distance, Laplace, Laplace)
def _cramer_distance(p: Laplace, q: Laplace) -> Array:
    gap = p.scale - q.scale
    scales = gap * (gap / (4.0 * (p.scale + q.scale)))
    means = _divided(p, q, lambda b, x: b**3 * exp_minus_linear(x), lambda b, x: 0.5 * b * laplace_tail(x))
    return scales + means


@closed_form(density_distance, Laplace, Laplace)
def _density_distance(p: Laplace, q: Laplace) -> Array:
    xp = namespace(p.scale, q.scale)
    gap = p.scale - q.scale
    scales = (gap / p.scale) * (gap / q.scale) / (4.0 * (p.scale + q.scale))
    means = _divided(p, q, lambda b, x: -b * xp.expm1(-x), lambda b, x: 0.5 * gamma_tail(x) / b)
    return scales + means


@closed_form(absolute_gap, Laplace, Laplace)
def _absolute_gap(p: Laplace, q: Laplace) -> Array:
    # E|X - X'| / 2 is 3/4 of the scale; all terms are positive, so nothing cancels.
    return _cramer_distance(p, q) + 0.75 * (p.scale + q.scale)


@closed_form(overlap, Laplace, Laplace)
def _overlap(p: Laplace, q: Laplace) -> Array:
    """The density of X - Y at zero: a sum of positive terms, where 1/b + 1/c less the distance would cancel."""
    xp = namespace(p.scale, q.scale)
    return _divided(p, q, lambda b, x: 0.5 * b * xp.exp(-x), lambda b, x: 0.25 * (1.0 + x) * xp.exp(-x) / b)


@closed_form(relative_entropy, Laplace, Laplace)
def _relative_entropy(truth: Laplace, prediction: Laplace) -> Array:
    xp = namespace(truth.scale, prediction.scale)
    ratio = truth.scale / prediction.scale
    gap = (truth.scale - prediction.scale) / prediction.scale
    shift = xp.abs(truth.location - prediction.location) / truth.scale
    return log_gap(gap, ratio) + ratio * exp_minus_linear(shift)


@closed_form(cross_entropy, Family, Laplace)
def _cross_entropy(truth: Family, prediction: Laplace) -> Array:
    """Only the truth's mean distance from the location counts, whatever its family."""
    xp = namespace(prediction.scale)
    return xp.log(2.0 * prediction.scale) + truth.absolute_deviation(prediction.location) / prediction.scale


@closed_form(relative_entropy, Laplace, Gaussian)
def _relative_entropy_to_gaussian(truth: Laplace, prediction: Gaussian) -> Array:
    """A Laplace is never close to a Gaussian (at least 0.07 nats apart), so subtracting costs nothing."""
    entropy = 1.0 + namespace(truth.scale).log(2.0 * truth.scale)
    return cross_entropy(truth, prediction) - entropy


@closed_form(relative_entropy, Gaussian, Laplace)
def _relative_entropy_of_gaussian(truth: Gaussian, prediction: Laplace) -> Array:
    """A Gaussian is never close to a Laplace (at least 0.05 nats apart), so subtracting costs nothing."""
    entropy = 0.5 * math.log(2.0 * math.pi * math.e) + namespace(truth.scale).log(truth.scale)
    return cross_entropy(truth, prediction) - entropy
