"""The Weibull family."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from uqprism.arrays import Array, constant, is_traced, log_gamma, namespace, polynomial
from uqprism.errors import UnsupportedError
from uqprism.families.base import families
from uqprism.families.elementwise import NOWHERE, PointwiseForm, exp, log, where
from uqprism.families.functionals import SLOW, absolute_gap, closed_form, cross_entropy, overlap
from uqprism.families.incomplete import gamma_cdf
from uqprism.families.positive import Positive, above, deep_quantile, one_bound
from uqprism.synonyms import named_arguments

EULER = 0.57721566490153286


def _numbers(d: Weibull) -> tuple[Array, ...]:
    return d.low, 1.0 / d.scale, d.shape, namespace(d.scale).log(d.shape / d.scale)


def _log_density(y: Array, low: Array, inverse: Array, shape: Array, height: Array) -> Array:
    x = (y - low) * inverse
    u = log(where(x > 0.0, x, 1.0))
    return where(x > 0.0, height + (shape - 1.0) * u - exp(shape * u), NOWHERE)


def _zeta(n: int) -> float:
    """Riemann's zeta function, by the formula of Euler and Maclaurin from 100 on."""
    head = math.fsum(k**-n for k in range(1, 100))
    tail = 100.0 ** (1 - n) / (n - 1) + 0.5 * 100.0**-n + n * 100.0 ** (-n - 1) / 12.0
    return head + tail - n * (n + 1) * (n + 2) * 100.0 ** (-n - 3) / 720.0


# The series of log gamma(1 + 2 h) - 2 log gamma(1 + h) over h**2, which keeps its digits for h below 0.1.
_SERIES = [(-1.0) ** n * _zeta(n) / n * (2.0**n - 2.0) for n in range(2, 26)]


@families.register("weibull")
class Weibull(Positive):
    """Weibull distributions: P(Y > y) = exp(-(y / scale)**shape).

    For shapes below one the density is infinite at zero. Up to 1/2 its square has no integral: quadratic Bayes risks are then
    minus infinity, quadratic excesses and totals infinity.
    """

    name = "weibull"
    form = PointwiseForm(_numbers, _log_density)
    given: ClassVar[dict[str, str]] = {"shape": "shape", "scale": "scale"}
    parameters: ClassVar[dict[str, str]] = {"low": "location", "shape": "shape", "scale": "scale"}
    ranges: ClassVar[dict[str, tuple[float, float, str]]] = {"shape": (0.1, 1e6, "leave out members beyond")}
    shape: Array
    scale: Array

    @named_arguments()
    def __init__(self, *, shape: Array, scale: Array, check: bool = True) -> None:
        super().__init__(check=check, shape=shape, scale=scale)

    @property
    def size(self) -> Array:
        """The scale."""
        return self.scale

    @property
    def mean_above(self) -> Array:
        """The mean less the bound."""
        xp = namespace(self.shape)
        return self.scale * xp.exp(log_gamma(1.0 + 1.0 / self.shape))

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self.low + self.mean_above

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        h = 1.0 / self.shape
        xp = namespace(h)
        near = h < 0.1
        small, large = xp.where(near, h, 0.0 * h), xp.where(near, xp.ones_like(h), h)
        gap = xp.where(
            near, small * small * polynomial(small, _SERIES), log_gamma(1.0 + 2.0 * large) - 2.0 * log_gamma(1.0 + large)
        )
        return self.mean_above**2 * xp.expm1(gap)

    def reshaped(self, centre: Array, noise: float) -> Self:
        """With this mean, and a logarithm that is `noise` times as wide."""
        low, high, _ = self.ranges["shape"]
        clone = self.map(lambda x: x)
        clone.shape = namespace(self.shape).clip(self.shape / noise, low, high)
        clone.scale = centre / namespace(self.shape).exp(log_gamma(1.0 + 1.0 / clone.shape))
        return clone

    @property
    def square_power(self) -> Array:
        """Positive for shapes above 1/2."""
        return 2.0 * constant(self.shape) - 1.0

    def differences(self, *, spikes: bool) -> Array:
        """In units in which both parameters change the distribution much."""
        shape, scale = constant(self.shape), constant(self.scale)
        xp = namespace(shape)
        found = [xp.max(xp.abs(x - x[0]), axis=0) / xp.min(x, axis=0) for x in (shape, scale)]
        return xp.clip(xp.max(shape, axis=0), 1.0, None) * xp.maximum(*found)

    def _hazard(self, y: Array) -> tuple[Array, Array]:
        x, inside = self.distance(y)
        xp = namespace(x)
        return xp.exp(self.shape * xp.log(x)), inside

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        t, inside = self._hazard(y)
        return above(inside, -namespace(t).expm1(-t), 0.0)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        t, inside = self._hazard(y)
        return above(inside, namespace(t).exp(-t), 1.0)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        level = level + 0.0 * self.scale
        xp = namespace(level)
        return self.low + self.scale * (-xp.log1p(-level)) ** (1.0 / self.shape)

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        t, inside = self._hazard(y)
        xp = namespace(t)
        shift, mean, power = y - self.low, self.mean_above, 1.0 + 1.0 / self.shape
        # The share of the mean that lies below y is that of a gamma distribution.
        share = gamma_cdf(power + 0.0 * t, t, above=True) - gamma_cdf(power + 0.0 * t, t)
        value = shift * (-xp.expm1(-t) - xp.exp(-t)) + mean * share
        return xp.where(inside, value, mean - shift)

    @property
    def power_at_bound(self) -> Array:
        """The shape."""
        return constant(self.shape)

    def marks(self) -> tuple[list[tuple[Array, Array]], Array]:
        """The median, and a distance below which next to nothing lies."""
        k, scale = constant(self.shape), constant(self.scale)
        xp = namespace(k)
        median = scale * math.log(2.0) ** (1.0 / k)
        deep = scale * deep_quantile(k, 0.0 * k)
        end = scale * (45.0 + 2.0 / k + 9.0 * xp.sqrt(2.0 / k)) ** (1.0 / k)
        return [(median, xp.minimum(0.5 * median, 0.8 * scale / k)), (deep, 0.5 * deep)], end


