"""Gaussians cut off at bounds: what lies outside is left out (truncated)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from uqprism.arrays import LOG_2PI, Array, constant, is_traced, log_normal_cdf, namespace
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
    height = -namespace(d.scale).log(d.scale) - d.log_mass_from_top
    return d.low, d.high, d.top, 1.0 / d.scale, d.moments.top, height


def _log_density(y: Array, low: Array, high: Array, top: Array, inverse: Array, steepness: Array, height: Array) -> Array:  # noqa: PLR0917
    # From the place where the density is largest, or squares would cancel in tails.
    z = (y - top) * inverse
    return where((y >= low) & (y <= high), height - z * (steepness + 0.5 * z), NOWHERE)


def log_density_between(y: Array, low: Array, high: Array, location: Array, inverse: Array, height: Array) -> Array:  # noqa: PLR0917
    """The log density at y of a Gaussian, between two bounds."""
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
    inside = log_narrow(half, centre) - 0.5 * (centre * centre + LOG_2PI)
    top = log_normal_cdf(xp.where(narrow, xp.zeros_like(high), high))
    bottom = log_normal_cdf(xp.where(narrow, -xp.ones_like(low), low))
    wide = top + xp.log(-xp.expm1(xp.clip(bottom - top, None, -1e-300)))
    value = xp.where(narrow, inside, wide)
    return xp.where(length > 0.0, value, xp.full_like(value, -math.inf))


def log_mass_from(top: Array, low: Array, high: Array) -> Array:
    """The logarithm of the integral of exp(-t (top + t / 2)) between two numbers, on one side of which top + t is zero or beyond.

    That is a part of a standard Gaussian, relative to its density at `top`: far in a tail the density itself is no number.
    """
    xp = namespace(top, low, high)
    far = xp.abs(constant(top)) > 5.0
    steep = xp.where(far, xp.abs(top), xp.full_like(top, 5.0)) + 0.0 * low
    swap = top < 0.0
    first, second = xp.where(swap, -high, low), xp.where(swap, -low, high)
    some, nothing = xp.ones_like(steep), xp.zeros_like(steep)
    first, second = xp.where(far, first, nothing), xp.where(far, second, some)
    length, middle = second - first, 0.5 * (first + second)
    narrow = length * (steep + middle) < 5.0
    half, centre = xp.where(narrow, 0.5 * length, some), xp.where(narrow, middle, nothing)
    inside = log_narrow(half, steep + centre) - centre * (steep + 0.5 * centre)
    near, other = (log_mills(steep + t) - t * (steep + 0.5 * t) for t in (first, second))
    wide = near + xp.log(-xp.expm1(xp.clip(other - near, None, -1e-300)))
    value = xp.where(length > 0.0, xp.where(narrow, inside, wide), xp.full_like(wide, -math.inf))
    mild = xp.where(far, nothing, top + nothing)
    low, high = xp.where(far, -some, low), xp.where(far, some, high)
    return xp.where(far, value, log_mass(mild + low, mild + high) + 0.5 * (mild * mild + LOG_2PI))


def log_mills(z: Array) -> Array:
    """The logarithm of what lies above z >= 5 of a Gaussian over its density at z."""
    xp = namespace(z)
    large = z > 20.0
    r = 1.0 / xp.where(large, z, xp.full_like(z, 20.0)) ** 2
    series = xp.ones_like(r)
    for odd in (15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        series = 1.0 - odd * r * series
    small = xp.where(large, xp.full_like(z, 5.0), z)
    return xp.where(large, xp.log(series) + 0.5 * xp.log(r), log_normal_cdf(-small) + 0.5 * (small * small + LOG_2PI))


def log_narrow(half: Array, centre: Array) -> Array:
    """The logarithm of the integral of a Gaussian over so much on both sides of a place, over its density there."""
    xp, total = namespace(half), 0.0 * half
    for node, weight in zip(*gauss_legendre(16), strict=True):
        step = half * (2.0 * float(node) - 1.0)
        total = total + float(weight) * xp.exp(-step * (centre + 0.5 * step))
    return xp.log(xp.where(half > 0.0, 2.0 * half, xp.ones_like(half))) + xp.log(total)


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


def moments_from(top: Array, low: Array, high: Array) -> Moments:
    """Between distances from the top, by quadrature, since the formulas cancel in tails and for narrow intervals."""
    xp = namespace(low, high)
    size = xp.abs(constant(top))
    reach = 80.0 / (size + xp.sqrt(size * size + 80.0))  # the density has fallen by exp(40)
    low, high = xp.maximum(low, -reach), xp.minimum(high, reach)
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


KEPT = ("ends", "from_top", "moments", "log_share", "log_mass_from_top")


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
        vars(clone).update({name: x for name, x in vars(self).items() if name in KEPT})
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
        a, b = self.ends
        return moments_from(namespace(a).minimum(namespace(a).maximum(a, 0.0 * a), b), *self.from_top)

    @property
    def top(self) -> Array:
        """Where the density is largest."""
        xp = namespace(self.scale)
        return xp.minimum(xp.maximum(self.location, self.low), self.high)

    @cached_property
    def from_top(self) -> tuple[Array, Array]:
        """The bounds as seen from there, in scales."""
        top = self.top
        return in_scales(self.low - top, self.scale), in_scales(self.high - top, self.scale)

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
        return Landmarks(constant(self.top)[None], width[None], (scale * reach)[None], (False,))


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
    form = PointwiseForm(_numbers, _log_density)

    @cached_property
    def log_share(self) -> Array:
        """The logarithm of the probability between the bounds, which the others share."""
        return log_mass(*self.ends)

    @cached_property
    def log_mass_from_top(self) -> Array:
        """The same relative to the density at the top."""
        return log_mass_from(self.moments.top, *self.from_top)

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self.top + self.scale * self.moments.mean

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        return self.scale * self.scale * self.moments.variance

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        return self._share(self.from_top[0], self._from_top(y))

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        return self._share(self._from_top(y), self.from_top[1])

    def _from_top(self, y: Array) -> Array:
        xp = namespace(self.scale)
        inside = xp.minimum(xp.maximum(y + 0.0 * self.scale, self.low), self.high)
        return in_scales(inside - self.top, self.scale)

    def _share(self, low: Array, high: Array) -> Array:
        low, high = low + 0.0 * high, high + 0.0 * low
        return namespace(low).exp(log_mass_from(self.moments.top + 0.0 * low, low, high) - self.log_mass_from_top)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        return bisect(self, level + 0.0 * self.scale, *self.bracket())


STEEPEST = 30.0  # scales to the bound beyond which the squares in the closed form have lost too many digits


@closed_form(overlap, TruncatedGaussian, TruncatedGaussian)
def _overlap(p: TruncatedGaussian, q: TruncatedGaussian) -> Array:
    """That of the Gaussians, times the share of their product between the bounds."""
    xp = namespace(p.scale, q.scale)
    steep = xp.maximum(xp.max(xp.abs(constant(p.moments.top))), xp.max(xp.abs(constant(q.moments.top))))
    if not is_traced(steep) and bool(steep > STEEPEST):
        return overlap.fallback(p, q)
    joint = xp.hypot(p.scale, q.scale)
    t = (p.location - q.location) / joint
    share, unit = p.scale / joint, p.scale * (q.scale / joint)
    middle = p.location + (q.location - p.location) * share * share
    ends = [in_scales(bound - middle, unit) for bound in (p.low, p.high)]
    value = log_mass(*ends) - 0.5 * (t * t + LOG_2PI) - xp.log(joint) - p.log_share - q.log_share
    return one_bound(overlap, p, q, xp.exp(value))
