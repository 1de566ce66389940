"""Which values of members can be computed with."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.families.base import NARROWEST

LARGEST = {"mean": 1e150, "scale": 1e150, "variance": 1e300}  # the square of a larger distance is infinite
SMALLEST = {"scale": 1e-150, "variance": 1e-300}  # the square of a smaller scale is zero


def good_rows(mean: np.ndarray[Any, Any], spread: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any] | None:
    """Which rows have means and positive spreads of a size to compute with; None if all do, which the extremes show."""
    if not mean.size:
        return None
    furthest, widest = _within(mean.dtype, LARGEST["mean"]), _within(spread.dtype, LARGEST[kind])
    low, high, least, most = (float(x) for x in (mean.min(), mean.max(), spread.min(), spread.max()))
    # A NaN anywhere makes the extremes NaN; unlike a mask, they need no memory.
    if (
        low >= -furthest
        and high <= furthest
        and least >= SMALLEST[kind]
        and most <= widest
        and _wide_enough(low, high, least, most, kind)
    ):
        return None
    good = np.asarray(((abs(mean) <= furthest) & (spread > 0) & (spread >= SMALLEST[kind]) & (spread <= widest)).all(axis=0))
    mean, spread = np.where(good, mean, 0.0), np.where(good, spread, 1.0)
    # In double precision, because single precision cannot hold the limits.
    low, high, least, most = (
        x.astype(np.float64) for x in (mean.min(axis=0), mean.max(axis=0), spread.min(axis=0), spread.max(axis=0))
    )
    return np.asarray(good & _wide_enough(low, high, least, most, kind))


def _wide_enough(low: Any, high: Any, least: Any, most: Any, kind: str) -> Any:
    """Whether no member is too narrow to be squared in the unit of the row, by the extremes of means and spreads."""
    narrowest, widest = (np.sqrt(x) if kind == "variance" else x for x in (least, most))
    return narrowest >= NARROWEST * ((high - low) + widest)


def _within(dtype: np.dtype[Any], limit: float) -> float:
    return min(limit, float(np.finfo(dtype).max))
