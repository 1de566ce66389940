"""What all kernels share: how Numba compiles them, and what lies where in their working arrays.

Compiled code has no Python inside and holds no interpreter lock; it is compiled once per machine and not once per process. Of the
fast-math flags only `contract` is for all: fused multiply-adds round once instead of twice, while reordering sums would undo the
centring that carries the digits.

Points are taken LANES at a time, and every quantity of such a block is a row of LANES numbers: the inner loops run along rows,
where LLVM turns them into vector instructions. Rows of one block lie at fixed distances in one flat array, so that the compiler
can see that they do not overlap.

    members   (blocks, members, 4, LANES)    MEMBER numbers each
    summaries (blocks, 11, LANES)            SUMMARY numbers each
    terms     (blocks, len(TERMS), LANES)    TERM_BLOCK numbers each

All values are in the ensemble's centred coordinates (see `uqprism.families.centring`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np

from uqprism.backends.numba.cache import KernelCache, first_use
from uqprism.backends.program import TERMS

F = TypeVar("F", bound=Callable[..., Any])

Floats = np.ndarray[Any, np.dtype[np.float64]]

LANES = 64

# A member: centred mean, scale, variance minus the mean variance, and what was given (scale or variance).
OFFSET, SCALE, DEVIATION, GIVEN = (row * LANES for row in range(4))
MEMBER = 4 * LANES

# A summary of a point: powers of the unit (by scale degree + 1), moments, and whether all members are near matched and pooled.
UNIT = 0
SPREAD, VARIANCE, MATCHED_VARIANCE, MATCHED_SCALE, POOLED_SCALE, NEAR_MATCHED, NEAR_POOLED = (row * LANES for row in range(4, 11))
SUMMARY = 11 * LANES

TERM = {name: row * LANES for row, name in enumerate(TERMS)}
TERM_BLOCK = len(TERMS) * LANES

_OPTIONS: dict[str, Any] = {"fastmath": {"contract", "nsz"}, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_PIECE: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}  # only kernels call it


def inlined(function: F) -> F:
    """A piece of a kernel."""
    return cast("F", numba.njit(**_PIECE)(function))


def borrowing(function: F) -> F:
    """A piece that makes no array that outlives it: it counts no references, which for a tuple of many arrays costs most."""
    return cast("F", numba.njit(**_PIECE, _nrt=False)(function))


def written_out(function: F) -> F:
    """A piece that is copied to where it is called, so that it may make a view for a piece that borrows."""
    return cast("F", numba.njit(**_PIECE, inline="always")(function))


def reduction(function: F) -> F:
    """A piece of a kernel that takes a minimum or maximum, or sums numbers that are not small differences, in any order."""
    return cast("F", numba.njit(**{**_PIECE, "fastmath": {"contract", "nsz", "nnan", "reassoc"}, "_nrt": False})(function))


def kernel(function: F) -> F:
    """A kernel, compiled when first called and kept on disk for the next process.

    It is kept beside the source or, where that cannot be written, in the user's cache folder. Where neither can be written it is
    compiled anew in each process.
    """
    compiled, kept = numba.njit(**_OPTIONS)(function), None
    with suppress(RuntimeError):  # no folder to cache in
        kept = compiled._cache = KernelCache(function)
    find_or_compile = compiled.compile

    def compile_once(signature: Any) -> Any:
        with first_use(kept):
            return find_or_compile(signature)

    compiled.compile = compile_once
    return cast("F", compiled)


@written_out
def rows(array: Any, index: int, size: int) -> Any:
    """The rows of one block or member. Positions in a view are seen to be positive, which vector loads depend on."""
    return array[index * size : (index + 1) * size]
