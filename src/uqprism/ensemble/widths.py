"""Which members are too narrow beside the others to be squared in a common unit."""

from __future__ import annotations

from uqprism.arrays import Array, constant, is_jax, is_traced, is_wrapped, namespace, to_numpy
from uqprism.families import Family
from uqprism.families.base import NARROWEST


def have_widths(members: Family | type[Family]) -> bool:
    """Whether members have a width that may be too small; draws and bars have edges instead."""
    return bool({"scale", "variance"} & set(members.parameters.values()))


def too_narrow(centre: Array, spread: Array, *, squared: bool = False) -> Array | None:
    """The points (*points) with a member so narrow that its square in the unit of the point is zero; None if there are none.

    Args:
        centre: of the members, (members, *points).
        spread: their scales, of the same shape.
        squared: whether these are variances.
    """
    centre, spread = constant(centre), constant(spread)
    single = str(spread.dtype).endswith(("float16", "float32"))  # whose range is too small
    if single or is_traced(centre) or is_traced(spread) or is_wrapped(spread) or 0 in spread.shape:
        return None
    centre, spread = (to_numpy(x) if is_jax(x) else x for x in (centre, spread))
    xp = namespace(centre, spread)
    # In most ensembles the extremes of all points show that each is fine.
    for axis in (None, 0):
        least, most = xp.min(spread, axis=axis), xp.max(spread, axis=axis)
        least, most = (xp.sqrt(least), xp.sqrt(most)) if squared else (least, most)
        narrow = least < NARROWEST * ((xp.max(centre, axis=axis) - xp.min(centre, axis=axis)) + most)
        if not bool(xp.any(narrow)):
            return None
    return narrow
