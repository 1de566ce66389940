"""Axes for numbers of very different sizes: logarithmic where that is needed and possible, with plain numbers on them."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDE = 30.0  # from the hundredth smallest to the hundredth largest of 10,000: beyond, most points would crowd in a corner
DECADES = 8.0  # below the largest: what is smaller still, rounding for one, is next to nothing
NEXT_TO_ZERO = 0.4  # of a decade: the room between zero and the smallest number that is told apart from it


def is_wide(values: np.ndarray) -> bool:
    """Whether these numbers need a logarithmic axis, and can have one: none is negative."""
    if not len(values) or not values.min() >= 0.0 or not values.max() > 0.0:
        return False
    low, high = np.quantile(values[values > 0.0], [0.01, 0.99])
    return bool(high > WIDE * low)


def smallest(values: np.ndarray) -> float | None:
    """Up to where a logarithmic axis has to be linear to reach zero; None if no number is zero, or next to it."""
    high = float(values.max())
    low = float(values[values > high * 10.0**-DECADES].min())
    return low if values.min() < low else None


def bounds(values: np.ndarray) -> tuple[float, float]:
    """The ends of an axis for these numbers, with a margin; never the same twice."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if is_wide(values):
        if smallest(values) is not None:
            return 0.0, high * (high / (smallest(values) or high)) ** 0.03
        margin = (high / low) ** 0.03
        return low / margin, high * margin
    margin = 0.03 * (high - low) or 0.5 * abs(high) or 1.0
    return (0.0 if 0.0 <= low < 4.0 * margin else low - margin), high + margin


def edges(values: np.ndarray, count: int) -> np.ndarray:
    """Of so many bins for these numbers, as their axis is divided; those next to zero share one."""
    low, high = bounds(values)
    if not is_wide(values):
        return np.linspace(low, high, count + 1)
    start = smallest(values)
    return np.geomspace(low, high, count + 1) if start is None else np.append(0.0, np.geomspace(start, high, count))


def scaled(axes: Any, which: str, values: np.ndarray) -> None:
    """Give the x or y axis the scale and the ends that these numbers need."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    axis, set_scale = getattr(axes, f"{which}axis"), getattr(axes, f"set_{which}scale")
    low, high = bounds(values)
    if is_wide(values):
        start = smallest(values)
        decades = np.log10(high / (start or low))
        if start is None:
            set_scale("log")
            axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.0 else (1.0, 3.0), numticks=8))
        else:
            set_scale("symlog", linthresh=start, linscale=NEXT_TO_ZERO)
            axis.set_major_locator(FixedLocator([0.0, *_powers(start, high, decades)]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    getattr(axes, f"set_{which}lim")(low, high)


def _powers(low: float, high: float, decades: float) -> list[float]:
    """Powers of ten between the two, and three times them where there are few."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1.0)
    ticks = np.sort(np.concatenate([powers, 3.0 * powers])) if decades <= 2.0 else powers
    return [float(tick) for tick in ticks if low <= tick <= high]
