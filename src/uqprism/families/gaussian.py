"""The Gaussian family, and the closed forms between two of its members.

Everything is formed from differences of means and scales, so that nearly equal distributions keep their digits. A Gaussian
remembers whether it was given by scale or by variance, and `Surrogate`s, which represent a whole ensemble, remember how far
their variance lies from the ensemble's mean variance: differences are taken of what is exact, never of rounded roots or
squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from uqprism.arrays import LOG_2PI, SQRT_2, SQRT_PI, Array, erf, log_gap, namespace, normal_cdf, normal_quantile
from uqprism.errors import ArgumentError, ShapeError
from uqprism.families.base import Family, families, prepare
from uqprism.families.elementwise import PointwiseForm
from uqprism.families.functionals import (
    absolute_gap,
    closed_form,
    cramer_distance,
    cross_entropy,
    density_distance,
    overlap,
    relative_entropy,
    smooth,
)
from uqprism.families.panels import Landmarks
from uqprism.families.stored import require
from uqprism.synonyms import named_arguments


def _numbers(d: Gaussian) -> tuple[Array, ...]:
    return d.mean, 1.0 / d.scale, -0.5 * LOG_2PI - namespace(d.scale).log(d.scale)


def _log_density(y: Array, mean: Array, inverse: Array, height: Array) -> Array:
    z = (y - mean) * inverse
    return height - 0.5 * z * z


@families.register("gaussian")
class Gaussian(Family):
    """Normal distributions with this mean and this variance or scale (standard deviation)."""

    name = "gaussian"
    parameters: ClassVar[dict[str, str]] = {
        "mean": "location",
        "scale": "scale",
        "given_variance": "variance",
        "deviation": "variance",
    }
    form = PointwiseForm(_numbers, _log_density)
    mean: Array = None  # a plain attribute in place of the property
    scale: Array
    given_variance: Array | None
    deviation: Array | None  # variance minus the mean variance of the ensemble it came from

    @named_arguments()
    def __init__(self, *, mean: Array, variance: Array = None, scale: Array = None, check: bool = True) -> None:
        if (variance is None) == (scale is None):
            got = "neither" if variance is None else "both"
            raise ArgumentError(f"give exactly one of variance and scale (the standard deviation), got {got}")
        kinds = {"mean": "location", "variance": "variance", "scale": "scale"}
        if scale is None:
            arrays = prepare(kinds, check, mean=mean, variance=variance)
            self.given_variance = arrays["variance"]
            self.scale = namespace(self.given_variance).sqrt(self.given_variance)
        else:
            arrays = prepare(kinds, check, mean=mean, scale=scale)
            self.given_variance, self.scale = None, arrays["scale"]
        self.mean, self.deviation = arrays["mean"], None

    def stored(self) -> dict[str, Array]:
        """The mean, and of scale and variance the one that was given."""
        # `deviation` belongs to a centred ensemble and is formed anew from these.
        spread = "scale" if self.given_variance is None else "given_variance"
        return {"mean": self.mean, spread: getattr(self, spread)}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], options: Mapping[str, Any], *, check: bool = False) -> Self:  # noqa: ARG003 (others have some)
        """What these arrays define."""
        spread = "given_variance" if "given_variance" in arrays else "scale"
        require(cls.name, arrays, ("mean", spread))
        if arrays["mean"].shape != arrays[spread].shape:
            raise ShapeError(f"parameters must have one shape, got {arrays['mean'].shape} and {arrays[spread].shape}")
        return cls(mean=arrays["mean"], **{spread.removeprefix("given_"): arrays[spread]}, check=check)

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        return self.scale * self.scale if self.given_variance is None else self.given_variance

    def widened(self) -> Self:
        """The same in working precision, the root of a given variance taken anew."""
        wide = super().widened()
        # The root of the narrow variance was rounded to the narrow precision.
        if wide.given_variance is not None:
            wide.scale = namespace(wide.given_variance).sqrt(wide.given_variance)
        return wide

    @property
    def spread(self) -> Array:
        """The scale."""
        return self.scale

    def log_density(self, y: Array) -> Array:
        """The log density at y."""
        z = (y - self.mean) / self.scale
        return -0.5 * (z * z + LOG_2PI) - namespace(z).log(self.scale)

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        return normal_cdf((y - self.mean) / self.scale)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        return normal_cdf((self.mean - y) / self.scale)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        # `level` may be a plain number; the sum makes it an array of the right library.
        return self.mean + self.scale * normal_quantile(level + 0.0 * self.scale)

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        return _mean_absolute(self.mean - y, self.scale)

    def landmarks(self) -> Landmarks:
        """The mean, with tails that matter for nine scales."""
        return Landmarks(self.mean[None], self.scale[None], 9.0 * self.scale[None], (False,))  # exp(-81 / 2) is 3e-18

    def cost_beyond(self, truth: Family, low: Array, high: Array) -> Array:
        """Half of the truth's squared distance in scales."""
        return 0.5 * truth.beyond(low, high, self.mean) / self.scale / self.scale


