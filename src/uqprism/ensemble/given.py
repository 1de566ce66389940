"""What constructors of predictions are given, as arrays with the members first."""

from __future__ import annotations

import numpy as np

from uqprism.arrays import Array, coerce, namespace
from uqprism.ensemble.labelled import inner_second, is_labelled, members_first
from uqprism.errors import ArgumentError, ArrayTypeError, ShapeError, warn

MANY_MEMBERS = 100  # so many models for fewer points are rather points for few models

INNER = {  # what has an axis of its own beside those of members and points, and which dimensions of a DataArray may be that axis
    "draws": ("draw", "sample"),
    "probabilities": ("bar", "bin", "bucket"),
    "values": ("level", "quantile"),
    **dict.fromkeys(("mean", "variance", "scale", "shares"), ("component",)),
}


def with_members_first(member_axis: int | str | None, **given: Array) -> dict[str, Array]:
    """The arguments that were given, as arrays with the members first."""
    required = next(iter(given))
    if given[required] is None:
        raise ArgumentError(f"{required} must be given, got None; axes are (members, *points)")
    for name, x in given.items():
        if hasattr(x, "columns") and not member_axis:  # the rows of a table are points, not members
            raise ArrayTypeError(
                f"{name} must be an array with the members first, got a {type(x).__name__}; up.from_frame reads a table "
                f"with all columns; else give {name}.to_numpy().T"
            )
    given = {name: x for name, x in given.items() if x is not None}
    if any(is_labelled(x) for x in given.values()):
        given, member_axis = members_first(given, member_axis), 0
    member_axis, arrays = axis_number(member_axis), coerce(**given)
    first = arrays[required]
    if first.ndim and not -first.ndim <= (member_axis or 0) < first.ndim:
        raise ShapeError(f"member_axis {member_axis} is not an axis of {required} with shape {tuple(first.shape)}")
    moved = {
        n: namespace(x).moveaxis(x, member_axis, 0) if member_axis and x.ndim == first.ndim else x for n, x in arrays.items()
    }
    shape = tuple(moved[required].shape)
    _check_orientation(required, shape, member_axis, depth=1)
    return {name: _with_all_axes(name, x, shape) for name, x in moved.items()}


def are_unequal(draws: object) -> bool:
    """True for a list of members with different numbers of draws."""
    if not isinstance(draws, list | tuple) or not all(hasattr(member, "__len__") for member in draws):
        return False
    return len({len(member) for member in draws}) > 1


def axis_number(member_axis: int | str | None) -> int | None:
    """The axis of arrays without names."""
    if isinstance(member_axis, str):
        raise ArgumentError(f"member_axis {member_axis!r} is for arrays with named axes; give the number of the axis")
    return member_axis


def _with_all_axes(name: str, x: Array, shape: tuple[int, ...]) -> Array:
    """Refuse an array with fewer axes, unless it holds one number: it may be meant for the members or for the points."""
    own = tuple(x.shape)
    if len(own) >= len(shape):
        return x
    if any(length != 1 for length in own):
        raise ShapeError(
            f"{name} must match the shape {shape}, got {own}; give ({shape[0]}, {', '.join('1' for _ in shape[1:])}) for a value "
            f"per member, (1, {', '.join(map(str, shape[1:]))}) for one per point"
        )
    return namespace(x).reshape(x, ())


def _check_orientation(name: str, shape: tuple[int, ...], member_axis: int | None, *, depth: int) -> None:
    """Warn of what looks like points where members should be, unless the axis was said; `depth` axes are not of points."""
    points = int(np.prod(shape[depth:], dtype=np.int64))
    if member_axis is not None or not shape or not shape[0] > max(MANY_MEMBERS, points) or points == 0:
        return
    way_out = f"pass {name}[None] for one model" if len(shape) == depth else "pass the axis of the models as member_axis="
    if (len(shape), depth) == (2, 1):
        way_out = f"pass {name}.T or member_axis=1"
    warn(
        f"{name} of shape {shape} is read as {shape[0]:,} members of {points:,} point{'s' if points > 1 else ''}; if the points "
        f"come first, {way_out}; if they do not, member_axis=0 says so"
    )


def _warn_of_a_single_point(name: str, what: str, shape: tuple[int, ...]) -> None:
    """Warn of an array with two axes, which are rather points and draws of one model than members and draws at one point."""
    warn(
        f"{name} with two axes is read as {shape[1]:,} members of 1 point, with {shape[0]:,} {what}s each; member_axis=0 says "
        f"that it is so, and of one model pass {name}[None] if it is ({what}s, points), {name}.T[None] if it is (points, {what}s)"
    )


def with_inner_second(name: str, x: Array, member_axis: int | str | None, inner: tuple[str, int]) -> tuple[Array, int]:
    """An array (members, draws, *points), or with bars or levels in place of draws, and which axis the members had.

    Args:
        name: of the argument.
        x: the array.
        member_axis: the axis of the members, or their dimension in a DataArray.
        inner: the argument that says which the second axis is, and what it says.
    """
    argument, second = inner
    if is_labelled(x):
        x, member_axis, second = inner_second(name, x, INNER[name], member_axis), 0, 1
    listed, member_axis, x = isinstance(x, list | tuple), axis_number(member_axis), coerce(**{name: x})[name]
    first = member_axis or 0
    if x.ndim < 2:
        raise ShapeError(
            f"{name} must have axes (members, {argument.removesuffix('_axis')}s, *points), got shape {tuple(x.shape)}"
        )
    for axis_name, axis in (("member_axis", first), (argument, second)):
        if not -x.ndim <= axis < x.ndim:
            raise ShapeError(f"{axis_name} {axis} is not an axis of {name} with shape {tuple(x.shape)}")
    if first % x.ndim == second % x.ndim:
        raise ShapeError(f"member_axis and {argument} must differ, both are {first}")
    x = namespace(x).moveaxis(x, (second, first), (0, 1))
    if x.ndim == 2 and member_axis is None and x.shape[1] > 1 and not listed:  # what is in a list are members
        _warn_of_a_single_point(name, argument.removesuffix("_axis"), tuple(x.shape))
    else:
        _check_orientation(name, (x.shape[1], x.shape[0], *x.shape[2:]), member_axis, depth=2)
    return x, first
