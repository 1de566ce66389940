"""Small tables of ensembles, and their measures computed in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

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


def assert_scored(result: pa.Table, given: pa.Table, measures: list[str] | None = None, weights: object = None) -> None:
    """Every measure equals that of `evaluate` in memory, up to rounding."""
    wanted = expected(given, measures, weights)
    assert result.column_names[-len(wanted) :] == list(wanted)
    for name, values in wanted.items():
        found = result.column(name).to_numpy()
        assert found.dtype == values.dtype
        np.testing.assert_allclose(found, values, rtol=1e-12 if values.dtype == np.float64 else 1e-6, err_msg=name)


def write_table(given: pa.Table, path: Path, **options: object) -> Path:
    """Write a table in the format of the suffix; `options` are those of Parquet. NPZ gets the numbers, members as matrices."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(given, path)
    elif path.suffix == ".npz":
        arrays = {name: given.column(name).to_numpy() for name in given.column_names}
        arrays = {name: values for name, values in arrays.items() if values.dtype != object}
        for kind in ("mean", "variance", "scale"):
            rows = [arrays.pop(name) for name in list(arrays) if name.startswith(f"{kind}_")]
            arrays |= {kind: np.stack(rows)} if rows else {}
        np.savez(path, **arrays)
    else:
        pq.write_table(given, path, **options)
    return path


def read_table(path: Path) -> pa.Table:
    if path.suffix == ".csv":
        return pyarrow.csv.read_csv(path)
    if path.suffix == ".npz":
        with np.load(path) as file:
            return pa.table(dict(file))
    return pq.read_table(path)


def refused(error: type[Exception], message: str, *arguments: object, **options: object) -> None:
    """Scoring these is refused with this message."""
    with pytest.raises(error, match=message):
        files.score(*arguments, **options)


def score_table(folder: Path, given: pa.Table, **options: object) -> pa.Table:
    """The table that `score` makes of this one."""
    files.score(write_table(given, folder / "in.parquet"), folder / "out.parquet", **options)
    return read_table(folder / "out.parquet")
