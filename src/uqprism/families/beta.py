"""The beta family, between two bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Self

from uqprism.arrays import Array, constant, from_numpy, is_jax, is_torch, is_traced, namespace, on_device, to_numpy
from uqprism.errors import InvalidValueError
from uqprism.families.base import Family, families, prepare, with_gradient
from uqprism.families.elementwise import NOWHERE, PointwiseForm, Shared, log_gap, where
from uqprism.families.functionals import absolute_gap, closed_form, cross_entropy, overlap, relative_entropy
from uqprism.families.gamma import excess_trigamma
from uqprism.families.incomplete import beta_cdf, log_beta
from uqprism.families.panels import Landmarks
from uqprism.families.positive import check_range, deep_quantile, one_bound
from uqprism.families.quadrature import gauss_legendre, integrate
from uqprism.families.stirling import log_beta_power, log_beta_ratio, log_less_digamma
from uqprism.synonyms import named_arguments

LARGE = 1e4  # the sum of shapes from which densities are relative to the mean, or large terms would cancel


def _numbers(d: Beta) -> tuple[Array, ...]:
    a, b, width = d.a, d.b, d.width
    xp = namespace(a)
    half = xp.full_like(a, 0.5)
    large = constant(a + b) > LARGE
    x, rest = xp.where(large, constant(a / (a + b)), half), xp.where(large, constant(b / (a + b)), half)
    height = log_beta_power(a, b, x, rest) - xp.log(x) - xp.log(rest) - xp.log(width)
    place = xp.where(x < rest, d.low + width * x, d.high - width * rest)
    return d.low, d.high, place, 1.0 / (width * x), 1.0 / (width * rest), a - 1.0, b - 1.0, height


def _log_density_of_distances(  # noqa: PLR0917 (kernels pass numbers one by one)
    y: Array, low: Array, high: Array, place: Array, per_low: Array, per_high: Array, below: Array, above: Array, height: Array
) -> Array:
    first, second = _logarithms(y, low, high, place, per_low, per_high, below, above, height)
    return _own_log_density(y, first, second, low, high, place, per_low, per_high, below, above, height)


def _logarithms(  # noqa: PLR0917
    y: Array,
    low: Array,
    high: Array,
    place: Array,
    per_low: Array,
    per_high: Array,
    below: Array,  # noqa: ARG001
    above: Array,  # noqa: ARG001
    height: Array,  # noqa: ARG001
) -> tuple[Array, Array]:
    """Of the distances from the bounds, relative to those of a place between them."""
    inside = (y > low) & (y < high)
    up = (y - place) * per_low
    down = (place - y) * per_high
    first = up - log_gap(up, where(inside, (y - low) * per_low, 1.0))
    return first, down - log_gap(down, where(inside, (high - y) * per_high, 1.0))


def _own_log_density(  # noqa: PLR0917
    y: Array,
    first: Array,
    second: Array,
    low: Array,
    high: Array,
    place: Array,  # noqa: ARG001
    per_low: Array,  # noqa: ARG001
    per_high: Array,  # noqa: ARG001
    below: Array,
    above: Array,
    height: Array,
) -> Array:
    return where((y > low) & (y < high), height + below * first + above * second, NOWHERE)


@families.register("beta")
class Beta(Family):
    """Beta distributions between two bounds: on [0, 1], proportional to y**(a - 1) * (1 - y)**(b - 1).

    For a or b below one the density is infinite at that bound. Up to 1/2 its square has no integral: quadratic Bayes risks are
    then minus infinity, quadratic excesses and totals infinity.
    """

    name = "beta"
    form = PointwiseForm(_numbers, _log_density_of_distances, shared=Shared(_logarithms, _own_log_density, alike=(0, 1, 2, 3, 4)))
    parameters: ClassVar[dict[str, str]] = {"a": "shape", "b": "shape", "low": "location", "high": "location"}
    a: Array
    b: Array
    low: Array
    high: Array

    @named_arguments()
    def __init__(self, *, a: Array, b: Array, low: Array = 0.0, high: Array = 1.0, check: bool = True) -> None:
        arrays = prepare(self.parameters, check, a=a, b=b, low=low, high=high)
        for name, x in arrays.items():
            if check and name in "ab":
                check_range(name, x, 0.05, 1e8, "smaller ones are at the bound to all digits, larger ones Gaussian")
            setattr(self, name, x)
        if check:
            check_bounds(self.low, self.high)

    @property
    def width(self) -> Array:
        """The distance of the bounds."""
        return self.high - self.low

    @property
    def support(self) -> tuple[Array, Array]:
        """The bounds."""
        return self.low, self.high

    @property
    def spans_decades(self) -> bool:
        """True: next to the bounds distances are very small."""
        return True

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self.low + self.width * (self.a / (self.a + self.b))

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        both = self.a + self.b
        return (self.a / both) * (self.b / both) / (both + 1.0) * self.width**2

    def recalibrated(self, weights: Array, *, noise: float, disagreement: float) -> Self:
        """Means between the bounds are spread as logits, and the standard deviations about them multiplied; the bounds stay."""
        xp, both = namespace(self.a), self.a + self.b
        logit = xp.log(self.a / self.b)
        common = xp.sum(weights * logit, axis=0)
        moved = xp.clip(common + disagreement * (logit - common), -30.0, 30.0)
        both = xp.clip((both + 1.0) / noise**2 - 1.0, 0.1, 1e8)  # whose inverse, plus one, is the variance's part
        clone = self.map(lambda x: x)
        clone.a, clone.b = (xp.clip(both / (1.0 + xp.exp(sign * moved)), 0.05, 1e8) for sign in (-1.0, 1.0))
        return clone

    @property
    def square_power(self) -> Array:
        """Positive for both above 1/2."""
        return 2.0 * namespace(self.a).minimum(constant(self.a), constant(self.b)) - 1.0

    def differences(self, *, spikes: bool) -> Array:
        """Of the shapes relative to their roots, of the bounds to the spread."""
        a, b, low, high, spread = (constant(x) for x in (self.a, self.b, self.low, self.high, self.spread))
        xp = namespace(a)
        steep = xp.clip(xp.sqrt(xp.max(xp.maximum(a, b), axis=0)), 1.0, None)
        shapes = xp.maximum(*[xp.max(xp.abs(x - x[0]), axis=0) / xp.min(x, axis=0) for x in (a, b)])
        bounds = xp.maximum(*[xp.max(xp.abs(x - x[0]), axis=0) for x in (low, high)])
        return xp.maximum(steep * shapes, bounds / xp.min(spread, axis=0))

    def _places(self, y: Array) -> tuple[Array, Array, Array]:
        """The share of the width below y, the rest, one half each outside, and where y lies inside."""
        x, rest = (y - self.low) / self.width, (self.high - y) / self.width
        inside = (constant(x) > 0.0) & (constant(rest) > 0.0)
        xp = namespace(x)
        half = xp.full_like(x, 0.5)
        return xp.where(inside, x, half), xp.where(inside, rest, half), inside

    def log_density(self, y: Array) -> Array:
        """The log density at y."""
        x, rest, inside = self._places(y)
        xp = namespace(x)
        value = log_beta_power(self.a, self.b, x, rest) - xp.log(x) - xp.log(rest) - xp.log(self.width)
        return xp.where(inside, value, xp.full_like(value, -math.inf))

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        x, rest, inside = self._places(y)
        return _outside(inside, beta_cdf(self.a + 0.0 * x, self.b + 0.0 * x, x, rest=rest), y >= self.high)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        x, rest, inside = self._places(y)
        return _outside(inside, beta_cdf(self.b + 0.0 * x, self.a + 0.0 * x, rest, rest=x), y <= self.low)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        # SciPy needs values on the host, which traced arrays do not have; bisection does without.
        if any(is_traced(x) or on_device(x) for x in (*self.arrays(), level)):
            return super().quantile(level)
        import scipy.special

        x = from_numpy(scipy.special.betaincinv(to_numpy(self.a), to_numpy(self.b), to_numpy(level)), self.a)
        quantile = constant(self.low) + constant(self.width) * x
        return with_gradient(self, quantile, level) if is_torch(x) or is_jax(x) else quantile

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        x, rest, inside = self._places(y)
        xp = namespace(x)
        a, b = self.a + 0.0 * x, self.b + 0.0 * x
        net = beta_cdf(a, b, x, rest=rest) - beta_cdf(b, a, rest, rest=x)
        edge = 2.0 * xp.exp(log_beta_power(a, b, x, rest)) / (a + b)
        return xp.where(inside, self.width * ((x - a / (a + b)) * net + edge), xp.abs(y - self.mean))

    def expectation(self, function: Callable[[Array], Array], *others: Family) -> Array:
        """The mean of function(Y), by quadrature; `others` are distributions whose features the function shares."""
        # Over distances from each bound: next to it, values of y would be rounded to it.
        total, unit = 0.0, namespace(self.low).ones_like(self.low)
        half = 0.5 * constant(self.width)
        for bound, side in ((self.low, 1.0), (self.high, -1.0)):
            here, *there = (d.relative_to(bound, unit) for d in (self, *others))
            ends = (0.0 * half, half) if side > 0 else (-half, 0.0 * half)
            total = total + integrate(lambda y, b=bound, d=here: function(b + y) * d.density(y), here, *there, between=ends)  # type: ignore[misc]
        return total

    def landmarks(self) -> Landmarks:
        """The mean, and next to both bounds a distance below which next to nothing lies."""
        a, b, width = constant(self.a), constant(self.b), constant(self.width)
        xp = namespace(a)
        both = log_beta(a, b)
        x, rest = a / (a + b), b / (a + b)
        spread = xp.sqrt(x * rest / (a + b + 1.0))
        wide = width * xp.minimum(spread, 0.5 * xp.minimum(x, rest))
        deep = [width * xp.minimum(deep_quantile(k, (both + xp.log(k)) / k), 0.1 * z) for k, z in ((a, x), (b, rest))]
        location = xp.stack([self.low + width * x, self.low + deep[0], self.high - deep[1]])
        widths, reach = xp.stack([wide, 0.5 * deep[0], 0.5 * deep[1]]), xp.stack([width, width, width])
        power = xp.stack([0.0 * a, a, b])
        return Landmarks(location, widths, reach, (False, False, False), power=power)


def _outside(inside: Array, value: Array, sure: Array) -> Array:
    """The value between the bounds, and outside one where that is sure, else zero."""
    xp = namespace(value)
    return xp.where(inside, value, xp.where(sure, xp.ones_like(value), xp.zeros_like(value)))


def check_bounds(low: Array, high: Array) -> None:
    """Refuse bounds that leave nothing between them."""
    if is_traced(low) or is_traced(high):
        return
    xp = namespace(low)
    if bool(xp.any(low >= high)):
        at = int(xp.argmax(xp.astype(xp.reshape(low >= high, (-1,)), xp.int32)))
        got = [float(xp.reshape(constant(x), (-1,))[at]) for x in (low, high)]
        raise InvalidValueError(f"low must be less than high, got {got[0]:g} and {got[1]:g} in entry {at}")


@closed_form(absolute_gap, Beta, Beta)
def _absolute_gap(p: Beta, q: Beta) -> Array:
    """In closed form for a distribution and itself; by quadrature for two."""
    if p is not q:
        return absolute_gap.fallback(p, q)
    both = p.a + p.b
    xp = namespace(both)
    return 4.0 / both * xp.exp(log_beta_ratio(p.a, p.b)) * p.width


@closed_form(overlap, Beta, Beta)
def _overlap(p: Beta, q: Beta) -> Array:
    """Infinite where the shapes at a bound sum to one or less."""
    a, b = p.a + q.a - 1.0, p.b + q.b - 1.0
    xp = namespace(a, b)
    exists = (a > 0.0) & (b > 0.0)
    a, b = (xp.where(exists, x, xp.ones_like(x)) for x in (a, b))
    if not is_traced(a) and bool(xp.all(constant(a + b) < LARGE)):
        value = xp.exp(log_beta(a, b) - log_beta(p.a, p.b) - log_beta(q.a, q.b)) / p.width
        return one_bound(overlap, p, q, xp.where(exists, value, xp.full_like(value, math.inf)))
    x, rest = a / (a + b), b / (a + b)  # where the product of the densities is compared with the beta density of its form
    value = log_beta_power(p.a, p.b, x, rest) + log_beta_power(q.a, q.b, x, rest) - log_beta_power(a, b, x, rest)
    value = xp.exp(value - xp.log(x) - xp.log(rest)) / p.width
    return one_bound(overlap, p, q, xp.where(exists, value, xp.full_like(value, math.inf)))


@closed_form(cross_entropy, Beta, Beta)
def _cross_entropy(truth: Beta, prediction: Beta) -> Array:
    """From the means of the logarithms of the distances from both bounds."""
    xp = namespace(truth.a, prediction.a)
    both = truth.a + truth.b
    x, rest, whole = truth.a / both, truth.b / both, log_less_digamma(both)
    below, above = log_less_digamma(truth.a) - whole, log_less_digamma(truth.b) - whole
    value = xp.log(x) + xp.log(rest) - log_beta_power(prediction.a, prediction.b, x, rest)
    value = value + (prediction.a - 1.0) * below + (prediction.b - 1.0) * above
    return one_bound(cross_entropy, truth, prediction, value + xp.log(prediction.width))


@closed_form(relative_entropy, Beta, Beta)
def _relative_entropy(truth: Beta, prediction: Beta) -> Array:
    """What is left at the prediction of the log beta function, a convex function of (a, b), less its tangent at the truth."""
    a, b, step_a, step_b = truth.a, truth.b, prediction.a - truth.a, prediction.b - truth.b
    xp = namespace(step_a, step_b)
    near = (xp.abs(step_a) < 0.3 * a) & (xp.abs(step_b) < 0.3 * b)
    zero = xp.zeros_like(0.0 * step_a + step_b)
    u, v = xp.where(near, step_a, zero), xp.where(near, step_b, zero)
    # Taylor's theorem with the remainder as an integral: no term cancels.
    integral = zero
    for node, weight in zip(*gauss_legendre(12), strict=True):
        c, d = a + float(node) * u, b + float(node) * v
        leading = (u * d - v * c) ** 2 / (c * d * (c + d))
        more = u * u * excess_trigamma(c) + v * v * excess_trigamma(d) - (u + v) ** 2 * excess_trigamma(c + d)
        integral = integral + float(weight) * (1.0 - float(node)) * (leading + more)
    whole = log_less_digamma(a + b)
    x, rest = a / (a + b), b / (a + b)
    direct = log_beta_power(a, b, x, rest) - log_beta_power(prediction.a, prediction.b, x, rest)
    direct = direct + step_a * (log_less_digamma(a) - whole) + step_b * (log_less_digamma(b) - whole)
    return one_bound(relative_entropy, truth, prediction, xp.where(near, integral, direct))
