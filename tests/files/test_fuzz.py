"""Damaged files give the numbers that they hold, or one error: a few hundred of each format, always the same."""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.attack import mutants

import uqprism as up
from uqprism.errors import BadFileError, UqprismError
from uqprism.files import score

SUFFIXES = {"parquet": ".parquet", "parquet plain": ".parquet", "csv": ".csv", "npz": ".npz", "npz compressed": ".npz"}


@pytest.mark.parametrize("kind", SUFFIXES)
def test_a_damaged_file_is_read_as_it_is_or_refused(tmp_path: Path, kind: str) -> None:
    whole, path, out = mutants.original(kind), tmp_path / f"in{SUFFIXES[kind]}", tmp_path / "out.parquet"
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    accepted, problems = 0, list[str]()
    for i, data in enumerate([whole, *mutants.mutants(kind, whole, rng, 200)]):
        path.write_bytes(data)
        try:
            score(path, out, measures=[mutants.MEASURE], on_bad="null", keep_members=True, overwrite=True)
        except UqprismError as error:
            problems.append(str(error))
            continue
        table = pq.read_table(out)
        found = {name: np.asarray(table.column(name).to_pylist(), float) for name in table.column_names if name != "y"}
        assert mutants.is_right(path, found), f"mutant {i}"
        accepted += 1
    assert accepted > 1
    assert not any("\n" in problem or len(problem) > 1000 for problem in problems)


def _saved() -> dict[str, Any]:
    """One of each kind of object that has `save` and `load`, by its class."""
    ensemble = up.EnsemblePrediction.laplace(location=np.arange(6.0).reshape(2, 3), scale=np.ones((2, 3)), weights=[0.5, 0.5])
    table = up.evaluate(ensemble, ["crps.excess.members.members", "crps.bayes.members"])
    evidence = up.EvidentialPrediction(gamma=np.zeros(3), nu=np.ones(3), alpha=np.full(3, 2.0), beta=np.ones(3))
    result = up.selective_prediction(table, error=np.array([1.0, 2.0, 4.0]), resamples=5)
    return {type(each).__name__: each for each in (ensemble, table, evidence, result, up.rank_correlation(table))}


@pytest.mark.parametrize("name", ["EnsemblePrediction", "MeasureTable", "EvidentialPrediction", "TaskResult", "RankCorrelation"])
def test_a_damaged_object_is_loaded_as_it_is_or_refused(tmp_path: Path, name: str) -> None:
    saved, path = _saved()[name], tmp_path / "in.npz"
    saved.save(path)
    whole, rng, accepted = path.read_bytes(), np.random.default_rng(zlib.crc32(name.encode())), 0
    for data in mutants.mutants("npz", whole, rng, 150):
        path.write_bytes(data)
        with contextlib.suppress(BadFileError):
            str(type(saved).load(path))
            accepted += 1
    assert accepted
