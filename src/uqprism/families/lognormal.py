"""The lognormal family: exponentials of Gaussian variables."""

from __future__ import annotations

from typing import ClassVar, Self

from uqprism.arrays import LOG_2PI, SQRT_2, Array, constant, erf, namespace, normal_cdf, normal_quantile
from uqprism.families.base import families
from uqprism.families.elementwise import NOWHERE, PointwiseForm, log, where
from uqprism.families.functionals import absolute_gap, closed_form, cross_entropy, overlap, relative_entropy
from uqprism.families.gaussian import Gaussian
from uqprism.families.positive import Positive, above, one_bound
from uqprism.synonyms import named_arguments


def _numbers(d: LogNormal) -> tuple[Array, ...]:
    xp = namespace(d.log_scale)
    return d.low, 1.0 / d.unit, d.log_mean, 1.0 / d.log_scale, -xp.log(d.log_scale * d.unit) - 0.5 * LOG_2PI


def _log_density(y: Array, low: Array, inverse: Array, log_mean: Array, sharpness: Array, height: Array) -> Array:  # noqa: PLR0917 (numbers)
    x = (y - low) * inverse
    u = log(where(x > 0.0, x, 1.0))
    z = (u - log_mean) * sharpness
    return where(x > 0.0, height - 0.5 * z * z - u, NOWHERE)


@families.register("lognormal")
class LogNormal(Positive):
    """Lognormal distributions: the logarithm is Gaussian with this mean and this scale (standard deviation).

    The median is exp(log_mean), the mean exp(log_mean + log_scale**2 / 2).
    """

    name = "lognormal"
    form = PointwiseForm(_numbers, _log_density)
    given: ClassVar[dict[str, str]] = {"log_mean": "location", "log_scale": "scale"}
    # `unit` takes up changes of the unit of y, so that the given parameters keep their digits.
    parameters: ClassVar[dict[str, str]] = {"low": "location", "unit": "scale", "log_mean": "shape", "log_scale": "shape"}
    ranges: ClassVar[dict[str, tuple[float, float, str]]] = {
        "log_mean": (-300.0, 300.0, "give the target in another unit"),
        "log_scale": (1e-6, 10.0, "use Gaussian members where it is smaller, and leave out what is larger"),
    }
    unit: Array
    log_mean: Array
    log_scale: Array

    @named_arguments()
    def __init__(self, *, log_mean: Array, log_scale: Array, check: bool = True) -> None:
        super().__init__(check=check, log_mean=log_mean, log_scale=log_scale)

    def _anchor(self, like: Array) -> None:
        super()._anchor(like)
        self.unit = namespace(like).ones_like(like)

    @property
    def size(self) -> Array:
        """The unit of y."""
        return self.unit

    @property
    def median(self) -> Array:
        """The median less the bound."""
        return self.unit * namespace(self.log_mean).exp(self.log_mean)

    @property
    def mean_above(self) -> Array:
        """The mean less the bound."""
        return self.median * namespace(self.log_scale).exp(0.5 * self.log_scale * self.log_scale)

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self.low + self.mean_above

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        mean = self.mean_above
        return mean * mean * namespace(mean).expm1(self.log_scale * self.log_scale)

    @property
    def log_centre(self) -> Array:
        """The median, the mean of the logarithm."""
        return self.median

    def reshaped(self, centre: Array, noise: float) -> Self:
        """With this median, and a logarithm that is `noise` times as wide."""
        low, high, _ = self.ranges["log_scale"]
        clone, xp = self.map(lambda x: x), namespace(centre)
        clone.log_mean, clone.log_scale = xp.log(centre / self.unit), xp.clip(noise * self.log_scale, low, high)
        return clone

    def differences(self, *, spikes: bool) -> Array:
        """Of the logarithms in their scale; where that is large, of what they do to the mean."""
        s, xp = constant(self.log_scale), namespace(self.log_scale)
        found = [xp.max(xp.abs(x - x[0]), axis=0) for x in (constant(self.log_mean), s)]
        return xp.maximum(*found) / xp.minimum(xp.min(s, axis=0), 1.0 / xp.max(s, axis=0))

    def logarithm(self) -> Gaussian:
        """The distribution of log((Y - low) / unit)."""
        return Gaussian(mean=self.log_mean, scale=self.log_scale, check=False)

    def _z(self, y: Array) -> tuple[Array, Array]:
        x, inside = self.distance(y)
        return (namespace(x).log(x) - self.log_mean) / self.log_scale, inside

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        z, inside = self._z(y)
        return above(inside, normal_cdf(z), 0.0)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        z, inside = self._z(y)
        return above(inside, normal_cdf(-z), 1.0)

    def signed_cdf(self, y: Array, pivot: Array) -> Array:
        """The probability of values up to y, less one where y is above the pivot."""
        z, inside = self._z(y)
        xp = namespace(z)
        sign = xp.where(y > pivot, -xp.ones_like(z), xp.ones_like(z))
        return xp.where(inside, sign * normal_cdf(sign * z), xp.where(y > pivot, -xp.ones_like(z), xp.zeros_like(z)))

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        z = normal_quantile(level + 0.0 * self.log_scale)
        return self.low + self.unit * namespace(z).exp(self.log_mean + self.log_scale * z)

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        z, inside = self._z(y)
        xp = namespace(z)
        shift, mean = y - self.low, self.mean_above
        # The share of the mean that lies above and below y is that of a lognormal with a larger log mean.
        value = shift * erf(z / SQRT_2) - mean * erf((z - self.log_scale) / SQRT_2)
        return xp.where(inside, value, mean - shift)

    def marks(self) -> tuple[list[tuple[Array, Array]], Array]:
        """The median, and how far down squared densities and up second moments count."""
        s, median = constant(self.log_scale), constant(self.median)
        xp = namespace(s)
        fine = xp.clip(s, None, 0.5)
        deep = median * xp.exp(-s * (9.0 + 0.5 * s))
        return [(median, fine * median), (deep, fine * deep)], median * xp.exp(s * (9.0 + 2.0 * s))


