"""The style of all figures: colours that colour-blind readers can tell apart, sizes for a page, axes, and saving."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.support.numbers import tick
from uqprism.support.optional import require
from uqprism.support.storage import PICTURES, atomic, check_ending

# Okabe and Ito (2008)
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#7F7F7F"
SKY, BLACK = "#56B4E9", "#000000"
RISK_COLOURS = {"total": BLUE, "bayes": GREEN, "excess": ORANGE}  # in every picture
OTHER_COLOURS = (PURPLE, RED, SKY)  # of columns that are no risks
PAGE_WIDTH = 7.0  # inches: drawn at the size at which it is read
DOTS_PER_INCH = 130
PALETTE = 128  # colours of a .png

PLAIN = {"text.parse_math": False}  # names and units come from files and hold no formulas
STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.0,
    "legend.title_fontsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "legend.frameon": False,
    "svg.hashsalt": "uqprism",  # the same picture, the same file
}


@contextmanager
def styled(settings: dict[str, Any] = STYLE) -> Iterator[None]:
    """Figures made in this block have these settings of matplotlib, by default the common style."""
    with require("matplotlib", extra="report").rc_context(settings):
        yield


def new_figure(height: float, **panels: Any) -> tuple[Any, Any]:
    """A figure as wide as a page and its axes, without the global state of pyplot; `panels` as in `Figure.subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    return figure, figure.subplots(**panels)


@contextmanager
def axes_or_new(ax: Any, height: float) -> Iterator[Any]:
    """The given axes, in the style they have; for None, those of a new figure in the common style."""
    if ax is None:
        with styled({**STYLE, **PLAIN}):
            pyplot = sys.modules.get("matplotlib.pyplot")  # so that `pyplot.show` and notebooks show it
            if pyplot is None:
                axes = new_figure(height)[1]
            else:
                axes = pyplot.figure(figsize=(PAGE_WIDTH, height), layout="constrained").subplots()
            yield axes
        _separate_thousands(axes)
    elif hasattr(ax, "plot"):
        with styled(PLAIN):
            yield ax
        _separate_thousands(ax)
        for label in (ax.xaxis.label, ax.yaxis.label):  # made before, so the setting did not reach them
            label.set_parse_math(False)
    else:
        raise ArgumentError(f"ax must be matplotlib axes, got {ax!r}; to save a picture: result.plot().figure.savefig(path)")


def _separate_thousands(axes: Any) -> None:
    """Write the numbers beside linear axes as the report writes numbers: 20,000 and not 2e4."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, MaxNLocator, ScalarFormatter

    for axis in (axes.xaxis, axes.yaxis):
        if type(axis.get_major_formatter()) is ScalarFormatter:  # other axes have been given names or a format
            axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    if type(axes.xaxis.get_major_locator()) is AutoLocator and max(map(abs, axes.get_xlim())) >= LONG:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))  # long numbers need room beside each other


LONG = 1_000.0
METADATA = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same picture, the same file


def save(figure: Any, path: Path) -> None:
    """Save as .png and .svg, each file atomically."""
    for kind in ("png", "svg"):
        save_as(figure, path.with_suffix(f".{kind}"))


def save_as(figure: Any, path: Path) -> None:
    """Save as .png, .svg or .pdf, by the ending of the path, atomically."""
    kind = check_ending(path, PICTURES).removeprefix(".")
    from PIL import Image

    drawn = BytesIO()
    with styled():
        figure.savefig(drawn, format=kind, dpi=DOTS_PER_INCH, metadata=METADATA[kind])
    with atomic(path) as file:
        if kind == "png":  # a third of the size, and lines look the same
            Image.open(drawn).convert("RGB").quantize(PALETTE).save(file, format="png", optimize=True)
        else:
            file.write(drawn.getvalue())


# Axes for numbers of very different sizes ---

WIDE = 30.0  # from the hundredth smallest to the hundredth largest of 10,000: beyond, most points would crowd in a corner
DECADES = 8.0  # below the largest: smaller numbers, such as rounding, count as zero
NEXT_TO_ZERO = 0.4  # of a decade: the room between zero and the smallest number that does not count as zero


def is_wide(values: np.ndarray) -> bool:
    """Whether these numbers need a logarithmic axis and can have one: none is negative."""
    if not len(values) or not values.min() >= 0.0 or not values.max() > 0.0:
        return False
    low, high = np.quantile(values[values > 0.0], [0.01, 0.99])
    return bool(high > WIDE * low)


def smallest(values: np.ndarray) -> float | None:
    """Up to where a logarithmic axis has to be linear to reach zero; None if no number is zero, or next to it."""
    high = float(values.max())
    low = min(float(values[values > high * 10.0**-DECADES].min()), 0.1 * high)  # one huge number leaves room for an axis
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
    """The edges of so many bins, equally wide on the axis of these numbers; those next to zero share one."""
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
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
        axis.set_minor_formatter(NullFormatter())
    getattr(axes, f"set_{which}lim")(low, high)


def _powers(low: float, high: float, decades: float) -> list[float]:
    """Powers of ten between the two, and three times them where there are few."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1.0)
    ticks = np.sort(np.concatenate([powers, 3.0 * powers])) if decades <= 2.0 else powers
    return [float(tick) for tick in ticks if low <= tick <= high]
