"""Comparisons of measures: the metric of each with its interval, and a heat map of their rank correlations."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.measures.vocabulary import measure_in_words
from uqprism.plots.style import BLUE, GREY, PAGE_WIDTH, RISK_COLOURS, axes_or_new
from uqprism.support.optional import require

MOST_NAMES = 60  # beyond, they would be too small to read
NO_ORDER = "#C0C0C0"
GOOD, WORSE = "not significantly worse than the best", "significantly worse"


def intervals(result: Any, top: int = 20, ax: Any = None) -> Any:
    """The metric of the best measures with its 95 % interval, the best on top; in colour those not worse than the best.

    Without resamples there are dots only, all alike.

    Args:
        result: of any task.
        top: how many measures.
        ax: axes to draw on; None for a new figure.
    """
    if top < 1:
        raise InvalidValueError(f"top must be at least 1, got {top}")
    names = result.ranked()[:top]
    good = set(result.not_worse()) if result.has_spread else set(names)
    ends = result.interval() if result.has_spread else {}
    with axes_or_new(ax, 1.0 + 0.19 * len(names)) as axes:
        for label, wanted, colour, face in ((GOOD, True, BLUE, BLUE), (WORSE, False, GREY, "white")):
            rows = [row for row, name in enumerate(names) if (name in good) == wanted]
            if rows and ends:
                axes.hlines(rows, *zip(*(ends[names[row]] for row in rows), strict=True), color=colour, linewidth=1.4)
            if rows:
                values = [result[names[row]] for row in rows]
                axes.plot(values, rows, "o", color=colour, markerfacecolor=face, markersize=5, label=label)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(textwrap.fill(result.describe().title, 60))  # the axis is narrower than the figure: names need room
        if len(names) < len(result):
            axes.set_title(f"the best {len(names)} of {len(result)} measures", loc="left", pad=20 if result.has_spread else None)
        if result.has_spread:
            axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0)
    return axes


def rank_correlation(correlation: Any, ax: Any = None, *, plain: bool = False) -> Any:
    """A heat map of tau-b in the order of `correlation.order()`: blue for the same order, red for the opposite, grey for none.

    Up to 60 measures have their names on the axes; among more a strip at the side tells total, Bayes and excess risks apart.

    Args:
        correlation: of `uqprism.tasks.rank_correlation`.
        ax: axes to draw on; None for a new figure.
        plain: whether measures are named in words, and points are called rows.
    """
    many = "rows" if plain else "points"
    shown = correlation.select(correlation.order())
    colours = require("matplotlib", extra="report").colormaps["RdBu"].with_extremes(bad=NO_ORDER)
    with axes_or_new(ax, 0.85 * PAGE_WIDTH) as axes:
        image = axes.imshow(np.ma.masked_invalid(shown.matrix), cmap=colours, vmin=-1.0, vmax=1.0, interpolation="nearest")
        grey = "; grey: constant" if np.isnan(shown.matrix).any() else ""
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.6)
        bar.set_label(f"Kendall's tau-b\n1: same order of the {many}, -1: opposite{grey}")
        axes.spines[:].set_visible(False)
        if len(shown.names) <= MOST_NAMES:
            _write_names(axes, [measure_in_words(name) or name for name in shown.names] if plain else shown.names)
        else:
            _mark_risks(axes, shown.names)
    return axes


def _write_names(axes: Any, names: Sequence[str]) -> None:
    size = float(np.clip(240.0 / len(names), 4.0, 8.0))  # points: about the height of a row
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.tick_params(length=0)


def _mark_risks(axes: Any, names: Sequence[str]) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(f"{len(names)} measures, similar ones next to each other")
    edge = -0.02 * len(names)
    for risk, colour in RISK_COLOURS.items():
        rows = np.array([row for row, name in enumerate(names) if name.split(".")[1:2] == [risk]])
        label = f"{'Bayes' if risk == 'bayes' else risk} risk"
        for_rows = {"colors": colour, "linewidth": 5, "clip_on": False, "antialiased": False, "label": label}
        if len(rows):
            axes.vlines(np.full(len(rows), edge), rows - 0.5, rows + 0.5, **for_rows)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)
    axes.set_xlim(-0.5, len(names) - 0.5)
