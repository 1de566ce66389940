"""The command line, as a script sees it."""

from __future__ import annotations

import subprocess
import sys


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
