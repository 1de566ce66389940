"""Which values of members can be computed with."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST = {"mean": 1e150, "scale": 1e150, "variance": 1e300}  # the square of a larger distance is infinite


def good_rows(mean: np.ndarray[Any, Any], spread: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any] | None:
    """Which rows have means and positive spreads of a size to compute with; None if all do, which the extremes show."""
    if not mean.size:
        return None
    furthest, widest = _within(mean.dtype, LARGEST["mean"]), _within(spread.dtype, LARGEST[kind])
    # A NaN anywhere makes the extremes NaN; unlike a mask, they need no memory.
    if mean.min() >= -furthest and mean.max() <= furthest and spread.min() > 0 and spread.max() <= widest:
        return None
    return np.asarray(((abs(mean) <= furthest) & (spread > 0) & (spread <= widest)).all(axis=0))


def _within(dtype: np.dtype[Any], limit: float) -> float:
    return min(limit, float(np.finfo(dtype).max))
