"""Sorted arrays in batches: where a value lies among them, and what stands there."""

from __future__ import annotations

import math

from uqprism.arrays import Array, constant, counting, is_torch, namespace


def take_along(x: Array, index: Array) -> Array:
    """What stands in `x` (n, *batch) at positions (m, *batch) of its first axis."""
    if is_torch(x):
        return x.take_along_dim(index, dim=0)
    return namespace(x).take_along_axis(x, index, axis=0)


def search(rising: Array, y: Array, *, below: bool = False) -> Array:
    """How many of `rising` (n, *batch) are at most y (m, *batch), or with `below` less than y."""
    rising, y = constant(rising), constant(y)
    xp = namespace(rising, y)
    count = rising.shape[0]
    low = xp.zeros_like(y, dtype=counting(rising[:1]).dtype)  # JAX may have no 64 bits
    high = low + count
    # Each round halves what is left, which is at most `count` + 1 positions.
    for _ in range(math.ceil(math.log2(count + 1))):
        middle = (low + high) // 2
        there = take_along(rising, xp.clip(middle, 0, count - 1))
        passed = ((there < y) if below else (there <= y)) & (low < high)
        low, high = xp.where(passed, middle + 1, low), xp.where(passed | (low >= high), high, middle)
    return low
