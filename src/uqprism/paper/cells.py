"""Tables like the paper's: a number for each measure in each row, over seeds, beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.agreement import Agreement, agreement, comparison

RULES = dict(zip(published.RULES.values(), published.RULES, strict=True))  # our names to the paper's
NEAR = 0.03  # a cell that is as near as this to the paper's counts as reproduced
AS_PRINTED = "R_exc^{2,1} as printed"
CONSTANT = (
    "R_exc^{3a,2} and R_exc^{3b,2} under the squared error, blank in the paper, are zero for every input: mixture, matched and "
    "pooled Gaussian have one mean."
)


@dataclass(frozen=True)
class Cells:
    """One row: a number for each measure.

    Attributes:
        value: the mean over seeds.
        spread: the standard deviation over seeds; NaN for one seed.
    """

    value: Mapping[str, float]
    spread: Mapping[str, float]

    @classmethod
    def over_seeds(cls, runs: Sequence[Mapping[str, float]]) -> Cells:
        """Of a row that was measured once for each seed."""
        columns = {name: np.array([run[name] for run in runs]) for name in runs[0]}
        spread = {name: float(x.std(ddof=1)) if len(x) > 1 else math.nan for name, x in columns.items()}
        return cls({name: float(x.mean()) for name, x in columns.items()}, spread)

    @classmethod
    def average(cls, rows: Iterable[Cells]) -> Cells:
        """The mean of rows whose seeds have nothing to do with each other."""
        found = list(rows)
        names = found[0].value
        spread = {name: math.sqrt(sum(row.spread[name] ** 2 for row in found)) / len(found) for name in names}
        return cls({name: float(np.mean([row.value[name] for row in found])) for name in names}, spread)

    def __getitem__(self, measure: str) -> float:
        return self.value[measure]


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


def beside(ours: Cells, papers: Mapping[str, published.Cell]) -> list[dict[str, Any]]:
    """A row per measure: ours, our spread, the paper's, the difference."""
    rows = comparison(ours.value, papers)
    return [{**{k: v for k, v in row.items() if k != "spread"}, "our spread": ours.spread[row["measure"]]} for row in rows]


def wide(name: str, ours: Cells, papers: Mapping[str, published.Cell]) -> list[dict[str, Any]]:
    """As the paper sets it: a row per rule, for ours, for our spread and for the paper's numbers, and a column per measure."""
    rows = []
    for rule in RULES:
        measures = [each.name for each in published.measures((rule,))]
        printed = {each: cell.value for each, cell in papers.items()}
        for whose, numbers in (("ours", ours.value), ("spread", ours.spread), ("paper", printed)):
            labelled = {published.label(each): numbers.get(each) for each in measures}
            twice, once = (column(rule, f"excess {indices}") for indices in ("2,1", "1,1"))
            labelled[AS_PRINTED] = numbers.get(twice if whose == "paper" else once)
            if whose == "paper":
                labelled[published.label(twice)] = None
            rows.append({"data": name, "rule": rule, "numbers": whose, **labelled})
    return rows


def agreements(ours: Mapping[str, Cells], papers: Mapping[str, Mapping[str, published.Cell]]) -> dict[str, Agreement]:
    """How well each row agrees with the paper's of the same name."""
    return {name: agreement(ours[name].value, cells) for name, cells in papers.items()}


def slip(metric: str) -> str:
    """What to know about one column of the paper's tables."""
    return (
        "The paper prints R_exc^{2,1} equal to R_exc^{1,1} for every rule. By definition it is half of it under CRPS, squared "
        f"error and the quadratic score, which changes no {metric}; under the log score it is another measure. Our column "
        "R_exc^{2,1} is by definition; 'as printed' is R_exc^{1,1}, and that is what the paper's numbers are compared with."
    )
