"""How distributions are taken apart into arrays, for files and for joining, and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from uqprism.arrays import Array, namespace
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError


class Stored:
    """What a family is made of; a family whose arrays differ in shape, or that has options, overrides what differs.

    Attributes:
        in_lists: the stored arrays that have a first axis of their own, such as that of draws: in a table, a cell holds a list.
    """

    name: ClassVar[str]
    parameters: ClassVar[dict[str, str]]
    given: ClassVar[dict[str, str] | None]
    in_lists: ClassVar[tuple[str, ...]] = ()
    batch_shape: Any

    def __init__(self, *, check: bool = True, **given: Array) -> None:
        """Families take their parameters by name."""

    @classmethod
    def arguments(cls) -> dict[str, str]:
        """What it is made of, with the kind of each: the parameters, unless the family says otherwise."""
        return cls.parameters if cls.given is None else cls.given

    def stored(self) -> dict[str, Array]:
        """The arrays that define it, by name."""
        return {name: getattr(self, name) for name in self.arguments()}

    def options(self) -> dict[str, Any]:
        """What defines it beside the arrays, as JSON knows it."""
        return {}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], options: Mapping[str, Any], *, check: bool = False) -> Self:
        """What these arrays and options define; no value changes on the way."""
        require(cls.name, arrays, cls.arguments())
        if len({x.shape for x in arrays.values()}) > 1:
            raise ShapeError(
                f"parameters must have one shape, got {', '.join(f'{name} {x.shape}' for name, x in arrays.items())}"
            )
        return cls(**arrays, **options, check=check)

    @classmethod
    def joined(cls, parts: Sequence[Self], axis: int) -> Self:
        """One batch of all parts, joined along an axis of the batch."""
        arrays, depth = [part.stored() for part in parts], len(parts[0].batch_shape)
        if any(each.keys() != arrays[0].keys() for each in arrays):
            raise ArgumentError("predictions must all be given by variance, or all by scale")
        if any(part.options() != parts[0].options() for part in parts):
            raise ArgumentError(f"predictions must agree, got {' and '.join(str(part.options()) for part in parts)}")
        whole = {}
        for name, first in arrays[0].items():
            whole[name] = namespace(first).concat([each[name] for each in arrays], axis=first.ndim - depth + axis)
        return cls.restored(whole, parts[0].options())


def require(family: str, arrays: Mapping[str, Array], names: Any) -> None:
    """Refuse other arrays than these."""
    if arrays.keys() != {*names}:
        raise InvalidValueError(f"{family} members need the arrays {', '.join(names)}, got {', '.join(arrays)}")
