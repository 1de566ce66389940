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
    "networks": Kept(3, 0.57, 0.45, 0.62),
    "forest": Kept(15, 0.08, 0.0, 0.46),
    "boosting": Kept(4, 0.93, 0.42, 1.53),
    "dropout": Kept(3, 0.62, -0.23, 1.4),
    "evidential": Kept(3, -0.03, -0.06, -0.01),
}
