"""Axes for numbers of very different sizes: logarithmic where that is needed and possible, with plain numbers on them."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDE = 30.0  # from the hundredth smallest to the hundredth largest of 10,000: beyond, most points would crowd in a corner


def is_wide(values: np.ndarray) -> bool:
    """Whether these numbers need a logarithmic axis, and can have one."""
    if not len(values) or not values.min() > 0.0:
        return False
    low, high = np.quantile(values, [0.01, 0.99])
    return bool(high > WIDE * low)


def bounds(values: np.ndarray) -> tuple[float, float]:
    """The ends of an axis for these numbers, with a margin; never the same twice."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if is_wide(values):
        margin = (high / low) ** 0.03
        return low / margin, high * margin
    margin = 0.03 * (high - low) or 0.5 * abs(high) or 1.0
    return (0.0 if 0.0 <= low < 4.0 * margin else low - margin), high + margin


def spaced(low: float, high: float, count: int, *, wide: bool) -> np.ndarray:
    """Edges of so many bins between the two, as the axis is divided."""
    return np.geomspace(low, high, count + 1) if wide else np.linspace(low, high, count + 1)


def scaled(axes: Any, which: str, values: np.ndarray) -> None:
    """Give the x or y axis the scale and the ends that these numbers need."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = getattr(axes, f"{which}axis")
    low, high = bounds(values)
    if is_wide(values):
        getattr(axes, f"set_{which}scale")("log")
        decades = np.log10(high / low)
        axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.0 else (1.0, 3.0), numticks=8))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    getattr(axes, f"set_{which}lim")(low, high)
