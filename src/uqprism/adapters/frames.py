"""A table in memory with a row per point and columns for the members, one Gaussian member for each pair of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns, resolve
from uqprism.errors import ArrayTypeError, InvalidValueError

FRAME = "frame"  # what errors call it


def from_frame(frame: Any, columns: Columns, weights: Array) -> EnsemblePrediction:
    """See `EnsemblePrediction.from_frame`."""
    layout = resolve(columns, _names(frame), FRAME)
    mean = [_numbers(frame, name) for name in layout.mean]
    spread = [_numbers(frame, name) for name in layout.spread]
    for name, values in zip(layout.mean, mean, strict=True):
        _check(name, values, np.isfinite(values), "finite")
    for name, values in zip(layout.spread, spread, strict=True):
        _check(name, values, np.isfinite(values) & (values > 0), "finite and greater than zero")
    given: dict[str, Any] = {"mean": np.stack(mean), layout.kind: np.stack(spread)}
    return EnsemblePrediction.gaussian(**given, weights=weights)


def _names(frame: Any) -> list[Any]:
    if hasattr(frame, "map_partitions") or hasattr(frame, "data_vars"):
        raise ArrayTypeError(f"{FRAME} must be a table in memory, got {_kind(frame)}; uqprism.files.evaluate takes that as it is")
    for attribute in ("column_names", "columns"):  # Arrow's, then those of data frames
        if hasattr(frame, attribute):
            return list(getattr(frame, attribute))
    if hasattr(frame, "keys"):
        return list(frame.keys())
    raise ArrayTypeError(
        f"{FRAME} must be a data frame, an Arrow table or a mapping of columns, got {_kind(frame)}; a file is read first, as in "
        "pandas.read_csv, and arrays go to EnsemblePrediction.gaussian"
    )


def _numbers(frame: Any, name: str) -> np.ndarray[Any, Any]:
    """A column as floats of its own precision, or of double precision if it holds something else; what is missing is NaN."""
    column = frame[name]
    dtype = getattr(column, "dtype", None)
    plain = getattr(dtype, "numpy_dtype", dtype)  # of a nullable column
    wanted = plain if isinstance(plain, np.dtype) and plain.kind == "f" else None
    try:
        if hasattr(column, "isna"):
            return column.to_numpy(dtype=wanted or np.float64, na_value=np.nan)
        values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        return values if values.dtype.kind == "f" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(f"{FRAME}: column {name!r} must hold numbers, its type is {dtype or _kind(column)}") from None


def _check(name: str, values: np.ndarray[Any, Any], good: np.ndarray[Any, Any], wanted: str) -> None:
    if good.all():
        return
    row, bad = int(np.argmin(good)), int((~good).sum())
    more = f" ({bad} such rows)" if bad > 1 else ""
    raise InvalidValueError(
        f"{FRAME}: row {row}: {name} must be {wanted}, got {values[row]}{more}; repair such rows or leave them out first"
    )


def _kind(x: Any) -> str:
    return type(x).__name__
