"""What is known of members stays with them in every kind of file, and is not said of other contents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.cli.command import run
from tests.files.tables import ensemble, table
from tests.tasks.test_recalibration import in_lists
from uqprism import files
from uqprism.ensemble.columns import Columns
from uqprism.ensemble.origin import UNKNOWN, Origin
from uqprism.files.deriving import write_ensemble
from uqprism.files.described import beside
from uqprism.files.points import Points

FOREST = Origin("forest", "forest", 3)
MEASURE = "crps.total.members.members"


def weighted(n: int = 30) -> up.EnsemblePrediction:
    """Three weighted members from a forest."""
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=(3, n)), np.exp(rng.normal(size=(3, n)))
    return up.EnsemblePrediction.laplace(location=mean, scale=scale, weights=[0.2, 0.3, 0.5]).made_by(FOREST)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "given.parquet"
    pq.write_table(weighted().to_arrow().append_column("key", pa.array([f"a{i}" for i in range(30)])), path)
    return path


def check(path: Path, members: up.EnsemblePrediction) -> None:
    found = Points.of(path).ensemble()
    assert found.origin == FOREST
    assert found.members.name == "laplace"  # whose columns might be those of logistic members
    np.testing.assert_array_equal(found.weights, members.weights)
    np.testing.assert_allclose(found.members.location, members.members.location, rtol=1e-15)


@pytest.mark.parametrize(
    "chain", [["csv"], ["npz"], ["csv", "parquet"], ["npz", "csv"], ["csv", "csv"], ["parquet", "npz", "csv"]]
)
def test_members_that_are_kept_stay_what_they_are_through_any_formats(chain: list[str], given: Path, tmp_path: Path) -> None:
    for i, ending in enumerate(chain):
        target = tmp_path / f"{i}.{ending}"
        files.score(
            given,
            target,
            measures=["crps.total.members.members", "log.bayes.members", "crps.bayes.members"][i],
            keep_members=True,
        )
        given = target
    check(given, weighted())


def test_flags_and_intervals_keep_them_too(given: Path, tmp_path: Path) -> None:
    files.score(given, tmp_path / "scored.csv", measures=MEASURE, keep_members=True)
    files.flag(tmp_path / "scored.csv", tmp_path / "flagged.csv")
    check(tmp_path / "flagged.csv", weighted())
    files.flag(given, tmp_path / "first.csv", budget=4, only=True, keep_members=True)
    assert Points.of(tmp_path / "first.csv").origin == FOREST
    points = Points.of(tmp_path / "scored.csv")
    write_ensemble(points, points.ensemble(), tmp_path / "again.csv")
    check(tmp_path / "again.csv", weighted())


def test_weights_that_were_named_are_those_of_the_output(tmp_path: Path) -> None:
    pq.write_table(table(10), tmp_path / "in.parquet")
    count = ensemble(table(10)).n_members
    weights = np.arange(1.0, count + 1.0) / np.arange(1.0, count + 1.0).sum()
    files.score(tmp_path / "in.parquet", tmp_path / "out.csv", measures=MEASURE, weights=weights.tolist(), keep_members=True)
    np.testing.assert_array_equal(Points.of(tmp_path / "out.csv").weights, weights)


def test_without_members_or_without_anything_to_say_nothing_is_written_beside(given: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    files.score(given, target, measures=MEASURE, keep_members=True)
    assert json.loads(beside(target).read_text())["origin"] == FOREST.to_dict()
    files.score(given, target, measures=MEASURE, overwrite=True)
    assert not beside(target).exists()
    pq.write_table(table(10), tmp_path / "bare.parquet")
    files.score(tmp_path / "bare.parquet", target, measures=MEASURE, keep_members=True, overwrite=True)
    assert not beside(target).exists()
    assert Points.of(target).ensemble().origin == UNKNOWN


@pytest.mark.parametrize("change", ["append", "edit", "damage", "foreign"])
def test_what_is_said_of_other_contents_is_not_believed(change: str, given: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    pq.write_table(table(10), tmp_path / "bare.parquet")
    files.score(given, target, measures=MEASURE, keep_members=True)
    text = target.read_text()
    if change == "append":
        target.write_text(text + text.splitlines()[-1] + "\n")
    elif change == "edit":
        target.write_text(text.replace("a0", "b0"))
    else:
        beside(target).write_text("{" if change == "damage" else '{"my": "notes"}')
    found = Points.of(target, Columns(family="laplace"))
    assert found.origin == UNKNOWN
    assert found.weights is None
    if change == "foreign":  # a file that is not ours stays
        files.score(tmp_path / "bare.parquet", target, measures=MEASURE, keep_members=True, overwrite=True)
        assert beside(target).read_text() == '{"my": "notes"}'


def test_folders_of_csv_files_are_read_without_what_is_beside_them(given: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    files.score(given, tmp_path / "folder" / "out.csv", measures=MEASURE, keep_members=True)
    assert Points.of(tmp_path / "folder").ensemble().origin == FOREST
    assert Points.of(str(tmp_path / "folder" / "*")).ensemble().origin == FOREST


def test_files_of_different_origin_have_none_together(given: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(weighted().made_by(Origin("list", "boosting", 3)).to_arrow().append_column("key", pa.array(["b"] * 30)), other)
    assert Points.of([given, given]).origin == Points.of(given).origin == FOREST
    assert Points.of([given, other]).ensemble().origin == UNKNOWN


@pytest.mark.parametrize("name", ["quantiles", "mixture"])
def test_members_in_lists_have_a_number_in_each_cell_of_a_csv_file(name: str, tmp_path: Path) -> None:
    ens = in_lists(20)[name].made_by(FOREST)
    pq.write_table(ens.to_arrow(), tmp_path / "in.parquet")
    points = Points.of(tmp_path / "in.parquet")
    write_ensemble(points, ens, tmp_path / "out.csv")
    found = Points.of(tmp_path / "out.csv").ensemble()
    assert found.origin == FOREST
    assert found.members.options() == ens.members.options()
    grid = np.linspace(-1.0, 1.0, 5)
    for y in grid:
        np.testing.assert_allclose(found.members.cdf(y), ens.members.cdf(y), rtol=1e-12)
    names = pd.read_csv(tmp_path / "out.csv").columns
    assert {"quantiles": "q0.05_0", "mixture": "mean_0_1"}[name] in names


def test_a_frame_that_pandas_wrote_keeps_its_origin_and_loses_it_with_the_members(tmp_path: Path) -> None:
    frame = weighted().to_pandas()
    frame.attrs["mine"] = 1
    frame.to_parquet(tmp_path / "frame.parquet")
    assert Points.of(tmp_path / "frame.parquet").ensemble().origin == FOREST
    files.score(tmp_path / "frame.parquet", tmp_path / "scored.parquet", measures=MEASURE)
    assert pd.read_parquet(tmp_path / "scored.parquet").attrs == {"mine": 1}
    assert Points.of(tmp_path / "scored.parquet").origin == UNKNOWN


def test_part_of_an_arrow_table_is_read_with_its_origin() -> None:
    part = weighted().to_arrow().slice(4, 10)
    found = up.from_arrow(part)
    assert found.origin == FOREST
    np.testing.assert_array_equal(found.members.location, weighted().members.location[:, 4:14])


@pytest.mark.parametrize("command", [["inspect"], ["report", "--target", "y"], ["select", "--target", "y"], ["score"]])
def test_lists_that_pandas_wrote_as_text_are_refused_by_column(command: list[str], tmp_path: Path) -> None:
    """One line says which column and what to do; cells of a CSV file hold no lists."""
    given = up.EnsemblePrediction.quantiles(
        levels=[0.1, 0.5, 0.9], values=np.sort(np.random.default_rng(0).normal(size=(2, 3, 9)), 1)
    )
    given.to_pandas().assign(y=0.0).to_csv(tmp_path / "q.csv", index=False)
    name, *options = command
    written = {"report": ["-o", tmp_path / "page.html"], "score": ["-o", tmp_path / "out.parquet"]}.get(name, [])
    done = run(name, tmp_path / "q.csv", *options, *written)
    assert done.returncode in (1, 3)
    assert "'values_0'" in done.stderr
    assert "list" in done.stderr
    assert "Traceback" not in done.stderr
