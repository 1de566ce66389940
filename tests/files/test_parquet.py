"""Parquet files: text that holds numbers is read as numbers, and a footer that lies is refused before memory is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.tables import FEW, expected, read_table, refused, table
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import BadFileError, InvalidValueError
from uqprism.files import score
from uqprism.files.points import Points

ROWS = 40
TEXTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


def as_text(kind: pa.DataType, cells: dict[int, str | None]) -> pa.Table:
    """Members, the first mean as text with these cells in place of its own."""
    given = table(ROWS)
    texts = [cells.get(row, repr(value)) for row, value in enumerate(given.column("mean_0").to_pylist())]
    return given.set_column(given.column_names.index("mean_0"), "mean_0", pa.array(texts, pa.string()).cast(kind))


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_text_that_is_mostly_numbers_is_read_as_numbers(tmp_path: Path, kind: pa.DataType) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(as_text(kind, {5: "abc", 7: None, 9: "NA"}), path, row_group_size=16)
    refused(InvalidValueError, r"in\.parquet: row 5: mean_0 must be a number, got 'abc' \(3 bad rows", path, out)
    assert score(path, out, measures=FEW, on_bad="null", keep_members=True).bad_rows == 3
    found = read_table(out)
    good = np.isin(np.arange(ROWS), [5, 7, 9], invert=True)
    for name, values in expected(table(ROWS), FEW).items():
        np.testing.assert_allclose(found.column(name).to_numpy()[good], values[good], rtol=1e-12)
    assert found.column("mean_0")[5].as_py() == "abc"  # members that are kept stay as they are
    points = Points.of(path, on_bad="drop")
    assert np.flatnonzero(np.isnan(points.measures(FEW)[FEW[0]])).tolist() == [5, 7, 9]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_text_that_is_none_is_no_column_of_members(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(as_text(kind, {row: f"word {row}" for row in range(ROWS)}), path)
    message = r"in\.parquet: column 'mean_0' must hold numbers, its type is .*such as 'word 0'"
    refused(InvalidValueError, message, path, tmp_path / "out.parquet", on_bad="drop")
    with pytest.raises(BadFileError, match=message):
        Points.of(path, on_bad="drop").ensemble()


OTHERS = {
    "structs": pa.array([{"a": 1.0}] * 3),
    "lists": pa.array([[1.0]] * 3),
    "maps": pa.array([[("a", 1.0)]] * 3, pa.map_(pa.string(), pa.float64())),
    "times": pa.array([1, 2, 3], pa.timestamp("ns")),
    "bytes": pa.array([b"1"] * 3),
    "truths": pa.array([True] * 3),
    "dates": pa.array([1, 2, 3], pa.date32()),
}


@pytest.mark.parametrize("what", OTHERS)
def test_columns_of_other_types_pass_through_but_are_no_members(tmp_path: Path, what: str) -> None:
    given, path = table(3), tmp_path / "in.parquet"
    pq.write_table(given.append_column("other", OTHERS[what]), path)
    score(path, tmp_path / "out.parquet", measures=FEW)
    assert read_table(tmp_path / "out.parquet").column("other").to_pylist() == OTHERS[what].to_pylist()
    pq.write_table(given.set_column(1, "mean_0", OTHERS[what]), path)
    refused(InvalidValueError, r"in\.parquet: column 'mean_0' must hold numbers, its type is", path, tmp_path / "b.parquet")


def test_decimals_are_numbers(tmp_path: Path) -> None:
    pq.write_table(table(3).set_column(1, "mean_0", pa.array([1, 2, 3]).cast(pa.decimal128(22, 3))), tmp_path / "in.parquet")
    assert Points.of(tmp_path / "in.parquet").ensemble().members.mean[0].tolist() == [1.0, 2.0, 3.0]


def footer_with(folder: Path, old: bytes, new: bytes) -> Path:
    """A file of members with other bytes in place of some."""
    path = folder / "in.parquet"
    pq.write_table(table(200), path, write_page_checksum=True)
    data = path.read_bytes()
    assert data.count(old)
    path.write_bytes(data.replace(old, new))
    return path


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = footer_with(tmp_path, b"key", b"k\xff\xfe")
    refused(BadFileError, r"in\.parquet: .*utf-8", path, tmp_path / "out.parquet")


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@pytest.mark.parametrize("name", ["mean_0", "note"])
def test_text_that_is_not_utf8_is_refused(tmp_path: Path, name: str, kind: pa.DataType) -> None:
    path, bad = tmp_path / "in.parquet", pa.array([b"1.5", b"\xff", b"2.5"]).view(pa.string())
    if pa.types.is_dictionary(kind):
        bad = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), bad)
    elif kind == pa.large_string():
        bad = bad.cast(pa.large_binary()).view(kind)
    given = table(3)
    given = given.append_column("note", pa.array(["a", "b", "c"])) if name == "note" else given
    pq.write_table(given.set_column(given.column_names.index(name), name, bad), path)
    message = rf"in\.parquet: column '{name}': .*UTF"
    for ending in ("csv", "npz", "parquet"):
        refused(BadFileError, message, path, tmp_path / f"out.{ending}", on_bad="drop")
    with pytest.raises(BadFileError, match=message):
        Points.of(path, on_bad="drop").take([name], np.arange(3))


@pytest.mark.parametrize("header", [b"{}", b"[]", b'{"weights": {}}', b'{"weights": ["a"]}', b"[" * 9000, b"\xff"])
def test_what_a_saved_ensemble_says_is_checked(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(table(3).replace_schema_metadata({FORMAT.encode(): header}), path)
    if header == b"{}":
        assert score(path, tmp_path / "out.parquet").rows == 3
    else:
        refused(BadFileError, r"in\.parquet: (its header|the weights)", path, tmp_path / "out.parquet")


@pytest.mark.parametrize("checked", [True, False])
def test_a_bit_of_the_data_is_held_against_the_checksum_of_its_page(tmp_path: Path, checked: bool) -> None:
    path = tmp_path / "in.parquet"
    options = {"compression": "none", "use_dictionary": False, "column_encoding": "PLAIN"}
    pq.write_table(table(200), path, write_page_checksum=checked, **options)
    data = bytearray(path.read_bytes())
    data[data.index(np.float64(table(200).column("mean_0")[100].as_py()).tobytes())] ^= 1
    path.write_bytes(data)
    if checked:
        refused(BadFileError, r"in\.parquet: cannot be read: .*CRC", path, tmp_path / "out.parquet")
        with pytest.raises(BadFileError, match="CRC"):
            Points.of(path).ensemble()
    else:
        assert score(path, tmp_path / "out.parquet").rows == 200  # nothing in the file could tell


def test_files_that_hold_more_than_they_can_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    nothing = pa.table({"mean_0": pa.nulls(20_000_000), "variance_0": pa.nulls(20_000_000)})
    pq.write_table(nothing, path)
    refused(BadFileError, r"in\.parquet: its [\d,]+ bytes unpack to 320,000,000, more than 200 to 1", path, tmp_path / "o.csv")
    with pq.ParquetWriter(path, pa.schema([(f"c{i}", pa.float32()) for i in range(10_001)])):
        pass
    refused(BadFileError, r"in\.parquet: holds 10,001 columns, more than 10,000 are not read", path, tmp_path / "o.csv")
    path.write_bytes(b"PAR1" + bytes(1 << 25) + (1 << 25).to_bytes(4, "little") + b"PAR1")
    refused(BadFileError, r"in\.parquet: .*", path, tmp_path / "o.csv")
    path.write_bytes(b"PAR1" + bytes((1 << 25) + 1) + ((1 << 25) + 1).to_bytes(4, "little") + b"PAR1")
    refused(BadFileError, r"in\.parquet: its footer has 33,554,433 bytes", path, tmp_path / "o.csv")