class Surrogate(Gaussian):
    """One Gaussian in place of a whole ensemble, with the ensemble's mean.

    Args:
        mean: the ensemble's mean.
        variance: its variance.
        deviation: variance minus the members' mean variance, as exact as can be.
        missing: the mixture's variance minus this variance: exactly zero for the matched surrogate.
    """

    parameters: ClassVar[dict[str, str]] = {**Gaussian.parameters, "missing": "variance"}
    missing: Array

    def __init__(self, *, mean: Array, variance: Array, deviation: Array, missing: Array) -> None:
        self.mean, self.given_variance, self.deviation, self.missing = mean, variance, deviation, missing
        self.scale = namespace(variance).sqrt(variance)


def _variance_gap(p: Gaussian, q: Gaussian) -> Array | None:
    """The variance of p minus that of q where variances are what is exact; None where the scales are."""
    if isinstance(p, Surrogate) or isinstance(q, Surrogate):
        if p.deviation is not None and q.deviation is not None:
            return p.deviation - q.deviation  # both relative to one ensemble's mean variance, which drops out
    elif p.given_variance is not None and q.given_variance is not None:
        return p.given_variance - q.given_variance
    return None


def scale_gap(p: Gaussian, q: Gaussian) -> Array:
    """The scale of p minus the scale of q, formed from exact differences."""
    gap = _variance_gap(p, q)
    # p**2 - q**2 = (p - q)(p + q), so the exact difference of variances gives that of the roots.
    return p.scale - q.scale if gap is None else gap / (p.scale + q.scale)


def _mean_absolute(shift: Array, scale: Array) -> Array:
    """E|X| for X normal with mean `shift`."""
    t = shift / scale
    return scale * (math.sqrt(2.0 / math.pi) * namespace(t).exp(-0.5 * t * t) + t * erf(t / SQRT_2))


def _joint(p: Gaussian, q: Gaussian) -> tuple[Array, Array]:
    """The scale of X - Y, and the difference of means in units of it."""
    # `hypot`, because the squares of extreme scales overflow or underflow.
    joint = namespace(p.scale, q.scale).hypot(p.scale, q.scale)
    return joint, (p.mean - q.mean) / joint


@closed_form(absolute_gap, Gaussian, Gaussian)
def _absolute_gap(p: Gaussian, q: Gaussian) -> Array:
    joint, _ = _joint(p, q)
    return _mean_absolute(p.mean - q.mean, joint)


@closed_form(overlap, Gaussian, Gaussian)
def _overlap(p: Gaussian, q: Gaussian) -> Array:
    joint, t = _joint(p, q)
    return namespace(t).exp(-0.5 * t * t) / (math.sqrt(2.0 * math.pi) * joint)


@closed_form(cross_entropy, Family, Gaussian)
def _cross_entropy(truth: Family, prediction: Gaussian) -> Array:
    """Only the first two moments of the truth count, whatever its family."""
    xp = namespace(prediction.scale)
    shift = (truth.mean - prediction.mean) / prediction.scale
    ratio = truth.variance / prediction.scale / prediction.scale  # the scale squared could underflow
    return 0.5 * (LOG_2PI + ratio + shift * shift) + xp.log(prediction.scale)


@closed_form(cramer_distance, Gaussian, Gaussian)
def _cramer_distance(p: Gaussian, q: Gaussian) -> Array:
    """Two terms that are never negative: one for the scales, one for the means."""
    joint, t = _joint(p, q)
    gap = scale_gap(p, q)
    # See docs/numerics.md, "Terms that are never negative". Divided before it is multiplied: gap**2 could underflow.
    scales = gap * (gap / (SQRT_2 * joint + p.scale + q.scale)) / SQRT_PI
    xp = namespace(t)
    means = joint * (math.sqrt(2.0 / math.pi) * xp.expm1(-0.5 * t * t) + t * erf(t / SQRT_2))
    return scales + means


@closed_form(density_distance, Gaussian, Gaussian)
def _density_distance(p: Gaussian, q: Gaussian) -> Array:
    """Two terms that are never negative: one for the scales, one for the means."""
    joint, t = _joint(p, q)
    x, y, gap = p.scale / joint, q.scale / joint, scale_gap(p, q) / joint  # so that no power of a scale overflows
    scales = gap * gap * (1.0 + 4.0 * x * y) / (2.0 * SQRT_PI * x * y * (x + y + 2.0 * SQRT_2 * x * y))
    means = -math.sqrt(2.0 / math.pi) * namespace(t).expm1(-0.5 * t * t)
    return (scales + means) / joint


@closed_form(relative_entropy, Gaussian, Gaussian)
def _relative_entropy(truth: Gaussian, prediction: Gaussian) -> Array:
    """Half of: what the ratio of variances costs, plus the squared difference of means in the prediction's scale."""
    unit = prediction.scale
    gap = (scale_gap(truth, prediction) / unit) * ((truth.scale + unit) / unit)
    ratio = truth.scale / unit
    shift = (truth.mean - prediction.mean) / unit
    # 1 + gap has no digits left where the truth is much narrower, so `log_gap` gets the ratio of variances as well.
    return 0.5 * (log_gap(gap, ratio * ratio) + shift * shift)


@closed_form(smooth, Gaussian)
def _smooth(p: Gaussian, variance: Array) -> Gaussian:
    if isinstance(p, Surrogate):
        return Surrogate(mean=p.mean, variance=p.variance + variance, deviation=p.deviation, missing=p.missing)
    wide = Gaussian(mean=p.mean, variance=p.variance + variance, check=False)
    wide.deviation = p.deviation
    return wide
