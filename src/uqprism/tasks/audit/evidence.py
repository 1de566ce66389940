"""What our own audits found for each kind of model; `benchmarks/audit.py` measures it, and a test compares the two."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """What of the disagreement went with twice the rows, over several data sets (CRPS, members in both roles).

    Attributes:
        sets: how many data sets.
        middle: the median share of the disagreement by which the penalty fell.
        low: the smallest of the data sets.
        high: the largest.
    """

    sets: int
    middle: float
    low: float
    high: float


KEPT: dict[str, Kept] = {}
