"""The report that the page gives is that of the command."""

from __future__ import annotations

import shlex
from pathlib import Path

from typer.testing import CliRunner

from tests.app.files import TABLE
from uqprism.app import commands
from uqprism.app.choices import Choice
from uqprism.app.paged import report
from uqprism.app.uploads import Upload
from uqprism.cli import app


def test_the_report_is_that_of_the_command_shown(tmp_path: Path, monkeypatch) -> None:
    """With bad rows and rows without a target left out, another rule, and rows from outside."""
    monkeypatch.chdir(tmp_path)
    inside = Upload("my file.csv", TABLE.upload(y=["", *TABLE.target[1:]]).content)
    outside = Upload("odd.csv", TABLE.with_bad_variance(17).content)
    for upload in (inside, outside):
        Path(upload.name).write_bytes(upload.content)
    choice = Choice("log", on_bad="drop")
    *_, shown = commands.shell(inside.path, choice, "y", outside.path).splitlines()
    assert shown == "uqprism report 'my file.csv' --target y --ood odd.csv --rule log --on-bad drop"
    monkeypatch.setattr("sys.argv", shlex.split(shown))
    assert CliRunner().invoke(app, shlex.split(shown)[1:]).exit_code == 0
    given = report(inside, choice, "y", outside).decode()
    assert str(tmp_path.parent) not in given
    assert "uqprism-app-" not in given
    assert given == Path("report.html").read_text()


def test_without_what_happened_it_has_the_split_alone() -> None:
    assert commands.report("p.csv", Choice()) == "uqprism report p.csv"
    given = report(TABLE.upload(), Choice()).decode()
    assert "<html" in given
    assert "retention" not in given.lower()


def test_what_the_command_would_refuse_is_told_in_place_of_the_report() -> None:
    few = Upload("few.csv", b"mean_0,mean_1,variance_0,variance_1,y\n1,2,1,1,5\n0,0,1,2,\n2,1,3,1,\n")
    given = report(few, Choice(), "y").decode()
    assert "No report could be written" in given
    assert "must have at least 2 points, got 1" in given
    assert "uqprism-app-" not in given
