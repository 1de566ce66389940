"""Families as compiled code: the functions of each one's form, behind addresses that one kernel for all families calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.cpython.unsafe.tuple import tuple_setitem  # noqa: F401 (loads what `to_fixed_tuple` is compiled with)
from numba.extending import intrinsic
from numba.np.unsafe.ndarray import to_fixed_tuple

from uqprism.backends.fits import FITS
from uqprism.backends.numba import special
from uqprism.backends.numba.base import Floats, inlined
from uqprism.families.elementwise import PointwiseForm, rebound
from uqprism.families.lattice import PER_PANEL

BLOCK_PANELS = 24
NODES = BLOCK_PANELS * PER_PANEL  # at most, in one block; rows of numbers per node lie so far apart
LARGEST = 709.0  # whose exponential is the largest
LOWEST = -1e200  # stands for the logarithm of zero, whose differences are numbers
SIGNATURE = types.void(types.CPointer(types.float64), types.CPointer(types.float64), types.int64, types.CPointer(types.float64))
"""(out, y, how many of both, numbers): `out` becomes the values at y."""


@inlined
def absolute(x: float) -> float:
    """The absolute value."""
    return abs(x)


@inlined
def exp(x: float) -> float:
    """The exponential."""
    return special.exp(x if x < LARGEST else LARGEST, FITS)


@inlined
def log(x: float) -> float:
    """The natural logarithm of a positive number."""
    return special.log(x, FITS)


@inlined
def log1p(x: float) -> float:
    """log(1 + x) for a number that is not negative."""
    return special.log1p(x, FITS)


@inlined
def where(condition: bool, x: float, y: float) -> float:
    """x where the condition holds, else y."""
    return x if condition else y


@inlined
def log_gap(x: float, ratio: float) -> float:
    """x - log(ratio) for ratio = 1 + x."""
    return special.log_gap(x, ratio, FITS)


COMPILED = {"absolute": absolute, "exp": exp, "log": log, "log1p": log1p, "log_gap": log_gap, "where": where}


def compilable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a form as a piece of a kernel, with the functions of its module that it calls."""
    own = {name: f for name, f in vars(sys.modules[function.__module__]).items() if isinstance(f, FunctionType)}
    called = [name for name in function.__code__.co_names if name in own and name not in COMPILED]
    return inlined(rebound(function, {**COMPILED, **{name: compilable(own[name]) for name in called}}))


class Addresses(NamedTuple):
    """Where the compiled functions of a family lie: its log density, and the probability below and above, zero if it has none.

    Of mixtures `part` is the log density of a component; else it is that of the family. Where members share parts, `log_density`
    takes them from the two rows after that of y, which `shared` fills.
    """

    part: int
    log_density: int
    below: int
    above: int
    shared: int


@cache
def addresses_of(form: PointwiseForm, count: int, *, sharing: bool = False) -> Addresses:
    """The compiled functions of a family with so many numbers, or whose components have so many."""
    function = compilable(form.log_density)
    log_density = _compiled(function, count)
    if form.mixed:
        return Addresses(log_density, _compiled_mixture(function, count), 0, 0, 0)
    if sharing and form.shared is not None:
        parts, own = compilable(form.shared.parts), compilable(form.shared.own)
        return Addresses(log_density, _compiled_own(own, count), 0, 0, _compiled_parts(parts, count))
    if form.probability is None:
        return Addresses(log_density, log_density, 0, 0, 0)
    probability = compilable(form.probability)

    @inlined
    def below(y: float, *numbers: float) -> float:
        return probability(y, 1.0, *numbers)

    @inlined
    def above(y: float, *numbers: float) -> float:
        return probability(y, -1.0, *numbers)

    return Addresses(log_density, log_density, _compiled(below, count), _compiled(above, count), 0)


def _compiled(function: Callable[..., float], count: int) -> int:
    """The address of a loop over values of y."""

    def values(out: Any, y: Any, size: int, given: Any) -> None:
        into, at = carray(out, (size,)), carray(y, (size,))
        numbers = to_fixed_tuple(carray(given, (count,)), count)
        for q in range(size):
            into[q] = function(at[q], *numbers)

    return _address_of(values)


