"""`uqprism reproduce`, as a script sees it."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.cli import command
from uqprism import paper
from uqprism.errors import FileError, InvalidValueError
from uqprism.paper.experiment import Claim, Result, one_job
from uqprism.paper.experiments import parameterization
from uqprism.paper.store import Bundle, Store, as_data

run = partial(command.run, "reproduce")


def found(config: parameterization.Config, store: Store) -> Result:
    """A result that took no time."""
    claims = Claim("first", "It is.", True, "it is 1", {"it": 1.0}), Claim("second", "It is not.", False, "it is 2", {"it": 2.0})
    return Result(config=as_data(config), seeds={"data": config.seed}, claims=claims)


def replaced(monkeypatch: pytest.MonkeyPatch, *experiments: paper.Experiment) -> None:
    """Find these experiments in place of those of the same names."""
    get, others = paper.get, {each.name: each for each in experiments}
    monkeypatch.setattr(paper, "get", lambda name: others.get(name) or get(name))


@pytest.fixture
def instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment that takes no time, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    quick = {"jobs": one_job, "work": lambda *_: Bundle(), "gather": found, "draw": lambda _: {}}
    replaced(monkeypatch, dataclasses.replace(parameterization.EXPERIMENT, **quick))


def test_help_lists_the_experiments_with_their_presets() -> None:
    result = run("--help")
    assert result.returncode == 0
    told = " ".join(result.stdout.split())
    for name, summary in paper.summaries().items():
        listed = ", ".join(paper.get(name).presets)
        assert f"{name} ({listed}): {summary.split(':')[0]}" in told
    assert "selective (quick, paper, cityscapes, longer)" in told
    assert "active (quick, paper, standardised)" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("parametrisation", "unknown experiment 'parametrisation'; did you mean 'parameterization'?"),
        ("parameterization --preset papers", "unknown preset 'papers'; did you mean 'paper'?"),
        ("parameterization --seed -1", "seed must not be negative, got -1"),
        ("parameterization --jobs 0", "jobs must be at least 1, got 0"),
        ("all --jobs 0", "jobs must be at least 1, got 0"),
        ("all --preset longest", "unknown preset 'longest'; did you mean 'longer'?"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: str, message: str) -> None:
    result = run(*arguments.split())
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"uqprism: {message}\n")


@pytest.mark.usefixtures("instant")
def test_it_prints_the_verdicts_where_the_report_is_and_advice_that_works() -> None:
    first = run("parameterization")
    assert first.returncode == 0
    assert "1 of 2 of the paper's statements hold" in first.stdout
    assert "  FALSE  second: it is 2" in first.stdout
    assert f"report: {Path('runs', 'parameterization', 'report.md')}" in first.stdout
    assert "read, not run again" in run("parameterization").stdout
    assert "read, not" not in run("parameterization", "--overwrite").stdout
    assert run("parameterization", "-q").stdout == ""
    words = first.stdout.splitlines()[-2].split("for verdicts: uqprism ")[1].split()
    advised, refused = command.run(*words), command.run(*words, "--out", "runs/parameterization", "--dry-run")
    assert (advised.returncode, refused.returncode) == (0, 0)
    assert f"report: {Path('runs', 'paper', 'parameterization', 'report.md')}" in advised.stdout
    assert "It would be refused" in refused.stdout


@pytest.mark.usefixtures("instant")
def test_all_gives_each_experiment_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "summaries", lambda: {"parameterization": "the one that takes no time"})
    assert run("all", "--out", tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["parameterization"]
    assert (tmp_path / "parameterization" / "report.md").exists()


@pytest.fixture
def three(instant: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three experiments that take no time; the first fails when its job is done, the second when its result is gathered."""
    instantly = dataclasses.replace(paper.get("parameterization"), needs=lambda _: ())
    made = {
        "active": {"work": Mock(side_effect=FileError("there is no ccpp.parquet"))},
        "ood": {"gather": Mock(side_effect=ZeroDivisionError("nobody meant it"))},
        "shifts": {"presets": {**instantly.presets, "longer": instantly.presets["quick"]}},
    }
    replaced(monkeypatch, *(dataclasses.replace(instantly, name=name, **changes) for name, changes in made.items()))
    summaries = paper.summaries()
    monkeypatch.setattr(paper, "summaries", lambda: {name: summaries[name] for name in ("active", "ood", "shifts")})


