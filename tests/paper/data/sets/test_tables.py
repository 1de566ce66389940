"""Tables are loaded from official archives and from compact files, with the targets that the paper's experiments predict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper import data
from uqprism.paper.data.sets.tables import SOURCES

N = 50
RUNS = [f"Run{i} (ms)" for i in range(1, 5)]
SGEMM = ["MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "KWI", "VWM", "VWN", "STRM", "STRN", "SA", "SB"]


def rows(dataset: data.Dataset) -> np.ndarray:
    """All rows of all parts, inputs then target, in the order of the first input."""
    parts = (dataset.train, dataset.validation, dataset.test)
    together = np.concatenate([np.column_stack([part.inputs, part.targets]) for part in parts])
    return together[np.argsort(together[:, 0])]


def numbered(rng: np.random.Generator, columns: int) -> np.ndarray:
    """Positive numbers whose first column is in order."""
    values = rng.uniform(1.0, 9.0, (N, columns)).round(12)  # as many digits as openpyxl writes
    values[:, 0] = np.sort(values[:, 0])
    return values


CASP = ["RMSD", *(f"F{i}" for i in range(1, 10))]
NEWS = ["url", " timedelta", " n_tokens_title", " n_tokens_content", " shares"]


def ccpp(values: np.ndarray) -> bytes:
    book = files.xlsx([["AT", "V", "AP", "RH", "PE"], *values.tolist()])
    return files.zipped({"CCPP/Folds5x2_pp.xlsx": book, "CCPP/Folds5x2_pp.ods": b"", "CCPP/Readme.txt": b""})


def casp(values: np.ndarray) -> bytes:
    return files.zipped({"CASP.csv": files.csv(np.roll(values, 1, axis=1), CASP)})


def blog(values: np.ndarray) -> bytes:
    return files.zipped({"blogData_train.csv": files.csv(values), "blogData_test-2012.02.01.00_00.csv": files.csv(values[:3])})


def ymsd(values: np.ndarray) -> bytes:
    return files.zipped({"YearPredictionMSD.txt": files.csv(np.roll(values, 1, axis=1))})


def california(values: np.ndarray) -> bytes:
    domain = {"CaliforniaHousing/cal_housing.domain": b"longitude: continuous."}
    return files.tarred({"CaliforniaHousing/cal_housing.data": files.csv(values), **domain})


@pytest.mark.parametrize(("archive", "columns"), [(ccpp, 5), (casp, 10), (blog, 281), (ymsd, 91), (california, 9)])
def test_official_archives_hold_inputs_and_the_target(archive, columns: int, tmp_path: Path, rng) -> None:
    values, name = numbered(rng, columns), archive.__name__
    files.put_official(tmp_path, name, archive(values))
    np.testing.assert_array_equal(rows(data.load(name, root=tmp_path)), values)


def test_sgemm_predicts_the_log_of_the_mean_run_time(tmp_path: Path, rng) -> None:
    values = numbered(rng, 18)
    files.put_official(tmp_path, "sgemm", files.zipped({"sgemm_product.csv": files.csv(values, SGEMM + RUNS), "Readme.txt": b""}))
    expected = np.column_stack([values[:, :14], np.log(values[:, 14:].sum(1) / 4)])
    np.testing.assert_allclose(rows(data.load("sgemm", root=tmp_path)), expected, rtol=1e-15)


def test_news_predicts_the_log_of_shares_without_the_address_and_the_age(tmp_path: Path, rng) -> None:
    values = numbered(rng, 4)
    member = files.csv(values, NEWS, first=[f"http://mashable.com/{i}/" for i in range(N)])
    files.put_official(tmp_path, "news", files.zipped({"OnlineNewsPopularity/OnlineNewsPopularity.csv": member}))
    expected = np.column_stack([values[:, 1:3], np.log(values[:, 3])])
    np.testing.assert_array_equal(rows(data.load("news", root=tmp_path)), expected[np.argsort(expected[:, 0])])


def test_diabetes_comes_with_scikit_learn() -> None:
    from sklearn.datasets import load_diabetes

    inputs, targets = load_diabetes(return_X_y=True)
    loaded, expected = rows(data.load("diabetes", seed=3)), np.column_stack([inputs, targets])
    np.testing.assert_array_equal(np.sort(loaded, axis=0), np.sort(expected, axis=0))


COMPACT = {
    "ccpp": ("ccpp.parquet", ["AT", "V", "AP", "RH", "PE"]),
    "casp": ("casp.parquet", [*(f"F{i}" for i in range(1, 10)), "RMSD"]),
    "sgemm": ("sgemm.parquet", [*SGEMM, *RUNS, "run_mean_ms"]),
    "blog": ("blogfeedback.parquet", [*(f"f{i}" for i in range(280)), "target"]),
    "news": ("online_news.parquet", ["n_tokens_title", "n_tokens_content", "shares"]),
    "ymsd": ("ymsd.parquet", ["year", *(f"timbre_avg_{i}" for i in range(1, 13)), *(f"timbre_cov_{i}" for i in range(1, 79))]),
    "california": ("california_housing.parquet", ["longitude", "latitude", "medianHouseValue"]),
}


@pytest.mark.parametrize("name", COMPACT)
def test_compact_files_give_the_same_inputs_and_targets(name: str, tmp_path: Path, rng) -> None:
    file, header = COMPACT[name]
    table = dict(zip(header, numbered(rng, len(header)).T, strict=True))
    parquet.write_table(pyarrow.table(table), tmp_path / file)
    source = next(each for each in SOURCES if each.name == name)
    unused = {*source.targets, "run_mean_ms"}
    expected = np.column_stack([column for key, column in table.items() if key not in unused])
    target = np.mean([table[key] for key in source.targets], axis=0)
    expected = np.column_stack([expected, np.log(target) if name in {"sgemm", "news"} else target])
    loaded = rows(data.load(name, root=tmp_path))
    np.testing.assert_array_equal(loaded, expected[np.argsort(expected[:, 0])])


def test_fractions_and_the_seed_are_the_users(tmp_path: Path, rng) -> None:
    parquet.write_table(pyarrow.table(dict(zip(COMPACT["ccpp"][1], numbered(rng, 5).T, strict=True))), tmp_path / "ccpp.parquet")
    default = data.load("ccpp", root=tmp_path)
    assert [len(part) for part in (default.train, default.validation, default.test)] == [35, 5, 10]
    other = data.load("ccpp", root=tmp_path, test_fraction=0.5, validation_fraction=0.3)
    assert [len(part) for part in (other.train, other.validation, other.test)] == [10, 15, 25]
    assert data.load("ccpp", root=tmp_path, seed=0).checksum() == default.checksum()
    assert data.load("ccpp", root=tmp_path, seed=1).checksum() != default.checksum()


@pytest.mark.parametrize(
    ("name", "file", "table", "message"),
    [
        ("news", "online_news", dict.fromkeys(COMPACT["news"][1], np.arange(20.0)), "must have positive shares, got 0.0"),
        ("ccpp", "ccpp", {"a": [1.0], "b": [2.0]}, "must have the columns PE, got a, b"),
    ],
)
def test_tables_without_a_target_are_refused(name: str, file: str, table: dict, message: str, tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table(table), tmp_path / f"{file}.parquet")
    with pytest.raises(FileError, match=rf"{file}\.parquet {message}"):
        data.load(name, root=tmp_path)


@pytest.mark.parametrize("name", [source.name for source in SOURCES])
def test_without_files_each_says_what_it_needs(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="downloads are off") as error:
        data.load(name, root=tmp_path, download=False)
    assert str(tmp_path / name) in str(error.value)
