"""Distributions of values above a bound."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from uqprism.arrays import Array, constant, is_jax, is_traced, namespace, to_numpy
from uqprism.errors import InvalidValueError, UnsupportedError
from uqprism.families.base import Family, prepare
from uqprism.families.functionals import SLOW, Functional
from uqprism.families.panels import Landmarks
from uqprism.families.quadrature import integrate


class Positive(Family):
    """Values above `low`, which is zero for a distribution as it is given and moves with it.

    A family of this kind works with the distance from the bound in units of its scale. Its `marks` say what a quadrature must
    resolve next to the bound, where densities may be infinite.

    Attributes:
        ranges: for parameters with limits of their own, the smallest and the largest value, and what to do beyond.
    """

    ranges: ClassVar[dict[str, tuple[float, float, str]]] = {}
    low: Array

    def __init__(self, *, check: bool = True, **given: Array) -> None:
        arrays = prepare(self.arguments(), check, **given)
        for name, x in arrays.items():
            if check and name in self.ranges:
                check_range(name, x, *self.ranges[name])
            setattr(self, name, x)
        self._anchor(next(iter(arrays.values())))

    def _anchor(self, like: Array) -> None:
        """Set the parameters that are not given."""
        self.low = namespace(like).zeros_like(like)

    @property
    def support(self) -> tuple[Array, Array]:
        """Values from `low` on."""
        return self.low, None

    @property
    def spans_decades(self) -> bool:
        """True: far from the bound and next to it sizes are very different."""
        return True

    @property
    @abstractmethod
    def size(self) -> Array:
        """The unit of distances from the bound."""

    @abstractmethod
    def marks(self) -> tuple[list[tuple[Array, Array]], Array]:
        """Distances from the bound, each with the length over which the density is smooth there, and how far it counts."""

    @property
    def power_at_bound(self) -> Array | None:
        """The power with which probability grows from the last mark on; None if it is none."""
        return None

    def recalibrated(self, weights: Array, *, noise: float, disagreement: float) -> Self:
        """The same on the scale of logarithms, so that values stay above the bound, by the family's `reshaped`."""
        xp = namespace(self.mean)
        logarithm = xp.log(self.log_centre)
        common = xp.sum(weights * logarithm, axis=0)
        return self.reshaped(xp.exp(common + disagreement * (logarithm - common)), noise)

    @property
    def log_centre(self) -> Array:
        """The distance from the bound that stays where it is when a member gets wider: by default that of the mean."""
        return self.mean - self.low

    def reshaped(self, centre: Array, noise: float) -> Self:
        """The member with this `log_centre` that is `noise` times as wide in relation to it."""
        raise UnsupportedError(f"{self.name} members cannot be recalibrated by factors; the family does not define `reshaped`")

    def landmarks(self) -> Landmarks:
        """The marks, as places."""
        rows, end = self.marks()
        location, width = (namespace(end).stack(x) for x in zip(*rows, strict=True))
        # All that lies between the bound and the end counts; the plan cuts the reach below off at the bound.
        power = self.power_at_bound
        if power is not None:
            power = namespace(end).stack([power if deep else 0.0 * end for deep in [*[False] * (len(rows) - 1), True]])
        return Landmarks(self.low + location, width, end - location, (False,) * len(rows), location, power)

    def distance(self, y: Array) -> tuple[Array, Array]:
        """Distances of y from the bound in units of the size, one where there is none, and where y is above the bound."""
        x = (y - self.low) / self.size
        inside = constant(x) > 0.0
        xp = namespace(x)
        return xp.where(inside, x, xp.ones_like(x)), inside

    def expectation(self, function: Callable[[Array], Array], *others: Family) -> Array:
        """The mean of function(Y), by quadrature; `others` are distributions whose features the function shares."""
        # Over distances from the bound: next to it, values of y would be rounded to it.
        unit = namespace(self.low).ones_like(self.low)
        here, *there = (d.relative_to(self.low, unit) for d in (self, *others))
        return integrate(lambda y: function(self.low + y) * here.density(y), here, *there)


def above(inside: Array, value: Array, otherwise: float) -> Array:
    """The value above the bound, and below it this number."""
    xp = namespace(value)
    return xp.where(inside, value, xp.full_like(value, otherwise))


def check_range(name: str, x: Array, low: float, high: float, way_out: str) -> None:
    """Refuse values outside the range that a parameter may have."""
    if is_traced(x):
        return
    x = to_numpy(x) if is_jax(x) else x
    bad = (x < low) | (x > high)
    if bool(namespace(x).any(bad)):
        value: Any = to_numpy(x)[np.asarray(to_numpy(bad))].reshape(-1)[0]
        raise InvalidValueError(f"{name} must lie between {low:g} and {high:g}, got {float(value):g}; {way_out}")


def one_bound(functional: Functional, p: Family, q: Family, value: Array) -> Array:
    """A value that holds where two distributions have the same bounds; the integral if they do not.

    Of traced bounds nothing is known: the value is then NaN where they differ.
    """
    differ = False
    for one, other in zip(p.support, q.support, strict=True):
        differ = differ if one is None else differ | (one != other)
    xp = namespace(value)
    if is_traced(differ):
        return xp.where(differ, xp.full_like(value, np.nan), value)
    return functional.fallback(p, q) if bool(xp.any(differ)) else value


def deep_quantile(power: Array, log_unit: Array) -> Array:
    """Where a density like x**(power - 1) at the bound, and its square, have next to nothing below, in sizes.

    `log_unit` is the logarithm of what x is divided by in the probability below, x**power.
    """
    xp = namespace(power)
    square = xp.where(power > 0.5 * (1.0 + SLOW), 2.0 * power - 1.0, power)
    return xp.exp(xp.clip(log_unit - 40.0 / xp.minimum(power, square), -690.0, -4.0))
