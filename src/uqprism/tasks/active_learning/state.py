"""Where a loop stands after a round."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from uqprism.families.quadrature import Exactness
from uqprism.measures import MeasureTable
from uqprism.support.storage import read_npz, write_npz

FORMAT = "uqprism.LearningState"
COLUMN = "measure:"  # before the names of measures in a file


@dataclass(frozen=True, eq=False, repr=False)
class LearningState:
    """One round: a model was trained on the labelled points, looked at the rest of the pool, and a batch was picked.

    `str(state)` is one line.

    Attributes:
        round: from 0.
        labelled: indices that the model was trained on: the initial ones, then picks in the order picked.
        pool: indices of the rest, sorted.
        scores: what the acquisition says about each point of the pool, the higher the sooner to be picked; zeros for `random`.
        measures: the acquisition's measure and those asked for besides, over the pool.
        picked: the indices picked at the end of the round, in the order picked; the next round is trained on them too.
        metrics: `nll`, `rmse` and `crps` of the mixture on the test set; empty without one. A distribution without a density,
            such as samples, has no `nll`.
    """

    round: int
    labelled: np.ndarray
    pool: np.ndarray
    scores: np.ndarray
    measures: MeasureTable
    picked: np.ndarray
    metrics: Mapping[str, float]

    @property
    def all_labelled(self) -> np.ndarray:
        """The labelled indices with those picked: what the next round is trained on."""
        return np.concatenate([self.labelled, self.picked])

    def __str__(self) -> str:
        numbers = [f"{name} {value:.4g}" for name, value in self.metrics.items()]
        return ", ".join([f"round {self.round}: {len(self.labelled)} labelled", *numbers])

    def __repr__(self) -> str:
        return f"<LearningState: {self}>"

    def without_pool(self) -> LearningState:
        """The same without what it says of each point of the pool: what a loop needs to go on, in a thousandth of the space."""
        return replace(self, pool=self.pool[:0], scores=self.scores[:0], measures=MeasureTable({}, {}))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header, whole or not at all; read it back with `load`."""
        exactness = {name: list(how) for name, how in self.measures.exactness.items()}
        header = {"round": self.round, "metrics": dict(self.metrics), "exactness": exactness}
        arrays = {name: getattr(self, name) for name in ("labelled", "pool", "scores", "picked")}
        write_npz(path, FORMAT, header, arrays | {COLUMN + name: column for name, column in self.measures.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LearningState:
        """Read what `save` wrote."""
        header, arrays = read_npz(path, FORMAT)
        exactness = {name: Exactness(*how) for name, how in header["exactness"].items()}
        measures = MeasureTable({name: arrays.pop(COLUMN + name) for name in exactness}, exactness)
        return cls(round=header["round"], metrics=header["metrics"], measures=measures, **arrays)
