"""Runs of many jobs: what is done stays done, whatever happens to the processes."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from tests.paper import run_selective, toy
from tests.paper.toy import EXPERIMENT, LOG, Config, noted
from uqprism.errors import ArgumentError, JobError
from uqprism.paper.engine import watching
from uqprism.paper.jobs import Job, RunPlan
from uqprism.paper.runner import Outcome, Reproduction, produce
from uqprism.paper.store import Artefact, Store
from uqprism.training import trainer

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG, str(tmp_path / "log"))


def experiment(**settings: object) -> object:
    return dataclasses.replace(EXPERIMENT, presets={"tiny": Config(**settings)})


def test_each_job_runs_once_and_a_finished_folder_is_read(tmp_path: Path) -> None:
    first = produce(EXPERIMENT, "tiny", out=tmp_path / "run")
    assert noted("ended") == [0, 1, 2, 3, 4, 5]
    assert produce(EXPERIMENT, "tiny", out=tmp_path / "run").reused
    expected = [np.random.default_rng(seed).normal(size=100).mean() for seed in range(6)]
    np.testing.assert_array_equal(first.result.arrays["means"], expected)
    assert len(noted("ended")) == 6


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


def kill_once_some_are_done(out: Path, processes: int, count: int) -> set[int]:
    """SIGKILL to a run and its workers, while jobs are at work; returns those that were finished."""
    command = [sys.executable, "-m", "tests.paper.run_toy", str(out), str(processes)]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE)
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
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("_work/findings/*.npz")}
    begun = len(noted("begun"))
    resumed = produce(EXPERIMENT, "slow", out=out)
    assert noted("begun")[begun:] == sorted(set(range(8)) - before)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert resumed.record["jobs"]["found done"] == len(before)
    whole = produce(EXPERIMENT, "slow", out=tmp_path / "whole")
    assert contents(resumed) == contents(whole)
    assert (out / "arrays.npz").read_bytes() == (tmp_path / "whole" / "arrays.npz").read_bytes()
    assert not list((out / "_work").glob("*/.*"))


def test_a_killed_training_goes_on_from_its_checkpoint_to_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three ensembles, each of twelve epochs, the first was finished and the second after its tenth when SIGKILL came."""
    out = tmp_path / "run"
    command = [sys.executable, "-m", "tests.paper.run_selective", str(out), "3"]
    killed = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not (out / "result.json").exists()
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("_work/*/*") if path.is_file()}
    plan = Reproduction.of(run_selective.EXPERIMENT, "tiny", out=out).plan()
    assert list(plan.taken) == ["dots, seed 1"]
    assert len(list(out.glob("_work/unfinished/*/*.safetensors"))) == 1
    epoch, begun = trainer.Trainer._epoch, []

    def counted(run: trainer.Trainer) -> None:
        begun.append(run.state.epoch)
        epoch(run)

    monkeypatch.setattr(trainer.Trainer, "_epoch", counted)
    resumed = produce(run_selective.EXPERIMENT, "tiny", out=out, progress=False)
    assert begun == [10, 11, *range(12)]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert resumed.record["jobs"]["found done"] == 1
    whole = produce(run_selective.EXPERIMENT, "tiny", out=tmp_path / "whole", progress=False)
    assert len(begun) == 14 + 36
    assert contents(resumed) == contents(whole)
    for name, values in whole.result.arrays.items():
        np.testing.assert_array_equal(resumed.result.arrays[name], values)


def test_workers_of_a_killed_run_finish_what_they_are_at_and_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.paper.run_toy", str(tmp_path / "run"), "2"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
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
    broken = experiment(broken=(1, 4))
    with pytest.raises(JobError, match=r"2 of 6 jobs failed.*\n  part 1: number 1 is broken\n  part 4: number 4 is broken"):
        produce(broken, "tiny", out=tmp_path / "run", jobs=processes)
    assert sorted(noted("ended")) == [0, 2, 3, 5]
    with pytest.raises(JobError):
        produce(broken, "tiny", out=tmp_path / "run", jobs=processes)
    assert sorted(noted("ended")) == [0, 2, 3, 5]


def test_a_process_that_dies_takes_only_its_job_with_it(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"1 of 6 jobs failed.*\n  part 2: its process ended with code -9"):
        produce(experiment(deadly=(2,)), "tiny", out=tmp_path / "run", jobs=2)
    assert sorted(noted("ended")) == [0, 1, 3, 4, 5]


def test_an_error_that_nobody_meant_comes_with_its_traceback(tmp_path: Path) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(JobError, match=r"(?s)6 of 6 jobs failed, all for the same reason.*Traceback.*in bug") as told:
        produce(dataclasses.replace(EXPERIMENT, work=bug), "tiny", out=tmp_path / "run")
    assert str(told.value).count("Traceback") == 1
    assert "is kept" not in str(told.value)


