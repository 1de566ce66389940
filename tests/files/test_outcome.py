"""Bad files and bad rows cost what they must, and the summary tells it, also of a run that fails."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.tables import FEW, assert_scored, refused, table
from uqprism.errors import ArgumentError, BadFileError, BadFilesError, BadRowsError, ExitCode, FileError
from uqprism.files import score
from uqprism.support.logs import log_to


def broken(rows: tuple[int, ...]) -> pa.Table:
    given = table(50).to_pydict()
    for row in rows:
        given["mean_1"][row] = np.nan
    return pa.table(given)


BAD = {
    "corrupt": "cannot be read: ",
    "empty": "",
    "fewer": "has 2 members by mean and variance, but .* has 3",
    "foreign": "no columns like mean_",
    "rows": "row 7: mean_1 must be finite, got nan",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three good files, after one of each kind of bad one."""
    path = tmp_path / "in"
    path.mkdir()
    (path / "corrupt.parquet").write_bytes(b"PAR1 and no more")
    (path / "empty.parquet").touch()
    pq.write_table(table(50).drop_columns(["mean_2", "variance_2"]), path / "fewer.parquet")
    pq.write_table(pa.table({"x": [1.0]}), path / "foreign.parquet")
    pq.write_table(broken((7, 9)), path / "rows.parquet")
    for i in range(3):
        pq.write_table(table(50, seed=i), path / f"z{i}.parquet")
    return path


GOOD = [f"z{i}.parquet" for i in range(3)]


@pytest.mark.parametrize("target", ["out", "out.parquet"])
def test_bad_files_are_all_named_and_the_others_scored(folder: Path, tmp_path: Path, target: str) -> None:
    with pytest.raises(BadFilesError) as caught:
        score(folder, tmp_path / target, measures=FEW)
    first, *lines, last = str(caught.value).splitlines()
    assert first == "5 of 8 input files are bad, the others are scored:"
    assert last == "deliver these files again, then run again with --resume"
    report = caught.value.report
    for line, bad, (name, reason) in zip(lines, report.bad_files, BAD.items(), strict=True):
        assert line == f"  {bad}"
        assert bad.path == folder / f"{name}.parquet"
        assert re.search(reason, bad.reason)
    assert (caught.value.exit_code, report.rows, report.inputs) == (ExitCode.BAD_FILES, 150, 8)
    if target == "out":
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_uqprism.json", *GOOD]
    else:
        assert_scored(pq.read_table(tmp_path / target), pa.concat_tables([table(50, seed=i) for i in range(3)]), FEW)


def test_bad_files_may_be_skipped_or_fatal(folder: Path, tmp_path: Path) -> None:
    report = score(folder, tmp_path / "out", measures=FEW, on_bad_file="skip")
    assert (report.rows, len(report.bad_files)) == (150, 5)
    refused(BadFileError, r"corrupt\.parquet: cannot be read", folder, tmp_path / "two", measures=FEW, on_bad_file="fail")
    assert not (tmp_path / "two").exists()
    refused(ArgumentError, "unknown on_bad_file", folder, tmp_path / "two", on_bad_file="ignore")
    for name in GOOD:
        (folder / name).unlink()
    for choice in ("name", "skip"):  # no output at all is an error in any case
        with pytest.raises(BadFilesError, match="nothing is scored") as caught:
            score([folder / f"{name}.parquet" for name in ("corrupt", "empty")], tmp_path / "out.csv", on_bad_file=choice)
        assert caught.value.exit_code == ExitCode.ERROR


def test_a_repaired_file_is_all_that_resuming_scores(folder: Path, tmp_path: Path) -> None:
    score(folder, tmp_path / "out", measures=FEW, on_bad_file="skip")
    for name in ("corrupt", "fewer"):
        pq.write_table(table(50, seed=7), folder / f"{name}.parquet")
    report = score(folder, tmp_path / "out", measures=FEW, on_bad_file="skip", resume=True)
    assert (report.rows, report.resumed_rows, len(report.bad_files)) == (250, 150, 3)
    pq.write_table(broken((1,)), folder / "z0.parquet")  # good before
    report = score(folder, tmp_path / "out", measures=FEW, on_bad_file="skip", resume=True)
    assert (report.rows, report.removed) == (200, (tmp_path / "out" / "z0.parquet",))


