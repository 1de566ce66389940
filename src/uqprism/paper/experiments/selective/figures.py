"""Retention curves like the paper's, and every cell beside the paper's; drawn from a result and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.base import Picture, Result
from uqprism.paper.cell_figures import against_paper
from uqprism.paper.cells import RULES, column, short_label
from uqprism.plots.style import BLUE, GREEN, ORANGE, PURPLE, RED, new_figure, styled

SHOWN = {"total 1,1": BLUE, "bayes 1": GREEN, "bayes 3a": PURPLE, "excess 1,1": ORANGE, "excess 3a,2": RED}
FROM = 50  # per cent: retentions from 0.5 to 1, as in the paper
LIKE_PAPER = "street"


def pictures(result: Result) -> dict[str, Picture]:
    """By file name."""
    arrays = result.arrays
    rows, measures = [list(map(str, arrays[name])) for name in ("rows", "measures")]
    means = {row: dict(zip(measures, arrays[f"{row}_prr"].mean(axis=0).tolist(), strict=True)) for row in rows}
    papers = {row: published.table("selective_prediction_full", row) for row in rows}
    return {
        "retention": _retention(arrays, measures, LIKE_PAPER if LIKE_PAPER in rows else rows[0]),
        "cells": Picture(
            against_paper(means, papers, "PRR"),
            "Every cell of the paper's table beside ours, like with like: R_exc^{2,1} as the paper prints it.",
        ),
    }


def _retention(arrays: Any, measures: list[str], row: str) -> Picture:
    """A panel per rule."""
    kept = 100.0 * arrays[f"{row}_retention"]
    shown = kept >= FROM
    prr, curves = arrays[f"{row}_prr"][0], arrays[f"{row}_curves"]
    with styled():
        figure, axes = new_figure(5.2, nrows=2, ncols=2, sharex=True, sharey=True)
        for ax, rule in zip(axes.flat, RULES, strict=True):
            for name, colour in SHOWN.items():
                at = measures.index(column(rule, name))
                if np.ptp(curves[at]) <= 1e-9 * abs(curves[at][0]):
                    continue  # a measure that is constant
                label = f"{short_label(measures[at])}  {prr[at]:.3f}"
                ax.plot(kept[shown], curves[at][shown], color=colour, linewidth=1.2, label=label)
            ax.plot(kept[shown], arrays[f"{row}_oracle"][shown], color="black", linewidth=1.0)
            ax.plot(kept[shown], arrays[f"{row}_random"][shown], color="black", linewidth=1.0, linestyle=(0, (5, 3)))
            ax.set_title(RULES[rule])
            ax.legend(title="PRR", loc="upper left", fontsize=6.5, title_fontsize=6.5, ncols=2, alignment="left")
        axes[0, 0].set_ylim(top=1.45 * arrays[f"{row}_random"][shown].max())  # room for the legend above all curves
        for ax in axes[1]:
            ax.set_xlabel("points kept, the most certain first (%)")
        for ax in axes[:, 0]:
            ax.set_ylabel("mean squared error")
    caption = (
        f"Retention curves of {row}, first seed, with PRR: the mean squared error of the points kept. Black: the oracle, which "
        "hands on the largest errors first; dashed: a random order."
    )
    return Picture(figure, caption)
