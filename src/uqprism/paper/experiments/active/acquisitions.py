"""Which loops have to be run: measures that are the same number for every ensemble pick the same points, and share one."""

from __future__ import annotations

from functools import cache

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.evaluation import evaluate
from uqprism.measures import MeasureTable, published

TABLE = "active_learning_rank"
RANDOM = published.BASELINE


@cache
def columns() -> tuple[str, ...]:
    """All measures that have a column in the paper, 16 for each rule, also where the cell is blank."""
    return tuple(measure.name for measure in published.measures())


def filled() -> tuple[str, ...]:
    """The measures whose own numbers the paper prints."""
    return tuple(name for name in published.table(TABLE) if name != RANDOM and published.printed_as(name) == name)


@cache
def loop_of(measure: str) -> str:
    """The loop that this measure is the acquisition of: the first column that equals it, or `random` if it is always zero.

    Softmax of zeros draws all points with the same chance, by the same random numbers as `random` does.
    """
    return _loops()[measure]


@cache
def _loops() -> dict[str, str]:
    """By their values at a few ensembles: numbers that agree there to nine digits are one formula."""
    rng = np.random.default_rng(0)
    ensemble = EnsemblePrediction.gaussian(mean=rng.normal(size=(5, 8)), variance=rng.uniform(0.2, 2.0, size=(5, 8)))
    table = evaluate(ensemble, list(columns()), backend="reference")
    found: dict[str, str] = {RANDOM: RANDOM}
    for name in columns():
        values = table[name]
        if np.allclose(values, 0.0, atol=1e-9):
            found[name] = RANDOM
        else:
            found[name] = next((each for each in dict.fromkeys(found.values()) if _equal(table, each, values)), name)
    return found


def _equal(table: MeasureTable, loop: str, values: np.ndarray) -> bool:
    return loop != RANDOM and np.allclose(table[loop], values, rtol=1e-6, atol=1e-9)


def printed(measures: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The loops behind the numbers that the paper prints for these measures, by default all, and `random`, which comes last."""
    cells = [name for name in published.table(TABLE) if name != RANDOM and (not measures or name in measures)]
    return (*dict.fromkeys(loop_of(published.printed_as(name)) for name in cells), RANDOM)


def not_printed(measures: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The loops of cells that the paper leaves blank, or prints the numbers of another measure in."""
    needed = dict.fromkeys(loop_of(name) for name in measures or columns())
    return tuple(name for name in needed if name not in printed(measures))
