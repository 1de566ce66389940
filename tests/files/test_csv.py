"""CSV files: a cell that is no number makes its row a bad one; what no row can be made of is refused with its line."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.files.tables import FEW, expected, read_table, refused, table
from uqprism.errors import BadFileError, InvalidValueError
from uqprism.files import score
from uqprism.files.points import Points

ROWS = 40


def lines_of(given: pa.Table, path: Path) -> list[str]:
    """The lines of a table as a CSV file."""
    pyarrow.csv.write_csv(given, path)
    return path.read_text().splitlines()


def spoiled(folder: Path, cells: dict[int, str], column: int = 1) -> Path:
    """A file with a key, members, and these cells in place of those of a column."""
    lines = lines_of(table(ROWS), folder / "in.csv")
    for row, text in cells.items():
        values = lines[row + 1].split(",")
        lines[row + 1] = ",".join([*values[:column], text, *values[column + 1 :]])
    (folder / "in.csv").write_text("\n".join(lines) + "\n")
    return folder / "in.csv"


@pytest.mark.parametrize("block", [512, 1 << 22])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_cell_of_text_makes_a_bad_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, suffix: str) -> None:
    """In the first block, from which columns get their types, and in a later one."""
    monkeypatch.setattr("uqprism.files.csv.CSV_BLOCK", block)
    path, out = spoiled(tmp_path, {30: "abc", 31: "1_000", 33: '" 2.5"', 35: "1e400"}), tmp_path / f"out.{suffix}"
    message = r"in\.csv: row 30 \(line 32\): mean_0 must be a number, got 'abc' .*--on-bad null"
    refused(InvalidValueError, message, path, out, measures=FEW)
    bad = [30, 31, 35]
    report = score(path, out, measures=FEW, on_bad="null", keep_members=True)
    assert (report.rows, report.bad_rows) == (ROWS, 3)
    found, whole = read_table(out), expected(table(ROWS), FEW)
    good = np.isin(np.arange(ROWS), [*bad, 33], invert=True)
    for name in FEW:
        values = found.column(name).to_numpy().astype(float)
        assert np.flatnonzero(np.isnan(values)).tolist() == bad
        np.testing.assert_allclose(values[good], whole[name][good], rtol=1e-12)
    assert found.column("mean_0").to_pylist()[30:34] == [None, None, table(ROWS).column("mean_0")[32].as_py(), 2.5]
    assert score(path, out, measures=FEW, on_bad="drop", overwrite=True).bad_rows == 3
    assert read_table(out).num_rows == ROWS - 3


def test_a_column_of_text_is_no_column_of_members(tmp_path: Path) -> None:
    path = spoiled(tmp_path, dict.fromkeys(range(ROWS), "abc"))
    message = r"in\.csv: column 'mean_0' must hold numbers, most of its cells are such as 'abc'"
    for on_bad in ("error", "drop"):
        refused(BadFileError, message, path, tmp_path / "out.parquet", on_bad=on_bad)
    assert not (tmp_path / "out.parquet").exists()


def test_a_target_with_a_cell_of_text_has_a_bad_row(tmp_path: Path) -> None:
    path = spoiled(tmp_path, {3: "unknown", 7: ""}, column=0)
    with pytest.raises(InvalidValueError, match=r"in\.csv: row 3 \(line 5\): key must be a number, got 'unknown' \(2 bad rows"):
        Points.of(path).error(column="key", target=None, prediction=None)
    found = Points.of(path, on_bad="drop").error(column="key", target=None, prediction=None)
    assert np.flatnonzero(np.isnan(found)).tolist() == [3, 7]
    assert found[4] == 4.0
    with pytest.raises(BadFileError, match=r"in\.csv: column 'key' must hold numbers, .* such as 'a'"):
        Points.of(spoiled(tmp_path, dict.fromkeys(range(30), "a"), column=0)).read(["key"])


HEADER = "mean_0,variance_0,note\n"
WRONG = {
    "a row too short": (HEADER + "1,1,a\n2,1\n", r"line 3 has 2 columns, the first line 3; quote values with commas"),
    "commas as decimal marks": (HEADER + '"1,5",1,a\n1,5,1,a\n', r"line 3 has 4 columns"),
    "a quote that is not closed": (HEADER + '1,1,a\n1,1,"b\n1,1,c\n1,1,d\n', r"line 3: a quoted value is not closed"),
    "a quote closed much later": (HEADER + '1,1,"a\n1,1,b\n1,1,"c\n1,1,d\n', r"line 2: a quoted value is not closed"),
    "a quote around the number": (
        "note,mean_0,variance_0\n" + "a,1,1\n" * 9 + 'a,1,"1\nb,1,1\n',
        r"line 11: a quoted value is not closed",
    ),
    "another encoding": ((HEADER + "1,1,é\n").encode("latin-1"), r"column 'note' is not UTF-8 text; save it as UTF-8"),
    "another encoding of the names": ("mean_0,variance_0,é\n1,1,1\n".encode("latin-1"), "its first line is not UTF-8"),
    "two bytes per letter": (HEADER.encode("utf-16"), "its first line is not UTF-8 text"),
    "nothing": ("", "is empty; a CSV file begins with the names"),
    "a name twice": ("mean_0,mean_0,variance_0\n1,1,1\n", "column 'mean_0' appears twice"),
    "a name of many digits": (f"mean_{'1' * 5000},variance_0\n1,1\n", "a number of more than 18 digits; rename it"),
    "semicolons": ("mean_0;variance_0\n1,5;1\n", "the columns are separated by semicolons"),
    "one endless line": ("1," * (1 << 22), "its first line has more than 4,194,304 bytes"),
    "one endless name": ("a" * (1 << 22), "its first line has more than 4,194,304 bytes"),
    "many columns": (",".join(f"c{i}" for i in range(10_001)) + "\n", "holds 10,001 columns, more than 10,000"),
    "a row as long as a block": (HEADER + f"1,1,{'a' * (1 << 23)}\n", "a row has more than 4,194,304 bytes"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_no_table_of_numbers_is_refused(tmp_path: Path, what: str, suffix: str) -> None:
    text, message = WRONG[what]
    (tmp_path / "in.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(InvalidValueError, rf"in\.csv: .*{message}", tmp_path / "in.csv", tmp_path / f"out.{suffix}", on_bad="drop")


RIGHT = {
    "no end of the last line": HEADER + "1,1,a\n2,1,b",
    "lines of Windows": (HEADER + "1,1,a\n2,1,b\n").replace("\n", "\r\n"),
    "empty lines": HEADER + "\n1,1,a\n\n\n2,1,b\n\n",
    "values of several lines": HEADER + '1,1,"a\nb\n\nc"\n2,1,"d""e"\n',
    "a mark of its encoding": "\ufeff" + HEADER + "1,1,a\n2,1,b\n",
    "inches": HEADER + '1,1,5" pipe\n2,1,b\n',
    "a byte 0": HEADER + "1,1,a\0\n2,1,b\n",
}


@pytest.mark.parametrize("what", RIGHT)
def test_unusual_tables_are_read(tmp_path: Path, what: str) -> None:
    (tmp_path / "in.csv").write_bytes(RIGHT[what].encode())
    assert score(tmp_path / "in.csv", tmp_path / "out.parquet", keep_members=True).rows == 2
    assert read_table(tmp_path / "out.parquet").column("mean_0").to_pylist() == [1.0, 2.0]
    assert Points.of(tmp_path / "in.csv").ensemble().n_members == 1


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_thousands_of_members_take_seconds(tmp_path: Path, ending: str) -> None:
    """Each step over the columns is linear in their number; 10,000 of them took a minute in a CSV file."""
    members, path = 9_000 if ending == "npz" else 4_900, tmp_path / f"in.{ending}"
    mean, scale = np.random.default_rng(0).normal(size=(members, 3)), np.full((members, 3), 2.0)
    columns = {f"{kind}_{i}": row for kind, rows in (("mean", mean), ("scale", scale)) for i, row in enumerate(rows)}
    if ending == "npz":
        np.savez(path, mean=mean, scale=scale, y=mean[0])
    elif ending == "csv":
        pyarrow.csv.write_csv(pa.table({"y": mean[0]} | columns), path)
    else:
        pq.write_table(pa.table({"y": mean[0]} | columns), path)
    measure = "squared_error.excess.members.members"
    up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, member_axis=0), [measure])  # compiles
    start = time.process_time()
    score(path, tmp_path / "out.csv", measures=[measure])
    found = [read_table(tmp_path / "out.csv").column(measure).to_numpy(), Points.of(path).measures([measure])[measure]]
    assert time.process_time() - start < 5.0
    for values in found:
        np.testing.assert_allclose(values, 2.0 * mean.var(axis=0), rtol=1e-9)
