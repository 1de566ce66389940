"""Gaussians cut off at bounds: what lies outside is left out (truncated)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from uqprism.arrays import LOG_2PI, Array, constant, log_normal_cdf, namespace
from uqprism.families.base import Family, bisect, families, prepare
from uqprism.families.beta import check_bounds
from uqprism.families.elementwise import NOWHERE, PointwiseForm, where
from uqprism.families.functionals import closed_form, overlap
from uqprism.families.panels import Landmarks
from uqprism.families.positive import one_bound
from uqprism.families.quadrature import gauss_legendre
from uqprism.synonyms import named_arguments

FAR = 1e8  # scales beyond which a bound is none


def _numbers(d: TruncatedGaussian) -> tuple[Array, ...]:
    height = -0.5 * LOG_2PI - namespace(d.scale).log(d.scale) - d.log_share
    return d.low, d.high, d.location, 1.0 / d.scale, height


def log_density_between(y: Array, low: Array, high: Array, location: Array, inverse: Array, height: Array) -> Array:  # noqa: PLR0917
    """The log density at y, between two bounds."""
    z = (y - location) * inverse
    return where((y >= low) & (y <= high), height - 0.5 * z * z, NOWHERE)


def log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the probability of a standard Gaussian between a and b: in tails and for narrow intervals too."""
    xp = namespace(a, b)
    # Mirrored to the lower side, where probabilities are small numbers.
    swap = a + b > 0.0
    low, high = xp.where(swap, -b, a), xp.where(swap, -a, b)
    length, middle = high - low, 0.5 * (low + high)
    narrow = (length < 1.0) & (length * xp.abs(middle) < 5.0)
    # From the density in the middle times the length.
    half = xp.where(narrow, 0.5 * length, xp.ones_like(length))
    centre = xp.where(narrow, middle, xp.zeros_like(middle))
    total = 0.0 * half
    for node, weight in zip(*gauss_legendre(16), strict=True):
        step = half * (2.0 * float(node) - 1.0)
        total = total + float(weight) * xp.exp(-step * (centre + 0.5 * step))
    inside = xp.log(xp.where(half > 0.0, 2.0 * half, xp.ones_like(half))) + xp.log(total) - 0.5 * (centre * centre + LOG_2PI)
    top = log_normal_cdf(xp.where(narrow, xp.zeros_like(high), high))
    bottom = log_normal_cdf(xp.where(narrow, -xp.ones_like(low), low))
    wide = top + xp.log(-xp.expm1(xp.clip(bottom - top, None, -1e-300)))
    value = xp.where(narrow, inside, wide)
    return xp.where(length > 0.0, value, xp.full_like(value, -math.inf))


def in_scales(distance: Array, scale: Array) -> Array:
    """A distance that may be infinite, which is far then, over a scale."""
    xp = namespace(distance, scale)
    infinite = xp.isinf(distance)
    near = xp.where(infinite, xp.zeros_like(distance), distance)  # an infinite one would give the scale a gradient of NaN
    return xp.where(infinite, FAR * xp.sign(distance), xp.clip(near / scale, -FAR, FAR))


class Moments(NamedTuple):
    """Of a standard Gaussian between two bounds, relative to the place where its density is largest."""

    top: Array
    mean: Array  # less the top
    variance: Array


def moments_between(a: Array, b: Array) -> Moments:
    """By quadrature, since the formulas cancel in tails and for narrow intervals."""
    xp = namespace(a, b)
    top = xp.minimum(xp.maximum(a, 0.0 * a), b)
    size = xp.abs(constant(top))
    reach = 80.0 / (size + xp.sqrt(size * size + 80.0))  # the density has fallen by exp(40)
    low, high = xp.maximum(a - top, -reach), xp.minimum(b - top, reach)
    nodes, weights = gauss_legendre(12)
    sums = [0.0 * top] * 3
    mean = 0.0 * top
    for last in (False, True):
        sums = [0.0 * top] * 3
        for end, sign in ((low, -1.0), (high, 1.0)):
            for part in range(PARTS):
                for node, weight in zip(nodes, weights, strict=True):
                    t = end * ((part + float(node)) / PARTS)
                    density = sign * end * float(weight) * xp.exp(-t * (top + 0.5 * t))
                    first = density * (t - mean)
                    sums[0], sums[1] = sums[0] + density, sums[1] + first
                    if last:
                        sums[2] = sums[2] + first * (t - mean)
        mean = mean if last else sums[1] / sums[0]
    return Moments(top, mean + sums[1] / sums[0], sums[2] / sums[0] - (sums[1] / sums[0]) ** 2)


PARTS = 6


