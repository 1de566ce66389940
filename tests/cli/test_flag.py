"""`uqprism flag`, `recalibrate` and `intervals`, as a script sees them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.cli.command import run
from tests.tasks.test_recalibration import in_lists, truth
from uqprism.adapters import from_arrow
from uqprism.files.points import Points


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[up.EnsemblePrediction, np.ndarray]:
    """Predictions that are too narrow: `cal.parquet` with outcomes `y`, and `new.parquet` without, with a key."""
    monkeypatch.chdir(tmp_path)
    ens, y = truth(2.0, 1.5, n=600)
    frame = ens.to_pandas()
    frame["key"], frame["region"] = [f"row {i}" for i in range(600)], np.where(np.arange(600) % 2, "north", "south")
    frame[:400].assign(y=y[:400]).to_parquet("cal.parquet")
    frame[400:].to_parquet("new.parquet")
    return ens, y


@pytest.mark.usefixtures("given")
def test_flag_tells_what_it_found_and_writes_both_columns() -> None:
    done = run("flag", "new.parquet", "-o", "out.csv", "--budget", 5, "--only")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("out.csv: 5 of 200 rows flagged (0.025 of all), crps.total.members.members >= ")
    lines = Path("out.csv").read_text().splitlines()
    assert len(lines) == 6
    assert lines[0].endswith(",flagged,reason")
    assert run("flag", "new.parquet", "-o", "out.csv").returncode == 2
    assert run("flag", "new.parquet", "-o", "out.parquet", "--quiet").stdout == ""
    assert pq.read_table("out.parquet")["flagged"].to_pylist().count(True) == 20
    done = run("flag", "new.parquet", "-o", "other.csv", "--share", 0.1, "--above", 3)
    assert (done.returncode, done.stderr) == (
        2,
        "uqprism: flag takes one of share (--share), above (--above) and budget (--budget), got share and above\n",
    )


def test_recalibrate_writes_predictions_again_and_keeps_the_factors(given) -> None:
    ens, y = given
    done = run("recalibrate", "cal.parquet", "new.parquet", "--target", "y", "-o", "out.parquet", "--save", "factors.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Recalibrated: noise times ")
    wanted = up.recalibrate(ens[:400], y[:400]).apply(ens[400:])
    table = pq.read_table("out.parquet")
    assert table.column_names[:2] == ["key", "region"]
    np.testing.assert_allclose(from_arrow(table).members.scale, wanted.members.scale, rtol=1e-12)
    again = up.Recalibration.load("factors.json").apply(ens[400:])
    np.testing.assert_array_equal(again.members.scale, wanted.members.scale)
    assert run("score", "out.parquet", "-o", "scored.parquet").returncode == 0
    missing = run("recalibrate", "cal.parquet", "new.parquet", "--target", "z", "-o", "more.parquet")
    assert missing.returncode == 1
    assert "unknown column 'z'" in missing.stderr


def test_members_in_lists_are_recalibrated_too(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ens, y = in_lists()["quantiles"], np.random.default_rng(1).normal(size=400)
    table = ens.to_arrow()
    pq.write_table(table.append_column("y", [y]), "cal.parquet")
    pq.write_table(table, "new.parquet")
    assert run("recalibrate", "cal.parquet", "new.parquet", "--target", "y", "-o", "out.parquet").returncode == 0
    found = from_arrow(pq.read_table("out.parquet"))
    assert found.members.options() == ens.members.options()
    assert up.calibration(found, y).verdict() == "about right"


def test_a_map_of_levels_is_written_to_csv_read_again_and_saved(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    mean, y = 0.1 * rng.normal(size=(3, 600)), rng.exponential(size=600) - 1.0
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=np.ones((3, 600)), weights=[0.2, 0.3, 0.5])
    pq.write_table(ens[:500].to_arrow().append_column("y", [y[:500]]), "cal.parquet")
    pq.write_table(ens[500:].to_arrow(), "new.parquet")
    done = run("recalibrate", "cal.parquet", "new.parquet", "--target", "y", "-o", "out.csv", "--map", "--save", "map.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A map of levels was kept" in done.stdout
    found, wanted = Points.of("out.csv").ensemble(), up.Recalibration.load("map.json").apply(ens[500:])
    np.testing.assert_allclose(found.members.values, wanted.members.values, rtol=1e-12)
    np.testing.assert_allclose(found.members.levels, wanted.members.levels, rtol=1e-15)
    np.testing.assert_array_equal(found.weights, ens.weights)
    assert up.calibration(found, y[500:]).verdict() == "about right"


def test_intervals_are_added_and_hold_their_share_in_each_group(given) -> None:
    _, y = given
    args = ("cal.parquet", "new.parquet", "--target", "y")
    done = run("intervals", *args, "-o", "out.parquet", "--coverage", 0.8, "--group", "region")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("In each group, at least 0.8 of outcomes lie inside")
    found = pq.read_table("out.parquet")
    assert found.column_names[-2:] == ["lower", "upper"]
    inside = (found["lower"].to_numpy() <= y[400:]) & (y[400:] <= found["upper"].to_numpy())
    assert 0.7 < inside.mean() < 0.9
    few = run("intervals", *args, "-o", "other.parquet", "--coverage", 0.999)
    assert few.returncode == 1
    assert "needs at least 999 calibration rows, got 400" in few.stderr
    assert not Path("other.parquet").exists()