@closed_form(absolute_gap, LogNormal, LogNormal)
def _absolute_gap(p: LogNormal, q: LogNormal) -> Array:
    """The price of an exchange: each mean, times the net probability under which it is the larger."""
    xp = namespace(p.log_scale, q.log_scale)
    joint = xp.hypot(p.log_scale, q.log_scale)
    shift = (p.log_mean - q.log_mean + (p.log_scale - q.log_scale) * (p.log_scale + q.log_scale) / 2.0) + _log_units(p, q)
    first, second = shift / joint + 0.5 * joint, shift / joint - 0.5 * joint
    value = p.mean_above * erf(first / SQRT_2) - q.mean_above * erf(second / SQRT_2)
    return one_bound(absolute_gap, p, q, value)


def _log_units(p: LogNormal, q: LogNormal) -> Array:
    return namespace(p.unit, q.unit).log(p.unit / q.unit)


@closed_form(overlap, LogNormal, LogNormal)
def _overlap(p: LogNormal, q: LogNormal) -> Array:
    """The overlap of the logarithms, times the mean of exp(-U) under the normalised product of their densities."""
    xp = namespace(p.log_scale, q.log_scale)
    joint = xp.hypot(p.log_scale, q.log_scale)
    a, b = p.log_scale / joint, q.log_scale / joint
    step = q.log_mean - p.log_mean - _log_units(p, q)
    middle, variance = p.log_mean + step * a * a, (a * q.log_scale) ** 2
    gap = step / joint
    exponent = -0.5 * gap * gap - middle + 0.5 * variance
    value = xp.exp(exponent - 0.5 * LOG_2PI) / joint / p.unit
    return one_bound(overlap, p, q, value + 0.0 * b)


@closed_form(relative_entropy, LogNormal, LogNormal)
def _relative_entropy(truth: LogNormal, prediction: LogNormal) -> Array:
    """That of the logarithms."""
    moved = truth.logarithm()
    moved.mean = moved.mean + _log_units(truth, prediction)
    return one_bound(relative_entropy, truth, prediction, relative_entropy(moved, prediction.logarithm()))


@closed_form(cross_entropy, LogNormal, LogNormal)
def _cross_entropy(truth: LogNormal, prediction: LogNormal) -> Array:
    """That of the logarithms, plus the mean of the logarithm."""
    moved = truth.logarithm()
    moved.mean = moved.mean + _log_units(truth, prediction)
    unit = namespace(prediction.unit).log(prediction.unit)
    return one_bound(cross_entropy, truth, prediction, cross_entropy(moved, prediction.logarithm()) + moved.mean + unit)
