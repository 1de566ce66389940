"""Our numbers beside the numbers in the paper's tables: cells over seeds, agreement, tables and a scatter plot.

The paper's numbers are in `uqprism.measures.published`, which explains the order of the indices and the column `excess 2,1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.measures import Measure, published
from uqprism.plots.style import RISK_COLOURS, new_figure, styled

RULES = dict(zip(published.RULES.values(), published.RULES, strict=True))  # our names to the paper's
NEAR = 0.03  # a cell that is as near as this to the paper's counts as reproduced
AS_PRINTED = "R_exc^{2,1} as printed"
CONSTANT = (
    "R_exc^{3a,2} and R_exc^{3b,2} under the squared error, blank in the paper, are zero for every input: mixture, matched and "
    "pooled Gaussian have one mean."
)
LIKE_WITH_LIKE = "Every cell of the paper's table beside ours, like with like: R_exc^{2,1} as the paper prints it."


@dataclass(frozen=True)
class Cells:
    """One row of a table: a number for each measure.

    Attributes:
        value: the mean over seeds.
        spread: the standard deviation over seeds; NaN for one seed.
    """

    value: Mapping[str, float]
    spread: Mapping[str, float]

    @classmethod
    def over_seeds(cls, runs: Sequence[Mapping[str, float]]) -> Cells:
        """Mean and standard deviation of a row that was measured once for each seed."""
        columns = {name: np.array([run[name] for run in runs]) for name in runs[0]}
        spread = {name: float(x.std(ddof=1)) if len(x) > 1 else math.nan for name, x in columns.items()}
        return cls({name: float(x.mean()) for name, x in columns.items()}, spread)

    @classmethod
    def average(cls, rows: Iterable[Cells]) -> Cells:
        """The mean of rows with independent seeds."""
        found = list(rows)
        names = found[0].value
        # Variances of independent numbers add.
        spread = {name: math.sqrt(sum(row.spread[name] ** 2 for row in found)) / len(found) for name in names}
        return cls({name: float(np.mean([row.value[name] for row in found])) for name in names}, spread)

    def __getitem__(self, measure: str) -> float:
        return self.value[measure]


@dataclass(frozen=True)
class Agreement:
    """How well two sets of numbers agree, over the measures that both have.

    Attributes:
        n_measures: the number of these measures.
        spearman: rank correlation.
        mean_absolute_difference: in the unit of the numbers.
        largest_difference: in the unit of the numbers.
    """

    n_measures: int
    spearman: float
    mean_absolute_difference: float
    largest_difference: float

    def __str__(self) -> str:
        return (
            f"Spearman correlation {self.spearman:.3f}, mean absolute difference {self.mean_absolute_difference:.3g} (largest "
            f"{self.largest_difference:.3g}), over {self.n_measures} measures"
        )


def agreement(ours: Mapping[str, float], papers: Mapping[str, published.Cell]) -> Agreement:
    """How well our numbers agree with the paper's; each cell is compared with the measure whose number it shows."""
    from scipy.stats import spearmanr

    names = [name for name in papers if name in ours and published.printed_as(name) in ours]
    if len(names) < 2:
        raise ArgumentError(f"an agreement needs at least two measures that both have, got {len(names)}")
    pairs = np.array([(ours[published.printed_as(name)], papers[name].value) for name in names])
    differences = np.abs(pairs[:, 0] - pairs[:, 1])
    return Agreement(
        n_measures=len(names),
        spearman=float(spearmanr(*pairs.T).statistic),
        mean_absolute_difference=float(differences.mean()),
        largest_difference=float(differences.max()),
    )


def agreements(ours: Mapping[str, Cells], papers: Mapping[str, Mapping[str, published.Cell]]) -> dict[str, Agreement]:
    """The agreement of each row with the paper's row of the same name."""
    return {name: agreement(ours[name].value, cells) for name, cells in papers.items()}


