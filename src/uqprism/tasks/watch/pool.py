"""Ranks of new rows among the reference and all rows before, which are exactly uniform as long as nothing changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BINS = 256  # four for each cell of a bet
BLOCK = 32  # rows that are compared pair by pair
AT_ONCE = 1 << 14  # rows


@dataclass(eq=False)
class Pool:
    """All rows of one quantity so far, as counts in bins between order statistics of the reference.

    n reference rows divide the line into n + 1 gaps. If the next row is exchangeable with them, it falls into each gap with
    the same probability, and a gap with k rows in it counts k + 1 times for the row after (Polya's urn). A bin is a run of
    gaps, so the probability of a bin is known exactly, whatever the distribution of the quantity is and however small the
    reference: the randomised rank of a row, drawn uniformly within the share of its bin, is uniform and independent of all ranks
    before. Equal values are in random order, as if each had a second, random value.

    Attributes:
        edges: the values of the order statistics between the bins, ascending.
        order: the random second values of the edges, ascending among equal edges.
        counts: gaps and rows of each bin, (edges + 1,).
    """

    edges: np.ndarray
    order: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, rng: np.random.Generator, bins: int = BINS) -> Pool:
        """The pool that holds the reference alone."""
        second = rng.random(len(values))
        sort = np.lexsort((second, values))
        gaps = len(values) + 1
        ranks = np.linspace(0, gaps, min(bins, gaps) + 1).round().astype(np.int64)
        at = sort[ranks[1:-1] - 1]
        return cls(values[at].astype(np.float64), second[at], np.diff(ranks))

    def places(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The bin of each value; one that equals an edge gets a random second value."""
        bins = np.searchsorted(self.edges, values)
        if len(self.edges):
            tied = np.flatnonzero(self.edges[np.minimum(bins, len(self.edges) - 1)] == values)
            if len(tied):
                # The edges that equal a value are those from its bin on, so adding the bin makes one ascending key.
                first = np.searchsorted(self.edges, self.edges)
                bins[tied] = np.searchsorted(first + self.order, bins[tied] + rng.random(len(tied)))
        return bins

    def ranks(self, bins: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """The ranks, on [0, 1), of rows in these bins, one after the other; the rows join the pool.

        Args:
            bins: from `places`.
            drawn: uniform numbers, which say how far within the share of its bin each row is.
        """
        found = np.empty(len(bins))
        for start in range(0, len(bins), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            below, within = _counted(bins[part], self.counts)
            found[part] = (below + drawn[part] * within) / (int(self.counts.sum()) + np.arange(len(below)))
            self.counts = self.counts + np.bincount(bins[part], minlength=len(self.counts))
        return found


def _counted(bins: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row, what is in lower bins and what is in its own, with the rows before it."""
    n_blocks, width = -(-len(bins) // BLOCK), len(counts) + 1
    filled = np.append(bins, np.full(n_blocks * BLOCK - len(bins), len(counts)))  # what fills the last block comes after all rows
    blocks = filled.reshape(n_blocks, BLOCK)
    found = np.bincount((blocks + width * np.arange(n_blocks)[:, None]).ravel(), minlength=n_blocks * width)
    added = found.astype(np.int32).reshape(n_blocks, width)
    before = np.cumsum(added, axis=0, dtype=np.int32) - added  # of earlier blocks
    within = np.take_along_axis(before, blocks, axis=1)
    below = np.take_along_axis(np.cumsum(before, axis=1, dtype=np.int32), blocks, axis=1) - within
    narrow = blocks.astype(np.int16)
    for i in range(1, BLOCK):  # with the rows i places before in the same block
        below[:, i:] += narrow[:, :-i] < narrow[:, i:]
        within[:, i:] += narrow[:, :-i] == narrow[:, i:]
    lower = np.cumsum(counts) - counts
    return below.ravel()[: len(bins)] + lower[bins], within.ravel()[: len(bins)] + counts[bins]
