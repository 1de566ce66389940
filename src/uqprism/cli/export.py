"""A trained model as one file that runs without this package."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from uqprism.cli.application import command

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A .safetensors file that save of a regressor wrote.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="An .onnx file, or .pt2 for torch.export.")]
Rule = Annotated[str, typer.Option(metavar="RULE", help="The scoring rule of the split.")]
ROLES = "members, mixture, matched or pooled."
Prediction = Annotated[str, typer.Option(metavar="NAME", help=f"Approximation of the prediction: {ROLES}")]
Truth = Annotated[str, typer.Option(metavar="NAME", help=f"Approximation of the truth: {ROLES}")]
Precision = Annotated[str, typer.Option(metavar="float64|float32", help="Precision of inputs, outputs and networks.")]


@command(-31, "Write a trained model and its split as an ONNX file.")
def export(
    *,
    model: Model,
    output: Output,
    rule: Rule = "crps",
    prediction: Prediction = "members",
    truth: Truth = "members",
    precision: Precision = "float64",
) -> None:
    """Write a trained model, its preprocessing and its split as one file, and print its inputs and outputs."""
    from uqprism.training.estimators import load

    made = load(model).export(output, rule=rule, prediction=prediction, truth=truth, precision=precision)  # type: ignore[arg-type]
    inputs = {each.name: "text" if each.kind == "category" else each.dtype for each in made.inputs}
    print(json.dumps({"path": output, "inputs": inputs, "outputs": made.outputs}, indent=1))
