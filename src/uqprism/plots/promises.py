"""What models promised of more data, and what it did."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.measures.vocabulary import rule_words
from uqprism.plots.style import BLUE, GREEN, ORANGE, axes_or_new

WIDE = 6.0  # inches, in which two columns of the legend have room
BEYOND = (1.0, 2.0, 4.0)  # times the rows of the largest training set


def promise(promise: Any, ax: Any = None) -> Any:
    """The penalty by size of the training set, what the models said would stay of it, and what is to be expected beyond.

    Arrows go from the penalty down by the excess: that far it could fall according to the models of that size.

    Args:
        promise: of a measure, from `uqprism.audit`.
        ax: axes to draw on; None for a new figure.
    """
    sizes = np.array(promise.sizes, dtype=float)
    rule = rule_words(promise.measure.split(".", maxsplit=1)[0]).name
    with axes_or_new(ax, 3.8) as axes:
        axes.plot(sizes, promise.penalty, "o-", color=BLUE, label=f"penalty on other rows ({rule})")
        if promise.replicates is not None:
            low, high = np.quantile(promise.replicates[2], [0.025, 0.975], axis=0)
            axes.fill_between(sizes, low, high, color=BLUE, alpha=0.2, linewidth=0)
        arrow = {"arrowstyle": "-|>", "color": ORANGE, "linewidth": 1.3, "shrinkA": 3, "shrinkB": 0}
        for size, penalty, excess in zip(sizes, promise.penalty, promise.excess, strict=True):
            axes.annotate("", xy=(size, penalty - excess), xytext=(size, penalty), arrowprops=arrow)
        axes.plot(
            sizes, promise.penalty - promise.excess, "_", color=ORANGE, markersize=9, label="where the models said it could go"
        )
        axes.plot(sizes, promise.noise, "s--", color=GREEN, markersize=4, linewidth=1.0, label="what the models called noise")
        beyond = sizes[-1] * np.array(BEYOND)
        expected = np.array([promise.expected(growth) for growth in BEYOND])
        axes.plot(beyond, expected[:, 0], "o:", color=BLUE, markerfacecolor="white", label="expected after correction")
        if np.isfinite(expected).all():
            axes.fill_between(beyond, expected[:, 1], expected[:, 2], color=BLUE, alpha=0.12, linewidth=0)
        ticks = [*promise.sizes, *(int(size) for size in beyond[1:])]
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
        axes.minorticks_off()
        axes.set_xlabel("rows of the training set")
        axes.set_ylabel(rule)
        columns = 2 if axes.figure.get_size_inches()[0] >= WIDE else 1
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.2)
    return axes
