"""Functions of numbers that mean the same to every backend, so that a family states its density once.

A `PointwiseForm` is written with arithmetic and the names of this module. Here these names work on arrays of any library.
Backends that compile kernels compile the same function with their own functions under these names, see `rebound`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from uqprism.arrays import Array, namespace
from uqprism.arrays import log_gap as gap_to_log

if TYPE_CHECKING:
    from uqprism.families.base import Family


def absolute(x: Array) -> Array:
    """The absolute value."""
    return namespace(x).abs(x)


def exp(x: Array) -> Array:
    """The exponential."""
    return namespace(x).exp(x)


def log(x: Array) -> Array:
    """The natural logarithm of a positive number."""
    return namespace(x).log(x)


def log1p(x: Array) -> Array:
    """log(1 + x) for a number that is not negative."""
    return namespace(x).log1p(x)


def log_gap(x: Array, ratio: Array) -> Array:
    """x - log(ratio) for ratio = 1 + x formed without adding."""
    return gap_to_log(x, ratio)


def where(condition: Array, x: Array, y: Array) -> Array:
    """x where the condition holds, else y, of which one may be a number; both are computed."""
    return namespace(condition).where(condition, x, y)


NOWHERE = -math.inf  # the logarithm of zero


@dataclass(frozen=True)
class Shared:
    """The parts of a log density that members share, for kernels that take the members one after the other.

    Attributes:
        parts: (y, *numbers) to two numbers.
        own: (y, the two, *numbers) to the log density.
        alike: the positions of the numbers that the two depend on; only members with equal ones share.
    """

    parts: Callable[..., tuple[Any, Any]]
    own: Callable[..., Any]
    alike: tuple[int, ...] = ()


@dataclass(frozen=True)
class PointwiseForm:
    """What fused kernels are compiled from: a log density of one value and a few numbers.

    Attributes:
        numbers: from a family to arrays (*batch) each: what depends on the parameters alone, in ordinary array code.
        log_density: (y, *numbers), for one value of each: arithmetic and the names of this module.
        probability: (y, side, *numbers), of values below y for a side of 1, above y for -1, with all digits on both sides; None
            if that takes longer than integrating the density.
        mixed: whether members are mixtures, of which each component has this log density and these numbers.
        shared: what is the same for all members at one value, and so need be computed only once there; None for nothing.
    """

    numbers: Callable[[Any], tuple[Array, ...]]
    log_density: Callable[..., Any]
    probability: Callable[..., Any] | None = None
    mixed: bool = False
    shared: Shared | None = None

    def at(self, family: Family, y: Array) -> Array:
        """The log density of a family at y, which broadcasts against the batch."""
        return self.log_density(y, *self.numbers(family))


def stated_form(family: Family) -> PointwiseForm | None:
    """The form that the class of a family states itself; one that it inherits may be that of another density."""
    return family.form if "form" in vars(type(family)) else None


def rebound(function: Callable[..., Any], names: Mapping[str, Any]) -> FunctionType:
    """The same source with other objects under some global names."""
    plain = function if isinstance(function, FunctionType) else function.__func__  # type: ignore[attr-defined]
    copy = FunctionType(plain.__code__, {**plain.__globals__, **names}, plain.__name__, plain.__defaults__, plain.__closure__)
    copy.__module__, copy.__qualname__, copy.__doc__ = plain.__module__, plain.__qualname__, plain.__doc__
    copy.__annotations__ = {}
    return copy
