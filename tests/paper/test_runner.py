"""Runs of an experiment in a folder: done once, continued, read, refused."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from tests.paper.toy import EXPERIMENT, noted, tiny
from uqprism.errors import ArgumentError, FileError, InvalidValueError, MissingExtraError, install_command
from uqprism.paper import runner
from uqprism.paper.jobs import Job, RunPlan
from uqprism.paper.runner import Reproduction, produce
from uqprism.paper.store import Artefact, Store


def no_work(*_: object) -> None:
    raise AssertionError("nothing should be run")


IDLE = dataclasses.replace(EXPERIMENT, work=no_work)


def test_more_jobs_add_to_those_that_are_there(tmp_path: Path) -> None:
    produce(EXPERIMENT, "tiny", out=tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    produce(tiny(n_jobs=8), "tiny", out=tmp_path / "run")
    assert noted("ended") == [0, 1, 2, 3, 4, 5, 6, 7]


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
    old = {"python": "3.8.1", "numpy": "1.20"}
    for count, made_with in ((2, [old]), (0, None)):
        for i, path in enumerate(records):
            record = {name: value for name, value in json.loads(path.read_text()).items() if name != "versions"}
            path.write_text(json.dumps({**record, "versions": old} if i < count else record))
        (tmp_path / "run" / "result.json").unlink()
        assert produce(EXPERIMENT, "tiny", out=tmp_path / "run").record.get("made with") == made_with


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
    for _ in range(2):
        assert "6 jobs, 6 done, nothing left to do" in str(run.plan())
        shutil.rmtree(tmp_path / "run" / "_work", ignore_errors=True)
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


def test_each_job_runs_once_and_a_finished_result_is_read_unless_its_settings_are_others(tmp_path: Path) -> None:
    outcome = produce(EXPERIMENT, "tiny", out=tmp_path)
    assert noted("ended") == [0, 1, 2, 3, 4, 5]
    expected = [np.random.default_rng(seed).normal(size=100).mean() for seed in range(6)]
    np.testing.assert_array_equal(outcome.result.arrays["means"], expected)
    table = pyarrow.parquet.read_table(tmp_path / "tables" / "means-by-part.parquet")
    assert table.to_pylist() == outcome.result.tables["Means, by part"]
    again = produce(IDLE, "tiny", out=tmp_path)
    assert again.reused
    assert again.result.claims == outcome.result.claims
    assert "read, not run again" in str(again)
    with pytest.raises(ArgumentError, match=r"other settings \(seed is 0 there and 5 here\).*--overwrite"):
        produce(IDLE, "tiny", out=tmp_path, seed=5)
    with pytest.raises(ArgumentError, match="holds the experiment 'toy', not 'other'"):
        produce(dataclasses.replace(IDLE, name="other"), "tiny", out=tmp_path)


def test_overwrite_does_everything_again_and_replaces_other_files(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "result.json").write_text("not ours")
    with pytest.raises(InvalidValueError, match="was not written by uqprism reproduce"):
        produce(EXPERIMENT, "tiny", out=out)
    for _ in range(2):
        assert not produce(EXPERIMENT, "tiny", out=out, overwrite=True).reused
    assert noted("ended") == [0, 1, 2, 3, 4, 5] * 2
    (out / "arrays.npz").unlink()
    with pytest.raises(FileError, match=r"no .*arrays\.npz"):
        produce(EXPERIMENT, "tiny", out=out)


def test_no_page_shows_a_part_of_a_run_that_was_stopped(tmp_path: Path) -> None:
    """Neither while jobs are done again, nor while pictures and tables of other settings replace those that are there."""

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    for changed, settings in (({"work": stopped}, {"overwrite": True}), ({"draw": stopped}, {"seed": 5})):
        produce(EXPERIMENT, "tiny", out=tmp_path, overwrite=True)
        assert (tmp_path / "report.md").exists()
        if "draw" in changed:
            (tmp_path / "result.json").unlink()  # as if it had been stopped before this was written
        with pytest.raises(KeyboardInterrupt):
            produce(dataclasses.replace(EXPERIMENT, **changed), "tiny", out=tmp_path, **settings)
        assert not (tmp_path / "report.md").exists()
        assert not (tmp_path / "result.json").exists()


def test_a_folder_that_cannot_be_made_or_a_missing_package_stops_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write into"):
        produce(IDLE, "tiny", out=tmp_path / "file")

    def missing(package: str, *, extra: str) -> None:
        raise MissingExtraError(package, extra)

    monkeypatch.setattr(runner, "require", missing)
    with pytest.raises(MissingExtraError, match=f"{re.escape(install_command('report'))}$"):
        produce(IDLE, "tiny", out=tmp_path / "run")