@pytest.mark.parametrize(
    ("allowed", "enough"), [(3, True), ("3", True), (2, False), (0.02, True), ("2%", True), ("1.9%", False), (0.0, False)]
)
@pytest.mark.parametrize("on_bad", ["null", "drop"])
def test_bad_rows_up_to_a_number_or_share(tmp_path: Path, allowed: object, enough: bool, on_bad: str) -> None:
    """3 of 150 rows."""
    for i, rows in enumerate([(7,), (3, 4), ()]):
        pq.write_table(broken(rows), tmp_path / f"{i}.parquet")
    given = [tmp_path / f"{i}.parquet" for i in range(3)], tmp_path / "out"
    if enough:
        assert score(*given, measures=FEW, on_bad=on_bad, max_bad=allowed).bad_rows == 3
    else:
        with pytest.raises(BadRowsError, match=r"the output is complete, but 3 of 150 rows were bad, more than") as caught:
            score(*given, measures=FEW, on_bad=on_bad, max_bad=allowed)
        assert (caught.value.exit_code, caught.value.report.rows) == (ExitCode.BAD_ROWS, 150)
    assert len(json.loads((tmp_path / "out" / "_uqprism.json").read_text())["parts"]) == 3


@pytest.mark.parametrize("on_bad_file", ["name", "skip"])
def test_too_many_bad_rows_are_not_hidden_by_bad_files(folder: Path, tmp_path: Path, on_bad_file: str) -> None:
    """A job that publishes in spite of a bad file must not publish rows that went wrong."""
    with pytest.raises(BadRowsError, match="2 of 200 rows were bad, more than 1") as caught:
        score(folder, tmp_path / "out", measures=FEW, on_bad="drop", max_bad=1, on_bad_file=on_bad_file)
    assert (caught.value.exit_code, caught.value.report.rows) == (ExitCode.BAD_ROWS, 200)
    assert all(f"{name}.parquet: " in str(caught.value) for name in ("corrupt", "empty", "fewer", "foreign"))


@pytest.mark.parametrize("allowed", ["many", -1, 1.5, "150%", "", True, float("nan")])
def test_what_is_no_number_of_bad_rows_is_refused(tmp_path: Path, allowed: object) -> None:
    refused(ArgumentError, "must be a number of rows", "in", "out", on_bad="null", max_bad=allowed)
    refused(ArgumentError, r"needs on_bad \(--on-bad\) null or drop", "in", "out", max_bad=allowed)


def test_the_summary_tells_what_was_done(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadFilesError) as caught:
        score(folder, tmp_path / "out", measures=FEW, on_bad="drop", max_bad=2, summary=tmp_path / "summary.json")
    about = json.loads((tmp_path / "summary.json").read_text())
    assert about["exit_code"] == ExitCode.BAD_FILES
    assert about["error"] == str(caught.value)
    assert {name: about[name] for name in ("inputs", "rows", "resumed_rows", "bad_rows")} == {
        "inputs": 8, "rows": 200, "resumed_rows": 0, "bad_rows": 2,
    }  # fmt: skip
    assert [Path(one["path"]).stem for one in about["bad_files"]] == ["corrupt", "empty", "fewer", "foreign"]
    assert about["scored"] == ["rows.parquet", *GOOD]
    assert about["options"]["measures"] == FEW
    assert about["options"]["max_bad"] == 2
    assert about["versions"]["uqprism"]
    assert about["seconds"] > 0


@pytest.mark.parametrize(
    ("failure", "code"),
    [(KeyboardInterrupt(), 130), (SystemExit(143), 143), (RuntimeError("odd"), 1), (OSError(28, "No space"), 1)],
)
def test_the_summary_is_written_however_the_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int
) -> None:
    pq.write_table(table(5), tmp_path / "in.parquet")

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("uqprism.files.stream.write_part", fail)
    with pytest.raises(type(failure)):
        score(tmp_path / "in.parquet", tmp_path / "out", measures=FEW, summary=tmp_path / "summary.json")
    about = json.loads((tmp_path / "summary.json").read_text())
    assert (about["exit_code"], about["rows"], bool(about["error"])) == (code, 0, True)


def test_wrong_usage_is_summarised_too(tmp_path: Path) -> None:
    refused(FileError, "no such file", tmp_path / "in.parquet", tmp_path / "out", summary=tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text())["exit_code"] == 1
    refused(ArgumentError, "unknown on_bad", "in.parquet", "out", on_bad="no", summary=tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text())["exit_code"] == 2


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("summary.txt", "must end in .json"),
        ("out/summary.json", "lies in the output"),
        ("no/s.json", "does not exist"),
        ("/proc/s.json", "cannot write"),
    ],
)
def test_places_where_no_summary_can_be_are_refused_before_any_work(tmp_path: Path, place: str, message: str) -> None:
    pq.write_table(table(5), tmp_path / "in.parquet")
    refused((ArgumentError, FileError), message, tmp_path / "in.parquet", tmp_path / "out", summary=tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_a_log_file_has_a_line_with_its_time_for_each_step(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with log_to(tmp_path / "night.log"):
        score(folder, tmp_path / "out", measures=FEW, on_bad_file="skip")
    lines = (tmp_path / "night.log").read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|ERROR) uqprism\.files\.\w+: ", line) for line in lines)
    text = "\n".join(lines)
    assert text.count("bad file: ") == 5
    assert text.count(": 50 rows, 0 bad") == 3
    assert capsys.readouterr() == ("", "")