class Bounded(Family):
    """A Gaussian with bounds on Y, either of which may be infinite."""

    smooth_to_bounds = True
    parameters: ClassVar[dict[str, str]] = {"location": "location", "scale": "scale", "low": "bound", "high": "bound"}
    location: Array
    scale: Array
    low: Array
    high: Array

    @named_arguments("the standard deviation of the Gaussian before it is cut off")
    def __init__(
        self, *, location: Array, scale: Array, low: Array = -math.inf, high: Array = math.inf, check: bool = True
    ) -> None:
        for name, x in prepare(Bounded.parameters, check, location=location, scale=scale, low=low, high=high).items():
            setattr(self, name, x)
        if check:
            check_bounds(self.low, self.high)

    def _moved(self, *how: Any) -> Self:
        """What depends on the bounds in scales alone stays as it is."""
        clone = super()._moved(*how)
        vars(clone).update({name: x for name, x in vars(self).items() if name in ("ends", "moments", "log_share")})
        return clone

    def _z(self, y: Array) -> Array:
        """y in scales from the location; what is infinite is only far."""
        return in_scales(y - self.location, self.scale)

    def _between(self, y: Array) -> Array:
        """y, or the bound beyond which it lies, in scales."""
        xp = namespace(self.scale)
        return self._z(xp.minimum(xp.maximum(y + 0.0 * self.scale, self.low), self.high))

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """The bounds in scales from the location."""
        return self._z(self.low), self._z(self.high)

    @cached_property
    def moments(self) -> Moments:
        """Of what lies between the bounds."""
        return moments_between(*self.ends)

    def recalibrated(self, weights: Array, *, noise: float, disagreement: float) -> Self:
        """The same of the Gaussians before they meet the bounds, which stay."""
        common = namespace(self.location).sum(weights * self.location, axis=0)
        clone = self.map(lambda x: x)
        clone.location, clone.scale = common + disagreement * (self.location - common), noise * self.scale
        return clone

    @property
    def support(self) -> tuple[Array, Array]:
        """The bounds."""
        return self.low, self.high

    def differences(self, *, spikes: bool) -> Array:
        """Of location, scale and finite bounds, relative to the spread."""
        spread = constant(self.spread)
        xp = namespace(spread)
        found = []
        for x in map(constant, (self.location, self.scale, self.low, self.high)):
            same = x == x[0]
            found.append(xp.abs(xp.where(same, xp.zeros_like(x), x) - xp.where(same, xp.zeros_like(x), x[0] + xp.zeros_like(x))))
        # The spread of a tail falls with the distance of the bound, and so do changes that matter.
        unit = xp.min(xp.minimum(spread, spread * spread / constant(self.scale)), axis=0)
        return xp.max(xp.max(xp.stack(found), axis=0), axis=0) / unit

    def landmarks(self) -> Landmarks:
        """Where the density is largest, and how far it counts from there."""
        a, b = (constant(x) for x in self.ends)
        xp = namespace(a)
        top = xp.minimum(xp.maximum(a, 0.0 * a), b)
        size, scale = xp.abs(top), constant(self.scale)
        reach = 80.0 / (size + xp.sqrt(size * size + 80.0))
        width = xp.minimum(scale / xp.clip(size, 1.0, None), constant(self.high) - constant(self.low))
        return Landmarks((self.location + scale * top)[None], width[None], (scale * reach)[None], (False,))


@families.register("truncated_gaussian")
class TruncatedGaussian(Bounded):
    """Gaussians without what lies outside two bounds, either of which may be infinite.

    Args:
        location: the mean of the Gaussian before it is cut off.
        scale: its standard deviation.
        low: the lower bound.
        high: the upper bound.
    """

    name = "truncated_gaussian"
    form = PointwiseForm(_numbers, log_density_between)

    @cached_property
    def log_share(self) -> Array:
        """The logarithm of the probability between the bounds, which the others share."""
        return log_mass(*self.ends)

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self.location + self.scale * (self.moments.top + self.moments.mean)

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        return self.scale * self.scale * self.moments.variance

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        z = self._between(y)
        return namespace(z).exp(log_mass(self.ends[0] + 0.0 * z, z) - self.log_share)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        z = self._between(y)
        return namespace(z).exp(log_mass(z, self.ends[1] + 0.0 * z) - self.log_share)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        return bisect(self, level + 0.0 * self.scale, *self.bracket())


@closed_form(overlap, TruncatedGaussian, TruncatedGaussian)
def _overlap(p: TruncatedGaussian, q: TruncatedGaussian) -> Array:
    """That of the Gaussians, times the share of their product between the bounds."""
    xp = namespace(p.scale, q.scale)
    joint = xp.hypot(p.scale, q.scale)
    t = (p.location - q.location) / joint
    share, unit = p.scale / joint, p.scale * (q.scale / joint)
    middle = p.location + (q.location - p.location) * share * share
    ends = [in_scales(bound - middle, unit) for bound in (p.low, p.high)]
    value = log_mass(*ends) - 0.5 * (t * t + LOG_2PI) - xp.log(joint) - p.log_share - q.log_share
    return one_bound(overlap, p, q, xp.exp(value))