def comparison(ours: Mapping[str, float], papers: Mapping[str, published.Cell]) -> list[dict[str, Any]]:
    """Our numbers beside the paper's, a row per measure: by definition, and as the paper printed them.

    A measure whose cell is blank in the paper has a row too, with None for the paper's number.
    """
    names = [name for name in (*(measure.name for measure in published.measures()), published.BASELINE) if name in ours]
    return [_compared(name, float(ours[name]), ours.get(published.printed_as(name)), papers.get(name)) for name in names]


def _compared(name: str, ours: float, printed: float | None, papers: published.Cell | None) -> dict[str, Any]:
    difference = None if printed is None or papers is None else float(printed) - papers.value
    return {
        "measure": name,
        "label": published.label(name),
        "ours": ours,
        "ours, as printed": None if printed is None else float(printed),
        "paper": None if papers is None else papers.value,
        "spread": None if papers is None else papers.spread,
        "difference": difference,
    }


def beside(ours: Cells, papers: Mapping[str, published.Cell]) -> list[dict[str, Any]]:
    """`comparison` with our spread in place of the paper's."""
    rows = comparison(ours.value, papers)
    return [{**{k: v for k, v in row.items() if k != "spread"}, "our spread": ours.spread[row["measure"]]} for row in rows]


def wide(name: str, ours: Cells, papers: Mapping[str, published.Cell]) -> list[dict[str, Any]]:
    """The layout of the paper: a column per measure, and for each rule a row of our numbers, our spreads and the paper's."""
    rows = []
    for rule in RULES:
        measures = [each.name for each in published.measures((rule,))]
        printed = {each: cell.value for each, cell in papers.items()}
        for whose, numbers in (("ours", ours.value), ("spread", ours.spread), ("paper", printed)):
            labelled = {published.label(each): numbers.get(each) for each in measures}
            # The paper prints 1,1 in its column 2,1, which is compared with our 1,1; see `slip`.
            twice, once = (column(rule, f"excess {indices}") for indices in ("2,1", "1,1"))
            labelled[AS_PRINTED] = numbers.get(twice if whose == "paper" else once)
            if whose == "paper":
                labelled[published.label(twice)] = None
            rows.append({"data": name, "rule": rule, "numbers": whose, **labelled})
    return rows


def column(rule: str, name: str) -> str:
    """The measure in this row and column of the paper's tables, whose indices are (truth, prediction): `crps`, `excess 3a,2`."""
    return published.measure_of(RULES[rule], name)


def short_label(measure: str) -> str:
    """The paper's label without letters and brackets, for pictures: `exc 3a,1`."""
    return published.label(measure).removeprefix("R_").replace("^{", " ").removesuffix("}")


def of_risk(risk: str, rules: Iterable[str] = tuple(RULES), *, filled: bool = True) -> list[str]:
    """The measures of a risk that have a column; by default only those whose cell is filled in the paper."""
    known = published.table("ood_detection_mean")  # all tables leave the same cells blank
    return [each.name for each in published.measures(tuple(rules)) if each.risk == risk and (each.name in known or not filled)]


def listed(values: Mapping[str, float], sign: str = "") -> str:
    """Numbers with their names, to three digits: `0.504 (crps), 0.497 (log)`; with the sign `+` positive ones have a sign."""
    return ", ".join(f"{value:{sign}.3f} ({name})" for name, value in values.items())


def slip(metric: str) -> str:
    """A note on the column of the paper's tables that shows another measure."""
    return (
        "The paper prints R_exc^{2,1} equal to R_exc^{1,1} for every rule. By definition it is half of it under CRPS, squared "
        f"error and the quadratic score, which changes no {metric}; under the log score it is another measure. Our column "
        "R_exc^{2,1} is by definition; 'as printed' is R_exc^{1,1}, and that is what the paper's numbers are compared with."
    )


def against_paper(
    ours: Mapping[str, Mapping[str, float]],
    papers: Mapping[str, Mapping[str, published.Cell]],
    metric: str,
    *,
    n_columns: int = 4,
) -> Any:
    """A figure with a panel for each row: the paper's numbers across, ours up, coloured by risk."""
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
