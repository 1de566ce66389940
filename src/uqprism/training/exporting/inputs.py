"""The inputs of an exported model: one tensor for arrays, or one for each column of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError, ShapeError
from uqprism.support.optional import require
from uqprism.training.columns import Column, Columns, is_frame
from uqprism.training.kinds import Kind

torch = require("torch", extra="deep")

Tensor = Any
ARRAY = "inputs"  # the name of the one input of a model that was trained on arrays
GAP = ""  # the text of a missing category
STRANGE = "\x00"  # a category that no training row had


@dataclass(frozen=True)
class Input:
    """One input of the exported model.

    Attributes:
        name: of the input; that of the column, but for columns that are called like an output.
        kind: `array`, `number`, `boolean` or `category`.
        dtype: of the numbers: `float64` or `float32`; text for categories, whose codes are `int64` in a `torch.export` program.
        shape: of one row.
        categories: those of training in the order of their codes; the next two codes are any other category, and a missing one.
    """

    name: str
    kind: Kind | str
    dtype: str
    shape: tuple[int, ...] = ()
    categories: tuple[str, ...] = ()

    def feed(self, values: Any, *, codes: bool = False) -> np.ndarray[Any, Any]:
        """The values of a column, or an array, as this input takes them; categories as text, or as `codes`."""
        if self.kind == "array":
            return np.asarray(values, dtype=self.dtype)
        pandas = require("pandas", extra="pandas")
        series = pandas.Series(values)
        if self.kind != "category":
            return series.astype(object).where(~series.isna(), np.nan).to_numpy(dtype=self.dtype)
        texts = np.asarray([GAP if gap else str(value) for value, gap in zip(series, series.isna(), strict=True)], dtype=object)
        if not codes:
            return texts
        known = {text: code for code, text in enumerate(self.categories)} | {GAP: len(self.categories) + 1}
        return np.asarray([known.get(text, len(self.categories)) for text in texts], dtype=np.int64)


def inputs_of(columns: Columns | None, row: tuple[int, ...], dtype: str, taken: tuple[str, ...]) -> tuple[Input, ...]:
    """The inputs of a model for rows of this shape; `taken` are the names of its outputs."""
    if columns is None:
        return (Input(ARRAY, "array", dtype, row),)
    return tuple(_input(column, dtype, taken) for column in columns.columns)


def _input(column: Column, dtype: str, taken: tuple[str, ...]) -> Input:
    name = f"{column.name} (column)" if column.name in taken else column.name
    if column.kind != "category":
        return Input(name, column.kind, dtype)
    known = tuple(column.kept if column.counts is None else sorted(column.counts))
    if GAP in known:
        raise InvalidValueError(
            f"column {column.name!r} has empty text among its categories, which stands for a missing one in exported models; "
            "give it another name, as with frame.replace({'': 'none'}), and train again"
        )
    return Input(name, "category", dtype, categories=known)


def feeds(inputs: tuple[Input, ...], X: Any, *, codes: bool = False) -> dict[str, np.ndarray[Any, Any]]:
    """What `onnxruntime.InferenceSession.run` takes for a table or an array."""
    if inputs[0].kind == "array":
        return {inputs[0].name: inputs[0].feed(X)}
    if isinstance(X, Mapping) or is_frame(X):
        names = [name.removesuffix(" (column)") for name in (each.name for each in inputs)]
        return {each.name: each.feed(X[name], codes=codes) for each, name in zip(inputs, names, strict=True)}
    values = np.asarray(X)
    if values.ndim != 2 or values.shape[1] != len(inputs):
        raise ShapeError(f"X must be a table with the columns of training, or (rows, {len(inputs)}), got {values.shape}")
    return {each.name: each.feed(values[:, i], codes=codes) for i, each in enumerate(inputs)}


class Numbers(torch.nn.Module):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """The numbers (rows, numbers) that the columns of a table become, from a tensor (rows,) for each: what `Columns.apply` does.

    A category comes as its code, by which a table of the numbers of all categories is read.
    """

    def __init__(self, columns: Columns, inputs: tuple[Input, ...]) -> None:
        super().__init__()
        pandas = require("pandas", extra="pandas")
        self._columns = columns.columns
        for i, (column, given) in enumerate(zip(columns.columns, inputs, strict=True)):
            if column.kind == "category":
                values = pandas.Series([*given.categories, STRANGE, None], dtype=object)
                self.register_buffer(f"table_{i}", torch.from_numpy(column.apply(values)))

    def forward(self, *given: Tensor) -> Tensor:
        """The numbers."""
        parts = []
        for i, (column, values) in enumerate(zip(self._columns, given, strict=True)):
            if column.kind == "category":
                parts.append(getattr(self, f"table_{i}")[values])
                continue
            wide = values.double()
            missing = torch.isnan(wide)
            filled = torch.where(missing, torch.full_like(wide, column.fill), wide)
            parts.append(torch.stack([filled, missing.double()], dim=1) if column.gaps else filled[:, None])
        return torch.cat(parts, dim=1)


__all__ = ["ARRAY", "Input", "Numbers", "feeds", "inputs_of"]
