"""A distribution blurred by Gaussian noise, for families that have no closed form of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from uqprism.arrays import Array, expand, namespace
from uqprism.families.base import Family
from uqprism.families.gaussian import Gaussian
from uqprism.families.panels import Landmarks
from uqprism.families.quadrature import integrate


class Smoothed(Family):
    """The distribution of Y + noise, with Y of `base` and independent Gaussian noise of this variance."""

    name = "smoothed"
    parameters: ClassVar[dict[str, str]] = {"noise": "variance"}

    def __init__(self, base: Family, noise: Array) -> None:
        self.base, self.noise = base, noise + 0.0 * base.mean

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch."""
        return self.base.batch_shape

    def map(self, function: Callable[[Array], Array]) -> Self:
        """The same with `function` applied to every parameter array."""
        return type(self)(self.base.map(function), function(self.noise))

    def affine(self, centre: Array, unit: Array) -> Self:
        """The distribution of centre + unit * Y."""
        return type(self)(self.base.affine(centre, unit), self.noise * unit * unit)

    def relative_to(self, centre: Array, unit: Array) -> Self:
        """The distribution of (Y - centre) / unit."""
        return type(self)(self.base.relative_to(centre, unit), self.noise / unit / unit)

    @property
    def mean(self) -> Array:
        """The mean of the base."""
        return self.base.mean

    @property
    def variance(self) -> Array:
        """The variance of the base plus that of the noise."""
        return self.base.variance + self.noise

    def density(self, y: Array) -> Array:
        """The density at y: the mean density of the noise over the base."""
        return self._blur(lambda noise, x: noise.density(x), y)

    def log_density(self, y: Array) -> Array:
        """The log density at y."""
        density = self.density(y)
        xp = namespace(density)
        # Not -inf: the log is multiplied by densities, and 0 * -inf is NaN.
        return xp.log(xp.where(density > 0.0, density, xp.full_like(density, 1e-300)))

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        # The noise is symmetric: x + noise <= y is as probable as y + noise >= x.
        return self._blur(lambda noise, x: 1.0 - noise.cdf(x), y)

    def _blur(self, function: Callable[[Gaussian, Array], Array], y: Array) -> Array:
        """The mean over the base of a function of the noise around y, one integral for each y."""
        y = y + 0.0 * self.noise
        extra = y.ndim - len(self.batch_shape)
        base = self.base.map(lambda x: expand(x, x.ndim - len(self.batch_shape), extra))
        scale = namespace(y).sqrt(self.noise + 0.0 * y)
        noise = Gaussian(mean=y, scale=scale, check=False)
        return integrate(lambda x: function(noise, x) * base.density(x), base, noise)

    def landmarks(self) -> Landmarks:
        """Those of the base, blurred."""
        marks = self.base.landmarks()
        xp = namespace(self.noise)
        scale = xp.sqrt(self.noise)[None]
        width = xp.minimum(xp.hypot(marks.width, scale), 1e3 * scale)
        # Noise rounds every corner off.
        return Landmarks(marks.location, width, marks.reach + 9.0 * scale, (False,) * len(marks.sharp))
