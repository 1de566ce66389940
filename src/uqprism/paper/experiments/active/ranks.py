"""Which loops are run, and their average ranks over data sets and seeds.

Measures that are the same number for every ensemble pick the same points and share one loop (`loop_of`).

A run is one data set with one seed. Its loops are ranked by their test error: 1 for the lowest, ties averaged. The loops behind
the paper's printed numbers are ranked among each other, so that its table and ours have one scale. Any other loop gets the rank
that it would have if it were added to these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.evaluation import evaluate
from uqprism.measures import MeasureTable, published

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Learned:
    """Test errors of all loops; the axes of arrays start with (data sets, loops, seeds).

    Attributes:
        datasets: names of the data sets.
        loops: acquisitions; those behind the paper's numbers first.
        n_printed: number of loops behind the paper's numbers.
        nll: with a last axis of models, from the first to the last.
        crps, rmse: means over models.
        share: part of the pool that a softmax of the scores effectively chooses from.
    """

    datasets: tuple[str, ...]
    loops: tuple[str, ...]
    n_printed: int
    nll: Array
    crps: Array
    rmse: Array
    share: Array

    @property
    def cells(self) -> dict[str, str]:
        """The loop behind each number that the paper prints, by measure, `random` included."""
        found = {name: loop_of(published.printed_as(name)) for name in (*published.table(TABLE),)}
        return {name: loop for name, loop in found.items() if loop in self.loops[: self.n_printed]}

    def at(self, loop: str) -> int:
        """The index of a loop in the arrays."""
        return self.loops.index(loop)


# Errors to rank loops by: one number for each loop and run.
# Several, because a few large errors decide the mean: see docs/results/active.md.
ERRORS: Mapping[str, Callable[[Learned], Array]] = {
    "mean NLL over models, as in the paper": lambda learned: learned.nll.mean(axis=-1),
    "median NLL over models": lambda learned: np.median(learned.nll, axis=-1),
    "NLL of the last model": lambda learned: learned.nll[..., -1],
    "mean CRPS over models": lambda learned: learned.crps,
    "mean RMSE over models": lambda learned: learned.rmse,
}
MAIN = next(iter(ERRORS))


@dataclass(frozen=True)
class LoopRanks:
    """Average ranks of all loops, by name.

    Attributes:
        mean: over data sets and seeds.
        spread: standard deviation between seeds of the mean over data sets.
        of_seeds: mean over data sets, (seeds,).
    """

    mean: Mapping[str, float]
    spread: Mapping[str, float]
    of_seeds: Mapping[str, Array]

    def cell(self, measure: str) -> float:
        """The average rank of a measure, by its definition."""
        return self.mean[loop_of(measure)]

    @property
    def by_definition(self) -> dict[str, float]:
        """The average ranks of `random` and of all measures that have a column in the paper and a loop here."""
        return {name: self.cell(name) for name in (*columns(), RANDOM) if loop_of(name) in self.mean}


def ranked(learned: Learned, by: str = MAIN) -> LoopRanks:
    """The average ranks by one of `ERRORS`."""
    errors = ERRORS[by](learned)  # (data sets, loops, seeds)
    others = errors[:, : learned.n_printed]
    places = []
    for i in range(len(learned.loops)):
        rivals = np.delete(others, i, axis=1) if i < learned.n_printed else others
        places.append(_place(errors[:, i], rivals))
    of_seeds = dict(zip(learned.loops, (place.mean(axis=0) for place in places), strict=True))
    n_seeds = errors.shape[-1]
    return LoopRanks(
        mean={name: float(ranks.mean()) for name, ranks in of_seeds.items()},
        spread={name: float(ranks.std(ddof=1)) if n_seeds > 1 else float("nan") for name, ranks in of_seeds.items()},
        of_seeds=of_seeds,
    )


def _place(error: Array, others: Array) -> Array:
    """The rank of an error (data sets, seeds) among others (data sets, loops, seeds)."""
    own = error[:, None]
    return 1.0 + (others < own).sum(axis=1) + 0.5 * (others == own).sum(axis=1)


def runs_won(learned: Learned) -> dict[str, float]:
    """The part of the runs in which each loop's mean NLL is below that of `random`; ties count half."""
    errors = ERRORS[MAIN](learned)
    chance = errors[:, [learned.at(RANDOM)]]
    won = (errors < chance) + 0.5 * (errors == chance)
    return dict(zip(learned.loops, won.mean(axis=(0, 2)).tolist(), strict=True))


def repeatability(ranks: LoopRanks, loops: Sequence[str]) -> float:
    """Spearman correlation of one seed's ranks with the average of the others', averaged over seeds; NaN with one seed."""
    from scipy.stats import spearmanr

    table = np.array([ranks.of_seeds[name] for name in loops])
    if table.shape[1] < 2:
        return float("nan")
    found = [spearmanr(table[:, i], np.delete(table, i, axis=1).mean(axis=1)).statistic for i in range(table.shape[1])]
    return float(np.mean(found))


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
    """The loop of this measure: that of the first column that equals it, or `random` if it is always zero.

    A softmax of zeros draws all points with equal probability, with the same random numbers as `random`.
    """
    return _loops()[measure]


@cache
def _loops() -> dict[str, str]:
    """The loop of each measure; measures that agree on a random ensemble are taken to be one formula."""
    rng = np.random.default_rng(0)
    ensemble = EnsemblePrediction.gaussian(mean=rng.normal(size=(5, 8)), variance=rng.uniform(0.2, 2.0, size=(5, 8)))
    # One backend on every machine, because the loops are in the keys of the jobs.
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
    """The loops behind the numbers that the paper prints for these measures (by default all), and `random` last."""
    cells = [name for name in published.table(TABLE) if name != RANDOM and (not measures or name in measures)]
    return (*dict.fromkeys(loop_of(published.printed_as(name)) for name in cells), RANDOM)


def not_printed(measures: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The loops of cells that the paper leaves blank, or fills with the numbers of another measure."""
    needed = dict.fromkeys(loop_of(name) for name in measures or columns())
    return tuple(name for name in needed if name not in printed(measures))