def _compiled_parts(function: Callable[..., tuple[float, float]], count: int) -> int:
    """The address of a loop over values of y that fills two rows."""

    def values(out: Any, y: Any, size: int, given: Any) -> None:
        into, at = carray(out, (2 * NODES,)), carray(y, (size,))
        numbers = to_fixed_tuple(carray(given, (count,)), count)
        for q in range(size):
            into[q], into[NODES + q] = function(at[q], *numbers)

    return _address_of(values)


def _compiled_own(function: Callable[..., float], count: int) -> int:
    """The address of a loop over values of y, after which these two rows lie."""

    def values(out: Any, y: Any, size: int, given: Any) -> None:
        into, at = carray(out, (size,)), carray(y, (3 * NODES,))
        numbers = to_fixed_tuple(carray(given, (count,)), count)
        for q in range(size):
            into[q] = function(at[q], at[NODES + q], at[2 * NODES + q], *numbers)

    return _address_of(values)


def _compiled_mixture(function: Callable[..., float], count: int) -> int:
    """The same for the log density of a mixture, whose numbers are those of `mixed_numbers`."""
    width = 1 + count

    def values(out: Any, y: Any, size: int, given: Any) -> None:
        into, at = carray(out, (size,)), carray(y, (size,))
        parts = int(carray(given, (1,))[0])
        numbers = carray(given, (1 + parts * width,))
        sums = np.zeros(size)
        for q in range(size):
            into[q] = LOWEST
        for k in range(parts):
            first = 1 + k * width
            log_weight, own = numbers[first], to_fixed_tuple(numbers[first + 1 : first + width], count)
            for q in range(size):
                level = log_weight + function(at[q], *own)
                level = level if level > LOWEST else LOWEST
                # The sum of exponentials relative to the highest so far.
                gap = level - into[q]
                smaller = special.exp(-abs(gap), FITS)
                sums[q] = sums[q] * smaller + 1.0 if gap > 0.0 else sums[q] + smaller
                into[q] = level if gap > 0.0 else into[q]
        for q in range(size):
            into[q] += special.log(sums[q] if sums[q] > 1.0 else 1.0, FITS)

    return _address_of(values)


def mixed_numbers(log_weights: Floats, numbers: Floats) -> Floats:
    """The row of each mixture, (..., numbers): how many components, and of each its log weight and numbers.

    Args:
        log_weights: (..., components).
        numbers: (..., components, numbers).
    """
    each = np.concatenate([np.maximum(log_weights, LOWEST)[..., None], numbers], axis=-1)
    lead = each.shape[:-2]
    return np.concatenate([np.full((*lead, 1), float(each.shape[-2])), each.reshape(*lead, -1)], axis=-1)


def _address_of(values: Callable[..., None]) -> int:
    compiled = numba.cfunc(SIGNATURE, fastmath={"contract", "nsz"}, error_model="numpy")(values)
    _kept.append(compiled)  # code that is no longer referenced is unloaded
    return int(compiled.address)


_kept: list[Any] = []


@intrinsic
def _call(_context: Any, _address: Any, _out: Any, _y: Any, _size: Any, _numbers: Any) -> Any:
    """Call compiled code by its address: out, y and numbers are addresses, too."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        double = ir.DoubleType().as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [double, double, ir.IntType(64), double])
        address, out, y, size, numbers = arguments
        function = builder.inttoptr(address, kind.as_pointer())
        builder.call(
            function, [builder.inttoptr(out, double), builder.inttoptr(y, double), size, builder.inttoptr(numbers, double)]
        )
        return cgutils.get_null_value(ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), generate


@inlined
def values_at(address: int, out: Floats, y: Floats, size: int, numbers: Floats) -> None:
    """Fill `out` with the values of a compiled function at the first `size` of y."""
    _call(address, out.ctypes.data, y.ctypes.data, size, numbers.ctypes.data)