@closed_form(absolute_gap, Weibull, Weibull)
def _absolute_gap(p: Weibull, q: Weibull) -> Array:
    """For a distribution and itself the smaller of two values is a Weibull too; by quadrature for two."""
    xp = namespace(p.shape)
    return -2.0 * p.mean_above * xp.expm1(-math.log(2.0) / p.shape) if p is q else absolute_gap.fallback(p, q)


@closed_form(overlap, Weibull, Weibull)
def _overlap(p: Weibull, q: Weibull) -> Array:
    """Infinite where the shapes sum to one or less; in closed form for a distribution and itself."""
    power = p.shape + q.shape - 1.0
    xp = namespace(power)
    exists = power > 0.0
    if p is q:
        order = xp.where(exists, 2.0 - 1.0 / p.shape, xp.ones_like(power))
        value = p.shape / p.scale * xp.exp(log_gamma(order) - order * math.log(2.0))
    else:
        value = overlap.fallback(p, q)
        # With a shape up to 1/2 all that this is part of is infinite.
        both = xp.minimum(constant(p.shape) + 0.0 * constant(power), constant(q.shape) + 0.0 * constant(power)) > 0.5
        slow = both & (constant(power) < SLOW)
        if not is_traced(slow) and bool(xp.any(slow)):
            raise UnsupportedError(
                f"quadratic needs Weibull shapes up to 1/2, where it is infinite, or above {0.5 + 0.5 * SLOW:g}; between these "
                "most of the square of the density lies closer to zero than any number"
            )
    return xp.where(exists, value, xp.full_like(value, math.inf))


@closed_form(cross_entropy, Weibull, Weibull)
def _cross_entropy(truth: Weibull, prediction: Weibull) -> Array:
    """From the means of the logarithm and of a power of Y."""
    xp = namespace(truth.shape, prediction.shape)
    log_ratio = xp.log(truth.scale / prediction.scale)
    ratio = prediction.shape / truth.shape
    power = xp.exp(prediction.shape * log_ratio + log_gamma(1.0 + ratio))
    mean_log = log_ratio - EULER / truth.shape
    value = power - (prediction.shape - 1.0) * mean_log - xp.log(prediction.shape / prediction.scale)
    return one_bound(cross_entropy, truth, prediction, value)
