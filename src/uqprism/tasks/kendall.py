"""Kendall's tau-b between many rankings at once: exact counts of pairs by sorting, in NumPy alone.

Of two points, a pair is concordant if both rankings put them in the same order, discordant if in opposite orders, and tied in
a ranking that does not tell them apart. With all pairs n(n-1)/2, those tied in x, in y and in both,

    tau-b = (concordant - discordant) / sqrt((pairs - tied in x) (pairs - tied in y)),
    concordant - discordant = pairs - tied in x - tied in y + tied in both - 2 discordant.

Points sorted by x, and where x is tied by y, make every discordant pair an inversion of y: a larger rank before a smaller one
(Knight 1966). All measures y are sorted and counted together, in parts that stay in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uqprism.support.parallel import threads

LEAF = 32  # points among which comparing all pairs is quicker than sorting
AT_ONCE = 1 << 17  # ranks that a thread works on: they stay in the cache


@dataclass(frozen=True)
class Ranks:
    """The ranks that a measure gives to points, equal values one rank, without gaps: 0, 1, ... (points,)."""

    ranks: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Ranks:
        """The ranks of these values, (points,)."""
        return cls(np.unique(values, return_inverse=True)[1].astype(np.int32 if len(values) < 1 << 31 else np.int64))

    @cached_property
    def fingerprint(self) -> bytes:
        """The same for the same ranks, and for no others."""
        return hashlib.sha256(self.ranks.data).digest()

    @cached_property
    def tied_pairs(self) -> int:
        """How many pairs of points this ranking does not tell apart."""
        return int(_pairs(np.bincount(self.ranks)).sum())

    @property
    def untied_pairs(self) -> int:
        """How many pairs it tells apart; none, and it is no ranking."""
        return int(_pairs(len(self.ranks))) - self.tied_pairs


def tau_matrix(columns: Iterable[np.ndarray]) -> np.ndarray:
    """tau-b between all columns of numbers (points,), (columns, columns); NaN in row and column of one that is constant."""
    distinct: dict[bytes, Ranks] = {}
    # Many measures share a ranking, such as all rules on one Gaussian: each ranking is compared once.
    rankings = [distinct.setdefault(ranks.fingerprint, ranks) for ranks in map(Ranks.of, columns)]
    # Those without ties first: x is then tied only where y is too, and most pairs are spared what ties cost.
    ordered = sorted(distinct.values(), key=lambda ranking: ranking.tied_pairs > 0)
    at = {ranking.fingerprint: i for i, ranking in enumerate(ordered)}
    places = [at[ranking.fingerprint] for ranking in rankings]
    return _between(ordered)[np.ix_(places, places)]


def _between(rankings: Sequence[Ranks]) -> np.ndarray:
    step = max(1, AT_ONCE // len(rankings[0].ranks))
    tied_less_discordant = np.zeros((len(rankings), len(rankings)), dtype=np.int64)

    def fill(i: int) -> None:
        order = np.argsort(rankings[i].ranks)
        for start in range(i + 1, len(rankings), step):  # each pair once, since tau is symmetric
            others = slice(start, start + step)
            discordant, tied = _count(rankings[i], order, np.stack([each.ranks for each in rankings[others]]))
            tied_less_discordant[i, others] = tied - 2 * discordant

    with ThreadPoolExecutor(threads()) as pool:  # sorting releases the interpreter's lock
        list(pool.map(fill, range(len(rankings))))  # a list, so that an error in a thread is raised here
    tied, untied = (np.array(pairs) for pairs in zip(*((each.tied_pairs, each.untied_pairs) for each in rankings), strict=True))
    difference = tied_less_discordant + tied_less_discordant.T + untied[:, None] - tied
    np.fill_diagonal(difference, untied)
    # One root of the product, not a product of roots: equal and opposite rankings come out as 1 and -1 exactly.
    scale = np.sqrt(np.multiply.outer(untied.astype(np.float64), untied.astype(np.float64)))
    return np.divide(difference, scale, out=np.full(scale.shape, np.nan), where=scale > 0.0)


def _count(x: Ranks, order: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray | int]:
    """Discordant pairs of x, which sorts the points into this order, and each of the others; and the pairs tied in both."""
    if x.tied_pairs == 0:
        return inversions(np.take(others, order, axis=1)), 0
    n_points = np.int64(len(order))  # the product of ranks and points outgrows 32 bits
    keys = x.ranks * n_points + others  # sorted by x and then by y, pairs that are tied in x are no inversions of y
    keys.sort(axis=1)
    return inversions(keys - x.ranks[order] * n_points), _equal_pairs(keys)


def inversions(sequences: np.ndarray) -> np.ndarray:
    """The number of times a larger number stands before a smaller one, in each row of (rows, length) numbers below length.

    A merge sort from the bottom up. Each number carries the block it came from. Sorting two neighbouring blocks together moves
    those of the right one to the left by one place for every inversion between the two, so their places tell how many there were.
    """
    rows, length = sequences.shape
    levels = max(0, int(length - 1).bit_length() - (LEAF - 1).bit_length())
    leaf = -(-length >> levels)
    places = np.arange(leaf << levels)
    blocks = places // leaf
    narrow = (length + 1) << levels <= np.iinfo(np.int32).max
    keys = np.full((rows, len(places)), length, dtype=np.int32 if narrow else np.int64)  # the padding adds no inversions
    keys[:, :length] = sequences
    found = _inversions_within(keys.reshape(rows, -1, leaf))
    keys <<= levels  # the block in the low bits: equal numbers stay in the order of their blocks and are no inversions
    keys |= blocks.astype(keys.dtype)
    for level in range(levels):
        keys.reshape(-1, leaf << (level + 1)).sort(axis=1)
        in_right = (keys >> level) & 1
        found += ((blocks >> level) & 1) @ places - np.einsum("rp,p->r", in_right, places, dtype=np.int64)
    return found


def _inversions_within(blocks: np.ndarray) -> np.ndarray:
    """Inversions inside all blocks of each row, (rows, blocks, length), by comparing all pairs."""
    # The long axis last, so that each comparison runs along contiguous memory.
    side_by_side = np.ascontiguousarray(blocks.transpose(0, 2, 1))
    found = np.zeros(side_by_side.shape, dtype=np.uint8)  # a place has at most LEAF - 1 larger numbers before it
    for gap in range(1, side_by_side.shape[1]):
        found[:, gap:] += side_by_side[:, :-gap] > side_by_side[:, gap:]
    return found.sum(axis=(1, 2), dtype=np.int64)


def _equal_pairs(ordered: np.ndarray) -> np.ndarray:
    """How many pairs of each sorted row are equal: each entry has one with every entry of its run before it."""
    places = np.arange(ordered.shape[1])
    starts = np.zeros_like(ordered)
    starts[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], places[1:], 0)
    return (places - np.maximum.accumulate(starts, axis=1)).sum(axis=1)


def _pairs(count: np.ndarray | int) -> np.ndarray:
    wide = np.asarray(count, dtype=np.int64)
    return wide * (wide - 1) // 2
