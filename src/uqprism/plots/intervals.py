"""Measures side by side: a dot for the value, a line for what it might be."""

from __future__ import annotations

import textwrap
from typing import Any

from uqprism.errors import InvalidValueError
from uqprism.plots.style import BLUE, GREY, axes_or_new

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
        axes.set_xlabel(textwrap.fill(result.describe().title, 60))  # the axis is narrower than the figure: names stand beside it
        if len(names) < len(result):
            axes.set_title(f"the best {len(names)} of {len(result)} measures", loc="left", pad=20 if result.has_spread else None)
        if result.has_spread:
            axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0)
    return axes
