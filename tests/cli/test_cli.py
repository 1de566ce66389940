"""The command line, as a script sees it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from uqprism.cli import app, demo_trained


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "uqprism", *arguments], capture_output=True, text=True, check=False)


def test_demo_prints_a_row_for_each_rule_and_trip() -> None:
    result = run("demo", "deliveries")
    assert result.returncode == 0
    rows = [line for line in result.stdout.splitlines() if line.endswith(tuple("0123456789")) and "." in line]
    assert len(rows) == 16
    for row in rows:
        total, noise, removable = (float(x) for x in row.split()[-3:])
        assert abs(total - noise - removable) < 0.0016


def test_catalogue_lists_144_measures_with_both_labels() -> None:
    lines = run("catalogue").stdout.splitlines()
    assert len(lines) == 145
    assert lines[3].split() == ["crps.total.members.matched", "R_tot^{1,3a}", "R_tot^{3a,1}"]
    assert len(run("catalogue", "--rule", "crps", "--rule", "quantile").stdout.splitlines()) == 73


def test_errors_are_one_line_and_an_exit_code() -> None:
    result = run("catalogue", "--rule", "crsp")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == "uqprism: unknown rule 'crsp'; did you mean 'crps'?\n"


def test_version_and_help() -> None:
    import uqprism

    assert run("--version").stdout == f"uqprism {uqprism.__version__}\n"
    assert "catalogue" in run("--help").stdout


def test_without_typer_the_extra_is_named() -> None:
    code = "import sys; sys.modules['typer'] = None; from uqprism.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'uqprism[cli]'" in result.stderr


def test_the_list_of_commands_begins_with_the_demo_and_fits_a_terminal() -> None:
    lines = CliRunner().invoke(app, ["--help"], terminal_width=80).output.split("Commands:")[1].strip().splitlines()
    names = [line.split()[0] for line in lines]
    assert names[:4] == ["demo", "score", "report", "app"]
    assert names[-1] == "cite"
    assert len(names) == len(app.registered_commands)
    assert not any("..." in line or len(line) > 80 for line in lines)


@pytest.mark.parametrize("command", ["ood", "app", "score", "demo", "select"])
def test_help_speaks_of_files_not_of_arguments(command: str) -> None:
    text = CliRunner().invoke(app, [command, "--help"]).output
    assert not any(leak in text for leak in ("table_in", "table_out", "[[", "...}..."))


def test_a_quiet_demo_prints_only_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_trained, "run", lambda output, **_: demo_trained.Demo(output, (), demo_trained.Sizes()))
    assert CliRunner().invoke(app, ["demo", "-q", "-o", "page.html"]).output == "page.html\n"
