"""Small tables of ensembles, and what scoring them must give, computed in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import uqprism as up
from uqprism import files
from uqprism.measures import select_measures

MEMBERS = 3
DEFAULT = [measure.name for measure in select_measures("usual")]
FEW = ["crps.excess.members.members", "squared_error.bayes.members"]


def members(rows: int, seed: int = 0, dtype: str = "float64") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "mean": rng.normal(size=(MEMBERS, rows)).astype(dtype),
        "variance": np.exp(rng.normal(size=(MEMBERS, rows))).astype(dtype),
    }


def columns(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}_{i}": row for name, rows in given.items() for i, row in enumerate(rows)}


def table(rows: int = 50, seed: int = 0, dtype: str = "float64", **others: object) -> pa.Table:
    """A key, other columns if given, and members."""
    return pa.table({"key": np.arange(rows) + 1000 * seed, **others, **columns(members(rows, seed, dtype))})


def ensemble(given: pa.Table | dict[str, np.ndarray], weights: object = None) -> up.EnsemblePrediction:
    if isinstance(given, pa.Table):
        given = {
            name: np.stack([given.column(f"{name}_{i}").to_numpy() for i in range(MEMBERS)]) for name in ("mean", "variance")
        }
    return up.EnsemblePrediction.gaussian(**given, weights=weights)


def expected(given: pa.Table | dict[str, np.ndarray], measures: object = None, weights: object = None) -> up.MeasureTable:
    return up.evaluate(ensemble(given, weights), DEFAULT if measures is None else measures)


def assert_scored(scored: pa.Table, given: pa.Table, measures: list[str] | None = None, weights: object = None) -> None:
    """Every measure equals what evaluating in memory gives, to the last bit but for the order of summation."""
    wanted = expected(given, measures, weights)
    assert scored.column_names[-len(wanted) :] == list(wanted)
    for name, values in wanted.items():
        found = scored.column(name).to_numpy()
        assert found.dtype == values.dtype
        np.testing.assert_allclose(found, values, rtol=1e-12 if values.dtype == np.float64 else 1e-6, err_msg=name)


def scored_parquet(folder: Path, given: pa.Table, **options: object) -> pa.Table:
    """What `score` makes of this table, from Parquet to Parquet."""
    pq.write_table(given, folder / "in.parquet")
    files.score(folder / "in.parquet", folder / "out.parquet", **options)
    return pq.read_table(folder / "out.parquet")
