"""What the page shows to type gives what the page shows."""

from __future__ import annotations

import json
import runpy
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.app.files import RENAMED, TABLE, WEIGHTED
from tests.cli.command import printed
from uqprism.app import commands
from uqprism.app.inputs import Comparison, ScoringChoice, Upload
from uqprism.app.scored import error, retention, score, scored_file

Y = Comparison("y")


@pytest.fixture
def upload(tmp_path: Path, monkeypatch) -> Upload:
    """A file with a bad row, in the folder to run commands in."""
    monkeypatch.chdir(tmp_path)
    upload = Upload("my file.csv", TABLE.with_bad_variance(17).content)
    Path(upload.name).write_bytes(upload.content)
    return upload


def test_the_commands_shown_give_what_the_page_shows(upload: Upload) -> None:
    choice = ScoringChoice("log", "mixture", "members", on_bad="drop")
    scoring, selecting, _ = map(shlex.split, commands.shell(upload.name, choice, Y).splitlines())
    printed(*scoring[1:])
    scored = score(upload, choice)
    table = pq.read_table("scored.parquet")
    for part, name in choice.measures.items():
        np.testing.assert_array_equal(table.column(name), scored.frame[part])
    told = json.loads(printed(*selecting[1:], "--format", "json"))
    found = retention(scored, error(upload, choice, "y"))
    measured = {row["measure"]: row["prr_paper"] for row in told["measures"]}
    assert found.ratios == pytest.approx({part: measured[name] for part, name in choice.measures.items()})


def test_the_python_lines_shown_give_the_file_to_download(upload: Upload) -> None:
    choice = ScoringChoice(on_bad="drop")
    scored = score(upload, choice)
    flagged = up.flag(scored.frame["disagreement"].to_numpy(), 0.1).rows
    lines = commands.python(upload.name, choice, scored, by="disagreement", percent=10, target="y")
    Path("lines.py").write_text(lines)
    known = runpy.run_path("lines.py")
    made = scored_file(upload, choice, flagged, ".parquet", keep_members=True)
    assert pq.read_table(pa.BufferReader(made)).to_pandas().equals(known["scored"])
    ratios = retention(scored, error(upload, choice, "y")).ratios
    assert {part: known["result"][name] for part, name in choice.measures.items()} == pytest.approx(ratios)


def test_other_columns_and_weights_appear_in_the_lines(tmp_path: Path) -> None:
    choice = ScoringChoice(mean_columns="mu{i}", variance_columns="v{i}")
    shell = shlex.split(commands.shell(RENAMED.name, choice, keep_members=True))
    assert shell[shell.index("--mean-columns") + 1] == "mu{i}"
    assert "--keep-members" in shell
    WEIGHTED.save(tmp_path / "mine.npz")
    saved = Upload("mine.npz", (tmp_path / "mine.npz").read_bytes())
    expected = {"known[['mu0', 'mu1', 'mu2', 'mu3']]": (RENAMED, choice), "@ [0.1, 0.2, 0.3, 0.4]": (saved, ScoringChoice())}
    for line, (upload, how) in expected.items():
        assert line in commands.python(upload.name, how, score(upload, how), by="total", percent=3, target="y")


def test_the_lines_for_a_kind_that_was_chosen_give_what_the_page_shows(tmp_path: Path, monkeypatch) -> None:
    """Laplace and logistic members have the same columns, and quantiles have no mean columns to take errors from."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    place, y = rng.normal(size=(3, 60)), rng.normal(size=60)
    tables = {
        "laplace": {f"location_{i}": place[i] for i in range(3)} | {f"scale_{i}": np.exp(place[i]) for i in range(3)},
        "quantiles:tails=gaussian": {f"q{d}_{i}": place[i] + z for d, z in (("10", -1), ("50", 0), ("90", 2)) for i in range(3)},
    }
    for family, columns in tables.items():
        pq.write_table(pa.table({**columns, "y": y}), "mine.parquet")
        upload, choice = Upload("mine.parquet", Path("mine.parquet").read_bytes()), ScoringChoice(family=family)
        assert f"--family {family}" in commands.shell(upload.name, choice, Y)
        scored = score(upload, choice)
        lines = commands.python(upload.name, choice, scored, by="disagreement", percent=10, target="y")
        Path("lines.py").write_text(lines)
        known = runpy.run_path("lines.py")
        ratios = retention(scored, error(upload, choice, "y")).ratios
        assert {part: known["result"][name] for part, name in choice.measures.items()} == pytest.approx(ratios)
        Path("scored.parquet").unlink()


def test_the_report_is_that_of_the_command_shown(tmp_path: Path, monkeypatch) -> None:
    """With bad rows and rows without a target left out, another rule, and rows from outside."""
    monkeypatch.chdir(tmp_path)
    inside = Upload("my file.csv", TABLE.upload(y=["", *TABLE.target[1:]]).content)
    outside = Upload("odd.csv", TABLE.with_bad_variance(17).content)
    for upload in (inside, outside):
        Path(upload.name).write_bytes(upload.content)
    choice = ScoringChoice("log", on_bad="drop")
    *_, shown = commands.shell(inside.path, choice, Y, outside.path).splitlines()
    assert shown == "uqprism report 'my file.csv' --target y --ood odd.csv --rule log --on-bad drop"
    monkeypatch.setattr("sys.argv", shlex.split(shown))
    printed(*shlex.split(shown)[1:])
    given = commands.report_page(inside, choice, Y, outside).decode()
    assert str(tmp_path.parent) not in given
    assert "uqprism-app-" not in given
    assert given == Path("report.html").read_text()


def test_without_what_happened_it_has_the_split_alone() -> None:
    assert commands.report("p.csv", ScoringChoice()) == "uqprism report p.csv"
    assert (
        commands.report("p.csv", ScoringChoice(), Comparison("y", "$"))
        == "uqprism report p.csv --target y --unit '$' --on-bad drop"
    )
    given = commands.report_page(TABLE.upload(), ScoringChoice()).decode()
    assert "<html" in given
    assert "retention" not in given.lower()


def test_what_the_command_would_refuse_is_told_in_place_of_the_report() -> None:
    few = Upload("few.csv", b"mean_0,mean_1,variance_0,variance_1,y\n1,2,1,1,5\n0,0,1,2,\n2,1,3,1,\n")
    given = commands.report_page(few, ScoringChoice(), Y).decode()
    assert "No report could be written" in given
    assert "must have at least 2 points, got 1" in given
    assert "uqprism-app-" not in given
