"""Where the bins of a column end: at quantiles of its values, or where a decision tree of the targets would split it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
ROWS_FOR_EDGES = 2**16  # as many say well enough where a few dozen bins end
LEAF = 8  # rows in a bin of a tree, at least
NARROWEST = 1e-6  # of a bin as a share of the column's range: float32 cannot carry the slope of a narrower one


def edges(kind: str, values: Floats, targets: Floats, count: int) -> list[Floats]:
    """The ends of at most `count` bins of each column (rows, columns), in order, from its least to its greatest value."""
    every = slice(None, None, -(-len(values) // ROWS_FOR_EDGES))
    lowest, highest = values.min(0), values.max(0)
    found = []
    for column, (least, greatest) in enumerate(zip(lowest, highest, strict=True)):
        inner = BINS[kind](values[every, column], targets[every], count)
        ends = np.unique(np.concatenate([[least], inner, [greatest]]))
        found.append(ends[np.concatenate([[True], np.diff(ends) > NARROWEST * max(greatest - least, 1e-12)])])
    return found


def _quantiles(values: Floats, targets: Floats, count: int) -> Floats:  # noqa: ARG001  all kinds are called alike
    return np.quantile(values, np.linspace(0.0, 1.0, count + 1)[1:-1])


def _splits(values: Floats, targets: Floats, count: int) -> Floats:
    """The best first: each split lowers the squared error of the bins' means as much as one split can."""
    order = np.argsort(values, kind="stable")
    x, y = values[order], targets[order] - targets.mean()
    sums = np.concatenate([[0.0], np.cumsum(y)])
    queue: list[tuple[float, int, int, int]] = []

    def look(start: int, stop: int) -> None:
        """Put the best split of these rows into the queue."""
        at = np.arange(start + LEAF, stop - LEAF + 1)
        at = at[x[at - 1] < x[at]] if len(at) else at
        if len(at):
            left, whole = sums[at] - sums[start], sums[stop] - sums[start]
            gain = left**2 / (at - start) + (whole - left) ** 2 / (stop - at) - whole**2 / (stop - start)
            best = int(np.argmax(gain))
            heapq.heappush(queue, (-float(gain[best]), int(at[best]), start, stop))

    look(0, len(x))
    found: list[float] = []
    while queue and len(found) < count - 1:
        _, at, start, stop = heapq.heappop(queue)
        found.append(0.5 * (x[at - 1] + x[at]))
        look(start, at)
        look(at, stop)
    return np.array(found)


BINS: dict[str, Callable[[Floats, Floats, int], Floats]] = {"quantile": _quantiles, "tree": _splits}
