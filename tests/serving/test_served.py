"""`Served`: the table of answers, and the folder that is deployed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
import uqprism.serving.served as served_module
from uqprism.errors import ArgumentError, BadFileError, FileError, InvalidValueError, ShapeError

from .conftest import visits


def test_answers_are_made_of_the_parts(model, served) -> None:
    """Recalibrated, split by the rule, with the margins of calibration, flagged by the total."""
    frame, y = visits(2000, 2)
    found, ens = served.predict(frame), served.recalibration.apply(model.predict_ensemble(frame))
    split = up.decompose(ens)
    assert list(found) == ["mean", "lower", "upper", "noise", "disagreement", "flag"]
    assert_allclose(found["noise"], split.bayes)
    assert_allclose(found["disagreement"], split.excess)
    assert_array_equal(found["flag"], split.total >= served.threshold)
    inside = (found["lower"] <= y) & (y <= found["upper"])
    assert 0.86 < inside.mean() < 0.94
    assert 0.05 < found["flag"].mean() < 0.17


def test_intervals_apply_to_further_predictions_as_if_they_were_there(model) -> None:
    known, (frame, y) = visits(200, 3), visits(300, 4)
    ens, new = model.predict_ensemble(frame), model.predict_ensemble(known[0])
    direct = up.conformal_intervals(ens, y, new, 0.8)
    later = up.conformal_intervals(ens, y, ens[:0], 0.8).apply(new)
    assert_array_equal(later.lower, direct.lower)
    assert_array_equal(later.upper, direct.upper)
    with pytest.raises(ArgumentError, match="groups"):
        up.conformal_intervals(ens, y, new, 0.8, groups_calibration=frame["kind"], groups=known[0]["kind"]).apply(new)


def test_a_folder_without_pickle(served, tmp_path) -> None:
    """What is read back answers the same, and further columns, orders and mappings of columns do not matter."""
    served.save(tmp_path / "served")
    served.save(tmp_path / "served")  # again, into the same place
    assert {path.suffix for path in (tmp_path / "served").iterdir()} == {".json", ".safetensors"}
    assert len(list((tmp_path / "served").iterdir())) == 2
    frame = visits(50, 5)[0]
    frame.index = pd.Index(range(100, 150), name="visit")
    back, expected = up.Served.load(tmp_path / "served"), served.predict(frame)
    pd.testing.assert_frame_equal(back.predict(frame), expected)
    pd.testing.assert_frame_equal(back.predict(frame.assign(more=1)[["kind", "more", "b", "a"]]), expected)
    columns = {name: frame[name].tolist() for name in frame}
    pd.testing.assert_frame_equal(back.predict(columns), expected.reset_index(drop=True))


def test_a_folder_that_is_saved_into_while_it_is_loaded(model, served, tmp_path, monkeypatch) -> None:
    """The file of the model has gone when its turn comes: the new one is read."""
    served.save(tmp_path)
    known, calls = served_module._digest, []

    def late(path: Path) -> str:
        if path.name.startswith("model-") and not calls:
            calls.append(path)
            path.unlink()
            (tmp_path / "served.json").write_text((other / "served.json").read_text())
            (new,) = other.glob("model-*")
            new.rename(tmp_path / new.name)
            raise FileError("gone")
        return known(path)

    other = tmp_path / "other"
    up.Served(model, threshold=0.5).save(other)
    monkeypatch.setattr("uqprism.serving.served._digest", late)
    assert up.Served.load(tmp_path).threshold == 0.5
    assert len(calls) == 1


def test_without_calibration_intervals_are_those_of_the_mixture(model) -> None:
    frame = visits(40, 6)[0]
    found = up.Served(model, coverage=0.8).predict(frame)
    assert list(found) == ["mean", "lower", "upper", "noise", "disagreement"]
    assert_allclose(found[["lower", "upper"]].to_numpy().T, model.predict_interval(frame, coverage=0.8))


def test_what_is_no_such_folder(served, tmp_path) -> None:
    with pytest.raises(FileError, match=r"served\.json"):
        up.Served.load(tmp_path)
    served.save(tmp_path)
    (path,) = tmp_path.glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(BadFileError, match="changed"):
        up.Served.load(tmp_path)
    about = json.loads((tmp_path / "served.json").read_text())
    (tmp_path / "served.json").write_text(json.dumps(about | {"version": 99}))
    with pytest.raises(InvalidValueError, match="version 99"):
        up.Served.load(tmp_path)


def test_arguments_that_make_no_sense(model) -> None:
    with pytest.raises(ArgumentError, match="DeepEnsembleRegressor"):
        up.Served(object())
    with pytest.raises(InvalidValueError, match="coverage"):
        up.Served(model, coverage=90.0)
    table = up.evaluate(model.predict_ensemble(visits(30, 7)[0]), "log.*")
    with pytest.raises(ArgumentError, match=r"crps\.total"):
        up.Served(model, threshold=up.flag(table, measure="log.total.members.members"))
    frame, y = visits(30, 8)
    with pytest.raises(InvalidValueError, match="40 rows"):
        up.Served.calibrated(model, frame, y)
    with pytest.raises(ShapeError, match="30, got 29"):
        up.Served.calibrated(model, frame, np.asarray(y)[:29])