def test_more_jobs_add_to_those_that_are_there(tmp_path: Path) -> None:
    produce(EXPERIMENT, "tiny", out=tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    produce(experiment(n_jobs=8), "tiny", out=tmp_path / "run")
    assert noted("ended") == [0, 1, 2, 3, 4, 5, 6, 7]


def test_overwriting_does_all_of_it_again(tmp_path: Path) -> None:
    produce(EXPERIMENT, "tiny", out=tmp_path / "run")
    produce(EXPERIMENT, "tiny", out=tmp_path / "run", overwrite=True)
    assert noted("ended") == [0, 1, 2, 3, 4, 5] * 2


def test_what_another_run_beside_it_made_is_read(tmp_path: Path) -> None:
    produce(EXPERIMENT, "tiny", out=tmp_path / "toy")
    reader = dataclasses.replace(EXPERIMENT, name="reader", reads=("toy",))
    second = produce(reader, "tiny", out=tmp_path / "reader")
    assert len(noted("ended")) == 6
    assert second.record["jobs"]["found done"] == 6
    produce(reader, "tiny", out=tmp_path / "elsewhere" / "reader")
    assert len(noted("ended")) == 12


def test_a_result_lists_the_versions_that_its_artefacts_were_made_with(tmp_path: Path) -> None:
    """Jobs done on another machine keep its versions; records from before they were written add none."""
    here = produce(EXPERIMENT, "tiny", out=tmp_path / "run").record["made with"]
    assert [each["numpy"] for each in here] == [np.__version__]
    records = sorted((tmp_path / "run" / "_work" / "bundle").glob("*.json"))
    for path, versions in zip(records, [{"python": "3.8.1", "numpy": "1.20"}] * 2 + [None] * len(records), strict=False):
        record = json.loads(path.read_text())
        record["versions"] = versions
        path.write_text(json.dumps({name: value for name, value in record.items() if value is not None}))
    (tmp_path / "run" / "result.json").unlink()
    assert produce(EXPERIMENT, "tiny", out=tmp_path / "run").record["made with"] == [{"python": "3.8.1", "numpy": "1.20"}]
    for path in records:
        path.write_text(json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != "versions"}))
    (tmp_path / "run" / "result.json").unlink()
    assert "made with" not in produce(EXPERIMENT, "tiny", out=tmp_path / "run").record


def test_the_tables_are_written_as_parquet(tmp_path: Path) -> None:
    outcome = produce(EXPERIMENT, "tiny", out=tmp_path / "run")
    table = pyarrow.parquet.read_table(tmp_path / "run" / "tables" / "means-by-part.parquet")
    assert table.to_pylist() == outcome.result.tables["Means, by part"]


def test_the_plan_counts_what_is_done_and_guesses_from_what_that_took(tmp_path: Path) -> None:
    run = Reproduction.of(EXPERIMENT, "tiny", out=tmp_path / "run", jobs=2)
    plan = run.plan()
    assert str(plan).splitlines()[0] == "toy, preset tiny: 6 jobs, 0 done, about 6 s left with 2 processes"
    assert str(plan).splitlines()[1].split() == ["to", "do", "~2", "s", "part", "0"]
    assert not (tmp_path / "run").exists()
    later = plan.after(plan.jobs[0], 10.0).after(plan.jobs[1], 30.0)
    assert [later.expected(job) for job in later.left] == [20.0] * 4
    assert later.seconds_left() == 40.0
    assert str(later).splitlines()[2].split() == ["done", "30", "s", "part", "1"]
    produce(EXPERIMENT, "tiny", out=tmp_path / "run")
    assert "6 jobs, 6 done, nothing left to do" in str(run.plan())
    shutil.rmtree(tmp_path / "run" / "_work")
    assert "6 jobs, 6 done, nothing left to do" in str(run.plan())
    refused = str(Reproduction.of(EXPERIMENT, "slow", out=tmp_path / "run").plan()).splitlines()
    assert refused[0].startswith("toy, preset slow: 8 jobs, 0 done")
    assert "would be refused" in refused[-1]
    assert "n_jobs is 6 there and 8 here, and one more differs" in refused[-1]


def test_a_plan_names_the_data_files_that_are_missing_and_the_machine_of_its_guesses(tmp_path: Path) -> None:
    needy = dataclasses.replace(EXPERIMENT, needs=lambda _: ("camvid", "dots", "inverted", "ccpp"), wants_gpu=("tiny",))
    run = Reproduction.of(needy, "tiny", out=tmp_path / "run", data=tmp_path)
    lines = str(run.plan()).splitlines()
    assert "about 12 s left on a GPU" in lines[0]
    assert [line.split()[0] for line in lines[-3:]] == ["to", "Missing:", "Missing:"]
    assert "camvid" in lines[-2]
    assert f"{tmp_path / 'ccpp'}" in lines[-1]
    (tmp_path / "ccpp.parquet").touch()
    assert "ccpp" not in str(run.plan())


def test_jobs_of_the_same_name_are_refused(tmp_path: Path) -> None:
    jobs = [Job("same", Artefact("bundle", i)) for i in range(2)]
    with pytest.raises(ArgumentError, match="'same' twice"):
        RunPlan.of("run", jobs, Store(tmp_path), 1)
    with pytest.raises(ArgumentError, match="jobs must be at least 1, got 0"):
        Reproduction.of(EXPERIMENT, "tiny", out=tmp_path, jobs=0)


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
