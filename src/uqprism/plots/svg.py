"""Figures as parts of a page: SVG with selectable text, colours from the page's style sheet, and unique names."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from uqprism.plots.style import BLUE, GREEN, GREY, ORANGE, PLAIN, PURPLE, RED, SKY, STYLE
from uqprism.support.optional import require

POINTS_PER_INCH = 72.0  # the unit of matplotlib's SVG
# The colours of figures, and the variables that replace them: a drawing then follows the page from light to dark.
VARIABLES = {
    "#000000": "ink",
    "#ffffff": "paper",
    **{colour.lower(): name for colour, name in zip((BLUE, ORANGE, GREEN, RED, PURPLE, GREY, SKY), (
        "blue", "orange", "green", "red", "purple", "grey", "sky"), strict=True)},
}  # fmt: skip
ON_A_PAGE = {
    **STYLE,
    **PLAIN,
    "svg.fonttype": "none",  # text stays text: it can be selected and read aloud, and takes the font of the page
    "savefig.transparent": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "legend.handlelength": 1.6,
}


def render(draw: Callable[[Any], Any], *, name: str, width: float, height: float) -> tuple[str, Any]:
    """Draw on new axes; returns the figure as SVG for a page, and the axes.

    Args:
        draw: the function.
        name: a word that no other figure of the page has, for the names of its parts.
        width: in inches, of 96 pixels on a screen.
        height: in the same inches.
    """
    matplotlib = require("matplotlib", extra="report")
    from matplotlib.figure import Figure

    with matplotlib.rc_context(ON_A_PAGE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _for_page(text.getvalue(), name), axes


def places(axes: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where points of the axes lie in the SVG, in its units, (points, 2)."""
    figure = axes.figure
    width, height = POINTS_PER_INCH * figure.get_size_inches()
    share = axes.transData.transform(np.column_stack([x, y])) / np.array([figure.bbox.width, figure.bbox.height])
    return np.column_stack([share[:, 0] * width, (1.0 - share[:, 1]) * height])


SHAPES = {
    "^": "m0-2.3l2.2 3.9h-4.4z",
    "v": "m0 2.3l2.2-3.9h-4.4z",
    "D": "m0-2.3l2.3 2.3-2.3 2.3-2.3-2.3z",
    "s": "m-1.7-1.7h3.4v3.4h-3.4z",
    "P": "m-.8-2.3h1.6v1.5h1.5v1.6h-1.5v1.5h-1.6v-1.5h-1.5v-1.6h1.5z",
}  # of matplotlib's markers, as paths around a place


def marks(spots: np.ndarray, marker: str, colour: str) -> str:
    """A mark at each of these places, (points, 2), as one path: quicker to draw than a thousand, and smaller."""
    path = "".join(f"M{x:g} {y:g}{SHAPES[marker]}" for x, y in spots)
    return f'<path class="marks" fill="{_themed(colour.lower())}" d="{path}"/>'


def _for_page(text: str, name: str) -> str:
    text = text[text.index("<svg") :]  # within HTML, XML's declaration is an error
    for unwanted in (
        r"<metadata>.*?</metadata>",
        r"<!--.*?-->",
        r"<style[^>]*>.*?</style>",  # it would apply to the whole page
        r" (?:version|xmlns(?::xlink)?)=\"[^\"]*\"",
    ):
        text = re.sub(unwanted, "", text, flags=re.DOTALL)
    # The page's style sheet sets the size, by the width of the screen.
    text = re.sub("<svg[^>]*>", lambda found: re.sub(r' (?:width|height)="[^"]*"', "", found[0]), text, count=1)
    text = re.sub(
        r"font(?:: [^;\"]*?([\d.]+px)[^;\"]*|-family: [^;\"]*)", lambda found: f"font-size: {found[1]}" if found[1] else "", text
    )
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    text = re.sub(r"#[0-9a-f]{6}\b", lambda found: _themed(found[0]), text)
    text = re.sub(
        r' (?:d|x|y)="[^"]*"', lambda found: re.sub(r"(\d+\.\d{2})\d+", r"\1", found[0]), text
    )  # thousandths are not visible
    return re.sub(r"\s*\n\s*", "\n", _own_names(text, name)).strip()


def _own_names(text: str, name: str) -> str:
    """Prefix the names that something refers to and remove all others, so that each name is once on a page."""
    used = set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    return re.sub(r'(xlink:href="|url\()#([^")]+)', rf"\1#{name}-\2", text)


def _themed(colour: str) -> str:
    return f"var(--{VARIABLES[colour]})" if colour in VARIABLES else colour
