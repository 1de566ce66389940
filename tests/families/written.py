"""Families as users write them: bounded, one-sided, heavy-tailed and spiky, with what they must declare and no more."""

from __future__ import annotations

import numpy as np
import scipy.special

from uqprism.families import Family
from uqprism.families.elementwise import PointwiseForm, absolute, exp, log, log1p, where
from uqprism.families.panels import Landmarks

NOWHERE = -np.inf

KINDS = {"location": "location", "scale": "scale"}


class Standard(Family):
    """A location and a scale, and perhaps a shape; `z` is what is left of y."""

    parameters = KINDS

    def __init__(self, *, location, scale, check=True) -> None:
        super().__init__(check=check, location=location, scale=scale)

    def z(self, y):
        return (y - self.location) / self.scale


class Shaped(Standard):
    parameters = {**KINDS, "shape": "shape"}  # noqa: RUF012

    def __init__(self, *, location, scale, shape, check=True) -> None:
        Family.__init__(self, check=check, location=location, scale=scale, shape=shape)


def numbers(d):
    return d.location, 1.0 / d.scale, -np.log(d.scale)


def exponential(y, location, inverse, height):
    z = (y - location) * inverse
    return where(z < 0.0, NOWHERE, height - z)


class Exponential(Standard):
    name = "exponential"
    form = PointwiseForm(numbers, exponential)

    @property
    def mean(self):
        return self.location + self.scale

    @property
    def variance(self):
        return self.scale**2

    @property
    def support(self):
        return self.location, None

    def log_density(self, y):
        return np.where(self.z(y) < 0.0, -np.inf, -self.z(y) - np.log(self.scale))

    def cdf(self, y):
        return -np.expm1(-np.maximum(self.z(y), 0.0))

    def quantile(self, level):
        return self.location - self.scale * np.log1p(-level)


class Uniform(Standard):
    """Its support is read off the quantiles."""

    name = "uniform"

    @property
    def mean(self):
        return self.location + 0.5 * self.scale

    @property
    def variance(self):
        return self.scale**2 / 12.0

    def log_density(self, y):
        return np.where((self.z(y) < 0.0) | (self.z(y) > 1.0), -np.inf, -np.log(self.scale))

    def cdf(self, y):
        return np.clip(self.z(y), 0.0, 1.0)

    def quantile(self, level):
        return self.location + self.scale * level


def triangular(y, location, inverse, height):
    left = 1.0 - absolute(y - location) * inverse
    return where(left > 0.0, height + log(where(left > 0.0, left, 1.0)), NOWHERE)


class Triangular(Standard):
    name = "triangular"
    form = PointwiseForm(numbers, triangular)

    @property
    def mean(self):
        return self.location

    @property
    def variance(self):
        return self.scale**2 / 6.0

    @property
    def support(self):
        return self.location - self.scale, self.location + self.scale

    def log_density(self, y):
        height = 1.0 - np.abs(self.z(y))
        return np.where(height > 0.0, np.log(np.maximum(height, 1e-300) / self.scale), -np.inf)

    def cdf(self, y):
        z = np.clip(self.z(y), -1.0, 1.0)
        return np.where(z < 0.0, 0.5 * (1.0 + z) ** 2, 1.0 - 0.5 * (1.0 - z) ** 2)

    def landmarks(self):
        return Landmarks(self.location[None], self.scale[None], self.scale[None], (True,))


def gamma(y, location, inverse, height, power):
    z = (y - location) * inverse
    return where(z > 0.0, height + power * log(where(z > 0.0, z, 1.0)) - z, NOWHERE)


