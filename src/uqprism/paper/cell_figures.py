"""All cells of a table beside the paper's, as a scatter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqprism.measures import Measure, published
from uqprism.plots.style import RISK_COLOURS, new_figure, styled


def against_paper(
    ours: Mapping[str, Mapping[str, float]],
    papers: Mapping[str, Mapping[str, published.Cell]],
    metric: str,
    *,
    n_columns: int = 4,
) -> Any:
    """A figure with a panel for each row: the paper's number across, ours up, like with like; coloured by risk."""
    n_rows = -(-len(papers) // n_columns)
    with styled():
        figure, axes = new_figure(1.9 * n_rows + 0.5, nrows=n_rows, ncols=min(n_columns, len(papers)), squeeze=False)
        for ax, (row, cells) in zip(axes.flat, papers.items(), strict=False):
            for risk, colour in RISK_COLOURS.items():
                names = [name for name in cells if name != published.BASELINE and Measure.parse(name).risk == risk]
                pairs = np.array([(cells[name].value, ours[row][published.printed_as(name)]) for name in names])
                label = "Bayes risk" if risk == "bayes" else f"{risk} risk"
                ax.plot(*pairs.T, "o", color=colour, markersize=2.5, alpha=0.8, label=label)
            ends = [cell.value for cell in cells.values()]
            ax.plot([min(ends), max(ends)], [min(ends), max(ends)], color="black", linewidth=0.6, linestyle=(0, (4, 3)))
            ax.set_title(row, fontsize=8)
            ax.tick_params(labelsize=7)
        for ax in axes.flat[len(papers) :]:
            ax.set_visible(False)
        figure.supxlabel(f"{metric}, paper", fontsize=8)
        figure.supylabel(f"{metric}, ours", fontsize=8)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
