"""How all pictures look: colours that colour-blind readers can tell apart, sizes for a page of paper; and how they are saved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.support.storage import atomic

# Okabe and Ito (2008)
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#7F7F7F"
SKY, BLACK = "#56B4E9", "#000000"
RISK_COLOURS = {"total": BLUE, "bayes": GREEN, "excess": ORANGE}  # in every picture
OTHER_COLOURS = (PURPLE, RED, SKY)  # of what is no risk: columns of one's own
PAGE_WIDTH = 7.0  # inches: drawn at the size at which it is read
DOTS_PER_INCH = 130
PALETTE = 128  # colours of a .png

PLAIN = {"text.parse_math": False}  # names and units come from files: what is in them is no formula
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
    """These axes, in their owner's style; or, for None, those of a new figure in ours, which pyplot knows if it is loaded."""
    if ax is None:
        with styled({**STYLE, **PLAIN}):
            pyplot = sys.modules.get("matplotlib.pyplot")
            if pyplot is None:
                yield new_figure(height)[1]
            else:
                yield pyplot.figure(figsize=(PAGE_WIDTH, height), layout="constrained").subplots()
    elif hasattr(ax, "plot"):
        with styled(PLAIN):
            yield ax
        for label in (ax.xaxis.label, ax.yaxis.label):  # which were there before
            label.set_parse_math(False)
    else:
        raise ArgumentError(f"ax must be matplotlib axes, got {ax!r}; to save a picture: result.plot().figure.savefig(path)")


METADATA = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same picture, the same file


def save(figure: Any, path: Path) -> None:
    """As .png and .svg beside each other, each whole or not at all."""
    for ending in ("png", "svg"):
        save_as(figure, path.with_suffix(f".{ending}"))


def save_as(figure: Any, path: Path) -> None:
    """As the kind of file its ending names: .png, .svg or .pdf; whole or not at all."""
    from PIL import Image

    ending = path.suffix.removeprefix(".")
    drawn = BytesIO()
    with styled():
        figure.savefig(drawn, format=ending, dpi=DOTS_PER_INCH, metadata=METADATA[ending])
    with atomic(path) as file:
        if ending == "png":  # a third of the size, and lines look the same
            Image.open(drawn).convert("RGB").quantize(PALETTE).save(file, format="png", optimize=True)
        else:
            file.write(drawn.getvalue())
