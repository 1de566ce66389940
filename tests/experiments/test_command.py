"""`uqprism reproduce`, as a script sees it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from uqprism import experiments
from uqprism.cli import app
from uqprism.experiments import parameterization
from uqprism.experiments.artefacts import Findings, Store, as_data
from uqprism.experiments.base import Claim, Result, one_job


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "uqprism", "reproduce", *arguments], capture_output=True, text=True, check=False)


def found(config: parameterization.Config, store: Store) -> Result:
    """A result that took no time."""
    claims = (
        Claim("first", "It is.", True, "it is 1", {"it": 1.0}),
        Claim("second", "It is not.", False, "it is 2", {"it": 2.0}),
    )
    return Result(config=as_data(config), seeds={"data": config.seed}, claims=claims)


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = dataclasses.replace(
        parameterization.EXPERIMENT, jobs=one_job, work=lambda *_: Findings(), gather=found, draw=lambda _: {}
    )
    monkeypatch.setattr(parameterization, "EXPERIMENT", quick)


def test_help_lists_the_experiments() -> None:
    result = run("--help")
    assert result.returncode == 0
    for name in experiments.summaries():
        assert f"{name}:" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parametrisation"], "unknown experiment 'parametrisation'; did you mean 'parameterization'?"),
        (["parameterization", "--preset", "papers"], "unknown preset 'papers'; did you mean 'paper'?"),
        (["parameterization", "--seed", "-1"], "seed must not be negative, got -1"),
        (["parameterization", "--jobs", "0"], "jobs must be at least 1, got 0"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == f"uqprism: {message}\n"


def test_listing_loads_neither_torch_nor_matplotlib() -> None:
    code = "import sys, uqprism.cli; print([m for m in ('torch', 'matplotlib', 'scipy', 'pyarrow') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize(("package", "extra"), [("torch", "deep"), ("matplotlib", "report")])
def test_missing_packages_name_their_extra(package: str, extra: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from uqprism.__main__ import main; main()"
    command = [sys.executable, "-c", code, "reproduce", "parameterization", "--out", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert f"pip install 'uqprism[{extra}]'" in result.stderr


@pytest.mark.usefixtures("instant")
def test_it_prints_the_verdicts_and_where_the_report_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = CliRunner().invoke(app, ["reproduce", "parameterization"])
    assert first.exit_code == 0
    assert "1 of 2 of the paper's statements hold" in first.output
    assert "  FALSE  second: it is 2" in first.output
    assert f"report: {Path('runs', 'parameterization', 'report.md')}" in first.output
    assert "read, not run again" in CliRunner().invoke(app, ["reproduce", "parameterization"]).output
    assert "read, not" not in CliRunner().invoke(app, ["reproduce", "parameterization", "--overwrite"]).output
    assert CliRunner().invoke(app, ["reproduce", "parameterization", "-q"]).output == ""


@pytest.mark.usefixtures("instant")
def test_the_paper_follows_a_quick_look_as_is_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    advice = CliRunner().invoke(app, ["reproduce", "parameterization"]).output.splitlines()[-2]
    command = advice.split("for verdicts: uqprism ")[1].split()
    paper = CliRunner().invoke(app, command)
    assert paper.exit_code == 0
    assert f"report: {Path('runs', 'paper', 'parameterization', 'report.md')}" in paper.output
    refused = CliRunner().invoke(app, [*command, "--out", "runs/parameterization", "--dry-run"])
    assert refused.exit_code == 0
    assert "It would be refused" in refused.output


@pytest.mark.usefixtures("instant")
def test_all_gives_each_experiment_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uqprism.cli.reproduce.summaries", lambda: {"parameterization": "the one that takes no time"})
    assert CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path)]).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["parameterization"]
    assert (tmp_path / "parameterization" / "report.md").exists()


def test_an_interruption_is_exit_code_130_and_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Result:
        raise KeyboardInterrupt

    monkeypatch.setattr(parameterization, "EXPERIMENT", dataclasses.replace(parameterization.EXPERIMENT, work=interrupted))
    result = CliRunner().invoke(app, ["reproduce", "parameterization", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "the same command goes on" in result.output
    assert not (tmp_path / "result.json").exists()


def test_a_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["reproduce", "parameterization", "--out", str(tmp_path / "run"), "--dry-run", "--jobs", "2"]
    )
    first, *lines = result.output.splitlines()
    assert result.exit_code == 0
    assert first.startswith("parameterization, preset quick: 2 jobs, 0 done, about ")
    assert first.endswith(" left with 2 processes")
    assert [line.split("  ")[-1] for line in lines] == ["standard, learning rate 0.001", "natural, learning rate 0.001"]
    assert not (tmp_path / "run").exists()


def test_a_job_that_fails_is_exit_code_1_and_named(tmp_path: Path) -> None:
    code = """
import sys, dataclasses
from uqprism.errors import InvalidValueError
from uqprism.experiments import parameterization

def failing(*_):
    raise InvalidValueError("it cannot be")

parameterization.EXPERIMENT = dataclasses.replace(parameterization.EXPERIMENT, work=failing)
from uqprism.__main__ import main
main()
"""
    command = [sys.executable, "-c", code, "reproduce", "parameterization", "--out", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("uqprism: 2 of 2 jobs failed, all for the same reason")
    assert result.stderr.count("it cannot be") == 1
