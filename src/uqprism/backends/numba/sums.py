"""Which of the rules of `backends.sums` a panel takes."""

from __future__ import annotations

from uqprism.backends.numba.base import Floats, inlined


@inlined
def size_below(sizes: Floats, most: float) -> int:
    """The index of the largest panel of no more than so many counts, or of the smallest one."""
    low, high = 0, len(sizes)
    while high - low > 1:
        middle = (low + high) // 2
        if sizes[middle] <= most:
            low = middle
        else:
            high = middle
    return low
