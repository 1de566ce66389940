"""Arrays with named axes, `xarray.DataArray`: their dimensions decide, never their positions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, ShapeError

MEMBERS = "member"  # the dimension of the members, unless another one is named


def is_labelled(x: Any) -> bool:
    """Whether it is an `xarray.DataArray`."""
    # Only a program that has imported xarray can pass one, so the import is not paid here.
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(x, xarray.DataArray)


def by_name(named: Mapping[str, Any], leading: Sequence[str]) -> dict[str, Any]:
    """Plain arrays of one shape, with these dimensions first and then those of the first array, in its order.

    Args:
        named: DataArrays, or numbers beside them; the first one has all dimensions.
        leading: dimensions that it has.
    """
    import xarray

    first, like = next(iter(named.items()))
    if not is_labelled(like) or not all(is_labelled(x) or np.ndim(x) == 0 for x in named.values()):
        kinds = ", ".join(f"{name} is {type(x).__name__}" for name, x in named.items())
        raise ArgumentError(f"next to a DataArray, the other must be one too, or a number: {kinds}")
    order = (*leading, *(dim for dim in like.dims if dim not in leading))
    values = {}
    for name, x in named.items():
        if not is_labelled(x):
            values[name] = x
            continue
        if not set(x.dims) <= set(order):
            raise ShapeError(f"{name} must have no other dimensions than {first}, {order}, got {tuple(x.dims)}")
        try:
            aligned = xarray.align(like, x, join="exact", copy=False)[1]  # any other join would drop points silently
        except ValueError as error:
            raise ShapeError(f"{name} must have the coordinates of {first}; {error}") from None
        values[name] = aligned.broadcast_like(like).transpose(*order).values
    return values


def members_first(named: Mapping[str, Any], member_axis: int | str | None) -> dict[str, Any]:
    """Plain arrays (members, *points), the members along the dimension called `member_axis`, or `member` if it has no name."""
    dim = member_axis or MEMBERS  # 0 is where they are put
    first, like = next(iter(named.items()))
    if is_labelled(like) and dim not in like.dims:
        raise ShapeError(
            f"{first} must have a dimension called {dim}, the members, got {tuple(like.dims)}; give the one it has as member_axis"
        )
    return by_name(named, [str(dim)])


def inner_second(name: str, x: Any, inner: Sequence[str], member_axis: int | str | None) -> Any:
    """The values of a DataArray as (members, draws, *points), or with bars or levels, which `inner` may be called, for draws."""
    found = [dim for dim in inner if dim in x.dims]
    wanted = (member_axis,) if isinstance(member_axis, str) else (MEMBERS, *(["chain"] if name == "draws" else []))
    members = [dim for dim in wanted if dim in x.dims]
    if len(found) != 1 or len(members) > 1 or (isinstance(member_axis, str) and not members):
        raise ShapeError(
            f"{name} must have one dimension called {' or '.join(inner)}, and at most one called {' or '.join(wanted)}, got "
            f"{tuple(x.dims)}; rename or stack them"
        )
    values = x.transpose(*members, *found, ...).values
    return values if members else values[None]
