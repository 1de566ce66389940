"""Files, frames, ensembles and tables of measures are read alike, and wrong arguments are refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.report.pages import PAIR, frame
from tests.tasks.problems import ensemble
from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UqprismError
from uqprism.report.readers import read_subject
from uqprism.report.subject import MeasurePair
from uqprism.tasks import prediction_error


@pytest.mark.parametrize("change", [lambda x: x, pa.Table.from_pandas, lambda x: x.to_dict("list"), None])
def test_columns_of_members_are_read_from_any_table(change, tmp_path: Path) -> None:
    """A frame, an Arrow table, a mapping, or a file."""
    given, other = frame(), frame(20, shift=1.0, seed=2)
    if change is None:
        given.to_parquet(tmp_path / "given.parquet")
        other.to_parquet(tmp_path / "far.parquet")
        found = read_subject(tmp_path / "given.parquet", target="y", ood=[tmp_path / "far.parquet"])
    else:
        found = read_subject(change(given), target="y", ood=change(other))
    ens, y = ensemble(40)
    far = up.evaluate(ensemble(20, shift=1.0, seed=2)[0])
    table = up.evaluate(ens, list(found.measures))
    assert len(found.measures) == 12
    for name in table:
        np.testing.assert_allclose(found.measures[name], table[name], rtol=1e-12)
        np.testing.assert_allclose(next(iter(found.ood.values())).measures[name], far[name])
    np.testing.assert_array_equal(found.target, y)
    np.testing.assert_allclose(found.error, prediction_error(ens, y))
    assert found.target_name == "y"
    assert (found.id_name, list(found.ids_at(np.array([3, 1])))) == ("id", ["trip 3", "trip 1"])
    assert found.columns_at(np.array([3, 1])) == {}


def test_scored_frames_keep_their_members() -> None:
    given, ens = frame(), ensemble(40)[0]
    scored = pd.concat([given, up.evaluate(ens, PAIR).to_pandas()], axis=1)
    found = read_subject(scored, target="y")
    assert list(found.measures) == list(PAIR)
    assert found.n_members == 10
    without = read_subject(scored.filter(regex="^(id|y|crps)"), target="y", prediction="y")
    assert without.ensemble is None
    np.testing.assert_array_equal(without.error, 0.0)


def test_measures_of_a_scored_file_or_a_table_are_named_by_patterns(tmp_path: Path) -> None:
    table = up.evaluate(ensemble(40)[0])
    table.to_pandas().to_parquet(tmp_path / "scored.parquet")
    found = read_subject(tmp_path / "scored.parquet", measures="log.*")
    assert set(found.measures) == {*(name for name in table if name.startswith("log.")), *PAIR}
    found = read_subject({**table, "mine, too": np.arange(40.0)}, measures=["crps.*.members", "mine, too"])
    assert set(found.measures) == {"mine, too"} | {name for name in table if re.fullmatch(r"crps\..*\.members", name)}


def test_columns_and_errors_are_named() -> None:
    given = frame().rename(columns=lambda name: name.replace("mean_", "mu"))
    given["late"] = np.arange(40.0)
    found = read_subject(given, columns=Columns(mean="mu{i}"), error="late", show=["y"], unit="km")
    np.testing.assert_array_equal(found.error, np.arange(40.0))
    assert found.error_words.name == "mean late"
    assert list(found.columns_at(np.array([0]))) == ["y"]
    assert "mine" in read_subject(frame().assign(mine=1.0), measures=["mine", "crps.*.members"]).measures


def test_errors_may_have_all_axes_of_the_points() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=np.zeros((2, 5, 6)), variance=1.0 + np.arange(60.0).reshape(2, 5, 6))
    error = np.arange(30.0).reshape(5, 6)
    np.testing.assert_array_equal(read_subject(ens, error=error).error, error.reshape(-1))
    with pytest.raises(ShapeError, match="shape of the table's points"):
        read_subject(ens, error=error.T)
    with pytest.raises(ShapeError, match="index of the table"):
        read_subject(frame(), error=pd.Series(np.arange(40.0), index=np.arange(40)[::-1]))


def test_only_a_pair_that_shows_disagreement_divides_the_uncertainty() -> None:
    """Between two approximations that are one distribution each there is no disagreement."""
    names = ["crps.bayes.mixture", "crps.bayes.pooled", "crps.excess.mixture.mixture", "crps.excess.matched.pooled"]
    with pytest.raises(InvalidValueError, match="needs a Bayes and an excess risk under one rule"):
        MeasurePair.among(names, "crps", "source")
    other = ["log.bayes.matched", "log.excess.members.matched"]
    assert MeasurePair.among([*names, *other], "crps", "source") == MeasurePair("log", *other)
    assert MeasurePair.among([*names, "crps.excess.members.mixture"], "crps", "x").excess == "crps.excess.members.mixture"
    assert MeasurePair.among([*names, *PAIR], "crps", "source") == MeasurePair.of("crps")


@pytest.mark.parametrize(
    ("source", "how", "error", "message"),
    [
        (lambda _: 3, {}, ArgumentError, "source must be a file, a data frame, an EnsemblePrediction or a table"),
        (lambda _: {"a": np.ones(9)}, {}, InvalidValueError, "needs a Bayes and an excess risk under one rule"),
        (lambda _: pd.DataFrame({"a": np.ones(9)}), {}, InvalidValueError, "frame: no columns like mean_{i}, the columns are a"),
        (lambda _: frame().assign(mean_3=np.nan), {}, InvalidValueError, "frame: row 0: mean_3 must be finite, got nan"),
        (lambda _: frame(), {"target": "z"}, InvalidValueError, "unknown column 'z'"),
        (lambda _: frame(), {"show": ["z"]}, InvalidValueError, "unknown column 'z'"),
        (lambda _: frame(), {"columns": Columns(mean="mu{i}")}, InvalidValueError, "no columns like mu{i}"),
        (lambda ens: ens, {"ood": 3}, ArgumentError, "ood must be of the kind of the source"),
        (lambda ens: ens, {"rule": "crsp"}, UqprismError, "did you mean 'crps'"),
        (up.evaluate, {"target": np.ones(30)}, ArgumentError, "give prediction= beside target="),
        (up.evaluate, {"target": np.ones(30), "prediction": np.ones(30), "error": "nll"}, ArgumentError, "members"),
        (up.evaluate, {"measures": "crsp.*"}, InvalidValueError, "source: unknown measure or column 'crsp"),
        (lambda ens: ens, {"prediction": np.ones(30)}, ArgumentError, "prediction must be left out for an ensemble"),
        (lambda ens: ens, {"error": "e"}, ArgumentError, "error must be an array for an ensemble, got the text 'e'"),
        (up.evaluate, {"error": "e"}, ArgumentError, "error must be an array for a table of measures"),
        (lambda ens: ens, {"show": ["id"]}, ArgumentError, "only a file or a data frame has columns to show"),
        (lambda ens: ens, {"target": np.ones(30), "error": "squard"}, UqprismError, "did you mean 'squared'"),
        (lambda ens: ens, {"error": np.ones(29)}, ShapeError, "each of the table's 30 points, got 29"),
        (lambda ens: ens, {"target": np.ones(29)}, ShapeError, "each of the 30 rows, got 29"),
        (lambda _: "mine.csv", {"target": np.ones(30)}, ArgumentError, "target must be the name of a column for a file"),
        (lambda _: "mine.csv", {"error": np.ones(30)}, ArgumentError, "error must be the name of a column for a file"),
        (lambda ens: ens, {"target": np.full(30, np.nan)}, InvalidValueError, "target must not be NaN"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_written(source, how, error, message, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        up.write_report(source(ensemble(30)[0]), tmp_path / "page", **how)
    assert not list(tmp_path.iterdir())


def test_damaged_metadata_of_pandas_names_no_index(tmp_path: Path) -> None:
    table = pa.table({"mean_0": [0.0, 1.0], "variance_0": [1.0, 2.0], "id": ["a", "b"]})
    for number, metadata in enumerate(("[", "[]", "{", "7")):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table.replace_schema_metadata({"pandas": metadata}), path)
        assert read_subject(path).id_name == "id"
