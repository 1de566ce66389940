"""Measures, members, targets and errors of files, as the tasks use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.files.tables import write_table
from tests.tasks.problems import ensemble
from uqprism import tasks
from uqprism.files import score
from uqprism.files.points import Points
from uqprism.measures import is_measure

MEASURE = "crps.total.members.members"


@pytest.fixture
def members() -> tuple[up.EnsemblePrediction, np.ndarray, pa.Table]:
    ens, target = ensemble(30)
    return ens, target, ens.to_arrow().append_column("y", pa.array(target)).append_column("note", pa.array(["x"] * 30))


@pytest.mark.parametrize("ending", ["parquet", "csv", "npz"])
def test_members_are_evaluated_and_targets_become_errors(members, ending: str, tmp_path: Path) -> None:
    ens, target, table = members
    points = Points.of(write_table(table, tmp_path / f"in.{ending}"))
    found = points.measures(["crps.*"])
    assert len(found) == 36
    np.testing.assert_allclose(found[MEASURE], up.evaluate(ens, MEASURE)[MEASURE], rtol=1e-12)
    assert len(points.measures()) == 144
    assert len(points.measures(["usual"])) == 12
    for kind in ("squared", "nll"):
        expected = tasks.prediction_error(ens, target, kind)
        np.testing.assert_allclose(points.error(column=None, target="y", prediction=None, kind=kind), expected, rtol=1e-9)


def test_measures_that_are_there_are_taken_as_they_are(tmp_path: Path) -> None:
    table = pa.table({MEASURE: [1.0, 2.0], "log.bayes.mixture": [3.0, 4.0], "my_score": [5, 6], "y": [0.0, 0.5], "p": [1.0, 1.0]})
    points = Points.of(write_table(table, tmp_path / "scored.parquet"))
    assert list(points.measures()) == [MEASURE, "log.bayes.mixture"]
    assert points.measures(["my_score"])["my_score"].tolist() == [5.0, 6.0]
    assert list(points.measures(["log.*, my_score"])) == ["my_score", "log.bayes.mixture"]
    assert points.error(column="y", target=None, prediction=None).tolist() == [0.0, 0.5]
    assert points.error(column=None, target="y", prediction="p").tolist() == [1.0, 0.25]
    assert points.error(column=None, target="y", prediction="p", kind="absolute").tolist() == [1.0, 0.5]


def test_a_folder_of_parts_is_one_set_of_points(members, tmp_path: Path) -> None:
    *_, table = members
    for i in range(3):
        write_table(table.slice(10 * i, 10), tmp_path / f"part{i}.parquet")
    write_table(table, tmp_path / "_record.parquet")
    np.testing.assert_array_equal(Points.of(tmp_path).read(["y"])["y"], table.column("y").to_numpy())
    write_table(table.drop_columns("y"), tmp_path / "part3.parquet")
    with pytest.raises(up.UqprismError, match=r"part3\.parquet: unknown column 'y'"):
        Points.of(tmp_path).read(["y"])


@pytest.mark.parametrize("spread", ["scale", "variance"])
def test_weights_of_a_saved_ensemble_count(spread: str, tmp_path: Path) -> None:
    given = {"mean": [[0.0, 1.0], [2.0, 5.0]], spread: [[1.0, 1.0], [1.0, 2.0]]}
    ens = up.EnsemblePrediction.gaussian(**given, weights=[0.9, 0.1])
    pq.write_table(ens.to_arrow(), tmp_path / "in.parquet")
    ens.save(tmp_path / "in.npz")
    for name in ("in.parquet", "in.npz"):
        found = Points.of(tmp_path / name).measures([MEASURE])[MEASURE]
        np.testing.assert_allclose(found, up.evaluate(ens, MEASURE)[MEASURE])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.read(["yy"]), r"unknown column 'yy'; did you mean 'y'"),
        (lambda p: p.read(["note"]), r"column 'note' must hold numbers"),
        (lambda p: p.measures(["crsp.total.*"]), "unknown rule 'crsp'; did you mean 'crps'"),
        (lambda p: p.error(column=None, target=None, prediction=None), r"error of each point is missing.*--error-column"),
        (
            lambda p: p.error(column="y", target="y", prediction=None),
            r"--error-column, or --target \(with --prediction\), not both",
        ),
        (lambda p: p.error(column=None, target="y", prediction="y", kind="nll"), r"--error nll needs the members"),
        (lambda p: p.error(column=None, target="y", prediction=None, kind="mse"), r"unknown kind of error 'mse'"),
    ],
)
def test_bad_requests_name_the_file_or_the_option(members, call, message: str, tmp_path: Path) -> None:
    points = Points.of(write_table(members[2], tmp_path / "in.parquet"))
    with pytest.raises(up.UqprismError, match=message):
        call(points)


def test_a_file_without_measures_or_members_says_what_to_do(tmp_path: Path) -> None:
    points = Points.of(write_table(pa.table({"a": [1.0], "y": [2.0]}), tmp_path / "in.csv"))
    with pytest.raises(up.UqprismError, match=r"no columns like mean_\{i\}.*uqprism score writes them"):
        points.measures()


BROKEN = {
    "empty": "",
    "text": "Dear colleague, here\nare the predictions.\nBest\n",
    "semicolons": "y;mean_0;variance_0\n1,5;2,0;1,0\n",
    "question": "y,mean_0,variance_0\n1,1,1\n2,?,1\n",
    "null": "y,mean_0,variance_0\n1,1,1\n2,,1\n",
    "negative": "y,mean_0,variance_0\n1,1,1\n2,1,-0.5\n",
    "means": "y,mean_0,mean_1\n1,1,1\n2,1,2\n",
    "deviations": "y,mean_0,std_0\n1,1,1\n2,1,2\n",
    "capitals": "y,Mean_0,Variance_0\n1,1,1\n2,1,2\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_in_the_words_of_scoring(name: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(BROKEN[name])
    with pytest.raises(up.UqprismError) as scoring:
        score(path, tmp_path / "out.csv")
    with pytest.raises(up.UqprismError) as reading:
        Points.of(path).measures([MEASURE])
    assert str(reading.value).split("; repair")[0] == str(scoring.value).split("; repair")[0]
    assert str(path) in str(reading.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("y;mean_0;variance_0", "separator must be a comma"),
        ("y,mean_0,std_0", r"--scale-columns 'std_\{i\}'"),
        ("y,Mean_0,Variance_0", r"--mean-columns 'Mean_\{i\}' --variance-columns 'Variance_\{i\}'"),
        ("y,mean_0,mean_1", "mean squared error on validation data as its variance"),
        ("y,crps.total.members.members", "score with --keep-members, or name .* --prediction"),
    ],
)
def test_columns_by_other_names_lead_to_the_option_that_names_them(header: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    with pytest.raises(up.UqprismError, match=message):
        Points.of(tmp_path / "in.csv").error(column=None, target="y", prediction=None)


def test_a_target_that_is_missing_is_named_by_file_row_and_column(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,y,mean_0,variance_0\n0,1,1,1\n1,,1,1\n2,nan,1,1\n3,2,1,1\n")
    points = Points.of(tmp_path / "in.csv")
    with pytest.raises(
        up.UqprismError, match=r"in\.csv: row 1 \(line 3\): y must be finite, got null \(2 bad rows .*--on-bad drop"
    ):
        points.error(column=None, target="y", prediction=None)
    kept = Points.of(tmp_path / "in.csv", on_bad="drop").error(column=None, target="y", prediction=None)
    np.testing.assert_array_equal(np.isnan(kept), [False, True, True, False])
    with pytest.raises(up.UqprismError, match=r"unknown column 'zz'; choose from id, y$"):
        points.error(column=None, target="zz", prediction=None)


def test_a_saved_table_of_measures_is_read_as_one_row_of_points(tmp_path: Path) -> None:
    grid = up.EnsemblePrediction.gaussian(mean=np.arange(24.0).reshape(2, 3, 4) ** 2, scale=np.ones((2, 3, 4)))
    table = up.evaluate(grid, [MEASURE])
    table.save(tmp_path / "grid.npz")
    found = Points.of(tmp_path / "grid.npz").measures()
    assert list(found) == [MEASURE]
    np.testing.assert_array_equal(found[MEASURE], table[MEASURE].ravel())


def test_names_of_measures_are_told_from_other_columns() -> None:
    assert is_measure(MEASURE)
    assert is_measure("log.bayes.pooled")
    assert not any(map(is_measure, ["y", "crps.total.members", "log.bayes.a.b", "file.total.members.members", "crps.total.a.b"]))
