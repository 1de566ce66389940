"""`uqprism score`, as a script sees it: exit codes, one line on standard error, nothing left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli import command
from tests.files.tables import FEW, assert_scored, table
from uqprism.files.claim import claimed

run = partial(command.run, "score")


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """A file of 20 rows in the current folder."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(20), tmp_path / "in.parquet")
    return table(20)


def test_success_is_silent_but_for_a_summary(given: pa.Table, tmp_path: Path) -> None:
    result = run("in.parquet", "-o", "out.parquet", "--measures", ",".join(FEW))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("scored 20 rows in ")
    assert result.stdout.endswith("none bad: out.parquet\n")
    assert_scored(pq.read_table(tmp_path / "out.parquet"), given, FEW)


def test_options_reach_the_library(given: pa.Table, tmp_path: Path) -> None:
    renamed = given.rename_columns([name.replace("mean_", "mu").replace("variance_", "v") for name in given.column_names])
    pq.write_table(renamed, tmp_path / "in.parquet")
    options = "-q --progress --compression zstd --mean-columns mu{i} --variance-columns v0,v1,v2 --weights 0.2,0.3,0.5"
    measures = [f"--measures={name}" for name in FEW]
    result = run("in.parquet", "-o", "out", *options.split(), "--keep-members", *measures)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    scored = pq.read_table(tmp_path / "out" / "in.parquet")
    assert scored.column_names == [*renamed.column_names, *FEW]
    assert_scored(scored, given, FEW, [0.2, 0.3, 0.5])


def test_a_progress_bar_on_request(given: pa.Table, tmp_path: Path) -> None:
    result = run("in.parquet", "-o", "out.csv", "--progress")
    assert "20 rows" in result.stderr
    assert "100%" in result.stderr
    assert "%" not in result.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bad", "row 7: variance_1 must be finite and greater than zero, got -2.0; repair it, or "),
        ("broken", "cannot be read: "),
        ("other", "no columns like mean_{i}, the columns are x; "),
        ("missing", "no such file"),
    ],
)
def test_bad_data_is_exit_code_1(given: pa.Table, tmp_path: Path, name: str, message: str) -> None:
    frame = given.to_pydict()
    frame["variance_1"][7] = -2.0
    pq.write_table(pa.table(frame), tmp_path / "bad.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "other.parquet")
    result = run(f"{name}.parquet", "-o", "out.parquet")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"uqprism: {name}.parquet: {message}")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out.parquet").exists()
    if name == "bad":
        result = run("bad.parquet", "-o", "out.parquet", "--on-bad", "drop")
        assert result.returncode == 0
        assert "1 bad" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("in.parquet", "Missing option"),
        ("-o out.parquet", "Missing argument"),
        ("in.parquet -o there.parquet", "uqprism: output there.parquet: exists already"),
        ("in.parquet -o out.csv --measures crsp.bayes.members", "uqprism: unknown rule 'crsp'; did you mean 'crps'"),
        ("in.parquet -o out.csv --on-bad ignore", "uqprism: unknown on_bad"),
        ("in.parquet -o out.csv --weights a,b", "uqprism: weights (--weights) must be numbers"),
        ("in.parquet -o out.csv --weights 1,2", "uqprism: in.parquet: weights must have one entry"),
        ("in.parquet -o out.xyz", "uqprism: output out.xyz: ends in"),
    ],
)
def test_wrong_usage_is_exit_code_2(given: pa.Table, tmp_path: Path, options: str, message: str) -> None:
    (tmp_path / "there.parquet").touch()
    result = run(*options.split())
    assert result.returncode == 2
    assert message in result.stderr


def test_a_bad_file_among_others_is_exit_code_3(given: pa.Table, tmp_path: Path) -> None:
    """Standard output has the summary, standard error every bad file; a JSON file and a log file tell more."""
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "other.parquet")
    paths = ["in.parquet", "broken.parquet", "other.parquet"]
    result = run(*paths, "-o", "out", "--summary", "night.json", "--log-file", "night.log")
    assert result.returncode == 3
    assert result.stdout.startswith("scored 20 rows in ")
    lines = result.stderr.splitlines()
    assert lines[0] == "uqprism: 2 of 3 input files are bad, the others are scored:"
    assert lines[1].startswith("  broken.parquet: cannot be read: ")
    assert lines[2].startswith("  other.parquet: no columns like mean_{i}")
    assert len(lines) == 4
    assert json.loads((tmp_path / "night.json").read_text())["exit_code"] == 3
    assert (tmp_path / "night.log").read_text().splitlines()[-1].endswith(lines[3])
    skipped = run(*paths, "-o", "out", "--overwrite", "--on-bad-file", "skip")
    assert (skipped.returncode, skipped.stderr) == (0, result.stderr)
    failed = run(*paths, "-o", "out", "--overwrite", "--on-bad-file", "fail")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("uqprism: broken.parquet: cannot be read: ")


def test_too_many_bad_rows_are_exit_code_4_and_a_busy_output_5(given: pa.Table, tmp_path: Path) -> None:
    frame = given.to_pydict()
    frame["variance_1"][7] = -2.0
    pq.write_table(pa.table(frame), tmp_path / "bad.parquet")
    limits = ["bad.parquet", "-o", "out.parquet", "--overwrite", "--on-bad", "drop", "--max-bad"]
    assert [run(*limits, limit).returncode for limit in ("1", "5%", "0.049", "0", "-1")] == [0, 0, 4, 4, 2]
    with claimed(tmp_path / "out.parquet", folder=False):
        result = run(*limits, "1")
    assert (result.returncode, result.stdout) == (5, "")
    assert result.stderr.startswith("uqprism: output out.parquet: another run (process ")


def test_a_log_file_is_not_appended_to_data(given: pa.Table) -> None:
    for place, message in (
        ("in.parquet", "must not end in"),
        ("out/night.log", "lies in the output"),
        ("no/night.log", "cannot be"),
    ):
        result = run("in.parquet", "-o", "out", "--log-file", place)
        assert (result.returncode in {1, 2}, message in result.stderr, result.stderr.count("\n")) == (True, True, 1)


SLOW = """
import signal, sys, time
from uqprism.__main__ import main
from uqprism.files import rows

score = rows.Scorer.__call__

def slow(self, *given):
    if self.path.name == "b.parquet":
        time.sleep(1.5)
    return score(self, *given)

rows.Scorer.__call__ = slow
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background of a script
sys.argv = ["uqprism", "score", "in", "-o", "out"]
main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_half_written(tmp_path: Path, number: int, code: int) -> None:
    """The second of two files takes its time, and the signal comes in the middle of it."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pq.write_table(table(10), tmp_path / "in" / f"{name}.parquet")
    process = subprocess.Popen([sys.executable, "-c", SLOW], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not list((tmp_path / "out").glob("_uqprism-tmp-*b.parquet.tmp")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, message = process.communicate(timeout=60)
    assert process.returncode == code
    assert message == ("" if code == 143 else "uqprism: interrupted; parts that are finished stay, continue with --resume\n")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.parquet"]
