"""Centre and scale first: coordinates in which nothing overflows and the members' differences are exact.

The centre is subtracted before anything is squared, and the unit is a power of two, so that an offset of 1e12 scales or a
scale of 1e-150 costs no digit. Centre and unit are constants to gradients, since results do not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from uqprism.arrays import Array, constant, namespace, power_of_two
from uqprism.families.base import Family


@dataclass(frozen=True)
class Centring:
    """y = centre + unit * (the centred coordinate), point by point."""

    centre: Array
    unit: Array
    log_unit: Array

    def restore(self, value: Array, degree: int) -> Array:
        """A value of this scale degree, back in the units of y."""
        # One factor at a time: a power of the unit may overflow where the product does not.
        for _ in range(abs(degree)):
            value = value * self.unit if degree > 0 else value / self.unit
        return value


def standardise(members: Family, weights: Array) -> tuple[Family, Centring]:
    """Members (members, *points) with weighted mean zero and sizes of about one, in working precision, and their centring."""
    members = members.widened()
    xp = namespace(weights)
    # Not the mean: differences to a member of similar size are exact, while the mean of large numbers is rounded.
    first = constant(members.centre[0])
    distance = xp.max(xp.abs(constant(members.centre) - first), axis=0)
    size = xp.maximum(distance, xp.max(constant(members.spread), axis=0))
    unit, log_unit = power_of_two(xp.where(size > 0.0, size, xp.ones_like(size)))  # zero: all draws are equal
    members = members.relative_to(first, unit)
    centre = xp.zeros_like(unit)
    for _ in range(2):  # the second pass removes what the first one rounded
        # A constant: nodes have no gradient, and bounds of densities must not move over them.
        shift = constant(xp.sum(weights * members.centre, axis=0))
        members, centre = members.relative_to(shift, xp.ones_like(unit)), centre + shift
    return members, Centring(first + unit * centre, unit, log_unit)
