"""Mixtures of distributions of one family."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from uqprism.arrays import Array, constant, expand, log_sum_exp, merged, namespace
from uqprism.errors import ArgumentError, ShapeError
from uqprism.families.base import Family, bisect, families, mixing_weights
from uqprism.families.elementwise import PointwiseForm, stated_form
from uqprism.families.functionals import absolute_gap, closed_form, overlap, smooth
from uqprism.families.panels import Landmarks, Places
from uqprism.families.sampling import Seed, count_of, random_levels
from uqprism.families.searching import search, take_along

WEIGHTS = "component_weights"  # in files


def _numbers_of_components(d: Mixture) -> tuple[Array, ...]:
    """The components' own, (components, *batch) each."""
    form = d.components.form
    return () if form is None else form.numbers(d.components)


@families.register("mixture")
class Mixture(Family):
    """A weighted mixture; the first axis of `components` runs over what is mixed, the rest is the batch.

    As members of an ensemble, such as mixture density networks, components have a batch of (components, members, *points).

    Args:
        components: distributions of one family.
        weights: one for each component, (components,) or as many as distributions; None means equal.
    """

    name = "mixture"
    parameters: ClassVar[dict[str, str]] = {}
    components: Family
    weights: Array  # (components, *batch), not negative

    def __init__(self, components: Family, weights: Array = None, *, check: bool = True) -> None:
        if not components.batch_shape:
            raise ShapeError("components must have a first axis to mix over, got a single distribution")
        self.components = components
        self.weights = mixing_weights(components.mean, weights, check)

    @classmethod
    def _of(cls, components: Family, weights: Array) -> Self:
        # The weights have the shape of the components already, and were checked.
        clone = object.__new__(cls)
        clone.components, clone.weights = components, weights
        return clone

    @property
    def form(self) -> PointwiseForm | None:  # type: ignore[override]
        """That of the components, which mixtures of them are compiled from."""
        inner = stated_form(self.components)
        if inner is None or inner.mixed:
            return None
        return PointwiseForm(_numbers_of_components, inner.log_density, mixed=True)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch, without the axis that is mixed over."""
        return self.components.batch_shape[1:]

    def stored(self) -> dict[str, Array]:
        """The arrays of the components, and their weights."""
        if self.components.name not in families or self.components.components is not None:
            raise ArgumentError(f"mixtures of {self.components.name} distributions cannot be stored or joined")
        return {**self.components.stored(), WEIGHTS: self.weights}

    def options(self) -> dict[str, Any]:
        """The family of the components."""
        return {"components": self.components.name, **self.components.options()}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], options: Mapping[str, Any], *, check: bool = False) -> Self:
        """What these arrays and options define; the weights are taken as they are."""
        inner, more = dict(arrays), dict(options)
        weights = inner.pop(WEIGHTS, None)
        components = families.get(more.pop("components", "gaussian")).restored(inner, more, check=check)
        if weights is None or tuple(weights.shape) != components.batch_shape:
            got = None if weights is None else tuple(weights.shape)
            raise ShapeError(f"{WEIGHTS} must have the shape of the components, {components.batch_shape}, got {got}")
        if check:
            mixing_weights(components.centre, weights)
        return cls._of(components, weights)

    def flattened(self) -> Self:
        """The same as one mixture, where the components are mixtures."""
        inner = self.components
        if not isinstance(inner, Mixture):
            return self
        depth = len(inner.components.batch_shape)

        def joined(x: Array) -> Array:
            lead = x.ndim - depth
            both = math.prod(x.shape[lead : lead + 2])
            return namespace(x).reshape(x, (*x.shape[:lead], both, *x.shape[lead + 2 :]))

        return self._of(inner.components.map(joined), joined(inner.weights * self.weights))

    def differences(self, *, spikes: bool) -> Array:
        """The largest of those of the components, and of their weights."""
        depth = len(self.weights.shape)

        def swapped(x: Array) -> Array:
            return namespace(x).moveaxis(x, x.ndim - depth, x.ndim - depth + 1)

        weights = constant(swapped(self.weights))
        xp = namespace(weights)
        change = xp.abs(weights - weights[0])
        change = xp.where(change > 0.0, change / xp.where(weights[0] > 0.0, weights[0], xp.full_like(change[0], 1e-300)), change)
        found = xp.maximum(self.components.map(swapped).differences(spikes=spikes), xp.max(change, axis=0))
        return xp.max(found, axis=0)

    def map(self, function: Callable[[Array], Array]) -> Self:
        """The same mixture with `function` applied to every parameter array (components, *batch)."""
        return self._of(self.components.map(function), function(self.weights))

    def affine(self, centre: Array, unit: Array) -> Self:
        """The distribution of centre + unit * Y."""
        return self._of(self.components.affine(centre, unit), self.weights)

    def relative_to(self, centre: Array, unit: Array) -> Self:
        """The distribution of (Y - centre) / unit."""
        return self._of(self.components.relative_to(centre, unit), self.weights)

    @property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        first, offset = self._offsets(self.components.mean)
        return first + self._average(offset)

    @property
    def centre(self) -> Array:
        """The mean of the components' centres, (*batch)."""
        first, offset = self._offsets(self.components.centre)
        return first + self._average(offset)

    @property
    def variance(self) -> Array:
        """The mean of the variances plus the variance of the means, (*batch)."""
        _, offset = self._offsets(self.components.mean)
        deviation = offset - self._average(offset)
        return self._average(self.components.variance + deviation * deviation)

    def _offsets(self, values: Array) -> tuple[Array, Array]:
        return values[0], values - values[0]  # relative to the first, so that a large common offset costs no digits

    def _average(self, values: Array) -> Array:
        return namespace(values).sum(self.weights * values, axis=0)

    def component_log_densities(self, y: Array) -> Array:
        """The components' log densities plus log weights, (..., components, *batch)."""
        return self.components.log_density(self._spread(y)) + self._log_weights()

    def _log_weights(self) -> Array:
        """log(weights), minus infinity for members that do not count."""
        xp = namespace(self.weights)
        counts = self.weights > 0.0
        log_weights = xp.log(xp.where(counts, self.weights, xp.ones_like(self.weights)))
        return xp.where(counts, log_weights, xp.full_like(log_weights, -math.inf))

    def log_density(self, y: Array) -> Array:
        """The log density at y."""
        return log_sum_exp(self.component_log_densities(y), axis=-1 - len(self.batch_shape))

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        return self._mix(self.components.cdf(self._spread(y)))

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        return self._mix(self.components.survival(self._spread(y)))

    def signed_cdf(self, y: Array, pivot: Array) -> Array:
        """The probability of values up to y, less one where y is above the pivot."""
        return self._mix(self.components.signed_cdf(self._spread(y), pivot))

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        return self._mix(self.components.absolute_deviation(self._spread(y)))

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`, by bisection between the components' quantiles."""
        # A mixture's quantile lies between the smallest and the largest of its components'.
        quantiles, axis = self.components.quantile(self._spread(level)), -1 - len(self.batch_shape)
        xp = namespace(quantiles)
        low, high = xp.min(quantiles, axis=axis), xp.max(quantiles, axis=axis)
        found = bisect(self, level, low, high)
        if self.lattice is not None:  # bisection ends next to a count
            first, step = self.lattice
            found = first + step * xp.round((constant(found) - first) / step)
        return found + constant(xp.clip(found, low, high) - found)  # a probability at a bound is not missed by rounding

    def sample(self, n: int, *, seed: Seed = None) -> Array:
        """`n` independent draws, (n, *batch): of components that are drawn by their weights."""
        if isinstance(self.components, Mixture):
            return self.flattened().sample(n, seed=seed)
        rng, count, depth = np.random.default_rng(seed), count_of(n), len(self.batch_shape)
        wide = self.widened()
        xp = namespace(wide.weights)
        below = xp.cumulative_sum(wide.weights, axis=0)
        level = random_levels((count, *self.batch_shape), rng, wide.weights) * below[-1]
        chosen = search(below, level)
        parts = wide.components
        if all(x.ndim == depth + 1 for x in parts.arrays()):
            return xp.astype(parts.map(lambda x: take_along(x, chosen)).sample(1, seed=rng)[0], self.weights.dtype)
        drawn = xp.zeros_like(level)
        for i in range(wide.weights.shape[0]):  # arrays of bars and draws would be repeated for each draw
            one = parts.map(lambda x: x[(slice(None),) * (x.ndim - depth - 1) + (i,)])  # noqa: B023 (called at once)
            drawn = xp.where(chosen == i, one.sample(count, seed=rng), drawn)
        return xp.astype(drawn, self.weights.dtype)

    def _spread(self, y: Array) -> Array:
        """y with an axis for the components before those of the batch."""
        y = y + namespace(self.weights).zeros_like(self.weights[0])
        return expand(y, y.ndim - len(self.batch_shape))

    def _mix(self, values: Array) -> Array:
        return namespace(values).sum(self.weights * values, axis=-1 - len(self.batch_shape))

    def landmarks(self) -> Landmarks:
        """Those of all components."""
        marks = self.components.landmarks()
        below = marks.reach if marks.reach_below is None else marks.reach_below
        rows = (marks.location, marks.width, marks.reach, below)
        location, width, reach, below = (merged(x, len(self.batch_shape)) for x in rows)
        return Landmarks(location, width, reach, tuple(s for s in marks.sharp for _ in range(self.weights.shape[0])), below)

    def places(self, *, graded: bool = True) -> Places:
        """Those of all components."""
        places, count = self.components.places(graded=graded), self.weights.shape[0]
        rows = (places.location, places.width, places.low, places.high)
        location, width, low, high = (merged(x, len(self.batch_shape)) for x in rows)
        power = None if places.power is None else merged(places.power, len(self.batch_shape))
        return Places(location, width, low, high, tuple(s for s in places.sharp for _ in range(count)), places.heavy, power)

    @property
    def tolerance(self) -> float:  # type: ignore[override]
        """That of the components."""
        return self.components.tolerance

    @property
    def has_power_law(self) -> bool:
        """True if a component has such a tail."""
        return self.components.has_power_law

    @property
    def spans_decades(self) -> bool:
        """True if components span decades."""
        return self.components.spans_decades

    @property
    def lattice(self) -> tuple[Array, Array] | None:
        """That of the components."""
        each = self.components.lattice
        return None if each is None else (each[0][0], each[1][0])

    @property
    def atoms(self) -> list[tuple[Array, Array]] | None:
        """Those of the components, which must have them at the same values."""
        if self.components.atoms is None:
            return None
        axis = -1 - len(self.batch_shape)
        return [(x[0], log_sum_exp(log_p + self._log_weights(), axis=axis)) for x, log_p in self.components.atoms]

    def interpolated(self) -> Mixture:
        """The mixture of what the components are between counts."""
        return self if self.components.lattice is None else self._of(self.components.interpolated(), self.weights)

    @property
    def square_power(self) -> Array | None:
        """The smallest of the components that count."""
        each = self.components.square_power
        xp = namespace(self.weights)
        return None if each is None else xp.min(xp.where(self.weights > 0.0, each, xp.ones_like(self.weights)), axis=0)

    @property
    def has_density(self) -> bool:
        """True if all components have one."""
        return self.components.has_density

    @property
    def support(self) -> tuple[Array, Array]:
        """The lowest and the highest bound of the components that have a weight."""
        lower, upper = self.components.support
        there, xp = self.weights > 0.0, namespace(self.weights)
        lower = None if lower is None else xp.min(xp.where(there, lower, xp.full_like(self.weights, math.inf)), axis=0)
        return lower, None if upper is None else xp.max(xp.where(there, upper, xp.full_like(self.weights, -math.inf)), axis=0)

    @property
    def has_bounds(self) -> bool:
        """True if components have bounds."""
        return self.components.has_bounds

    def beyond(self, low: Array, high: Array, about: Array = None) -> Array:
        """The sum of what the components' power laws hold outside low and high."""
        if not self.has_power_law:
            return 0.0
        return self._mix(self.components.beyond(*(None if x is None else self._spread(x) for x in (low, high, about))))

    def __repr__(self) -> str:
        return f"Mixture({self.components!r}, weights={self.weights!r})"


def linear(functional: Callable[..., Array], mixture: Mixture, other: Family) -> Array:
    """The functional averaged over the components, which broadcast along a new first axis."""
    axes = max(len(mixture.batch_shape), len(other.batch_shape))
    mixture, spread = mixture.lifted(axes), other.lifted(axes + 1)
    return namespace(mixture.weights).sum(mixture.weights * functional(mixture.components, spread), axis=0)


PAIRS = 20_000  # of components, beyond which one integral costs less


def many_pairs(p: Mixture, q: Family) -> bool:
    """True for mixtures of so many components that an integral over the mixtures costs less than pairs of components."""
    return isinstance(q, Mixture) and p.weights.shape[0] * q.weights.shape[0] > PAIRS


@closed_form(absolute_gap, Mixture, Family)
def _absolute_gap(p: Mixture, q: Family) -> Array:
    return absolute_gap.fallback(p, q) if many_pairs(p, q) else linear(absolute_gap, p, q)


@closed_form(overlap, Mixture, Family)
def _overlap(p: Mixture, q: Family) -> Array:
    return overlap.fallback(p, q) if many_pairs(p, q) else linear(overlap, p, q)


@closed_form(smooth, Mixture)
def _smooth(p: Mixture, variance: Array) -> Mixture:
    return Mixture._of(smooth(p.components, variance), p.weights)
