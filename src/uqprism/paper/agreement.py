"""How well our numbers agree with those in the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.measures.published import BASELINE, Cell, label, measures, printed_as


@dataclass(frozen=True)
class Agreement:
    """How well two sets of numbers agree, over the measures that both have.

    Attributes:
        n_measures: how many those are.
        spearman: rank correlation.
        mean_absolute_difference: in the unit of the numbers.
        largest_difference: likewise.
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


def comparison(ours: Mapping[str, float], papers: Mapping[str, Cell]) -> list[dict[str, Any]]:
    """Our numbers beside the paper's, a row per measure: by definition, and as the paper printed them.

    Measures that have a column in the paper but no number there are in it too, with None for the paper's.
    """
    names = [name for name in (*(measure.name for measure in measures()), BASELINE) if name in ours]
    return [_compared(name, float(ours[name]), ours.get(printed_as(name)), papers.get(name)) for name in names]


def _compared(name: str, ours: float, printed: float | None, papers: Cell | None) -> dict[str, Any]:
    difference = None if printed is None or papers is None else float(printed) - papers.value
    return {
        "measure": name,
        "label": label(name),
        "ours": ours,
        "ours, as printed": None if printed is None else float(printed),
        "paper": None if papers is None else papers.value,
        "spread": None if papers is None else papers.spread,
        "difference": difference,
    }


def agreement(ours: Mapping[str, float], papers: Mapping[str, Cell]) -> Agreement:
    """How well our numbers agree with the paper's, like with like: each of its cells with the measure that it shows."""
    from scipy.stats import spearmanr

    names = [name for name in papers if name in ours and printed_as(name) in ours]
    if len(names) < 2:
        raise ArgumentError(f"an agreement needs at least two measures that both have, got {len(names)}")
    pairs = np.array([(ours[printed_as(name)], papers[name].value) for name in names])
    differences = np.abs(pairs[:, 0] - pairs[:, 1])
    return Agreement(
        n_measures=len(names),
        spearman=float(spearmanr(*pairs.T).statistic),
        mean_absolute_difference=float(differences.mean()),
        largest_difference=float(differences.max()),
    )
