"""What the page tells of a scored file."""

from __future__ import annotations

import json
import runpy
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import uqprism as up
from tests.app.files import ROWS, TABLE, Table
from uqprism.app import commands, findings
from uqprism.app.choices import PARTS, Choice
from uqprism.app.example import deliveries
from uqprism.app.scored import error, score, scored_file
from uqprism.app.uploads import Upload
from uqprism.cli import app
from uqprism.measures.vocabulary import ONE_MODEL


def test_the_summary_states_shares_that_follow_from_decompose() -> None:
    split = up.decompose(TABLE.ensemble)
    text = findings.summary(score(TABLE.upload(), Choice()), Choice())
    assert f"{split.bayes.mean() / split.total.mean():.0%} of it is noise" in text
    assert f"In {(split.excess > split.bayes).sum()} of {ROWS} rows" in text
    assert text.startswith("On average the expected penalty of predicting with one of the models, picked at random, is")
    average = Choice(prediction="mixture")
    assert "of predicting with the average of all models" in findings.summary(score(TABLE.upload(), average), average)


def test_a_penalty_that_may_be_negative_has_no_shares() -> None:
    choice = Choice("quadratic")
    text = findings.summary(score(TABLE.upload(), choice), choice)
    assert "%" not in text
    assert f"{up.decompose(TABLE.ensemble, 'quadratic').bayes.mean():.4g} is noise" in text


def test_many_rows_are_drawn_in_part_with_the_highest_of_each_kind() -> None:
    scored = score(Table.drawn(500).upload(), Choice())
    drawn = findings.drawn_rows(scored, most=120)
    assert len(drawn) == len(set(drawn)) == 120
    for part in PARTS:
        assert int(scored.frame[part].to_numpy().argmax()) in drawn
    assert list(findings.drawn_rows(scored)) == list(range(500))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A folder to run commands in, with a file that has a bad row and one without a target."""
    monkeypatch.chdir(tmp_path)
    upload = Upload("my file.csv", TABLE.with_bad_variance(17).content)
    (tmp_path / upload.name).write_bytes(upload.content)
    return tmp_path


def test_the_commands_shown_give_what_the_page_shows(folder: Path) -> None:
    upload = Upload("my file.csv", (folder / "my file.csv").read_bytes())
    choice = Choice("log", "mixture", "members", on_bad="drop")
    scoring, selecting, _ = map(shlex.split, commands.shell(upload.name, choice, "y").splitlines())
    assert CliRunner().invoke(app, scoring[1:]).exit_code == 0
    scored = score(upload, choice)
    table = pq.read_table("scored.parquet")
    for part, name in choice.measures.items():
        np.testing.assert_array_equal(table.column(name), scored.frame[part])
    told = json.loads(CliRunner().invoke(app, [*selecting[1:], "--format", "json"]).stdout)
    found = findings.retention(scored, error(upload, choice, "y"))
    measured = {row["measure"]: row["prr_paper"] for row in told["measures"]}
    assert found.ratios == pytest.approx({part: measured[name] for part, name in choice.measures.items()})


def test_the_python_lines_shown_give_the_file_to_download(folder: Path) -> None:
    upload, choice = Upload("my file.csv", (folder / "my file.csv").read_bytes()), Choice(on_bad="drop")
    scored = score(upload, choice)
    flagged = up.flag(scored.frame["removable"].to_numpy(), 0.1).rows
    lines = commands.python(upload.name, choice, scored, by="removable", percent=10, target="y")
    (folder / "lines.py").write_text(lines)
    known = runpy.run_path("lines.py")
    (folder / "made.parquet").write_bytes(scored_file(upload, choice, flagged, ".parquet", keep_members=True))
    assert pq.read_table("made.parquet").to_pandas().equals(known["scored"])
    ratios = findings.retention(scored, error(upload, choice, "y")).ratios
    assert {part: known["result"][name] for part, name in choice.measures.items()} == pytest.approx(ratios)


def test_other_columns_and_weights_appear_in_the_lines(tmp_path: Path) -> None:
    choice = Choice(mean_columns="mu{i}", variance_columns="v{i}")
    renamed = Upload("mine.csv", TABLE.csv().replace(b"mean_", b"mu").replace(b"variance_", b"v"))
    shell = shlex.split(commands.shell(renamed.name, choice, keep_members=True))
    assert shell[shell.index("--mean-columns") + 1] == "mu{i}"
    assert "--keep-members" in shell
    lines = commands.python(renamed.name, choice, score(renamed, choice), by="total", percent=3, target="y")
    assert "known[['mu0', 'mu1', 'mu2', 'mu3']]" in lines
    weighted = up.EnsemblePrediction.gaussian(mean=TABLE.mean, variance=TABLE.variance, weights=[0.1, 0.2, 0.3, 0.4])
    weighted.save(tmp_path / "mine.npz")
    saved = Upload("mine.npz", (tmp_path / "mine.npz").read_bytes())
    assert "@ [0.1, 0.2, 0.3, 0.4]" in commands.python(
        "mine.npz", Choice(), score(saved, Choice()), by="total", percent=3, target="y"
    )


def test_rows_without_a_target_are_counted_and_left_out_of_the_curve() -> None:
    upload = TABLE.upload(y=["", *TABLE.target[1:]])
    found = findings.retention(score(upload, Choice()), error(upload, Choice(), "y"))
    assert (found.rows, found.without_target) == (ROWS - 1, 1)
    squared = (TABLE.mean.mean(axis=0) - TABLE.target)[1:] ** 2
    assert found.curves["total"][-1] == pytest.approx(squared.mean())


def test_the_example_is_noisy_in_storms_and_unknown_in_the_new_district() -> None:
    scored = score(deliveries(), Choice())
    assert (len(scored.frame), scored.bad_rows, scored.usual_target) == (600, 0, "y")
    by_weather, by_district = (scored.frame.groupby(name)[["noise", "removable"]].mean() for name in ("weather", "district"))
    assert by_weather["noise"].idxmax() == "storm"
    assert by_district["removable"].idxmax() == "new"
    assert by_district["removable"]["new"] > 5 * by_district["removable"]["suburb"]
    ratios = findings.retention(scored, error(deliveries(), Choice(), "y")).ratios
    assert ratios["total"] < 0.5


def test_one_model_is_told_in_the_words_of_the_report() -> None:
    frame = pd.DataFrame({"mean_0": [0.0, 1.0], "variance_0": [1.0, 4.0]})
    upload = Upload("one.csv", frame.to_csv(index=False).encode())
    text = findings.summary(score(upload, Choice()), Choice())
    assert text.endswith(ONE_MODEL)
    assert "%" not in text


def test_flags_say_what_share_they_reach() -> None:
    told = findings.flagged_told(up.flag([2.0] * 46 + [1.0] * 54, 0.01))
    assert told.startswith("46 of 100 rows (46.0%) are flagged: those at 2 or above.")
    assert "fewer are not possible" in told
    assert "fewer" not in findings.flagged_told(up.flag(np.arange(10.0)))
