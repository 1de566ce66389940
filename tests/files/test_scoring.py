"""`score` from every format to every format: the measures are those computed in memory, and other columns are copied."""

from __future__ import annotations

import decimal
import io
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.files.tables import (
    DEFAULT,
    FEW,
    assert_scored,
    columns,
    ensemble,
    expected,
    members,
    read_table,
    refused,
    score_table,
    table,
    write_table,
)
from uqprism.ensemble.columns import Columns
from uqprism.errors import FileError, InvalidValueError
from uqprism.files import read, score
from uqprism.files.paths import Span
from uqprism.files.points import Points


def test_the_default_is_twelve_measures_and_no_members(tmp_path: Path) -> None:
    given = write_table(table(), tmp_path / "in.parquet")
    report = score(given, tmp_path / "out.parquet")
    scored = pq.read_table(tmp_path / "out.parquet")
    assert scored.column_names == ["key", *DEFAULT]
    assert len(DEFAULT) == 12
    assert scored.column("key").equals(table().column("key"))
    assert_scored(scored, table())
    assert (report.rows, report.bad_rows, report.parts) == (50, 0, (tmp_path / "out.parquet",))


def test_members_are_kept_on_request_and_give_the_precision(tmp_path: Path) -> None:
    given = table(dtype="float32")
    scored = score_table(tmp_path, given, measures=FEW, keep_members=True)
    assert scored.select(given.column_names).equals(given)
    assert_scored(scored, given, FEW)


def test_other_columns_pass_through_with_types_nulls_and_order(tmp_path: Path) -> None:
    others = {
        "text": ["a", None, 'c,\n"d"'],
        "nested": [[1, None], None, []],
        "record": [{"x": 1, "y": "u"}, None, {"x": None, "y": "v"}],
        "kind": pa.array(["u", "v", None]).dictionary_encode(),
        "time": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
        "money": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.00")]),
        "flag": [True, None, False],
    }
    given = table(3, **others)
    given = given.select(["mean_0", *others, *[name for name in given.column_names if name not in others and name != "mean_0"]])
    pq.write_table(given, tmp_path / "in.parquet", row_group_size=2)
    score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW)
    scored = pq.read_table(tmp_path / "out.parquet")
    assert scored.select([*others, "key"]).equals(given.select([*others, "key"]))
    assert scored.column_names == [*others, "key", *FEW]
    assert_scored(scored, given, FEW)


def test_many_small_row_groups_become_few_and_keep_their_dictionaries(tmp_path: Path) -> None:
    given = table(60, kind=pa.array([f"k{i % 7}" for i in range(60)]).dictionary_encode())
    pq.write_table(given, tmp_path / "in.parquet", row_group_size=4)
    score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW)
    file = pq.ParquetFile(tmp_path / "out.parquet")
    assert file.num_row_groups == 1
    assert file.read().column("kind").cast(pa.string()).equals(given.column("kind").cast(pa.string()))
    file.close()


def test_a_pandas_index_survives(tmp_path: Path) -> None:
    frame = table(4).to_pandas().set_index("key")
    frame.to_parquet(tmp_path / "in.parquet")
    score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW)
    found = pq.read_table(tmp_path / "out.parquet").to_pandas()
    assert found.index.name == "key"
    assert list(found.columns) == FEW


def test_whole_numbers_and_decimals_count_as_double(tmp_path: Path) -> None:
    plain = pa.table(
        {"mean_0": [1, 2], "mean_1": [3, 5], "scale_0": [1, 2], "scale_1": [decimal.Decimal("0.5"), decimal.Decimal("1.5")]}
    )
    ens = up.EnsemblePrediction.gaussian(mean=[[1.0, 2.0], [3.0, 5.0]], scale=[[1.0, 2.0], [0.5, 1.5]])
    found = score_table(tmp_path, plain, measures="crps.bayes.members").column(0).to_numpy()
    np.testing.assert_allclose(found, up.evaluate(ens, "crps.bayes.members")["crps.bayes.members"], rtol=1e-14)


