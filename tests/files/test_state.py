"""An input that changes while it is read is a bad file, whatever its format and however it changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.files.tables import FEW, assert_scored, read_table, table, write_table
from uqprism.errors import BadFileError, BadFilesError
from uqprism.files import score
from uqprism.files.rows import Scorer
from uqprism.files.state import FileState

ROWS = 400


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"1,2,3,4,5,6,7\n" * 1000)


def rewrite(path: Path) -> None:
    """In place, with as many rows and, where the format allows it, as many bytes."""
    other = write_table(table(ROWS, seed=1), path.with_name(f"_other{path.suffix}"))
    path.write_bytes(other.read_bytes())


def replace(path: Path) -> None:
    """With a file that has the same size and time."""
    before = path.stat()
    other = path.with_name(f"_other{path.suffix}")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def remove(path: Path) -> None:
    path.unlink()


@pytest.fixture
def disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A function that makes a folder of two inputs, of which the second is changed in the middle of its third batch."""

    def make(suffix: str, change: Callable[[Path], None]) -> Path:
        (tmp_path / "in").mkdir()
        write_table(table(20), tmp_path / "in" / f"a{suffix}")
        path = write_table(table(ROWS), tmp_path / "in" / f"b{suffix}")
        monkeypatch.setattr("uqprism.files.rows.BATCH_BYTES", 1)  # batches of 64 rows
        score_batch, done = Scorer.__call__, []

        def changing(self: Scorer, batch: object, first_row: int) -> object:
            if self.path == path and first_row == 128 and not done:
                done.append(change(path))
            return score_batch(self, batch, first_row)

        monkeypatch.setattr(Scorer, "__call__", changing)
        return tmp_path / "in"

    return make


@pytest.mark.parametrize("change", [truncate, grow, rewrite, replace, remove])
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz"])
def test_a_file_that_changes_is_named_and_has_no_part(
    tmp_path: Path, disturbed: Callable[..., Path], suffix: str, change: Callable[[Path], None]
) -> None:
    folder = disturbed(suffix, change)
    reason = "cannot be read: No such file" if change is remove else "changed while it was read: "
    with pytest.raises(BadFilesError, match=rf"1 of 2 input files are bad(?s:.)*b\{suffix}: {reason}") as caught:
        score(folder, tmp_path / "out", measures=FEW, threads=1)
    assert caught.value.report.rows == 20
    manifest = json.loads((tmp_path / "out" / "_uqprism.json").read_text())
    names = [part["part"] for part in manifest["parts"]]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(["_uqprism.json", *names])
    assert [source["name"] for part in manifest["parts"] for source in part["sources"]] == [f"a{suffix}"]
    assert [Path(one["path"]).name for one in manifest["bad_files"]] == [f"b{suffix}"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz"])
def test_one_file_of_several_inputs_is_made_again_without_the_one_that_changed(
    tmp_path: Path, disturbed: Callable[..., Path], suffix: str
) -> None:
    folder = disturbed(suffix, truncate)
    output = tmp_path / f"out{suffix}"
    with pytest.raises(BadFilesError, match="changed while it was read"):
        score([folder / f"b{suffix}", folder / f"a{suffix}"], output, measures=FEW, threads=1)
    assert_scored(read_table(output), table(20), FEW)


def test_a_single_input_that_changes_leaves_the_output_of_before(tmp_path: Path, disturbed: Callable[..., Path]) -> None:
    folder = disturbed(".parquet", truncate)
    (tmp_path / "out.parquet").write_bytes(b"before")
    with pytest.raises(BadFileError, match="changed while it was read: its size was"):
        score(folder / "b.parquet", tmp_path / "out.parquet", measures=FEW, threads=1, overwrite=True)
    assert (tmp_path / "out.parquet").read_bytes() == b"before"


def test_all_parts_of_a_file_come_from_one_version_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is replaced between two of its parts; the finished one is removed."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pq.write_table(table(60), tmp_path / "in" / f"{name}.parquet", row_group_size=20)
    finish = score.__globals__["Run"].add

    def replacing(run: object, one: object) -> None:
        finish(run, one)
        if one.part.target.name == "b-00001.parquet":
            replace(tmp_path / "in" / "b.parquet")

    monkeypatch.setattr(score.__globals__["Run"], "add", replacing)
    with pytest.raises(BadFilesError, match=r"b\.parquet: changed while it was read: another file has taken its name"):
        score(tmp_path / "in", tmp_path / "out", measures=FEW, part_rows=20)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_uqprism.json",
        *(f"a-{i:05d}.parquet" for i in range(3)),
    ]


def test_the_manifest_records_what_was_read(tmp_path: Path) -> None:
    paths = [write_table(table(20, seed=i), tmp_path / f"{i}{suffix}") for i, suffix in enumerate((".parquet", ".csv", ".npz"))]
    score(paths, tmp_path / "out", measures=FEW)
    parts = json.loads((tmp_path / "out" / "_uqprism.json").read_text())["parts"]
    for part, path in zip(parts, paths, strict=True):
        state = FileState.of(path)
        wanted = {"name": path.name, "size": state.size, "modified": state.modified, "digest": state.digest}
        assert part["sources"] == [{**wanted, "row_groups": None, "rows": 20}]
