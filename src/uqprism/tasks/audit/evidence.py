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


KEPT: dict[str, Kept] = {
    "resampled": Kept(15, 0.5, 0.27, 1.35),
    "networks": Kept(7, 0.59, 0.33, 1.82),
    "forest": Kept(15, 0.08, 0.0, 0.46),
    "boosting": Kept(7, 0.74, -0.26, 1.53),
    "dropout": Kept(7, 0.52, -0.23, 1.4),
    "evidential": Kept(6, -0.02, -0.24, 2.54),
}
