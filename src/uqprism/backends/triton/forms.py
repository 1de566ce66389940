"""A family's `PointwiseForm` as kernels for a device call it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
import triton
import triton.language as tl

from uqprism.backends.fits import FITS
from uqprism.backends.triton.special import _polynomial as polynomial
from uqprism.backends.triton.special import log_gap
from uqprism.families.elementwise import rebound

_LOWEST = tl.constexpr(-1e200)
_LN_2, _LOG_FITS = tl.constexpr(math.log(2.0)), tl.constexpr(FITS.log)
_ROOT_HALF = tl.constexpr(int(np.array(math.sqrt(0.5)).view(np.int64)) >> 32)


@triton.jit
def _absolute(x):
    return tl.abs(x)


@triton.jit
def _exp(x):
    return tl.exp(x)


@triton.jit
def _log(x):
    return tl.log(x)


@triton.jit
def _log1p(x):
    """log(1 + x) for ordinary x >= 0, as in `numba.special`, with the exponent from the upper half of the number."""
    bits = (1.0 + x).to(tl.int64, bitcast=True)
    upper = (bits >> 32).to(tl.int32)
    exponent = ((upper - _ROOT_HALF + (1023 << 20)) >> 20) - 1023
    mantissa = (((upper - (exponent << 20)).to(tl.int64) << 32) | (bits & 0xFFFFFFFF)).to(tl.float64, bitcast=True)
    near = exponent == 0  # where the sum would round x
    below = tl.where(near, 2.0 + x, mantissa + 1.0)
    inverse = (1.0 / below.to(tl.float32)).to(tl.float64)
    inverse = inverse * (2.0 - below * inverse)  # two steps of Newton's method take less than a division
    inverse = inverse * (2.0 - below * inverse)
    q = tl.where(near, x, mantissa - 1.0) * inverse
    square = q * q
    return exponent.to(tl.float64) * _LN_2 + (2.0 * q + q * square * polynomial(square, _LOG_FITS, 8))


@triton.jit
def _where(condition, x, y):
    return tl.where(condition, x, y)


@triton.jit
def _log_gap(x, ratio):
    """x - log(ratio) for ratio = 1 + x formed without adding."""
    return log_gap(x, ratio)


COMPILED = {"log_gap": _log_gap, "absolute": _absolute, "exp": _exp, "log": _log, "log1p": _log1p, "where": _where}


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a form, for kernels."""
    names = function.__code__.co_names
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    # Kernels take numbers from outside only as declared constants.
    constants = {name: tl.constexpr(x) for name, x in found.items() if isinstance(x, int | float)}
    # Annotations are looked up, too.
    noted = " ".join(map(str, function.__annotations__.values()))
    # What a form calls of its own is compiled, too.
    helpers = {name: compiled(x) for name, x in found.items() if isinstance(x, FunctionType) and name not in COMPILED}
    constants |= {name: tl.constexpr(0) for name in re.findall(r"[A-Za-z_]\w*", noted)}
    return triton.jit(rebound(function, {**constants, **helpers, **COMPILED}))


@triton.jit
def member(numbers, i, at, mask, COUNT: tl.constexpr):
    """The numbers of member i at some points."""
    pointer, number_stride, member_stride = numbers
    base = pointer + i * member_stride + at
    found = (tl.load(base, mask=mask, other=1.0),)
    for k in tl.static_range(1, COUNT):
        found = found + (tl.load(base + k * number_stride, mask=mask, other=1.0),)
    return found


@triton.jit
def level(y, numbers, LOG: tl.constexpr):
    """The log density of a member with these numbers, finite."""
    found = LOG(y, *numbers)
    return tl.where(found > _LOWEST, found, _LOWEST)


@triton.jit
def log_share(numbers, part, at, mask, COUNT: tl.constexpr):
    """The logarithm of a component's weight within its member: the row after the numbers of its log density."""
    pointer, number_stride, member_stride = numbers
    return tl.load(pointer + COUNT * number_stride + part * member_stride + at, mask=mask, other=0.0)


@triton.jit
def height(y, numbers, i, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr, PARTS: tl.constexpr):
    """The log density of member i at y, finite; of a mixture of PARTS components from the sum of their densities."""
    if PARTS == 1:
        top = level(y, member(numbers, i, at, mask, COUNT), LOG)
    else:
        top, total = tl.zeros_like(y) + _LOWEST, tl.zeros_like(y)
        for k in range(PARTS):
            own = level(y, member(numbers, i * PARTS + k, at, mask, COUNT), LOG)
            own = tl.maximum(own + log_share(numbers, i * PARTS + k, at, mask, COUNT), _LOWEST)
            # The sum of exponentials relative to the highest so far.
            gap = own - top
            smaller = tl.exp(-tl.abs(gap))
            total = tl.where(gap > 0.0, total * smaller + 1.0, total + smaller)
            top = tl.maximum(own, top)
        top += tl.log(tl.maximum(total, 1.0))
    return top


@triton.jit
def weight_of(numbers, weights, part, at, mask, COUNT: tl.constexpr, PARTS: tl.constexpr):
    """The logarithm of a component's weight among all components of all members, of which each has PARTS."""
    found = tl.log(tl.load(weights + part // PARTS))
    if PARTS > 1:
        found += log_share(numbers, part, at, mask, COUNT)
    return found
