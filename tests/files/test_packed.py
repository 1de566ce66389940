"""Packed CSV files: read like plain ones, with no row less, and refused in one line where they are damaged."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tests.cli.command import run
from tests.files.tables import FEW, assert_scored, read_table, refused, table
from uqprism.errors import BadFileError, InvalidValueError
from uqprism.files import score
from uqprism.files.inspection import inspected
from uqprism.files.paths import find_files, named_by_stem
from uqprism.files.points import Points

KINDS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def text_of(given: pa.Table) -> bytes:
    """A table as the text of a CSV file."""
    stream = io.BytesIO()
    pyarrow.csv.write_csv(given, stream)
    return stream.getvalue()


def packed(text: bytes, path: Path) -> Path:
    """A text, packed as the ending of the path says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, KINDS[path.suffix.lower()]) as stream:
        stream.write(text)
    return path


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.bz2", ".csv.zst", ".CSV.GZ"])
def test_packed_files_are_read_as_plain_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr("uqprism.files.csv.CSV_BLOCK", 4096)  # so that there are many
    given = table(400)
    path = packed(text_of(given), tmp_path / f"in{ending}")
    assert score(path, tmp_path / "out.parquet", measures=FEW).rows == 400
    assert_scored(read_table(tmp_path / "out.parquet"), given, FEW)
    assert inspected(find_files(path)[0]).n_rows == 400
    np.testing.assert_array_equal(Points.of(path).column("key").to_numpy(), np.arange(400))


def test_folders_hold_plain_and_packed_files(tmp_path: Path) -> None:
    """Parts keep the names of their inputs, so that `a.csv` and `a.csv.gz` have one each."""
    given = [table(20, seed) for seed in range(3)]
    packed(text_of(given[0]), tmp_path / "in" / "a.csv.gz")
    packed(text_of(given[1]), tmp_path / "in" / "b.csv.zst")
    (tmp_path / "in" / "a.csv").write_bytes(text_of(given[2]))
    assert score(tmp_path / "in", tmp_path / "out", measures=FEW).rows == 60
    for name, one in zip(("a.csv.gz", "b.csv.zst", "a.csv"), given, strict=True):
        assert_scored(read_table(tmp_path / "out" / f"{name}.parquet"), one, FEW)
    assert score(tmp_path / "in", tmp_path / "out", measures=FEW, resume=True).resumed_rows == 60
    assert list(named_by_stem(["x/old.csv.gz", "x/new.csv"])) == ["old", "new"]


def test_rows_that_are_bad_have_their_lines(tmp_path: Path) -> None:
    lines = text_of(table(30)).decode().splitlines()
    lines[12] = lines[12].replace(lines[12].split(",")[1], "abc")
    path = packed("\n".join(lines).encode(), tmp_path / "in.csv.gz")
    refused(InvalidValueError, r"in\.csv\.gz: row 11 \(line 13\): mean_0 must be a number, got 'abc'", path, tmp_path / "o.csv")
    assert score(path, tmp_path / "out.csv", measures=FEW, on_bad="drop").bad_rows == 1
    ragged = packed(("\n".join(lines[:5]) + "\n1,2\n").encode(), tmp_path / "ragged.csv.gz")
    refused(BadFileError, r"ragged\.csv\.gz: cannot be read: line 6 has 2 columns, the first line 7", ragged, tmp_path / "o.csv")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_off_gives_no_rows(tmp_path: Path, kind: str) -> None:
    """Wherever it ends: neither fewer rows nor half a result."""
    whole = packed(text_of(table(60)), tmp_path / f"in.csv{kind}").read_bytes()
    path = tmp_path / f"cut.csv{kind}"
    for end in (0, 1, 7, len(whole) // 3, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:end])
        refused(BadFileError, r"cut\.csv\.\w+: is (cut off: the \w+ data in it has no end|empty)", path, tmp_path / "out.parquet")
        with pytest.raises(BadFileError, match=r"is (cut off|empty)"):
            Points.of(path).column("key")
    path.write_bytes(whole + whole[: len(whole) // 2])  # a second archive behind the first, as `cat` makes them
    refused(BadFileError, "is cut off", path, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("kind", [".gz", ".bz2"])
def test_damaged_files_are_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    """Both kinds hold checksums, so that every changed bit of the data shows."""
    whole = packed(text_of(table(60)), tmp_path / f"in.csv{kind}").read_bytes()
    path = tmp_path / f"bad.csv{kind}"
    for at in range(12, len(whole), len(whole) // 12):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        refused(BadFileError, r"bad\.csv\.\w+: is (damaged: .*; copy|not|cut off)", path, tmp_path / "out.parquet")
    for text in (text_of(table(5)), whole + b"more"):
        path.write_bytes(text)
        refused(BadFileError, r"is not \w+ data throughout, as its name says; rename it if it is plain", path, tmp_path / "o.csv")
    found = run("inspect", path)
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert "is not" in found.stderr


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    """Before it is in memory."""
    path = packed(b"mean_0,variance_0\n" + b"1.%031d,1.%031d\n" % (0, 0) * (1 << 20), tmp_path / "in.csv.zst")
    tracemalloc.start()
    with pytest.raises(BadFileError, match=r"in\.csv\.zst: its [\d,]+ bytes unpack to [\d,]+, more than 200 to 1"):
        Points.of(path).column("mean_0")
    assert tracemalloc.get_traced_memory()[1] < 2e7
    tracemalloc.stop()
    refused(BadFileError, "more than 200 to 1", path, tmp_path / "out.parquet")