def test_csv_to_csv_leaves_other_columns_as_they_are_written(tmp_path: Path) -> None:
    given = table(3)
    names = [name for name in given.column_names if name != "key"]
    lines = [",".join(["id", "note", *names])]
    for i, (key, note) in enumerate([("007", "1.10"), ("008", ""), ("009", '"a ""b"",\nc"')]):
        lines.append(",".join([key, note, *(repr(float(given.column(name)[i].as_py())) for name in names)]))
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    score(tmp_path / "in.csv", tmp_path / "out.csv", measures=FEW)
    read = pyarrow.csv.ConvertOptions(column_types={"id": pa.string(), "note": pa.string()})
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    scored = pyarrow.csv.read_csv(tmp_path / "out.csv", convert_options=read, parse_options=options)
    assert scored.column("id").to_pylist() == ["007", "008", "009"]
    assert scored.column("note").to_pylist() == ["1.10", "", 'a "b",\nc']
    assert_scored(scored, given, FEW)


def test_csv_has_types_in_parquet_and_no_needless_quotes_in_csv(tmp_path: Path) -> None:
    given = table()
    pyarrow.csv.write_csv(given, tmp_path / "in.csv")
    for name in ("out.parquet", "out.csv"):
        score(tmp_path / "in.csv", tmp_path / name, measures=FEW)
    assert '"' not in (tmp_path / "out.csv").read_text()
    scored = pq.read_table(tmp_path / "out.parquet")
    assert scored.column("key").equals(given.column("key"))
    assert_scored(scored, given, FEW)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz_to_npz(tmp_path: Path, save: object, order: str) -> None:
    given = {name: np.asarray(x, order=order) for name, x in members(50).items()}
    names = np.array([f"n{i}" for i in range(50)])
    save(tmp_path / "in.npz", **given, key=np.arange(50, dtype=">i4"), name=names)
    score(tmp_path / "in.npz", tmp_path / "out.npz", measures=FEW, keep_members=True)
    with np.load(tmp_path / "out.npz") as file:
        found = dict(file)
    assert set(found) == {"mean", "variance", "key", "name", *FEW}
    assert found["name"].tolist() == names.tolist()
    assert found["key"].tolist() == list(range(50))
    for name, values in {**given, **expected(given, FEW)}.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)


@pytest.mark.parametrize("weights", [None, [0.5, 0.3, 0.2]])
def test_saved_ensembles_are_read_with_their_weights(tmp_path: Path, weights: list[float] | None) -> None:
    given = {name: x.reshape(-1, 4, 5) for name, x in members(20).items()}
    ens = ensemble(given, weights)
    ens.save(tmp_path / "in.npz")
    pq.write_table(ens.to_arrow(), tmp_path / "in.parquet")
    wanted = expected(given, FEW, weights)
    for name in ("in.npz", "in.parquet"):
        score(tmp_path / name, tmp_path / "out.parquet", measures=FEW, overwrite=True)
        scored = pq.read_table(tmp_path / "out.parquet")
        for measure, values in wanted.items():
            np.testing.assert_allclose(scored.column(measure).to_numpy(), np.ravel(values), rtol=1e-12)


def test_saved_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    up.EvidentialPrediction(*np.ones((2, 1, 3)), *np.full((2, 1, 3), 2.0)).save(tmp_path / "evidential.npz")
    refused(InvalidValueError, "not by", tmp_path / "evidential.npz", tmp_path / "out.parquet")
    with pytest.raises(InvalidValueError, match="not by"):
        Points.of(tmp_path / "evidential.npz").measures(FEW)


def test_columns_of_an_npz_file_may_be_arrays(tmp_path: Path) -> None:
    """Also of any name: `file` is an argument of `numpy.savez`."""
    given = table(5, file=np.arange(5))
    pq.write_table(given, tmp_path / "in.parquet")
    score(tmp_path / "in.parquet", tmp_path / "out.npz", measures=FEW)
    assert read_table(tmp_path / "out.npz")["file"].to_pylist() == list(range(5))
    np.savez(tmp_path / "in.npz", **{name: given[name].to_numpy() for name in given.column_names if name != "file"})
    score(tmp_path / "in.npz", tmp_path / "out.parquet", measures=FEW, overwrite=True)
    assert_scored(pq.read_table(tmp_path / "out.parquet"), given, FEW)


def test_a_damaged_npz_file_is_refused(tmp_path: Path) -> None:
    """Also where an array is stored without compression and only its checksum tells."""
    np.savez(tmp_path / "in.npz", **members(50))
    data = bytearray((tmp_path / "in.npz").read_bytes())
    data[600] ^= 1
    (tmp_path / "in.npz").write_bytes(data)
    refused(FileError, r"in\.npz: cannot be read: Bad CRC-32", tmp_path / "in.npz", tmp_path / "out.parquet")
    np.savez(tmp_path / "in.npz", **members(2), what=np.array([None, {}]))
    refused(FileError, r"in\.npz: array 'what' holds Python objects", tmp_path / "in.npz", tmp_path / "out.parquet")


