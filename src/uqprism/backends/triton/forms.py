"""A family's `PointwiseForm` as kernels for a device call it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import triton
import triton.language as tl

from uqprism.backends.fits import FITS
from uqprism.backends.triton.special import _polynomial as polynomial
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


COMPILED = {"absolute": _absolute, "exp": _exp, "log": _log, "log1p": _log1p, "where": _where}


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a form, for kernels."""
    names = function.__code__.co_names
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    # Kernels take numbers from outside only as declared constants.
    constants = {name: tl.constexpr(x) for name, x in found.items() if isinstance(x, int | float)}
    # Annotations are looked up, too.
    noted = " ".join(map(str, function.__annotations__.values()))
    constants |= {name: tl.constexpr(0) for name in re.findall(r"[A-Za-z_]\w*", noted)}
    return triton.jit(rebound(function, {**constants, **COMPILED}))


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
