"""Distributions of counts: Poisson and negative binomial.

Probabilities are sums over counts, so a lattice takes the place of panels. Of the rules, log and quadratic score the probability
of a count in place of a density, and only compare counts with counts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Self

from uqprism.arrays import LOG_2PI, Array, constant, namespace
from uqprism.errors import UnsupportedError
from uqprism.families.base import Family, families, prepare
from uqprism.families.elementwise import PointwiseForm, Shared, log, log1p, log_gap, where
from uqprism.families.functionals import absolute_gap, closed_form, relative_entropy, smooth
from uqprism.families.incomplete import beta_cdf, gamma_cdf
from uqprism.families.panels import Landmarks
from uqprism.families.positive import check_range
from uqprism.families.quadrature import grid_over, record
from uqprism.families.stirling import stirling_error
from uqprism.synonyms import named_arguments


def _deviance(x: Array, mean: Array) -> Array:
    """x log(x / mean) + mean - x for x > 0, without cancelling."""
    return x * log_gap((mean - x) / x, mean / x)


def log_poisson(k: Array, rate: Array) -> Array:
    """Of counts k >= 0; the formula k log(rate) - rate - log(k!) cancels for large rates."""
    return _own_poisson(k, _of_count(k), 0.0, rate)


def log_negative_binomial(k: Array, rate: Array, size: Array, error: Array) -> Array:
    """Of counts k >= 0; `error` is that of Stirling's formula for the size."""
    return _own_negative_binomial(k, _of_count(k), 0.0, rate, size, error)


def _of_count(k: Array) -> Array:
    """The part of the log probability that depends on the count alone."""
    none = k <= 0.0
    some = where(none, 1.0, k)
    return where(none, 0.0, -0.5 * (LOG_2PI + log(some)) - stirling_error(some))


def _shared_poisson(k: Array, rate: Array) -> tuple[Array, float]:  # noqa: ARG001 (the signature is that of all forms)
    return _of_count(k), 0.0


def _shared_negative_binomial(k: Array, rate: Array, size: Array, error: Array) -> tuple[Array, float]:  # noqa: ARG001
    return _of_count(k), 0.0


def _own_poisson(k: Array, of_count: Array, nothing: float, rate: Array) -> Array:  # noqa: ARG001
    none = k <= 0.0
    return where(none, -rate, of_count - _deviance(where(none, 1.0, k), rate))


def _own_negative_binomial(  # noqa: PLR0917 (kernels pass numbers one by one)
    k: Array,
    of_count: Array,
    nothing: float,  # noqa: ARG001
    rate: Array,
    size: Array,
    error: Array,
) -> Array:
    none = k <= 0.0
    some = where(none, 1.0, k)
    both, whole = some + size, rate + size
    deviances = _deviance(size, both * (size / whole)) + _deviance(some, both * (rate / whole))
    value = of_count + (stirling_error(both) - error) - deviances + 0.5 * log(size / both)
    return where(none, -size * log1p(rate / size), value)


