"""Jobs in processes: finished jobs are kept, whatever happens to the processes."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.paper import run, toy
from tests.paper.toy import EXPERIMENT, noted, tiny
from uqprism.errors import JobError
from uqprism.paper.engine import watching
from uqprism.paper.jobs import Job, RunPlan
from uqprism.paper.runner import Outcome, Reproduction, produce
from uqprism.paper.store import Artefact, Store

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_several_processes_share_the_jobs_and_find_the_same(tmp_path: Path) -> None:
    alone = produce(EXPERIMENT, "slow", out=tmp_path / "alone")
    shared = produce(EXPERIMENT, "slow", out=tmp_path / "shared", jobs=2)
    assert sorted(noted("ended")) == sorted([*range(8), *range(8)])
    np.testing.assert_array_equal(shared.result.arrays["means"], alone.result.arrays["means"])
    store = Store(tmp_path / "shared" / "_work")
    workers = {store.get(job.artefact).data["process"] for job in toy.jobs(EXPERIMENT.presets["slow"])}
    assert len(workers) == 2
    assert os.getpid() not in workers
    assert shared.record["jobs"]["processes"] == 2


def started(name: str, out: Path, number: int) -> subprocess.Popen[bytes]:
    """A program of `tests.paper.run`, with a process group of its own."""
    command = [sys.executable, "-m", "tests.paper.run", name, str(out), str(number)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE)


def stamps(out: Path) -> dict[Path, int]:
    """When each finished artefact and its record were written; a kill can leave a record without its value, never the reverse."""
    values = [path for path in out.glob("_work/*/*.*") if path.suffix not in {".tmp", ".json", ".lock"}]
    return {path: path.stat().st_mtime_ns for value in values for path in (value, value.with_suffix(".json"))}


def kill_once_some_are_done(out: Path, processes: int, count: int) -> set[int]:
    """SIGKILL to a run and its workers, while jobs are at work; returns those that were finished."""
    process = started("toy", out, processes)
    while len(done(out)) < count:
        assert process.poll() is None, process.stderr.read().decode()  # type: ignore[union-attr]
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (out / "result.json").exists()
    return done(out)


def done(out: Path) -> set[int]:
    plan = Reproduction.of(EXPERIMENT, "slow", out=out).plan()
    return {job.key.number for job in plan.jobs if job.name in plan.taken}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_run_goes_on_and_no_finished_job_is_repeated(processes: int, tmp_path: Path) -> None:
    """Killed twice at different times, then finished: the result is that of a run that was left alone."""
    out = tmp_path / "run"
    before: set[int] = set()
    for count in (2, 4):
        begun = len(noted("begun"))
        finished = kill_once_some_are_done(out, processes, count)
        assert not before & set(noted("begun")[begun:])
        before = finished
    assert 4 <= len(before) < 8
    written, begun = stamps(out), len(noted("begun"))
    resumed = produce(EXPERIMENT, "slow", out=out)
    assert noted("begun")[begun:] == sorted(set(range(8)) - before)
    assert written.items() <= stamps(out).items()
    assert resumed.record["jobs"]["found done"] == len(before)
    whole = produce(EXPERIMENT, "slow", out=tmp_path / "whole")
    assert contents(resumed) == contents(whole)
    assert (out / "arrays.npz").read_bytes() == (tmp_path / "whole" / "arrays.npz").read_bytes()
    assert not list((out / "_work").glob("*/.*"))


@pytest.mark.slow
def test_a_killed_training_continues_to_the_same_result(tmp_path: Path, epochs: Callable[..., list[int]]) -> None:
    """Of three ensembles, each of twelve epochs, the first was finished and the second after its tenth when SIGKILL came."""
    out = tmp_path / "run"
    killed = started("selective", out, 3)
    _, errors = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, errors.decode()
    assert not (out / "result.json").exists()
    written = stamps(out)
    plan = Reproduction.of(run.EXPERIMENT, "tiny", out=out).plan()
    assert list(plan.taken) == ["dots, seed 1"]
    assert len(list(out.glob("_work/unfinished/*/*.safetensors"))) == 1
    begun = epochs()
    resumed = produce(run.EXPERIMENT, "tiny", out=out, progress=False)
    assert begun == [10, 11, *range(12)]
    assert written.items() <= stamps(out).items()
    assert resumed.record["jobs"]["found done"] == 1
    whole = produce(run.EXPERIMENT, "tiny", out=tmp_path / "whole", progress=False)
    assert len(begun) == 14 + 36
    assert contents(resumed) == contents(whole)
    for name, values in whole.result.arrays.items():
        np.testing.assert_array_equal(resumed.result.arrays[name], values)


@pytest.mark.slow
def test_workers_of_a_killed_run_finish_what_they_are_at_and_end(tmp_path: Path) -> None:
    process = started("toy", tmp_path / "run", 2)
    while len(noted("begun")) < 2:
        time.sleep(0.005)
    process.kill()
    process.communicate()  # returns when nobody holds its standard error any more, so when the workers are gone
    assert sorted(noted("begun")) == sorted(noted("ended"))
    assert len(noted("begun")) < 8


def contents(outcome: Outcome) -> dict[str, object]:
    record = json.loads((outcome.folder / "result.json").read_text())
    return {name: record[name] for name in ("config", "seeds", "claims", "tables", "notes", "data", "agreements")}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_that_fails_is_named_and_the_others_are_kept(processes: int, tmp_path: Path) -> None:
    broken = tiny(broken=(1, 4))
    for _ in range(2):
        with pytest.raises(JobError, match=r"2 of 6 jobs failed.*\n  part 1: number 1 is broken\n  part 4: number 4 is broken"):
            produce(broken, "tiny", out=tmp_path / "run", jobs=processes)
        assert sorted(noted("ended")) == [0, 2, 3, 5]


def test_a_process_that_dies_takes_only_its_job_with_it(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"1 of 6 jobs failed.*\n  part 2: its process ended with code -9"):
        produce(tiny(deadly=(2,)), "tiny", out=tmp_path / "run", jobs=2)
    assert sorted(noted("ended")) == [0, 1, 3, 4, 5]


def test_an_error_that_nobody_meant_comes_with_its_traceback(tmp_path: Path) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(JobError, match=r"(?s)6 of 6 jobs failed, all for the same reason.*Traceback.*in bug") as told:
        produce(dataclasses.replace(EXPERIMENT, work=bug), "tiny", out=tmp_path / "run")
    assert str(told.value).count("Traceback") == 1
    assert "are kept" not in str(told.value)


def test_progress_tells_how_many_are_done_and_what_is_left(capfd: pytest.CaptureFixture[str]) -> None:
    jobs = tuple(Job(f"job {i}", Artefact("bundle", i), 100.0) for i in range(3))
    with watching(RunPlan("the run", jobs, {}), shown=True) as watcher:
        watcher.begun(jobs[0])
        watcher.finished(jobs[0], 50.0)
        watcher.begun(jobs[1])
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capfd.readouterr().err)
    assert "the run 1/3" in shown
    assert "about 2 min left" in shown
    assert "job 1" in shown
    with watching(RunPlan("the run", jobs, {}), shown=False) as watcher:
        watcher.begun(jobs[0])
    assert capfd.readouterr().err == ""
