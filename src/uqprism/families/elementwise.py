"""Functions of one number that mean the same to every backend, so that a family states its density once.

The functions of a `StandardForm` are written with arithmetic and the names of this module. Here these names work on arrays of any
library. Backends that compile kernels compile the same functions with their own functions under these names, see `rebound`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from uqprism.arrays import Array, namespace, normal_cdf


def absolute(x: Array) -> Array:
    """The absolute value."""
    return namespace(x).abs(x)


def exp(x: Array) -> Array:
    """The exponential of a number that is not positive."""
    return namespace(x).exp(x)


def log1p(x: Array) -> Array:
    """log(1 + x) for a number that is not negative."""
    return namespace(x).log1p(x)


def log(x: Array) -> Array:
    """The logarithm of a positive number."""
    return namespace(x).log(x)


def normal_tail(x: Array) -> Array:
    """The probability that a standard normal variable exceeds a number that is not negative."""
    return normal_cdf(-x)


NAMES = ("absolute", "exp", "log", "log1p", "normal_tail")


@dataclass(frozen=True)
class StandardForm:
    """A symmetric family of a location, a scale and up to two shapes, as kernels need it: for location zero and scale one.

    Attributes:
        log_density: (z, *shapes), elementwise: the log density less its value at zero; nowhere positive.
        height: (*shapes), ordinary array code: the log density at zero.
        tail: (z,), elementwise: the probability above z >= 0; None if it is dearer than integrating the density.
        shapes: the names of the parameters that are shapes.
    """

    log_density: Callable[..., Any]
    height: Callable[..., Any]
    tail: Callable[..., Any] | None = None
    shapes: tuple[str, ...] = ()


def rebound(function: Callable[..., Any], names: Mapping[str, Any]) -> FunctionType:
    """The same source with other objects under some global names."""
    plain = function if isinstance(function, FunctionType) else function.__func__  # type: ignore[attr-defined]
    copy = FunctionType(plain.__code__, {**plain.__globals__, **names}, plain.__name__, plain.__defaults__, plain.__closure__)
    copy.__module__, copy.__qualname__, copy.__doc__ = plain.__module__, plain.__qualname__, plain.__doc__
    copy.__annotations__ = {}
    return copy
