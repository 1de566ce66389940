"""The command line: its list of commands, its help, its errors."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import uqprism
from tests.cli.command import run
from tests.conftest import run_python
from uqprism.cli import app
from uqprism.cli.examples import EXAMPLES

COMMANDS = [
    "demo",
    "score",
    "inspect",
    "flag",
    "recalibrate",
    "intervals",
    "export",
    "watch",
    "report",
    "app",
    "recommend",
    "select",
    "selective",
]
COMMANDS += ["ood", "active", "audit", "correlation", "catalogue", "reproduce", "cite"]
DEFAULTS = {"score": "usual", "report": "usual", "selective": "all", "ood": "all", "select": "all"}


def test_the_catalogue_lists_144_measures_with_both_labels() -> None:
    lines = run("catalogue").stdout.splitlines()
    assert len(lines) == 145
    assert lines[3].split() == ["crps.total.members.matched", "R_tot^{1,3a}", "R_tot^{3a,1}"]
    assert len(run("catalogue", "--rule", "crps", "--rule", "quantile").stdout.splitlines()) == 73


def test_errors_are_one_line_and_an_exit_code() -> None:
    result = run("catalogue", "--rule", "crsp")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "uqprism: unknown rule 'crsp'; did you mean 'crps'?\n"


def test_the_version_is_printed() -> None:
    printed = subprocess.run([sys.executable, "-m", "uqprism", "--version"], capture_output=True, text=True, check=True).stdout
    assert printed == f"uqprism {uqprism.__version__}\n"


def test_the_list_of_commands_begins_with_the_demo_and_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").stdout.split("Commands:")[1].strip().splitlines()
    assert [line.split()[0] for line in lines] == COMMANDS
    assert len(lines) == len(app.registered_commands)
    assert not any("..." in line or len(line) > 80 for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_speaks_of_files_and_states_formats_exit_codes_and_default_measures(command: str) -> None:
    text = " ".join(run(command, "--help").stdout.split())
    assert not any(leak in text for leak in ("table_in", "table_out", "[[", "...}..."))
    assert "Exit codes: 0 done; 1 error: bad data" in text or command != "score"
    assert "--format" in text or command not in {"selective", "ood", "correlation", "select", "recommend", "active"}
    if command in DEFAULTS:
        assert "'all' (144) or 'usual' (12: total, bayes and excess with members in both roles)" in text
        assert f"may be repeated or have commas. By default {DEFAULTS[command]}." in text


@pytest.mark.parametrize(("command", "line"), [(name, line) for name in COMMANDS for line in EXAMPLES[name]])
def test_help_ends_with_examples_whose_arguments_the_command_takes(command: str, line: str) -> None:
    assert f"\n    {line}\n" in run(command, "--help").stdout
    program, name, *words = shlex.split(line.partition(" > ")[0])
    assert (program, name) == ("uqprism", command)
    get_command(app).commands[command].make_context(command, words)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("typer", "cli", ["--help"]),
        ("pyarrow", "cli", ["score", "x.csv", "-o", "y.csv"]),
        ("streamlit", "app", ["app"]),
        ("torch", "deep", ["demo"]),
        ("torch", "deep", ["reproduce", "parameterization"]),
        ("matplotlib", "report", ["reproduce", "parameterization"]),
    ],
)
def test_a_missing_package_names_its_extra(package: str, extra: str, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "x.csv").touch()
    code = f"import sys; sys.modules[{package!r}] = None; from uqprism.__main__ import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1 or arguments[0] == "reproduce"  # which prints how its jobs go
    assert f"[{extra}]'" in result.stderr
    assert "uqprism demo deliveries" in result.stderr or arguments != ["demo"]


def test_starting_loads_no_heavy_package() -> None:
    loaded = run_python("import sys, uqprism.cli; print(*sys.modules)").split()
    assert not {"torch", "matplotlib", "scipy", "pyarrow"} & set(loaded)
