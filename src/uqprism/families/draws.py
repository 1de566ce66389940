"""Distributions that are given by draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from uqprism.arrays import Array, expand, namespace
from uqprism.errors import ShapeError
from uqprism.families.base import Family, families, mixing_weights, no_density, prepare
from uqprism.families.functionals import absolute_gap, closed_form, cramer_distance, smooth
from uqprism.families.gaussian import Gaussian
from uqprism.families.mixture import Mixture
from uqprism.families.panels import Landmarks
from uqprism.families.quadrature import record
from uqprism.families.searching import take_along
from uqprism.families.stored import require


@families.register("draws")
class Draws(Family):
    """Weight on each draw, equal unless given; the first axis of `draws` runs over the draws, the rest is the batch.

    There is no density, so the log and quadratic rules raise; CRPS costs a sort.
    """

    name = "draws"
    in_lists: ClassVar[tuple[str, ...]] = ("draws", "weights")
    parameters: ClassVar[dict[str, str]] = {"draws": "location", "weights": "shape"}
    draws: Array  # (draws, *batch)
    weights: Array  # (draws, *batch)

    def __init__(self, draws: Array, weights: Array = None, *, check: bool = True) -> None:
        self.draws = prepare(self.parameters, check, draws=draws)["draws"]
        if self.draws.ndim == 0 or self.draws.shape[0] == 0:
            raise ShapeError(f"draws must have a first axis with at least one draw, got shape {tuple(self.draws.shape)}")
        self.weights = mixing_weights(self.draws, weights, check)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch, without the axis of the draws."""
        return tuple(self.draws.shape[1:])

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], options: Mapping[str, Any], *, check: bool = False) -> Self:  # noqa: ARG003 (others have some)
        """What these arrays define; the weights are taken as they are."""
        require(cls.name, arrays, cls.parameters)
        if arrays["draws"].shape != arrays["weights"].shape:
            raise ShapeError(f"parameters must have one shape, got {arrays['draws'].shape} and {arrays['weights'].shape}")
        prepare(dict.fromkeys(arrays, "location"), check, **arrays)  # a weight may be 0
        draws = object.__new__(cls)
        draws.draws, draws.weights = arrays["draws"], arrays["weights"]
        return draws

    @property
    def mean(self) -> Array:
        """The mean of the draws."""
        # Relative to the first draw, so that a large common offset costs no digits.
        return self.draws[0] + self._average(self.draws - self.draws[0])

    @property
    def variance(self) -> Array:
        """The mean squared deviation of the draws."""
        deviation = self.draws - self.mean
        deviation = deviation - self._average(deviation)  # what the rounded mean has left
        return self._average(deviation * deviation)

    def _average(self, values: Array) -> Array:
        return namespace(values).sum(self.weights * values, axis=0)

    def log_density(self, y: Array) -> Array:
        """Raises: samples have no density."""
        raise no_density(self)

    def expectation(self, function: Callable[[Array], Array], *others: Family) -> Array:
        """The mean of function over the draws."""
        wide = self.lifted(max((len(d.batch_shape) for d in others), default=0))
        return wide._average(function(wide.draws))

    def cdf(self, y: Array) -> Array:
        """The share of draws up to y."""
        xp = namespace(self.draws)
        return self._mix(xp.astype(self.draws <= self._spread(y), self.draws.dtype))

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        return self._mix(namespace(self.draws).abs(self.draws - self._spread(y)))

    def _spread(self, y: Array) -> Array:
        """y with an axis for the draws before those of the batch."""
        y = y + namespace(self.draws).zeros_like(self.draws[0])
        return expand(y, y.ndim - len(self.batch_shape))

    def _mix(self, values: Array) -> Array:
        return namespace(values).sum(self.weights * values, axis=-1 - len(self.batch_shape))

    def quantile(self, level: Array) -> Array:
        """The smallest draw that at least this share of the draws does not exceed."""
        xp = namespace(self.draws)
        order = xp.argsort(self.draws, axis=0)
        draws, share = take_along(self.draws, order), xp.cumulative_sum(take_along(self.weights, order), axis=0)
        reached = share >= level - 1e-12  # ten times 0.1 sums to less than 1 in floating point
        return xp.min(xp.where(reached, draws, xp.full_like(draws, np.inf)), axis=0)

    def landmarks(self) -> Landmarks:
        """Every draw is a corner."""
        xp = namespace(self.draws)
        nothing = xp.zeros_like(self.draws)
        return Landmarks(self.draws, nothing + np.inf, nothing, (True,) * self.draws.shape[0])


def _merge(p: Draws, q: Draws) -> tuple[Array, Array, Array]:
    """Lengths between the draws of both in order, and both distribution functions there: (draws - 1, *batch)."""
    xp = namespace(p.draws, q.draws)
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    p, q = p.lifted(len(shape)), q.lifted(len(shape))

    def wide(x: Array) -> Array:
        return xp.broadcast_to(x, (x.shape[0], *shape))

    both = xp.concat([wide(p.draws), wide(q.draws)], axis=0)
    order = xp.argsort(both, axis=0)
    both = take_along(both, order)
    mass = [wide(p.weights), wide(q.weights)]
    f = xp.cumulative_sum(take_along(xp.concat([mass[0], 0.0 * mass[1]], axis=0), order), axis=0)
    g = xp.cumulative_sum(take_along(xp.concat([0.0 * mass[0], mass[1]], axis=0), order), axis=0)
    # Both functions are constant between neighbouring draws, so an integral over y is a sum over these lengths.
    return both[1:] - both[:-1], f[:-1], g[:-1]


@closed_form(absolute_gap, Draws, Draws)
def _absolute_gap(p: Draws, q: Draws) -> Array:
    if p is q:
        xp = namespace(p.draws)
        order = xp.argsort(p.draws, axis=0)
        draws, share = take_along(p.draws, order), xp.cumulative_sum(take_along(p.weights, order), axis=0)[:-1]
        return 2.0 * xp.sum((draws[1:] - draws[:-1]) * share * (1.0 - share), axis=0)
    length, f, g = _merge(p, q)
    return namespace(length).sum(length * (f * (1.0 - g) + g * (1.0 - f)), axis=0)


@closed_form(cramer_distance, Draws, Draws)
def _cramer_distance(p: Draws, q: Draws) -> Array:
    length, f, g = _merge(p, q)
    return namespace(length).sum(length * (f - g) ** 2, axis=0)


@closed_form(smooth, Draws)
def _smooth(p: Draws, variance: Array) -> Mixture:
    return Mixture._of(Gaussian(mean=p.draws, variance=variance + 0.0 * p.draws, check=False), p.weights)


@closed_form(absolute_gap, Draws, Family)
def _absolute_gap_to(p: Draws, q: Family) -> Array:
    p = p.lifted(len(q.batch_shape))
    gaps = q.absolute_deviation(p.draws)
    return namespace(gaps).sum(p.weights * gaps, axis=0)


@closed_form(cramer_distance, Draws, Family)
def _cramer_distance_to(p: Draws, q: Family) -> Array:
    """A step function is never close to a smooth one (n draws: at least 1/n**2 of the scale), so little is lost."""
    record(1e-6)
    distance = absolute_gap(p, q) - 0.5 * absolute_gap(p, p) - 0.5 * absolute_gap(q, q)
    return namespace(distance).maximum(distance, namespace(distance).zeros_like(distance))
