"""AUROC by set, and every cell beside the paper's; drawn from a result and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.base import Picture, Result
from uqprism.paper.cell_figures import against_paper
from uqprism.paper.cells import RULES, column, short_label
from uqprism.plots.style import RISK_COLOURS, new_figure, styled

SHOWN = dict(zip(("total 1,1", "bayes 1", "excess 1,1"), RISK_COLOURS.values(), strict=True))


def pictures(result: Result) -> dict[str, Picture]:
    """By file name."""
    arrays = result.arrays
    rows, measures = [list(map(str, arrays[name])) for name in ("rows", "measures")]
    values = {row: dict(zip(measures, arrays["auroc"][:, i].T, strict=True)) for i, row in enumerate(rows)}
    papers = {row: published.table("ood_detection_full", row) for row in rows if row in published.rows("ood_detection_full")}
    found = {"by_set": _by_set(values, papers)}
    if papers:
        means = {row: {name: float(x.mean()) for name, x in each.items()} for row, each in values.items()}
        found["cells"] = Picture(
            against_paper(means, papers, "AUROC"),
            "Every cell of the paper's table beside ours, like with like: R_exc^{2,1} as the paper prints it.",
        )
    return found


def _by_set(values: dict[str, dict[str, Any]], papers: dict[str, published.Table]) -> Picture:
    """A panel per rule: a dot for each seed, a ring for the paper."""
    rows = list(values)
    with styled():
        figure, axes = new_figure(4.8, nrows=2, ncols=2, sharex=True, sharey=True)
        for ax, rule in zip(axes.flat, RULES, strict=True):
            for shift, (name, colour) in zip((-0.2, 0.0, 0.2), SHOWN.items(), strict=True):
                measure = column(rule, name)
                for i, row in enumerate(rows):
                    seeds = values[row][measure]
                    ax.plot(np.full(len(seeds), i + shift), seeds, "o", color=colour, markersize=2.5, alpha=0.7)
                    if row in papers:
                        ax.plot(i + shift, papers[row][measure].value, "_", color="black", markersize=9)
                ax.plot([], [], "o", color=colour, markersize=4, label=short_label(measure))
            ax.axhline(0.5, color="black", linewidth=0.6, linestyle=(0, (4, 3)))
            ax.set(title=RULES[rule], ylabel="AUROC")
            ax.set_xticks(range(len(rows)), rows, rotation=40, ha="right", fontsize=7)
        if papers:
            axes[0, 0].plot([], [], "_", color="black", markersize=9, label="paper")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    caption = "AUROC by kind of outliers: a dot for each seed"
    return Picture(figure, f"{caption}, a bar for the paper's mean." if papers else f"{caption}; dashed: chance.")
