"""An exported program as an ONNX file, with text for categories and a description in its metadata."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from uqprism.errors import UnsupportedError
from uqprism.support.optional import require
from uqprism.training.exporting.inputs import GAP, Input

torch = require("torch", extra="deep")

OPSET, CATEGORIES = 18, 3  # of ai.onnx and of ai.onnx.ml
LABELS = "ai.onnx.ml"


def onnx_bytes(program: Any, inputs: tuple[Input, ...], outputs: tuple[str, ...], about: dict[str, str]) -> bytes:
    """The ONNX model of a `torch.export` program.

    Args:
        program: the program.
        inputs: its inputs; those of categories become text.
        outputs: the names of its outputs.
        about: the metadata.
    """
    onnx = require("onnx", extra="export")
    require("onnxscript", extra="export")
    names = [each.name for each in inputs]
    with _quiet():
        # Not optimised: runtimes do that when they load the file, and the converter takes minutes.
        try:
            made = torch.onnx.export(
                program, (), input_names=names, output_names=list(outputs), opset_version=OPSET, dynamo=True, optimize=False
            )
        except torch.onnx.OnnxExporterError as error:
            raise UnsupportedError(
                f"the converter of PyTorch cannot write these networks or this rule as ONNX ({_first_line(error)}); export to a "
                ".pt2 file, which needs no converter"
            ) from error
    model = made.model_proto
    _name_rows(model, inputs)
    for each in inputs:
        if each.kind == "category":
            _take_text(onnx, model, each)
    if any(each.kind == "category" for each in inputs):
        model.opset_import.append(onnx.helper.make_opsetid(LABELS, CATEGORIES))
    del model.metadata_props[:]
    onnx.helper.set_model_props(model, about)
    model.producer_name, model.doc_string = "uqprism", about["description"]
    for node in model.graph.node:  # where in the source code each came from, on the machine of the export
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _first_line(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _name_rows(model: Any, inputs: tuple[Input, ...]) -> None:
    """Call the number of rows `rows`, which is free."""
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "rows"
    assert [value.name for value in model.graph.input] == [each.name for each in inputs]  # noqa: S101  as it was asked for


def _take_text(onnx: Any, model: Any, given: Input) -> None:
    """Let an input of codes be one of text, which a first node turns into codes."""
    codes = f"{given.name} code"
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name == given.name:
                node.input[i] = codes
    value = next(value for value in model.graph.input if value.name == given.name)
    value.type.tensor_type.elem_type = onnx.TensorProto.STRING
    count = len(given.categories)
    node = onnx.helper.make_node(
        "LabelEncoder",
        [given.name],
        [codes],
        domain=LABELS,
        keys_strings=[*given.categories, GAP],
        values_int64s=[*range(count), count + 1],
        default_int64=count,
    )
    model.graph.node.insert(0, node)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the converter's progress and its notes about itself."""
    loggers = [logging.getLogger(name) for name in ("onnxscript", "onnx_ir", "torch.onnx", "torch.export")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
