"""Put measures together from terms and write them where they belong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from uqprism.backends.layout import LANES, SUMMARY, TERM_BLOCK, UNIT
from uqprism.backends.numba.compiler import kernel, rows

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


@intrinsic
def _pointer(_context: Any, _address: Any) -> Any:
    """An address as a pointer: measures are separate arrays, and a kernel takes any number of them."""
    return types.voidptr(types.int64), lambda _, builder, __, args: builder.inttoptr(args[0], cgutils.voidptr_t)


@kernel
def write(
    terms: Floats,
    summaries: Floats,
    start: Integers,
    row: Integers,
    factor: Floats,
    degree: Integers,
    excess: np.ndarray[Any, np.dtype[np.bool_]],
    addresses: Integers,
    single: bool,
    points: int,
) -> None:
    """Write every measure of a `Program` at so many points.

    Args:
        terms: flat.
        summaries: flat.
        start: as in `Program`.
        row: likewise.
        factor: likewise.
        degree: likewise.
        excess: likewise.
        addresses: where each measure's values go.
        single: whether they are float32.
        points: how many.
    """
    value = np.empty(LANES)
    for measure in range(len(addresses)):
        double_out = carray(_pointer(addresses[measure]), points, np.float64)
        single_out = carray(_pointer(addresses[measure]), points, np.float32)
        unit = UNIT + (degree[measure] + 1) * LANES
        for block in range(len(terms) // TERM_BLOCK):
            power = rows(summaries, block, SUMMARY)[unit : unit + LANES]
            for p in range(LANES):
                value[p] = 0.0
            for entry in range(start[measure], start[measure + 1]):
                term, weight = rows(rows(terms, block, TERM_BLOCK), row[entry], LANES), factor[entry]
                for p in range(LANES):
                    value[p] += weight * term[p]
            for p in range(LANES):
                value[p] *= power[p]
            if excess[measure]:
                for p in range(LANES):
                    value[p] = max(value[p], 0.0)
            if single:
                into = single_out[block * LANES : (block + 1) * LANES]
                for p in range(len(into)):
                    into[p] = value[p]
            else:
                double_out[block * LANES : (block + 1) * LANES] = value[: min(LANES, points - block * LANES)]
