"""The `pyfunc` flavour, with MLflow itself."""

from __future__ import annotations

import pandas as pd
import pytest

import uqprism as up
from uqprism.errors import ArgumentError, MissingExtraError
from uqprism.serving import mlflow as flavour

from .conftest import visits


def test_without_mlflow_the_extra_is_named(served, monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow.pyfunc", None)
    with pytest.raises(MissingExtraError, match="mlflow"):
        flavour.save_model(served, tmp_path / "model")


def test_what_mlflow_loads_answers_the_same(served, tmp_path) -> None:
    """The loader that MLflow calls with the folder that it kept."""
    served.save(tmp_path)
    frame = visits(20, 9)[0]
    pd.testing.assert_frame_equal(flavour._load_pyfunc(str(tmp_path)).predict(frame), served.predict(frame))


@pytest.mark.libraries
@pytest.mark.filterwarnings("ignore")  # MLflow's own, about itself
def test_saved_logged_and_loaded_by_mlflow(served, tmp_path, monkeypatch) -> None:
    """Also by its name in a run; no file is a pickle."""
    pyfunc, mlflow = pytest.importorskip("mlflow.pyfunc"), pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    frame = visits(30, 10)[0]
    expected = served.predict(frame)
    flavour.save_model(served, tmp_path / "saved", input_example=frame[:3])
    assert not [path for path in (tmp_path / "saved").rglob("*") if path.suffix in {".pkl", ".pickle"}]
    found = pyfunc.load_model(str(tmp_path / "saved"))
    pd.testing.assert_frame_equal(found.predict(frame), expected)
    assert found.metadata.metadata["columns"] == list(expected)
    assert [each.name for each in found.metadata.signature.inputs] == ["a", "b", "kind"]
    assert isinstance(flavour.load_model(str(tmp_path / "saved")), up.Served)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run():
        logged = flavour.log_model(served, "model")
    pd.testing.assert_frame_equal(pyfunc.load_model(logged.model_uri).predict(frame), expected)


def test_only_what_is_served_can_be_logged(model, tmp_path) -> None:
    with pytest.raises(ArgumentError, match=r"up\.Served"):
        flavour._arguments(model, str(tmp_path), {})
