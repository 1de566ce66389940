"""Files after failures: what remains, and what a later run keeps, continues or refuses."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.tables import FEW, assert_scored, refused, table
from uqprism.errors import ArgumentError, FileError, InvalidValueError
from uqprism.files import checking, claim, score, stream, write
from uqprism.files.rows import Scorer
from uqprism.files.write import RECORD
from uqprism.support.storage import TEMPORARY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for seed in range(4):
        pq.write_table(table(20, seed=seed), tmp_path / "in" / f"{seed}.parquet", row_group_size=5)
    return tmp_path / "in"


def state(folder: Path) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def interrupted(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The output of a run that ended in its third part."""
    make = stream.write_part

    def stopping(part: object, *arguments: object, **options: object) -> object:
        if part.spans[0].name == "2.parquet":
            monkeypatch.setattr(write.ParquetOutput, "finish", stop)
        return make(part, *arguments, **options)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context():
        monkeypatch.setattr(stream, "write_part", stopping)
        with pytest.raises(KeyboardInterrupt):
            score(folder, tmp_path / "out", measures=FEW)
    monkeypatch.undo()
    return tmp_path / "out"


PARTS = [f"{seed}.parquet" for seed in range(4)]


def test_an_interrupted_run_leaves_whole_parts_and_resume_makes_the_rest(folder: Path, interrupted: Path) -> None:
    before = state(interrupted)
    assert sorted(before) == PARTS[:2]
    report = score(folder, interrupted, measures=FEW, resume=True)
    after = state(interrupted)
    assert sorted(after) == [*PARTS, "_uqprism.json"]
    assert {name: after[name] for name in before} == before
    assert (report.rows, report.resumed_rows, len(report.parts)) == (80, 40, 4)
    for seed, part in enumerate(PARTS):
        assert_scored(pq.read_table(interrupted / part), table(20, seed=seed), FEW)
    again = score(folder, interrupted, measures=FEW, resume=True)
    assert (again.rows, again.resumed_rows) == (80, 80)
    assert score(folder, interrupted.with_name("new"), measures=FEW, resume=True).resumed_rows == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": FEW[0]}, r'measures \["crps.*now \["crps.excess.members.members"\]'),
        ({"measures": FEW, "weights": [0.2, 0.3, 0.5]}, r"weights null, now \[0.2, 0.3, 0.5\]"),
        ({"measures": FEW, "keep_members": True}, "keep_members false, now true"),
    ],
)
def test_resume_with_other_options_says_what_differs(
    folder: Path, interrupted: Path, change: dict[str, object], message: str
) -> None:
    refused(ArgumentError, message, folder, interrupted, resume=True, **change)


def test_resume_after_bad_rows_with_another_way_to_treat_them(folder: Path, tmp_path: Path) -> None:
    """Parts without bad rows do not depend on `on_bad`; parts with some do."""
    broken = table(50).to_pydict()
    broken["mean_1"][3] = None
    pq.write_table(pa.table(broken), folder / "1.parquet")
    refused(InvalidValueError, "row 3", folder, tmp_path / "out", measures=FEW, threads=1)
    report = score(folder, tmp_path / "out", measures=FEW, on_bad="drop", resume=True)
    assert report.bad_rows == 1
    assert report.resumed_rows > 0
    refused(ArgumentError, 'on_bad "drop", now "null"', folder, tmp_path / "out", measures=FEW, on_bad="null", resume=True)


