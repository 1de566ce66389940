"""Two runs into one output: one has it, the other is told so; parts and manifest agree in any case."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.files.tables import FEW, refused, table
from uqprism.errors import ArgumentError, BusyError
from uqprism.files import claim, manifest, score
from uqprism.files.rows import Scorer

RUN = "import sys; from uqprism import files; files.score(sys.argv[1], sys.argv[2], measures=sys.argv[3:], overwrite=True)"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pq.write_table(table(20), tmp_path / "in" / f"{name}.parquet")
    return tmp_path / "in"


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """A function that arranges that something happens while the file b is scored."""

    def arrange(happen: Callable[[], None]) -> None:
        score_batch, done = Scorer.__call__, []

        def disturbed(self: Scorer, batch: object, first_row: int) -> object:
            if self.path.name == "b.parquet" and not done:
                done.append(True)
                happen()
            return score_batch(self, batch, first_row)

        monkeypatch.setattr(Scorer, "__call__", disturbed)

    return arrange


def agreed(output: Path) -> bool:
    """Whether the folder holds a manifest, exactly its parts, and no other file, and all were made with the same options."""
    about = json.loads((output / "_uqprism.json").read_text())
    parts = {output / part["part"] for part in about["parts"]}
    return {path for path in output.rglob("*") if path.is_file()} == {*parts, output / "_uqprism.json"} and all(
        manifest.recorded(path)["options"] == about["options"] for path in parts
    )


@pytest.fixture(params=[True, False], ids=["locks", "no locks"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the file system has locks."""
    if not request.param:
        monkeypatch.setattr(claim, "_lock", lambda _: False)
    return request.param


@pytest.mark.parametrize("target", ["out", "out.parquet", "out.csv"])
def test_the_second_run_is_refused_while_the_first_goes_on(
    given: Path, tmp_path: Path, during: Callable, target: str, locks: bool
) -> None:
    """With other options; without locks the process named in the lock file is asked for."""
    message = rf"output .*{target}: another run \(process {os.getpid()} on .* since .*\) is writing to it"
    during(lambda: refused(BusyError, message, given, tmp_path / target, measures=FEW[1], overwrite=True))
    report = score(given, tmp_path / target, measures=FEW)
    assert (report.rows, report.locked) == (40, locks)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", target]
    if target == "out":
        assert agreed(tmp_path / "out")


def test_a_run_that_lost_its_output_gives_up(given: Path, tmp_path: Path, during: Callable) -> None:
    """As where locks do not reach from one machine to another: the later run has it, and the earlier writes no further part."""

    def take_over() -> None:
        (tmp_path / "out" / claim.LOCK).write_text(json.dumps({"run": "0123456789ab", "process": 1, "host": "elsewhere"}))

    during(take_over)
    refused(BusyError, "this run gives up, because another run", given, tmp_path / "out", measures=FEW)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [claim.LOCK, "a.parquet"]
    assert score(given, tmp_path / "out", measures=FEW, resume=True).resumed_rows == 20
    assert agreed(tmp_path / "out")


def test_a_part_that_another_program_changed_is_noticed(given: Path, tmp_path: Path, during: Callable) -> None:
    during(lambda: pq.write_table(table(3), tmp_path / "out" / "a.parquet"))
    refused(BusyError, r"a\.parquet was changed by another program", given, tmp_path / "out", measures=FEW)
    assert not (tmp_path / "out" / "_uqprism.json").exists()


def test_the_lock_of_a_killed_run_is_taken_over(given: Path, tmp_path: Path) -> None:
    """The run is killed inside its first part, and leaves its lock file and a temporary file."""
    slow = RUN.replace("files.score", "files.rows.Scorer.__call__ = lambda *_: __import__('time').sleep(60); files.score")
    slow = slow.replace("import files", "import files; import uqprism.files.rows")
    process = subprocess.Popen([sys.executable, "-c", slow, str(given), str(tmp_path / "out"), *FEW])
    deadline = time.monotonic() + 30
    while not list((tmp_path / "out").glob("_uqprism-tmp-*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    refused(BusyError, f"process {process.pid}", given, tmp_path / "out", measures=FEW, resume=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "out" / claim.LOCK).exists()
    score(given, tmp_path / "out", measures=FEW, resume=True)
    assert agreed(tmp_path / "out")


def test_an_output_inside_another_is_refused(given: Path, tmp_path: Path) -> None:
    """The outer run would take the parts of the inner one for its own old ones."""
    score(given, tmp_path / "out" / "inner", measures=FEW)
    refused(ArgumentError, "inner in it is the output of another run", given, tmp_path / "out", measures=FEW, overwrite=True)
