"""The gamma family."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from uqprism.arrays import (
    LOG_2PI,
    Array,
    constant,
    from_numpy,
    is_jax,
    is_torch,
    is_traced,
    log_gamma,
    namespace,
    on_device,
    to_numpy,
)
from uqprism.families.base import families, with_gradient
from uqprism.families.elementwise import NOWHERE, PointwiseForm, log, log_gap, where
from uqprism.families.functionals import absolute_gap, closed_form, cross_entropy, overlap, relative_entropy
from uqprism.families.incomplete import beta_cdf, gamma_cdf, trigamma
from uqprism.families.positive import Positive, above, deep_quantile, one_bound
from uqprism.families.quadrature import gauss_legendre
from uqprism.families.stirling import log_beta_power, log_less_digamma, stirling_error
from uqprism.synonyms import named_arguments


def _numbers(d: Gamma) -> tuple[Array, ...]:
    at_mean = -0.5 * (LOG_2PI + log(d.shape)) - stirling_error(d.shape) - log(d.scale)
    return d.low, d.mean, 1.0 / (d.shape * d.scale), d.shape - 1.0, at_mean


def _log_density(y: Array, low: Array, mean: Array, inverse: Array, power: Array, at_mean: Array) -> Array:  # noqa: PLR0917
    # Relative to the mean, or large terms would cancel for large shapes.
    inside = y > low
    step = (y - mean) * inverse
    return where(inside, at_mean - power * log_gap(step, where(inside, (y - low) * inverse, 1.0)) - step, NOWHERE)


@families.register("gamma")
class Gamma(Positive):
    """Gamma distributions with this shape and scale: the mean is shape * scale, the variance shape * scale**2.

    For shapes below one the density is infinite at zero. Up to 1/2 its square has no integral: quadratic Bayes risks are then
    minus infinity, quadratic excesses and totals infinity.
    """

    name = "gamma"
    form = PointwiseForm(_numbers, _log_density)
    given: ClassVar[dict[str, str]] = {"shape": "shape", "scale": "scale"}
    parameters: ClassVar[dict[str, str]] = {"low": "location", "shape": "shape", "scale": "scale"}
    ranges: ClassVar[dict[str, tuple[float, float, str]]] = {
        "shape": (0.05, 1e10, "smaller ones are zero to all digits, larger ones Gaussian"),
    }
    shape: Array
    scale: Array

    @named_arguments(deviation="the standard deviation divided by the root of the shape")
    def __init__(self, *, shape: Array, scale: Array, check: bool = True) -> None:
        super().__init__(check=check, shape=shape, scale=scale)

    @property
    def size(self) -> Array:
        """The scale."""
        return self.scale

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self.low + self.shape * self.scale

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        return self.shape * self.scale * self.scale

    def reshaped(self, centre: Array, noise: float) -> Self:
        """With this mean, and a coefficient of variation that is `noise` times as large."""
        low, high, _ = self.ranges["shape"]
        clone = self.map(lambda x: x)
        clone.shape = namespace(self.shape).clip(self.shape / noise**2, low, high)
        clone.scale = centre / clone.shape
        return clone

    @property
    def square_power(self) -> Array:
        """Positive for shapes above 1/2."""
        return 2.0 * constant(self.shape) - 1.0

    def differences(self, *, spikes: bool) -> Array:
        """In units in which mean and scale change by about one standard deviation."""
        shape, scale = constant(self.shape), constant(self.scale)
        xp = namespace(shape)
        # A relative change of either moves the mean by this many standard deviations.
        steep = xp.clip(xp.sqrt(xp.max(shape, axis=0)), 1.0, None)
        found = [xp.max(xp.abs(x - x[0]), axis=0) / xp.min(x, axis=0) for x in (shape, scale)]
        return steep * xp.maximum(*found)

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        x, inside = self.distance(y)
        return above(inside, gamma_cdf(self.shape, x), 0.0)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        x, inside = self.distance(y)
        return above(inside, gamma_cdf(self.shape, x, above=True), 1.0)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        # SciPy needs values on the host, which traced arrays do not have; bisection does without.
        if any(is_traced(x) or on_device(x) for x in (*self.arrays(), level)):
            return super().quantile(level)
        import scipy.special

        x = from_numpy(scipy.special.gammaincinv(to_numpy(self.shape), to_numpy(level)), self.scale)
        quantile = constant(self.low) + constant(self.scale) * x
        return with_gradient(self, quantile, level) if is_torch(x) or is_jax(x) else quantile

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        x, inside = self.distance(y)
        xp = namespace(x)
        # Twice y**2 times the density, which is what lies beyond y of the mean but not of the probability.
        edge = 2.0 * x * self.scale * xp.exp(self.log_density(y))
        value = (x - self.shape) * (2.0 * gamma_cdf(self.shape, x) - 1.0) + edge
        return xp.where(inside, self.scale * value, self.mean - y)

    @property
    def power_at_bound(self) -> Array:
        """The shape."""
        return constant(self.shape)

    def marks(self) -> tuple[list[tuple[Array, Array]], Array]:
        """The mean, and a distance below which next to nothing lies."""
        k, scale = constant(self.shape), constant(self.scale)
        xp = namespace(k)
        root = xp.sqrt(k)
        middle, width = scale * k, scale * xp.where(k > 1.0, root, k)
        deep = scale * deep_quantile(k, log_gamma(k + 1.0) / k)
        end = scale * (k + 9.0 * root + 45.0)
        return [(middle, width), (deep, 0.5 * deep)], end


@closed_form(absolute_gap, Gamma, Gamma)
def _absolute_gap(p: Gamma, q: Gamma) -> Array:
    """The share of one in the sum of two gamma variables of one scale is a beta variable."""
    xp = namespace(p.scale, q.scale)
    both = p.scale + q.scale
    share, rest = p.scale / both, q.scale / both
    ahead = beta_cdf(q.shape + 0.0 * share, p.shape + 0.0 * share, share, rest=rest)  # the probability of X > Y
    edge = xp.exp(log_beta_power(q.shape, p.shape, share, rest))
    value = (p.shape * p.scale - q.shape * q.scale) * (2.0 * ahead - 1.0) + 2.0 * edge * both
    return one_bound(absolute_gap, p, q, value)


@closed_form(overlap, Gamma, Gamma)
def _overlap(p: Gamma, q: Gamma) -> Array:
    """Infinite where the shapes sum to one or less."""
    xp = namespace(p.shape, q.shape)
    both, k = p.scale + q.scale, p.shape + q.shape - 1.0
    exists = k > 0.0
    k = xp.where(exists, k, xp.ones_like(k))
    share, rest = p.scale / both, q.scale / both
    value = xp.exp(log_beta_power(q.shape, p.shape, share, rest)) / (share * rest * both * k)
    return one_bound(overlap, p, q, xp.where(exists, value, xp.full_like(value, math.inf)))


@closed_form(cross_entropy, Gamma, Gamma)
def _cross_entropy(truth: Gamma, prediction: Gamma) -> Array:
    """From the means of Y and of its logarithm."""
    xp = namespace(truth.shape, prediction.shape)
    k, mean = prediction.shape, prediction.shape * prediction.scale
    gap = (truth.shape * truth.scale - mean) / mean
    ratio = (truth.shape / k) * (truth.scale / prediction.scale)
    at_mean = 0.5 * (LOG_2PI + xp.log(k)) + stirling_error(k) + xp.log(prediction.scale)
    value = at_mean + (k - 1.0) * (log_gap(gap, ratio) + log_less_digamma(truth.shape)) + gap
    return one_bound(cross_entropy, truth, prediction, value)


@closed_form(relative_entropy, Gamma, Gamma)
def _relative_entropy(truth: Gamma, prediction: Gamma) -> Array:
    """Two terms that are never negative: one for the means, one for the shapes."""
    k, other = prediction.shape, truth.shape
    gap = (truth.scale * (other - k) + k * (truth.scale - prediction.scale)) / (k * prediction.scale)
    ratio = (other / k) * (truth.scale / prediction.scale)
    value = k * log_gap(gap, ratio) + _shape_gap(other, k)
    return one_bound(relative_entropy, truth, prediction, value)


def _shape_gap(start: Array, end: Array) -> Array:
    """What is left at `end` of log gamma(k) - k log(k) + k, a convex function, less its tangent at `start`."""
    xp = namespace(start, end)
    step = end - start
    near = xp.abs(step) < 0.3 * start
    inside = xp.where(near, step, xp.zeros_like(step))
    # Taylor's theorem with the remainder as an integral: no term cancels.
    integral = xp.zeros_like(step)
    for node, weight in zip(*gauss_legendre(12), strict=True):
        integral = integral + float(weight) * (1.0 - float(node)) * excess_trigamma(start + float(node) * inside)
    far = xp.where(near, start + xp.ones_like(step), end + 0.0 * step)
    direct = _potential(far) - _potential(start + 0.0 * step) + log_less_digamma(start) * (far - start)
    return xp.where(near, inside * inside * integral, direct)


def _potential(k: Array) -> Array:
    return 0.5 * (LOG_2PI - log(k)) + stirling_error(k)


def excess_trigamma(k: Array) -> Array:
    """The trigamma function less 1 / k."""
    xp = namespace(k)
    large = k > 30.0
    r = 1.0 / xp.where(large, k, xp.full_like(k, 30.0))
    # The next term of the asymptotic series is r**13 * 7 / 6.
    series = r * r * (0.5 + r * (1 / 6 - r * r * (1 / 30 - r * r * (1 / 42 - r * r * (1 / 30 - r * r * 5 / 66)))))
    small = xp.where(large, xp.ones_like(k), k)
    return xp.where(large, series, trigamma(small) - 1.0 / small)