def test_resume_goes_by_the_files(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is gone, one was delivered again with as many bytes at the same time, one is new; the rest is not even opened."""
    score(folder, tmp_path / "out", measures=FEW)
    before, then = state(tmp_path / "out"), (folder / "1.parquet").stat()
    (folder / "0.parquet").unlink()
    pq.write_table(table(20, seed=7), folder / "1.parquet", row_group_size=5)
    os.utime(folder / "1.parquet", ns=(then.st_atime_ns, then.st_mtime_ns))
    (folder / "late").mkdir()
    pq.write_table(table(20, seed=8), folder / "late" / "4.parquet")
    opened = []
    open_input = stream.open_input
    monkeypatch.setattr(
        stream, "open_input", lambda span, *given, **how: opened.append(span.name) or open_input(span, *given, **how)
    )
    monkeypatch.setattr(checking, "open_input", stream.open_input)
    report = score(folder, tmp_path / "out", measures=FEW, resume=True)
    assert set(opened) == {"1.parquet", "late/4.parquet"}
    assert (report.rows, report.resumed_rows, report.removed) == (80, 40, (tmp_path / "out" / "0.parquet",))
    after = state(tmp_path / "out")
    assert sorted(after) == [*PARTS[1:], "_uqprism.json", "late/4.parquet"]
    assert {name for name in after if before.get(name) == after[name]} == set(PARTS[2:])
    assert_scored(pq.read_table(tmp_path / "out" / "1.parquet"), table(20, seed=7), FEW)
    about = json.loads((tmp_path / "out" / "_uqprism.json").read_text())
    assert (about["rows"], about["removed"]) == (80, ["0.parquet"])
    assert [part["part"] for part in about["parts"]] == [*PARTS[1:], "late/4.parquet"]


def test_resume_refuses_a_late_file_with_other_members(folder: Path, tmp_path: Path) -> None:
    """Also where most of the files to score have them: the parts that are there decide."""
    score(folder, tmp_path / "out", measures=FEW)
    for i in range(8):
        pq.write_table(table(20).drop_columns(["mean_2", "variance_2"]), folder / f"late{i}.parquet")
    report = score(folder, tmp_path / "out", measures=FEW, resume=True, on_bad_file="skip")
    assert (report.rows, report.resumed_rows, len(report.bad_files)) == (80, 80, 8)


def test_what_is_there_stays_unless_it_is_to_be_replaced(folder: Path, tmp_path: Path) -> None:
    score(folder, tmp_path / "out", measures=FEW)
    before = state(tmp_path / "out")
    refused(ArgumentError, "exists already; pass overwrite or resume", folder, tmp_path / "out", measures=FEW)
    assert state(tmp_path / "out") == before
    (folder / "3.parquet").unlink()
    score(folder, tmp_path / "out", measures="crps.bayes.members", overwrite=True)
    assert sorted(state(tmp_path / "out")) == [*PARTS[:3], "_uqprism.json"]
    assert pq.read_schema(tmp_path / "out" / "0.parquet").names == ["key", "crps.bayes.members"]


def test_overwriting_keeps_the_old_until_the_new_is_whole(tmp_path: Path) -> None:
    pq.write_table(table(20), tmp_path / "in.parquet")
    score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW)
    before = (tmp_path / "out.parquet").read_bytes()
    frame = table(20).to_pydict()
    frame["mean_0"][19] = np.nan
    pq.write_table(pa.table(frame), tmp_path / "in.parquet")
    with pytest.raises(InvalidValueError):
        score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW, overwrite=True)
    assert (tmp_path / "out.parquet").read_bytes() == before


def test_folders_with_files_of_others_are_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    pq.write_table(table(3), tmp_path / "out" / "precious.parquet")
    for choice in ("resume", "overwrite"):
        with pytest.raises(ArgumentError, match=r"precious\.parquet was not written by uqprism score"):
            score(folder, tmp_path / "out", measures=FEW, **{choice: True})
    assert list(state(tmp_path / "out")) == ["precious.parquet"]


def test_resume_of_one_file(tmp_path: Path) -> None:
    pq.write_table(table(20), tmp_path / "in.parquet")
    for name in ("out.parquet", "out.csv"):
        score(tmp_path / "in.parquet", tmp_path / name, measures=FEW)
    assert score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW, resume=True).resumed_rows == 20
    with pytest.raises(ArgumentError, match="has no record of its making"):
        score(tmp_path / "in.parquet", tmp_path / "out.csv", measures=FEW, resume=True)
    refused(ArgumentError, "contradict", tmp_path / "in.parquet", tmp_path / "out.csv", resume=True, overwrite=True)


@pytest.mark.parametrize("target", ["out.parquet", "out.csv", "out.npz", "out"])
def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """The third batch fails, as on a full disk."""
    pq.write_table(table(5000), tmp_path / "in.parquet")
    monkeypatch.setattr("uqprism.files.rows.BATCH_BYTES", 1)  # batches of 64 rows
    calls = []
    score_batch = Scorer.__call__

    def failing(self: Scorer, batch: object, first_row: int) -> object:
        calls.append(first_row)
        if first_row == 128:
            raise OSError(28, "No space left on device")
        return score_batch(self, batch, first_row)

    monkeypatch.setattr(Scorer, "__call__", failing)
    with pytest.raises(FileError, match=f"{target}.*: cannot be written: No space left on device"):
        score(tmp_path / "in.parquet", tmp_path / target, measures=FEW, threads=1)
    assert calls[:3] == [0, 64, 128]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["in.parquet"]


def test_leftovers_of_a_killed_run_are_swept_away(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once where there are locks, because a live run would hold it; else those unchanged for an hour."""
    for locks in (True, False):
        (tmp_path / "out").mkdir()
        old, young = (tmp_path / "out" / f"{TEMPORARY}{run}-01234567-0.parquet.tmp" for run in ("0123456789ab", "ba9876543210"))
        for leftover in (old, young):
            leftover.write_bytes(b"half")
        os.utime(old, (0, 0))
        monkeypatch.setattr(claim, "_lock", claim._lock if locks else lambda _: False)
        assert score(folder, tmp_path / "out", measures=FEW).locked == locks
        assert sorted(state(tmp_path / "out")) == sorted([*PARTS, "_uqprism.json", *([] if locks else [young.name])])
        shutil.rmtree(tmp_path / "out")


def test_temporary_files_of_other_targets_are_left_alone(folder: Path, tmp_path: Path) -> None:
    """Several runs may write files into one folder at the same time."""
    others = [f"{TEMPORARY}0123456789ab-01234567-{name}" for name in ("about.parquet", "a-out.parquet")]
    for name in others:
        (tmp_path / name).touch()
    score(folder / "0.parquet", tmp_path / "out.parquet", measures=FEW)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in", "out.parquet", *others])


RECORDS = [b"{}", b"[]", b"[", b"\xff", b"[" * 100_000, b'{"version": "0.1.0"}']
RECORDS += [b'{"version": "0.1.0", "options": {}, "sources": [], "rows": 1, "bad_rows": 0}']


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
@pytest.mark.parametrize("option", ["resume", "overwrite"])
def test_a_part_with_a_damaged_record_is_no_part_of_ours(tmp_path: Path, folder: Path, record: bytes, option: str) -> None:
    foreign = pa.table({"a": [1.0]}).replace_schema_metadata({RECORD: record})
    (tmp_path / "out").mkdir()
    pq.write_table(foreign, tmp_path / "out" / "a.parquet")
    refused(ArgumentError, "a.parquet was not written by uqprism score", folder, tmp_path / "out", **{option: True})
    assert pq.read_table(tmp_path / "out" / "a.parquet") == foreign
