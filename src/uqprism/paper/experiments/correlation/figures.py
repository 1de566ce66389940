"""The paper's figure, drawn from a result and nothing else."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.base import Picture, Result
from uqprism.paper.cells import RULES, short_label
from uqprism.plots.style import PAGE_WIDTH, matplotlib, styled
from uqprism.tasks.rank_correlation import RankCorrelation

NO_ORDER = "#C0C0C0"
ACROSS = 8
DARK = 0.75  # from here on the colour is too dark for black figures


def pictures(result: Result) -> dict[str, Picture]:
    """One picture."""
    correlation = RankCorrelation(tuple(map(str, result.arrays["measures"])), np.asarray(result.arrays["tau"]))
    caption = (
        "Kendall's tau-b between approximations for each scoring rule (top row) and between scoring rules for each approximation "
        "(below; in the order CRPS, log, squared error, quadratic), averaged over data sets. Indices are (truth, prediction). "
        "Grey: a measure that is constant."
    )
    return {"correlation": Picture(_figure(correlation), caption)}


def _figure(correlation: RankCorrelation) -> Any:
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(PAGE_WIDTH * 1.6, PAGE_WIDTH * 0.95), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.35, 1.0))
        above, below = parts
        image = _approximations(above, correlation)
        _rules(below, correlation)
        bar = figure.colorbar(image, ax=above.axes, shrink=0.8)
        bar.set_label("Kendall's tau-b")
    return figure


def _approximations(figure: Any, correlation: RankCorrelation) -> Any:
    for ax, rule in zip(figure.subplots(1, len(RULES)), RULES, strict=True):
        names = [measure.name for measure in published.measures((rule,))]
        image = _heat_map(ax, correlation, names)
        labels = list(map(short_label, names))
        ax.set_xticks(range(len(names)), labels, rotation=90, fontsize=5.5)
        ax.set_yticks(range(len(names)), labels if rule == next(iter(RULES)) else [""] * len(names), fontsize=5.5)
        ax.set_title(RULES[rule])
    return image


def _rules(figure: Any, correlation: RankCorrelation) -> None:
    measures = published.measures(("crps",))
    letters = [name[0] for name in RULES.values()]
    for ax, measure in zip(figure.subplots(-(-len(measures) // ACROSS), ACROSS).flat, measures, strict=True):
        names = [measure.name.replace("crps", rule, 1) for rule in RULES]
        _heat_map(ax, correlation, names)
        for place, row in combinations(range(len(names)), 2):  # below the diagonal
            tau = correlation[names[row], names[place]]
            if not np.isnan(tau):
                colour = "white" if abs(tau) > DARK else "black"
                ax.text(place, row, f"{tau:.2f}", ha="center", va="center", fontsize=4.8, color=colour)
        ax.set_xticks(range(len(names)), letters, fontsize=6)
        ax.set_yticks(range(len(names)), letters, fontsize=6)
        ax.set_title(short_label(measure.name), fontsize=8)


def _heat_map(ax: Any, correlation: RankCorrelation, names: list[str]) -> Any:
    colours = matplotlib.colormaps["RdBu"].with_extremes(bad=NO_ORDER)
    values = np.ma.masked_invalid(correlation.select(names).matrix)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax.imshow(values, cmap=colours, vmin=-1.0, vmax=1.0, interpolation="nearest")