class Gamma(Shaped):
    name = "gamma"
    form = PointwiseForm(
        lambda d: (d.location, 1.0 / d.scale, -scipy.special.gammaln(d.shape) - np.log(d.scale), d.shape - 1.0), gamma
    )

    @property
    def mean(self):
        return self.location + self.scale * self.shape

    @property
    def variance(self):
        return self.scale**2 * self.shape

    @property
    def support(self):
        return self.location, None

    def log_density(self, y):
        z = np.maximum(self.z(y), 1e-300)
        inner = scipy.special.xlogy(self.shape - 1.0, z) - z - scipy.special.gammaln(self.shape) - np.log(self.scale)
        return np.where(self.z(y) > 0.0, inner, -np.inf)

    def cdf(self, y):
        return scipy.special.gammainc(self.shape, np.maximum(self.z(y), 0.0))

    def quantile(self, level):
        return self.location + self.scale * scipy.special.gammaincinv(self.shape, level)


def lomax(y, location, inverse, height, power):
    z = (y - location) * inverse
    return where(z < 0.0, NOWHERE, height - power * log1p(where(z < 0.0, 0.0, z)))


class Lomax(Shaped):
    name = "lomax"
    form = PointwiseForm(lambda d: (d.location, 1.0 / d.scale, np.log(d.shape / d.scale), d.shape + 1.0), lomax)

    @property
    def mean(self):
        return self.location + self.scale / (self.shape - 1.0)

    @property
    def variance(self):
        excess = np.where(self.shape > 2.0, self.shape - 2.0, 1.0)
        value = self.scale**2 * self.shape / (self.shape - 1.0) ** 2 / excess
        return np.where(self.shape > 2.0, value, np.inf)

    @property
    def spread(self):
        return self.scale

    @property
    def support(self):
        return self.location, None

    @property
    def tails(self):
        return None, self.shape

    def log_density(self, y):
        z = np.maximum(self.z(y), 0.0)
        inner = np.log(self.shape / self.scale) - (self.shape + 1.0) * np.log1p(z)
        return np.where(self.z(y) < 0.0, -np.inf, inner)

    def survival(self, y):
        return np.exp(-self.shape * np.log1p(np.maximum(self.z(y), 0.0)))

    def cdf(self, y):
        return -np.expm1(-self.shape * np.log1p(np.maximum(self.z(y), 0.0)))

    def quantile(self, level):
        return self.location + self.scale * np.expm1(-np.log1p(-level) / self.shape)


BROAD, NARROW = float(np.log(0.9)), float(np.log(100.0) - 0.5 * np.log(2.0 * np.pi))


def spike(y, location, inverse, height):
    z = (y - location) * inverse
    size, x = absolute(z), (z - 0.5) * 1e3
    one, other = BROAD - size - 2.0 * log1p(exp(-size)), NARROW - 0.5 * x * x
    return height + where(one > other, one, other) + log1p(exp(-absolute(one - other)))


class Spike(Standard):
    """Nine tenths logistic, and a tenth within a thousandth of the scale."""

    name = "spike"
    form = PointwiseForm(numbers, spike)

    @property
    def mean(self):
        return self.location + 0.05 * self.scale

    @property
    def variance(self):
        return self.scale**2 * (0.3 * np.pi**2 + 0.1 * (0.25 + 1e-6) - 0.0025)

    def log_density(self, y):
        size, x = np.abs(self.z(y)), (self.z(y) - 0.5) * 1e3
        broad = np.log(0.9) - size - 2.0 * np.log1p(np.exp(-size))
        return np.logaddexp(broad, np.log(100.0) - 0.5 * (x * x + np.log(2.0 * np.pi))) - np.log(self.scale)

    def cdf(self, y):
        return 0.9 * scipy.special.expit(self.z(y)) + 0.1 * scipy.special.ndtr((self.z(y) - 0.5) * 1e3)

    def landmarks(self):
        location = np.stack([self.location, self.location + 0.5 * self.scale])
        scale = np.stack([self.scale, 1e-3 * self.scale])
        return Landmarks(location, scale, 42.0 * scale, (False, False))


WRITTEN = {family.name: family for family in (Exponential, Uniform, Triangular, Gamma, Lomax, Spike)}
