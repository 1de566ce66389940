"""An MLflow `pyfunc` flavour of `Served`, without pickle: MLflow keeps the folder, and loads it with this module."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.serving.served import Served
from uqprism.support.optional import require
from uqprism.support.versions import __version__

LOADER = "uqprism.serving.mlflow"


class Answers:
    """What MLflow calls: `predict` of a table."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """The table of answers; see `Served.predict`."""
        return self.served.predict(model_input)

    def get_raw_model(self) -> Served:
        """What MLflow's `get_raw_model` gives."""
        return self.served


def save_model(served: Served, path: str | os.PathLike[str], **options: Any) -> None:
    """Write an MLflow model; `options` are further arguments of `mlflow.pyfunc.save_model`.

    An `input_example`, a few rows, also gives the signature, by which MLflow checks tables and converts columns.
    """
    pyfunc = require("mlflow.pyfunc", extra="mlflow")
    with tempfile.TemporaryDirectory() as folder:
        pyfunc.save_model(path=os.fspath(path), **_arguments(served, folder, options))


def log_model(served: Served, name: str = "model", **options: Any) -> Any:
    """Log an MLflow model to the run, and return MLflow's description of it; `options` are those of `mlflow.pyfunc.log_model`."""
    pyfunc = require("mlflow.pyfunc", extra="mlflow")
    with tempfile.TemporaryDirectory() as folder:
        return pyfunc.log_model(name=name, **_arguments(served, folder, options))


def load_model(uri: str) -> Served:
    """The `Served` of an MLflow model; `mlflow.pyfunc.load_model` gives MLflow's own object, with the same `predict`."""
    return require("mlflow.pyfunc", extra="mlflow").load_model(uri).get_raw_model()


def _arguments(served: Served, folder: str, options: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(served, Served):
        raise ArgumentError(f"this takes a uqprism.Served, got {type(served).__name__}; wrap a model with up.Served(model)")
    place = Path(folder) / "served"
    served.save(place)
    needed = [f"uqprism[deep,sklearn]=={__version__}"]
    if (example := options.get("input_example")) is not None and "signature" not in options:
        models = require("mlflow.models", extra="mlflow")  # with a loader of one's own, MLflow does not infer it
        options = options | {"signature": models.infer_signature(example, served.predict(example))}
    metadata = {"rule": served.rule, "columns": list(served.columns), "features": list(served.features)}
    return {
        "loader_module": LOADER,
        "data_path": str(place),
        "pip_requirements": needed,
        **options,
        "metadata": metadata | (options.get("metadata") or {}),
    }


def _load_pyfunc(path: str) -> Answers:
    """What MLflow calls to load the folder."""
    return Answers(Served.load(path))
