"""The four figures, drawn from a result and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.measures import Measure, published
from uqprism.paper.base import Picture, Result
from uqprism.paper.data.synthetic import TWO_CURVES_REGION, two_curves_truth
from uqprism.plots.style import BLUE, GREY, ORANGE, new_figure, styled

RISKS = {"total": "Total", "bayes": "Bayes", "excess": "Excess"}
RULES = {"crps": "CRPS", "squared_error": "Squared error", "quadratic": "Quadratic", "log": "Log"}
COLOURS = "viridis"
REACH = (-8.5, 8.5)
CLIPPED = 98.0  # percentile of the values from which on colours do not change


def data(result: Result) -> Picture:
    """The two curves, as thick as they are likely; the samples."""
    arrays = result.arrays
    with styled():
        figure, (left, right) = new_figure(2.9, ncols=2, sharex=True, sharey=True)
        _curves(left)
        for name, colour, label in (("test", ORANGE, "test"), ("training", BLUE, "training")):
            right.scatter(
                arrays[f"{name}_inputs"], arrays[f"{name}_targets"], s=2.0, color=colour, alpha=0.6, linewidths=0, label=label
            )
        for ax, title in ((left, "True distribution"), (right, "Samples")):
            ax.axvspan(*TWO_CURVES_REGION, color=GREY, alpha=0.12, linewidth=0)
            ax.set(xlabel="x", xlim=REACH, title=title)
        left.set_ylabel("y")
        left.legend(loc="upper left")
        right.legend(loc="upper left", markerscale=3)
    caption = (
        "Left: the two curves that the truth is a mixture of, as thick as they are likely, with bands of two standard "
        "deviations. Right: training and test samples of the first trial; shaded: the region of the training inputs."
    )
    return Picture(figure, caption)


def _curves(ax: Any) -> None:
    from matplotlib.collections import LineCollection

    x = np.linspace(-8.0, 8.0, 400)
    weight, means, scale = two_curves_truth(x)
    for mean, share, colour, label in zip(means, (weight, 1.0 - weight), (BLUE, ORANGE), ("first", "second"), strict=True):
        points = np.column_stack([x, mean])
        lines = LineCollection(list(np.stack([points[:-1], points[1:]], axis=1)), linewidths=0.3 + 4.0 * share[1:], color=colour)
        ax.add_collection(lines)
        ax.fill_between(x, mean - 2 * scale, mean + 2 * scale, color=colour, alpha=0.12, linewidth=0)
        ax.plot([], [], color=colour, linewidth=2.5, label=f"{label} curve")


def log(result: Result) -> Picture:
    """Total, Bayes and excess risk of the log score with members in both roles."""
    names = ("log.total.members.members", "log.bayes.members", "log.excess.members.members")
    with styled():
        figure, axes = new_figure(2.4, ncols=3, sharex=True, sharey=True)
        for ax, name in zip(axes, names, strict=True):
            dots = _dots(ax, result, name)
            figure.colorbar(dots, ax=ax, orientation="horizontal", pad=0.02, aspect=30, extend="max").outline.set_linewidth(0.4)
            ax.set(title=f"{RISKS[name.split('.')[1]]} risk", xlabel="x", xlim=REACH)
        axes[0].set_ylabel("mean prediction")
    return Picture(figure, "Risks under the log score, members in both roles. " + _caption())


def extended(result: Result, rules: tuple[str, str]) -> Picture:
    """Bayes and excess risks under two rules, in a row each, with every stand-in that the paper has a column for."""
    rows = [(rule, risk) for rule in rules for risk in ("bayes", "excess")]
    columns = max(len(_columns(*row)) for row in rows)
    with styled():
        figure, axes = new_figure(6.2, nrows=4, ncols=columns, sharex=True, sharey=True)
        for line, (rule, risk) in zip(axes, rows, strict=True):
            shown = _columns(rule, risk)
            for ax, measure in zip(line, shown, strict=False):
                _dots(ax, result, measure.name, logarithmic=risk == "excess")
                ax.set(xlim=REACH, xticks=(-6, 0, 6))
                ax.set_title(_title(measure.name, result.arrays[measure.name]), fontsize=6.5)
                ax.tick_params(labelsize=6.5)
            for ax in line[len(shown) :]:
                ax.set_axis_off()
            line[0].set_ylabel(f"{RULES[rule]}\n{RISKS[risk]} risk", fontsize=8)
    names = " and ".join(RULES[rule] for rule in rules)
    caption = (
        f"Bayes and excess risks under {names}, by the paper's labels (truth, prediction), with the range of the values; each "
        f"panel has colours of its own, those of excess risks are logarithmic. {_caption()}"
    )
    return Picture(figure, caption)


def _columns(rule: str, risk: str) -> list[Measure]:
    return [measure for measure in published.measures((rule,)) if measure.risk == risk]


def _dots(ax: Any, result: Result, name: str, *, logarithmic: bool = False) -> Any:
    """Test inputs at their mean prediction, coloured by a measure, the highest on top."""
    from matplotlib.colors import LogNorm, Normalize

    arrays = result.arrays
    values = arrays[name]
    low, high = float(values.min()), float(np.percentile(values, CLIPPED))
    scaled = LogNorm(max(low, 1e-4 * high), high) if logarithmic and high > 0.0 else Normalize(low, high)
    order = np.argsort(values, kind="stable")
    ax.axvspan(*TWO_CURVES_REGION, color=GREY, alpha=0.12, linewidth=0)
    shown = {"s": 3.0, "cmap": COLOURS, "norm": scaled, "linewidths": 0, "rasterized": True}
    return ax.scatter(arrays["test_inputs"][order], arrays["mean"][order], c=values[order], **shown)


def _title(name: str, values: Any) -> str:
    superscript = published.label(name).split("{")[1].removesuffix("}")
    return f"{superscript}\n{'always 0' if not np.any(values) else f'{values.min():.2g} to {values.max():.2g}'}"


def _caption() -> str:
    return (
        "Test inputs of the first trial at their ensemble-averaged mean, coloured by the risk, bright is high; shaded: where the "
        "training inputs lie."
    )