@pytest.mark.usefixtures("three")
def test_all_goes_on_after_a_failure_names_each_and_ends_with_its_code(tmp_path: Path) -> None:
    result = run("all", "--out", tmp_path)
    assert result.returncode == 1
    first, *_, last = result.stderr.splitlines()
    assert first.startswith("uqprism: active: 1 of 1 jobs failed")
    assert "there is no ccpp.parquet" in result.stderr
    assert "uqprism: ood: Traceback" in result.stderr
    assert "ZeroDivisionError: nobody meant it" in result.stderr
    assert last == "uqprism: 2 of 3 experiments failed: active, ood"
    assert result.stdout.startswith("shifts: 1 of 2 of the paper's statements hold")
    assert [path.parent.name for path in tmp_path.glob("*/result.json")] == ["shifts"]


@pytest.mark.usefixtures("three")
def test_all_names_experiments_without_the_preset_and_refuses_folders_of_another_seed(tmp_path: Path) -> None:
    result, refused = (run("all", "--out", tmp_path, "--preset", "longer", "--seed", seed) for seed in (0, 5))
    assert (result.returncode, result.stderr) == (0, "uqprism: no preset 'longer', so left out: active, ood\n")
    assert [path.name for path in tmp_path.iterdir()] == ["shifts"]
    assert refused.returncode == 2
    assert "uqprism: shifts: " in refused.stderr
    assert "seed is 0 there and 5 here" in refused.stderr
    assert refused.stderr.splitlines()[-1] == "uqprism: 1 of 1 experiments failed: shifts"


def test_a_dry_run_of_all_adds_up_and_counts_shared_ensembles_once(tmp_path: Path) -> None:
    """`correlation` and `selective` have two jobs of 240 s each, on the same two ensembles; the second reads the first's."""
    result = run("all", "--preset", "longer", "--dry-run", "--out", tmp_path)
    heads = [line for line in result.stdout.splitlines() if " jobs, " in line]
    assert heads[0].startswith("correlation, preset longer: 2 jobs, 0 done, about 8 min left on a GPU such as an H200")
    assert heads[1].startswith("selective, preset longer: 2 jobs, 0 done, about 2 s left on a GPU such as an H200")
    assert heads[2] == "all 2 experiments: 4 jobs, 0 done, about 8 min left with 1 process, with a GPU where one is named"
    assert "Most of 2 jobs is shared with an experiment above" in result.stdout
    alone = run("selective", "--preset", "longer", "--dry-run", "--out", tmp_path / "s")
    assert alone.stdout.startswith("selective, preset longer: 2 jobs, 0 done, about 8 min left")
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    result = run("parameterization", "--out", tmp_path / "run", "--dry-run", "--jobs", "2")
    first, *lines = result.stdout.splitlines()
    assert result.returncode == 0
    assert first.startswith("parameterization, preset quick: 2 jobs, 0 done, about ")
    assert first.endswith(" left with 2 processes")
    assert [line.split("  ")[-1] for line in lines] == ["standard, learning rate 0.001", "natural, learning rate 0.001"]
    assert not (tmp_path / "run").exists()


def test_an_interruption_is_exit_code_130_and_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, dataclasses.replace(parameterization.EXPERIMENT, work=Mock(side_effect=KeyboardInterrupt)))
    result = run("parameterization", "--out", tmp_path)
    assert result.returncode == 130
    assert "the same command continues" in result.stderr
    assert not (tmp_path / "result.json").exists()


def test_a_job_that_fails_is_exit_code_1_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Mock(side_effect=InvalidValueError("it cannot be"))
    replaced(monkeypatch, dataclasses.replace(parameterization.EXPERIMENT, work=failing))
    result = run("parameterization", "--out", tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("uqprism: 2 of 2 jobs failed, all for the same reason")
    assert result.stderr.count("it cannot be") == 1