class Counts(Family):
    """Counts 0, 1, 2 ..., which lie at `low`, `low` + `step` and so on; as they are given, at the numbers themselves."""

    constants: ClassVar[tuple[str, ...]] = ("_between",)
    low: Array
    step: Array
    _between: bool = False  # whether functions are continued between counts

    def __init__(self, *, check: bool = True, **given: Array) -> None:
        arrays = prepare(self.arguments(), check, **given)
        for name, x in arrays.items():
            if check:
                check_range(name, x, 1e-12, 1e12, "use Gaussian members for larger ones, and drop smaller ones")
            setattr(self, name, x)
        like = next(iter(arrays.values()))
        self.low, self.step = namespace(like).zeros_like(like), namespace(like).ones_like(like)

    @property
    def lattice(self) -> tuple[Array, Array]:
        """Where the counts lie."""
        return self.low, self.step

    def interpolated(self) -> Self:
        """The same with density and distribution function continued between counts."""
        between = self.map(lambda x: x)
        between._between = True
        return between

    @abstractmethod
    def log_probability(self, k: Array) -> Array:
        """The logarithm of the probability of k >= 0, also between counts."""

    @abstractmethod
    def share(self, k: Array, *, above: bool) -> Array:
        """The probability of counts up to k >= 0, or above, also between counts."""

    @property
    @abstractmethod
    def count_mean(self) -> Array:
        """The mean of the counts."""

    @property
    @abstractmethod
    def count_variance(self) -> Array:
        """The variance of the counts."""

    @abstractmethod
    def shortfall(self, k: Array) -> Array:
        """The mean of max(0, Y - k) less that of k - Y where Y <= k, over probabilities: sum over j <= k of (mean - j) P(j)."""

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        return self.low + self.step * self.count_mean

    @property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        return self.step * self.step * self.count_variance

    def differences(self, *, spikes: bool) -> Array:
        """In units in which the mean changes by about one standard deviation."""
        mean, variance = constant(self.count_mean), constant(self.count_variance)
        xp = namespace(mean)
        steep = xp.clip(xp.max(mean / xp.sqrt(variance), axis=0), 1.0, None)
        found = [constant(getattr(self, name)) for name in self.arguments()]
        relative = [xp.max(xp.abs(x - x[0]), axis=0) / xp.min(x, axis=0) for x in found]
        return steep * xp.max(xp.stack(relative), axis=0)

    def _count(self, y: Array) -> tuple[Array, Array, Array]:
        """Counts at or next below y, which of them are counts, and which y are not below zero."""
        k = constant((y - self.low) / self.step)  # nodes move with the lattice, and steps have no gradient
        xp = namespace(k)
        nearest = xp.round(k)
        if self._between:
            valid = k > -0.5  # zero, as rounding leaves it; between large counts, places near one must not move to it
            return xp.where(k < 1e-9, xp.zeros_like(k), k), valid, valid
        there = xp.abs(k - nearest) < 1e-10 * (1.0 + xp.abs(k))  # as rounding leaves them
        k = xp.where(there, nearest, xp.floor(k))
        valid = k >= 0.0
        return xp.where(valid, k, xp.zeros_like(k)), there, valid

    def log_density(self, y: Array) -> Array:
        """The logarithm of the probability of y over the distance of counts; minus infinity between counts."""
        k, there, valid = self._count(y)
        xp = namespace(k)
        value = self.log_probability(k) - xp.log(self.step)
        return xp.where(there & valid, value, xp.full_like(value, -math.inf))

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        k, _, valid = self._count(y)
        value = self.share(k, above=False)
        return namespace(value).where(valid, value, 0.0 * value)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        k, _, valid = self._count(y)
        value = self.share(k, above=True)
        return namespace(value).where(valid, value, namespace(value).ones_like(value))

    def quantile(self, level: Array) -> Array:
        """The smallest count that Y does not exceed with at least this probability."""
        level = level + 0.0 * self.low
        xp = namespace(level)
        low, high = xp.full_like(level, -1.0), xp.ceil(constant(self._reach()) + 0.0 * level)
        for _ in range(64):  # the range is shorter than 2**64
            middle = xp.floor(0.5 * (low + high))
            below = constant(self.share(xp.clip(middle, 0.0, None), above=False)) < level * (1.0 - 1e-14)
            low, high = xp.where(below, middle, low), xp.where(below, high, middle)
        return self.low + self.step * xp.clip(high, 0.0, None)

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        k, _, valid = self._count(y)
        distance = (y - self.low) / self.step
        xp = namespace(k)
        value = (distance - self.count_mean) * (self.share(k, above=False) - self.share(k, above=True)) + 2.0 * self.shortfall(k)
        return self.step * xp.where(valid, value, self.count_mean - distance)

    @abstractmethod
    def _reach(self) -> Array:
        """The count beyond which next to nothing lies."""

    def landmarks(self) -> Landmarks:
        """The first counts, and the mean."""
        mean, scale = self.count_mean, namespace(self.low).sqrt(self.count_variance)
        xp = namespace(mean)
        width = xp.minimum(scale, mean)
        rows = [(mean, width, self._reach() - mean, mean), (0.0 * mean, 6.0 + 0.0 * mean, 12.0 + 0.0 * mean, 0.0 * mean)]
        location, width, above, below = (self.step * xp.stack(x) for x in zip(*rows, strict=True))
        return Landmarks(self.low + location, width, above, (False, False), below)


