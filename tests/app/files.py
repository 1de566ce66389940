"""Files to drop on the page, good and bad, and what is true of the good one."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

import uqprism as up
from uqprism.app.inputs import Upload

ROWS, MEMBERS = 200, 4


@dataclass(frozen=True)
class Table:
    """Predictions of a few members as arrays, (members, rows), with what happened, (rows,)."""

    mean: np.ndarray
    variance: np.ndarray
    target: np.ndarray

    @classmethod
    def drawn(cls, rows: int = ROWS) -> Table:
        rng = np.random.default_rng(3)
        mean = rng.normal(size=rows) + np.exp(rng.normal(size=rows)) * rng.normal(size=(MEMBERS, rows))
        variance = np.exp(rng.normal(size=rows) + 0.1 * rng.normal(size=(MEMBERS, rows)))
        return cls(mean, variance, mean.mean(axis=0) + np.sqrt(variance[0]) * rng.normal(size=rows))

    @property
    def ensemble(self) -> up.EnsemblePrediction:
        return up.EnsemblePrediction.gaussian(mean=self.mean, variance=self.variance)

    def csv(self, **changed: list[object]) -> bytes:
        """As a file, with identifiers that lose their zeros if read as numbers; `changed` replaces or adds columns."""
        columns: dict[str, list[object]] = {"id": [f"{i:04d}" for i in range(len(self.target))], "y": list(self.target)}
        columns |= {f"mean_{i}": list(row) for i, row in enumerate(self.mean)}
        columns |= {f"variance_{i}": list(row) for i, row in enumerate(self.variance)}
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns | changed)
        writer.writerows(zip(*(columns | changed).values(), strict=True))
        return text.getvalue().encode()

    def upload(self, **changed: list[object]) -> Upload:
        return Upload("mine.csv", self.csv(**changed))

    def with_bad_variance(self, row: int) -> Upload:
        """The same file with a variance that cannot be."""
        variance: list[object] = list(self.variance[1])
        variance[row] = -1.0
        return self.upload(variance_1=variance)


TABLE = Table.drawn()
RENAMED = Upload("mine.csv", TABLE.csv().replace(b"mean_", b"mu").replace(b"variance_", b"v"))
WEIGHTS = (0.1, 0.2, 0.3, 0.4)
WEIGHTED = up.EnsemblePrediction.gaussian(mean=TABLE.mean, variance=TABLE.variance, weights=WEIGHTS)
BAD = {
    "an unknown ending": Upload("notes.txt", b"hello"),
    "nothing in it": Upload("mine.csv", b""),
    "no members": Upload("mine.csv", b"a,b\n1,2\n"),
    "a member without a variance": Upload("mine.csv", b"mean_0,mean_1,variance_0\n1,2,3\n"),
    "both variances and scales": Upload("mine.csv", b"mean_0,variance_0,scale_0\n1,2,3\n"),
    "text among numbers": Upload("mine.csv", b"mean_0,variance_0\n1,x\n"),
    "a bad row": TABLE.with_bad_variance(17),
    "a measure's name": TABLE.upload(**{"crps.bayes.members": [0.0] * ROWS}),
    "no Parquet file": Upload("mine.parquet", b"not Parquet"),
    "no NPZ file": Upload("mine.npz", b"not NPZ"),
}
