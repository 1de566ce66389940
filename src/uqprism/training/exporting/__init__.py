"""Export: a trained ensemble, from its inputs to the split, as one ONNX file or one program of `torch.export`.

The networks, the standardisation, the head and the closed forms of the rule are those that `predict_ensemble` and `decompose`
run: PyTorch records them while they compute.
"""

from __future__ import annotations

import io
import json
import os
import warnings
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.origin import Origin
from uqprism.errors import ArgumentError
from uqprism.measures import ApproximationLike, RuleLike
from uqprism.support.optional import require
from uqprism.support.storage import atomic, check_ending, check_writable
from uqprism.support.versions import __version__
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.exporting import operators
from uqprism.training.exporting.inputs import Input, feeds
from uqprism.training.exporting.onnx_file import onnx_bytes
from uqprism.training.exporting.program import OUTPUTS, Precision, Program, Wanted

torch = require("torch", extra="deep")

__all__ = ["Exported", "Input", "export"]

ENDINGS = (".onnx", ".pt2")
ABOUT = "uqprism.json"  # beside the program in a .pt2 file


@dataclass(frozen=True)
class Exported:
    """What a file of `export` takes and gives.

    Attributes:
        path: of the file.
        inputs: in their order, each with name, kind and type.
        outputs: what each output is: a name of a measure for `bayes`, `excess` and `total`.
    """

    path: Path
    inputs: tuple[Input, ...]
    outputs: dict[str, str]

    def feed(self, X: Any) -> dict[str, np.ndarray[Any, Any]]:
        """The dictionary that `onnxruntime.InferenceSession.run` takes, for a table or an array like that of training."""
        return feeds(self.inputs, X)

    def tensors(self, X: Any) -> tuple[Any, ...]:
        """The tensors that the program of a .pt2 file takes."""
        return tuple(torch.from_numpy(np.ascontiguousarray(x)) for x in feeds(self.inputs, X, codes=True).values())


def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    rule: RuleLike = "crps",
    prediction: ApproximationLike = "members",
    truth: ApproximationLike = "members",
    precision: Precision = "float64",
) -> Exported:
    """Write a trained ensemble as one file that runs without this package: to `.onnx` or, as a `torch.export` program, `.pt2`.

    The file takes what the model was trained on: an array as one input, `inputs`, or each column of a table as an input of its
    name: numbers and booleans as floating numbers with NaN where they are missing, categories as text, empty where they are
    missing. Any number of rows will do. Its outputs, each (rows,), are `mean` and `variance` of the prediction, and `bayes`,
    `excess` and `total` as `decompose` gives them for `predict_ensemble`.

    Args:
        model: a fitted `DeepEnsembleRegressor` or `MCDropoutRegressor`, or a `DeepEnsemble`.
        path: of the file; the ending decides about the format.
        rule: a rule with a closed form for the members, or its name.
        prediction: the approximation for the prediction.
        truth: the approximation for the truth.
        precision: of inputs, outputs and networks; with `float32` the networks are those of training, and faster, and results
            are rounded. Risks are computed in double precision either way.

    Returns:
        What the file takes and gives; `.feed(X)` makes the inputs.

    Raises:
        UnsupportedError: the rule, the head or the transform of the targets has no closed form; the message says which have one.
    """
    if not isinstance(model, DeepEnsemble) and hasattr(model, "predict_ensemble") and hasattr(model, "export"):
        return model.export(path, rule=rule, prediction=prediction, truth=truth, precision=precision)
    if not isinstance(model, DeepEnsemble):
        raise ArgumentError(
            f"export takes a fitted DeepEnsembleRegressor, MCDropoutRegressor or DeepEnsemble, got {type(model).__name__}"
        )
    return export_networks(model, path, Wanted(rule, prediction, truth, precision))


def export_networks(ensemble: DeepEnsemble, path: str | os.PathLike[str], wanted: Wanted) -> Exported:
    """Write the networks, or passes of MC dropout."""
    ending = check_ending(path, ENDINGS)
    if ending == ".onnx":  # before any work
        require("onnx", extra="export")
        require("onnxscript", extra="export")
    check_writable(path)
    made = Program(ensemble, wanted).eval()
    about = _about(ensemble, made, wanted)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes of PyTorch about itself
        rows = torch.export.Dim("rows")
        with operators.Exact() if ending == ".onnx" else nullcontext():
            recorded = torch.export.export(made, made.example(), dynamic_shapes=(tuple({0: rows} for _ in made.inputs),))
        if ending == ".onnx":
            data = onnx_bytes(recorded, made.inputs, OUTPUTS, about)
        else:
            held = io.BytesIO()
            torch.export.save(recorded, held, extra_files={ABOUT: json.dumps(about)})
            data = held.getvalue()
    with atomic(path) as file:
        file.write(data)
    return Exported(Path(path), made.inputs, json.loads(about["outputs"]))


def _about(ensemble: DeepEnsemble, made: Program, wanted: Wanted) -> dict[str, str]:
    """The metadata: text by name."""
    split = made.split
    roles = f"{split.prediction}.{split.truth}"
    outputs = {
        "mean": "mean",
        "variance": "variance",
        "bayes": f"{split.rule.name}.bayes.{split.truth}",
        "excess": f"{split.rule.name}.excess.{roles}",
        "total": f"{split.rule.name}.total.{roles}",
    }
    members = len(ensemble.stack) * (wanted.passes or 1)
    kind = "dropout" if wanted.passes is not None else "resampled" if ensemble.bootstrap else "networks"
    return {
        "description": f"{members} members, {ensemble.head.name} head: mean, variance, and noise (bayes), disagreement (excess) "
        f"and their sum (total) by {split.rule.name}",
        "uqprism_version": __version__,
        "rule": split.rule.name,
        "prediction": split.prediction,
        "truth": split.truth,
        "outputs": json.dumps(outputs),
        "inputs": json.dumps([asdict(each) for each in made.inputs]),
        "features": json.dumps([each.name for each in made.inputs]),
        "head": ensemble.head.name,
        "transform": "" if ensemble.transform is None else ensemble.transform.name,
        "precision": wanted.precision,
        "origin": json.dumps(Origin("DeepEnsemble", kind, members).to_dict()),
    }