@families.register("poisson")
class Poisson(Counts):
    """Poisson distributions with this rate, which is the mean and the variance."""

    name = "poisson"
    form = PointwiseForm(  # of counts
        lambda d: (d.rate,), log_poisson, shared=Shared(_shared_poisson, _own_poisson)
    )
    given: ClassVar[dict[str, str]] = {"rate": "scale"}
    parameters: ClassVar[dict[str, str]] = {"low": "location", "step": "scale", "rate": "shape"}
    rate: Array

    @named_arguments()
    def __init__(self, *, rate: Array, check: bool = True) -> None:
        super().__init__(check=check, rate=rate)

    @property
    def count_mean(self) -> Array:
        """The rate."""
        return self.rate

    @property
    def count_variance(self) -> Array:
        """The rate."""
        return self.rate

    def log_probability(self, k: Array) -> Array:
        """The logarithm of the probability of k >= 0."""
        return log_poisson(k, self.rate)

    def share(self, k: Array, *, above: bool) -> Array:
        """The probability of counts up to k >= 0, or above."""
        return gamma_cdf(k + 1.0, self.rate + 0.0 * k, above=not above)

    def shortfall(self, k: Array) -> Array:
        """The sum over j <= k of (mean - j) P(j)."""
        return self.rate * namespace(k).exp(self.log_probability(k))

    def _reach(self) -> Array:
        return self.rate + 9.0 * namespace(self.rate).sqrt(self.rate) + 45.0


@families.register("negative_binomial")
class NegativeBinomial(Counts):
    """Negative binomial distributions with this rate, the mean; the variance is rate + rate**2 / size.

    The number of failures before `size` successes of probability size / (size + rate). For large sizes it is a Poisson.
    """

    name = "negative_binomial"
    form = PointwiseForm(  # of counts
        lambda d: (d.rate, d.size, stirling_error(d.size)),
        log_negative_binomial,
        shared=Shared(_shared_negative_binomial, _own_negative_binomial),
    )
    given: ClassVar[dict[str, str]] = {"rate": "scale", "size": "scale"}
    parameters: ClassVar[dict[str, str]] = {"low": "location", "step": "scale", "rate": "shape", "size": "shape"}
    rate: Array
    size: Array

    @named_arguments()
    def __init__(self, *, rate: Array, size: Array, check: bool = True) -> None:
        super().__init__(check=check, rate=rate, size=size)

    @property
    def count_mean(self) -> Array:
        """The rate."""
        return self.rate

    @property
    def count_variance(self) -> Array:
        """The rate, plus what the rate itself varies."""
        return self.rate * (1.0 + self.rate / self.size)

    def log_probability(self, k: Array) -> Array:
        """The logarithm of the probability of k >= 0."""
        return log_negative_binomial(k, self.rate, self.size, stirling_error(self.size))

    def share(self, k: Array, *, above: bool) -> Array:
        """The probability of counts up to k >= 0, or above."""
        whole = self.rate + self.size
        success, failure = self.size / whole + 0.0 * k, self.rate / whole + 0.0 * k
        if above:
            return beta_cdf(k + 1.0, self.size + 0.0 * k, failure, rest=success)
        return beta_cdf(self.size + 0.0 * k, k + 1.0, success, rest=failure)

    def shortfall(self, k: Array) -> Array:
        """The sum over j <= k of (mean - j) P(j)."""
        return (k + self.size) * (self.rate / self.size) * namespace(k).exp(self.log_probability(k))

    def _reach(self) -> Array:
        return self.rate + 9.0 * namespace(self.rate).sqrt(self.count_variance) + 45.0 * (1.0 + self.rate / self.size)


@closed_form(absolute_gap, Counts, Family)
def _absolute_gap(p: Counts, q: Family) -> Array:
    """A sum over counts."""
    if q.lattice is not None:
        return absolute_gap.fallback(p, q)
    record(p.tolerance)
    grid = grid_over(p, q)
    xp = namespace(grid.nodes)
    return grid.integrate(xp.exp(grid.evaluate(p, "log_density")) * q.absolute_deviation(grid.nodes))


@closed_form(relative_entropy, Poisson, Poisson)
def _relative_entropy(truth: Poisson, prediction: Poisson) -> Array:
    return _deviance(truth.rate, prediction.rate)


@closed_form(smooth, Counts)
def _smooth(p: Counts, variance: Array) -> Family:  # noqa: ARG001 (others use it)
    """Refused: between counts nothing happens that noise would blur."""
    raise UnsupportedError(
        f"gaussian_kernel is for distributions with a density or draws, not for {p.name} members; use crps, log or quadratic"
    )