SHAPE = r"needs arrays mean and variance or scale of one shape \(members, points\)"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"mean": np.zeros((2, 3))}, SHAPE),
        ({"mean": np.zeros((2, 3)), "scale": np.ones((2, 4))}, SHAPE + r".* mean \(2, 3\), scale \(2, 4\)"),
        ({"mean": np.zeros((2, 3)), "scale": np.ones((2, 3)), "variance": np.ones((2, 3))}, SHAPE),
        ({"mean": np.zeros(3), "scale": np.ones(3)}, SHAPE),
        ({}, "its arrays are none"),
        ({"mean": np.zeros((2, 3)), "scale": np.ones((2, 3)), "x": np.ones((3, 2))}, "array 'x' has shape"),
    ],
)
def test_npz_files_of_other_shapes_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "in.npz", **arrays)
    refused(InvalidValueError, message, tmp_path / "in.npz", tmp_path / "out.parquet")


def test_what_npz_cannot_hold_is_refused(tmp_path: Path) -> None:
    for name, values in {"nested": [[1], [2]], "missing": [1, None], "bytes": [b"a", b"b"]}.items():
        pq.write_table(table(2, **{name: values}), tmp_path / "in.parquet")
        with pytest.raises(InvalidValueError, match=f"column '{name}' .*which .npz cannot hold"):
            score(tmp_path / "in.parquet", tmp_path / "out.npz", measures=FEW)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


@pytest.mark.parametrize("source", ["in.parquet", "in.csv", "in.npz"])
@pytest.mark.parametrize("target", ["out.parquet", "out.csv", "out.npz"])
def test_no_rows_in_no_rows_out(tmp_path: Path, source: str, target: str) -> None:
    report = score(write_table(table(0), tmp_path / source), tmp_path / target, measures=FEW)
    assert report.rows == 0
    found = read_table(tmp_path / target)
    assert (found.column_names, found.num_rows) == (["key", *FEW], 0)


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    """A list of names gives the order of the members; a pattern orders them by number."""
    given, weights = members(5), [0.6, 0.3, 0.1]
    named = {f"mu{i}": row for i, row in zip((10, -2, 9), given["mean"], strict=True)}
    named |= {f"v{i}": row for i, row in zip((10, -2, 9), given["variance"], strict=True)}
    for chosen, order in [
        ({"mean_columns": "mu10,mu-2,mu9", "variance_columns": ["v10", "v-2", "v9"]}, [0, 1, 2]),
        ({"mean_columns": "mu{i}", "variance_columns": "v{i}"}, [1, 2, 0]),
    ]:
        found = score_table(tmp_path, pa.table(named), measures=FEW, weights=weights, overwrite=True, **chosen)
        assert_scored(found, pa.table(columns({name: x[order] for name, x in given.items()})), FEW, weights)


class SlowFile(io.BytesIO):
    """A file whose first block comes at once and whose others take long; notes whether it is closed under a read."""

    reads, reading, torn = 0, False, False

    def read(self, size: int = -1) -> bytes:
        self.reads, self.reading = self.reads + 1, True
        if self.reads > 1:
            time.sleep(0.2)  # as a busy disk would
        data = super().read(size)
        self.reading = False
        return data

    def close(self) -> None:
        self.torn = self.torn or self.reading
        super().close()


def test_a_csv_file_is_not_closed_while_arrow_reads_ahead(tmp_path: Path, monkeypatch) -> None:
    """Its number would go to the next file that is opened, and the read would take a block from that one."""
    pa.csv.write_csv(table(2000), tmp_path / "in.csv")
    opened: list[SlowFile] = []

    def slow(path: str) -> pa.PythonFile:
        opened.append(SlowFile(Path(path).read_bytes()))
        return pa.PythonFile(opened[-1], mode="r")

    monkeypatch.setattr("uqprism.files.csv.CSV_BLOCK", 1 << 14)
    monkeypatch.setattr(pa, "OSFile", slow)
    source = read.open_input(Span(tmp_path / "in.csv", "in.csv"), Columns())
    assert source.schema.names[0] == "key"
    source.close()
    del source
    assert opened[0].reads < 10  # or there would be nothing left to read ahead
    assert not opened[0].torn
