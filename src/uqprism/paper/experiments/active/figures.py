"""The paper's figure of learning curves, and its table beside ours, drawn from a result and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.measures import Measure, published
from uqprism.paper.base import Picture, Result
from uqprism.paper.experiments.active.acquisitions import RANDOM
from uqprism.plots.style import GREY, RISK_COLOURS, new_figure, styled

MARKERS = {"crps": "o", "log": "s", "squared_error": "^", "quadratic": "D"}
DASHED = (0, (4, 3))
RULES = {name: short for short, name in published.RULES.items()}


def curves(result: Result) -> Picture:
    """The test NLL by labelled points: a row for each data set, a column for each rule, a line for each acquisition."""
    from matplotlib.lines import Line2D

    datasets, loops = result.arrays["datasets"].tolist(), result.arrays["loops"].tolist()
    nll, labelled = result.arrays["nll"].mean(axis=2), result.arrays["labelled"]
    with styled():
        figure, axes = new_figure(
            1.0 + 1.35 * len(datasets), nrows=len(datasets), ncols=len(RULES), sharex=True, sharey="row", squeeze=False
        )
        for row, name, errors in zip(axes, datasets, nll, strict=True):
            for ax, rule in zip(row, RULES, strict=True):
                for loop, curve in zip(loops, errors, strict=True):
                    if loop.startswith(f"{rule}."):
                        ax.plot(labelled, curve, color=RISK_COLOURS[Measure.parse(loop).risk], linewidth=0.7, alpha=0.8)
                ax.plot(labelled, errors[loops.index(RANDOM)], color="black", linestyle=DASHED, linewidth=1.0)
            row[0].set_ylabel(f"{name}: NLL")
            row[0].set_ylim(*_limits(errors))
        for ax, rule in zip(axes[0], RULES, strict=True):
            ax.set_title(RULES[rule])
        for ax in axes[-1]:
            ax.set_xlabel("labelled points")
        lines: list[Any] = [Line2D([], [], color=colour, label=f"{risk} risks") for risk, colour in RISK_COLOURS.items()]
        lines.append(Line2D([], [], color="black", linestyle=DASHED, label="random"))
        figure.legend(handles=lines, loc="outside lower center", ncols=4)
    caption = (
        "Test NLL, in standard deviations of the target, by labelled points: a row for each data set, a column for each scoring "
        f"rule, a line for each acquisition, mean of {result.arrays['nll'].shape[2]} seeds; dashed: random picks. Spikes are cut."
    )
    return Picture(figure, caption)


def _limits(curves: Any) -> tuple[float, float]:
    """Room for all but single spikes."""
    low, high = float(curves.min()), float(np.quantile(curves, 0.98))
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def ranks(result: Result) -> Picture:
    """Our average ranks against the paper's, each number with the measure that it shows."""
    from matplotlib.lines import Line2D

    rows = next(iter(result.tables.values()))
    spreads = {row["measure"]: row["our spread"] for row in rows}
    shown = [row for row in rows if row["paper"] is not None and row["ours, as printed"] is not None]
    with styled():
        figure, ax = new_figure(4.6)
        for row in shown:
            name = row["measure"]
            measure = Measure.parse(name) if name != RANDOM else None
            look = (
                {"color": "black", "marker": "*"}
                if measure is None
                else {"color": RISK_COLOURS[measure.risk], "marker": MARKERS[measure.rule]}
            )
            ax.errorbar(
                row["paper"],
                row["ours, as printed"],
                xerr=row["paper's spread"],
                yerr=spreads.get(published.printed_as(name)),
                linestyle="none",
                markersize=9 if measure is None else 5,
                elinewidth=0.4,
                ecolor=GREY,
                **look,
            )
        ax.set(xlabel="average rank in the paper", ylabel="average rank here")
        marks: list[Any] = [
            Line2D([], [], color=colour, marker="o", linestyle="none", label=risk) for risk, colour in RISK_COLOURS.items()
        ]
        marks += [Line2D([], [], color=GREY, marker=mark, linestyle="none", label=RULES[rule]) for rule, mark in MARKERS.items()]
        marks.append(Line2D([], [], color="black", marker="*", markersize=9, linestyle="none", label="random"))
        figure.legend(handles=marks, loc="outside lower center", ncols=8)
    caption = (
        f"Average ranks of {len(shown)} cells of the paper's table against ours, lower is better; bars: one standard deviation, "
        "ours between seeds."
    )
    return Picture(figure, caption)
