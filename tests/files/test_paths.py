"""Which files are read for paths, folders and patterns, and where their parts are written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from tests.files.tables import FEW, assert_scored, members, read_table, refused, table, write_table
from uqprism.errors import ArgumentError, BadFileError, FileError, InvalidValueError
from uqprism.files import named_by_stem, score
from uqprism.files.paths import _unreadable, find_files


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    """A folder of three hive partitions, with files that readers of such folders ignore."""
    for year in (2019, 2020, 2021):
        folder = tmp_path / "data" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(table(20, seed=year), folder / "part-0.parquet")
    (tmp_path / "data" / "_SUCCESS").touch()
    (tmp_path / "data" / "year=2020" / "_half.parquet").write_bytes(b"not a table")
    (tmp_path / "data" / ".hidden").mkdir()
    (tmp_path / "data" / ".hidden" / "x.parquet").write_bytes(b"not a table")
    (tmp_path / "data" / "notes.txt").write_text("hello")
    return tmp_path / "data"


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


PARTS = [f"year={year}/part-0.parquet" for year in (2019, 2020, 2021)]


def test_a_partitioned_folder_stays_one(partitioned: Path, tmp_path: Path) -> None:
    """And its manifest says what it holds."""
    report = score(partitioned, tmp_path / "out", measures=FEW)
    assert names(tmp_path / "out") == ["_uqprism.json", *PARTS]
    assert report.rows == 60
    found = pyarrow.dataset.dataset(tmp_path / "out", partitioning="hive").to_table()
    given = pa.concat_tables([table(20, seed=year) for year in (2019, 2020, 2021)])
    assert found.column("key").to_pylist() == given.column("key").to_pylist()
    assert found.column("year").to_pylist() == [2019] * 20 + [2020] * 20 + [2021] * 20
    assert_scored(found.drop_columns("year"), given, FEW)
    about = json.loads((tmp_path / "out" / "_uqprism.json").read_text())
    assert about["options"]["measures"] == FEW
    assert (about["rows"], about["bad_rows"]) == (60, 0)
    assert [(part["part"], part["rows"]) for part in about["parts"]] == [(part, 20) for part in PARTS]
    source = about["parts"][0]["sources"][0]
    assert (source["name"], source["size"]) == (PARTS[0], (partitioned / PARTS[0]).stat().st_size)


@pytest.mark.parametrize("pattern", ["year=202*/*.parquet", "**/year=202[01]/*", "year=202?"])
def test_patterns_keep_partitions(partitioned: Path, tmp_path: Path, pattern: str) -> None:
    score(str(partitioned / pattern), tmp_path / "out", measures=FEW)
    assert names(tmp_path / "out") == ["_uqprism.json", *PARTS[1:]]


def test_files_and_folders_inside_a_partition_keep_it(partitioned: Path, tmp_path: Path) -> None:
    score([partitioned / part for part in PARTS[:2]], tmp_path / "files", measures=FEW)
    assert names(tmp_path / "files") == ["_uqprism.json", *PARTS[:2]]
    score(partitioned / "year=2019", tmp_path / "folder", measures=FEW)
    assert names(tmp_path / "folder") == ["_uqprism.json", PARTS[0]]


def test_formats_may_be_mixed_and_become_parquet_parts(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(table(5, seed=1), tmp_path / "a.csv")
    np.savez(tmp_path / "b.npz", **members(5, seed=2))
    pq.write_table(table(5, seed=3), tmp_path / "c.pq")
    score([tmp_path / "a.csv", tmp_path / "b.npz", tmp_path / "c.pq"], tmp_path / "out", measures=FEW)
    assert names(tmp_path / "out") == ["_uqprism.json", "a.csv.parquet", "b.npz.parquet", "c.pq.parquet"]
    assert_scored(pq.read_table(tmp_path / "out" / "c.pq.parquet"), table(5, seed=3), FEW)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_several_files_into_one(tmp_path: Path, suffix: str) -> None:
    for seed in (1, 2):
        pq.write_table(table(5, seed=seed), tmp_path / f"{seed}.parquet")
    score([tmp_path / "2.parquet", tmp_path / "1.parquet"], tmp_path / f"out.{suffix}", measures=FEW)
    found = read_table(tmp_path / f"out.{suffix}")
    both = pa.concat_tables([table(5, seed=2), table(5, seed=1)])
    assert found.column("key").equals(pa.chunked_array(both.column("key").combine_chunks()))
    assert_scored(found, both, FEW)


def test_large_files_are_cut_at_row_groups(tmp_path: Path) -> None:
    given = table(50)
    pq.write_table(given, tmp_path / "in.parquet", row_group_size=8)
    report = score(tmp_path / "in.parquet", tmp_path / "out", measures=FEW, part_rows=20)
    assert [path.name for path in report.parts] == ["in-00000.parquet", "in-00001.parquet", "in-00002.parquet"]
    assert [pq.read_metadata(path).num_rows for path in report.parts] == [16, 16, 18]
    assert_scored(pa.concat_tables([pq.read_table(path) for path in report.parts]), given, FEW)


OTHERS = [table(5), table(5, extra=np.arange(5))]
FEWER = [table(5), table(5).drop_columns(["mean_2", "variance_2"])]
TAKEN = [table(5, **{FEW[0]: np.zeros(5)})]
TEXT = [pa.table({"mean_0": ["a"], "variance_0": [1.0]})]
UNFIT = {
    "other columns": (OTHERS, "out.parquet", {}, InvalidValueError, r"2\.parquet: its columns are not those of .*1\.parquet"),
    "fewer members": (FEWER, "out", {}, InvalidValueError, r"2\.parquet: has 2 members .*1\.parquet has 3"),
    "a measure": (TAKEN, "out.parquet", {}, InvalidValueError, f"column '{FEW[0]}' has the name of a measure"),
    "text": (TEXT, "out.parquet", {}, InvalidValueError, "column 'mean_0' must hold numbers, its type is string"),
    "two weights": ([table(5)], "out.parquet", {"weights": [0.5, 0.5]}, ArgumentError, "weights must"),
    "heavy weights": ([table(5)], "out.parquet", {"weights": [0.5, 0.5, 0.5]}, ArgumentError, "weights must"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_tables_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path: Path, case: str) -> None:
    tables, target, options, error, message = UNFIT[case]
    paths = [write_table(given, tmp_path / f"{i}.parquet") for i, given in enumerate(tables, 1)]
    refused(error, message, paths, tmp_path / target, measures=FEW, on_bad_file="fail", **options)
    assert not (tmp_path / target).exists()


def test_members_must_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("mean_0,variance_0\n1,1\nx,1\ny,1\n")
    refused(BadFileError, r"in\.csv: column 'mean_0' must .*such as 'x'", tmp_path / "in.csv", tmp_path / "out.parquet")


def test_a_column_of_two_types_in_a_csv_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uqprism.files.csv.CSV_BLOCK", 64)
    (tmp_path / "in.csv").write_text("mean_0,id,variance_0\n" + "1,7,1\n" * 50 + "1,seven,1\n")
    with pytest.raises(FileError, match=r"in\.csv: column 'id': .*'seven'; its type was guessed .* write to \.csv"):
        score(tmp_path / "in.csv", tmp_path / "out.parquet", measures=FEW)
    score(tmp_path / "in.csv", tmp_path / "out.csv", measures=FEW)
    assert pyarrow.csv.read_csv(tmp_path / "out.csv").column("id").to_pylist() == ["7"] * 50 + ["seven"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name in ("in.parquet", "in.csv", "in.npz"):
        (tmp_path / name).touch()
        refused(FileError, name, tmp_path / name, tmp_path / "out.parquet")
    np.savez(tmp_path / "in.npz", **members(1000))
    whole = (tmp_path / "in.npz").read_bytes()
    (tmp_path / "in.npz").write_bytes(whole[:5000])
    refused(FileError, r"in\.npz: cannot be read", tmp_path / "in.npz", tmp_path / "out.parquet")
    (tmp_path / "empty").mkdir()
    for missing, message in [("nowhere.parquet", "no such file"), ("no*.parquet", "nothing matches"), ("empty", "holds no")]:
        refused(FileError, message, tmp_path / missing, tmp_path / "out.parquet")
    (tmp_path / "in.txt").touch()
    refused(FileError, "files end in", tmp_path / "in.txt", tmp_path / "out.parquet")
    refused(ArgumentError, "no input", [], tmp_path / "out.parquet")


def test_outputs_in_the_way_of_inputs_are_refused(partitioned: Path, tmp_path: Path) -> None:
    for output, message in [
        (partitioned, "lies in"),
        (partitioned / "out", "lies in"),
        (tmp_path / "out.txt", "ends in"),
        (tmp_path / "out.parquet", "partition keys"),
    ]:
        refused(ArgumentError, message, partitioned, output, overwrite=True)
    refused(ArgumentError, "is an input", partitioned / PARTS[0], partitioned / PARTS[0], overwrite=True)
    refused(ArgumentError, "holds the inputs", partitioned / PARTS[0], tmp_path, overwrite=True)
    for name in ("a.csv", "a.csv.parquet"):
        (tmp_path / name).touch()
    refused(ArgumentError, "would both become", [tmp_path / "a.csv", tmp_path / "a.csv.parquet"], tmp_path / "out")


def test_ood_files_are_named_by_stem_or_by_path() -> None:
    assert named_by_stem(["a/x.csv", "a/y.csv"]) == {"x": "a/x.csv", "y": "a/y.csv"}
    assert named_by_stem([Path("a/x.csv"), Path("b/x.csv")]) == {"a/x.csv": Path("a/x.csv"), "b/x.csv": Path("b/x.csv")}
    with pytest.raises(ArgumentError, match=r"must differ, got a/x\.csv, a/x\.csv"):
        named_by_stem(["a/x.csv", "a/x.csv"])


def linked(tmp_path: Path) -> Path:
    """A folder with a file, another name for it, a folder elsewhere behind a link, and links that form circles."""
    folder, elsewhere = tmp_path / "in", tmp_path / "elsewhere"
    for place in (folder / "a" / "b", elsewhere):
        place.mkdir(parents=True)
    (folder / "a" / "b" / "x.parquet").touch()
    (elsewhere / "y.parquet").touch()
    links = {"a/b/up": "..", "a/b/top": "../..", "0.parquet": "a/b/x.parquet", "0": "a/b", "far": elsewhere}
    for link, target in links.items():
        (folder / link).symlink_to(target)
    return folder


@pytest.mark.parametrize("pattern", ["", "**/*.parquet", "**", "*", "**/*"])
def test_links_are_followed_and_each_file_counts_once(tmp_path: Path, pattern: str) -> None:
    folder = linked(tmp_path)
    spans = find_files(f"{folder}/{pattern}")
    assert sorted(span.path.relative_to(folder).as_posix() for span in spans) == ["a/b/x.parquet", "far/y.parquet"]
    assert [span.path for span in find_files([folder / "0.parquet", folder / "a" / "b" / "x.parquet"])] == [
        folder / "a/b/x.parquet"
    ]


def test_what_cannot_be_read_in_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "gone.parquet").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.parquet")
    assert [span.path.name for span in find_files(tmp_path)] == ["gone.parquet"]
    with pytest.raises(FileError, match=r"pipe\.parquet: is a device or a pipe"):
        find_files(tmp_path / "pipe.parquet")
    with pytest.raises(FileError, match="is closed: the folder cannot be read: Permission denied"):
        _unreadable(PermissionError(13, "Permission denied", f"{tmp_path} is closed"))


def test_endings_may_be_in_capitals(tmp_path: Path) -> None:
    """A folder with 1.CSV was scored without it."""
    given = [table(20, seed=seed) for seed in range(3)]
    (tmp_path / "in").mkdir()
    for name, each in zip(("0.parquet", "1.CSV", "2.Parquet"), given, strict=True):
        write_table(each, tmp_path / "in" / name.lower()).rename(tmp_path / "in" / name)
    for inputs in (tmp_path / "in", str(tmp_path / "in" / "*"), str(tmp_path / "in" / "**")):
        assert score(inputs, tmp_path / "out", measures=FEW, overwrite=True).rows == 60
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "0.parquet",
        "1.CSV.parquet",
        "2.Parquet.parquet",
        "_uqprism.json",
    ]
    assert score(tmp_path / "in" / "1.CSV", tmp_path / "out.PARQUET", measures=FEW).rows == 20
    assert_scored(pq.read_table(tmp_path / "out.PARQUET"), given[1], FEW)
    assert score(tmp_path / "in", tmp_path / "out", measures=FEW, resume=True).resumed_rows == 60


def test_data_in_formats_that_are_not_read_is_named(tmp_path: Path) -> None:
    """Other files, such as notes, are passed over in silence."""
    (tmp_path / "data").mkdir()
    for name in ("b.csv.xz", "a.csv.xz", "c.feather", "notes.txt", "_x.csv.xz"):
        (tmp_path / "data" / name).touch()
    with pytest.raises(FileError, match=r"a\.csv\.xz: files end in .*; unpack this one"):
        find_files(tmp_path / "data" / "a.csv.xz")
    pq.write_table(table(5), tmp_path / "data" / "d.parquet")
    for given in (tmp_path / "data", tmp_path / "data" / "*"):
        with pytest.warns(UserWarning, match=r"3 files are not read, such as .*a\.csv\.xz; files end in .*, so unpack them"):
            assert [span.path.name for span in find_files(given)] == ["d.parquet"]
    (tmp_path / "data" / "d.parquet").unlink()
    with pytest.warns(UserWarning, match="not read"), pytest.raises(FileError, match="the folder holds no"):
        find_files(tmp_path / "data")
