"""The figure of the shifts, drawn from a result and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.base import Picture, Result
from uqprism.paper.experiments.shifts.claims import NONE, SHIFTS, Answers
from uqprism.plots.style import BLUE, GREY, RISK_COLOURS, new_figure, styled

TITLES = {"crps": "CRPS", "log": "Log", "squared_error": "Squared error", "quadratic": "Quadratic"}
GAP = 2  # bars' widths between two rules
TICKS = (-1.0, -0.1, 0.0, 0.1, 1.0, 10.0, 100.0)


def shifts(result: Result) -> Picture:
    """A row per shift: on the left the posterior before and after, on the right every measure's relative change."""
    answers = Answers({name: values for name, values in result.arrays.items() if name != "posteriors"})
    with styled():
        figure, axes = new_figure(8.4, nrows=4, ncols=2, width_ratios=[1.0, 4.6], sharex="col", sharey="col")
        for (left, right), shift in zip(axes, SHIFTS, strict=True):
            _posterior(left, result.arrays["posteriors"], shift)
            _bars(right, answers, shift)
        axes[-1, 0].set_xlabel("mean")
        for rule, (start, stop) in _places().items():
            middle = (start + stop - 1) / 2
            axes[0, 1].annotate(
                TITLES[rule], (middle, 1.0), (0, 3), xycoords=("data", "axes fraction"), ha="center", textcoords="offset points"
            )
        _label(axes[-1, 1])
        handles = [_patch(colour, name.replace("bayes", "Bayes")) for name, colour in RISK_COLOURS.items()]
        handles += [_patch(GREY, f"changes by less than {NONE:.0%}"), _cross("always zero")]
        figure.legend(handles=handles, loc="outside lower center", ncols=5)
    caption = (
        "Left: the posterior over mean and variance, grey before and blue after the shift. Right: the change of each measure, "
        "relative to its size before; the axis is linear up to 10 % and logarithmic beyond. Grey: less than 1 %; crosses: always "
        "zero; pale: cells that the paper leaves blank. Labels are by (truth, prediction), as in the paper's tables."
    )
    return Picture(figure, caption)


def _posterior(ax: Any, posteriors: Any, shift: str) -> None:
    from matplotlib.patches import Rectangle

    for box, colour in ((posteriors[0], GREY), (posteriors[1 + SHIFTS.index(shift)], BLUE)):
        low_mean, high_mean, low, high = box
        corner, width, height = (low_mean, low), high_mean - low_mean, high - low
        ax.add_patch(Rectangle(corner, width, height, facecolor=colour, alpha=0.3, edgecolor=colour, linewidth=1.0))
    ax.set(xlim=(-2.4, 3.4), ylim=(0.0, 3.4), xticks=(-2, 0, 2), ylabel="variance", title=shift)


def _places() -> dict[str, tuple[int, int]]:
    """Where the bars of each rule begin and end."""
    width = len(published.measures(("crps",)))
    return {rule: (i * (width + GAP), i * (width + GAP) + width) for i, rule in enumerate(TITLES)}


def _bars(ax: Any, answers: Answers, shift: str) -> None:
    filled = published.table("ood_detection_mean")
    for rule, (start, _) in _places().items():
        for place, measure in enumerate(published.measures((rule,)), start):
            change = answers.change(measure, shift)
            if not np.any(answers.values[measure.name]):
                ax.plot(place, 0.0, marker="x", color=GREY, markersize=3.0, markeredgewidth=0.7)
                continue
            colour = GREY if abs(change) < NONE else RISK_COLOURS[measure.risk]
            shown = change if abs(change) >= NONE else 0.012  # a bar that can be seen
            ax.bar(place, shown, width=0.8, color=colour, alpha=1.0 if measure.name in filled else 0.45)
    ax.axhline(0.0, color="black", linewidth=0.6)
    ax.set_yscale("symlog", linthresh=0.1, linscale=0.7)
    ax.set(ylim=(-1.3, 400.0), yticks=TICKS, yticklabels=[f"{tick:+.0%}" if tick else "0" for tick in TICKS])
    ax.set(xlim=(-1.0, _places()["quadratic"][1]), ylabel="relative change")
    ax.tick_params(axis="y", labelsize=7)
    ax.tick_params(axis="x", length=0.0)
    ax.minorticks_off()


def _label(ax: Any) -> None:
    """Superscripts in the order of the tables, under every bar."""
    places: list[int] = []
    labels: list[str] = []
    for rule, (start, stop) in _places().items():
        places += range(start, stop)
        labels += [published.label(measure.name).split("{")[1].removesuffix("}") for measure in published.measures((rule,))]
    ax.set_xticks(places, labels, rotation=90, fontsize=4.6)  # as much as the bars leave room for
    ax.tick_params(axis="x", pad=1)


def _patch(colour: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def _cross(label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="x", color=GREY, markersize=4.0, label=label)
