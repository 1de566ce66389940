"""Tables in memory with a row per point and columns for the members' parameters."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns, ColumnsLike, member_columns
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArrayTypeError, InvalidValueError, UqprismError
from uqprism.families import families
from uqprism.synonyms import named_arguments

FRAME = "frame"  # its name in messages


@named_arguments()
def from_frame(
    frame: Any,
    *,
    family: str | None = None,
    mean_columns: ColumnsLike = None,
    variance_columns: ColumnsLike = None,
    scale_columns: ColumnsLike = None,
    weights: Array = None,
) -> EnsemblePrediction:
    """Members from a table in memory with a row per point, such as the one that `EnsemblePrediction.to_pandas` gives.

    Members are found by the names of their columns and ordered by the numbers. Gaussian members have the columns `mean_0`,
    `mean_1` and so on, with `variance_0` or `scale_0` (standard deviations) and so on: those that `uqprism score` reads from a
    file. Members of other families have a column per parameter: `location_0`, `scale_0` and so on, and `df_0` for Student t
    members. Other columns, such as the target, are ignored.

    Args:
        frame: a pandas or Polars data frame, an Arrow table, or a mapping of names to columns.
        family: the family's name, such as `laplace`; by default it is recognised by the columns. Laplace and logistic members
            have the same columns, so they need it.
        mean_columns: for Gaussian members, a pattern such as `mu{i}`, names with commas between, or a list of names; by default
            `mean_{i}`.
        variance_columns: the same for variances, by default `variance_{i}`.
        scale_columns: the same for standard deviations, by default `scale_{i}`; give at most one of the two.
        weights: one per member, summing to one; None means equal.

    Raises:
        InvalidValueError: columns that are missing or do not fit together, or a row with a number missing, a mean that is not
            finite or a variance not above zero; named with row and column.
    """
    columns = Columns(mean_columns, variance_columns, scale_columns)
    family, found = member_columns(columns, family, _names(frame), FRAME)
    given = {parameter: [_numbers(frame, name) for name in names] for parameter, names in found.items()}
    kinds = families.get(family).arguments()
    for parameter, names in found.items():
        for name, values in zip(names, given[parameter], strict=True):
            if kinds.get(parameter) != "bound":  # which may be infinite
                _check(name, values, free=kinds.get(parameter) == "location")
    parameters: dict[str, Any] = {parameter: np.stack(values) for parameter, values in given.items()}
    return EnsemblePrediction(families.get(family)(**parameters), weights)


def from_arrow(table: Any) -> EnsemblePrediction:
    """Read the table that `EnsemblePrediction.to_arrow` gives, also after it was written to Parquet and read again."""
    metadata = (table.schema.metadata or {}).get(FORMAT.encode())
    if metadata is None:
        raise InvalidValueError("the table lacks the header that EnsemblePrediction.to_arrow writes; from_frame reads others")
    try:
        return _described(table, json.loads(metadata))
    except UqprismError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidValueError(
            f"the header of the table does not describe its columns: {' '.join(str(error).split())}"
        ) from None


def _described(table: Any, header: dict[str, Any]) -> EnsemblePrediction:
    shape = (header["members"], *header["points_shape"])
    given: dict[str, Array] = {}
    for name in table.column_names:
        parameter = name.rsplit("_", 1)[0]
        if name == f"{parameter}_0" and parameter not in given:  # by their numbers, whatever the order of the columns
            columns = [table.column(f"{parameter}_{i}").to_numpy() for i in range(header["members"])]
            given[parameter] = np.stack(columns).reshape(shape)
    return EnsemblePrediction(families.get(header["family"])(**given), header["weights"])


def _names(frame: Any) -> list[Any]:
    if hasattr(frame, "map_partitions") or hasattr(frame, "data_vars"):  # Dask or xarray, recognised without an import
        raise ArrayTypeError(f"{FRAME} must be a table in memory, got {_kind(frame)}; use uqprism.files.evaluate")
    for attribute in ("column_names", "columns"):  # Arrow's, then those of data frames
        if hasattr(frame, attribute):
            return list(getattr(frame, attribute))
    if hasattr(frame, "keys"):
        return list(frame.keys())
    raise ArrayTypeError(
        f"{FRAME} must be a data frame, an Arrow table or a mapping of columns, got {_kind(frame)}; read a file first, as with "
        "pandas.read_csv, and pass arrays to EnsemblePrediction.gaussian"
    )


def _numbers(frame: Any, name: str) -> np.ndarray[Any, Any]:
    """A column as floats of its own precision, or of double precision if it holds something else; what is missing is NaN."""
    column = frame[name]
    dtype = getattr(column, "dtype", None)
    plain = getattr(dtype, "numpy_dtype", dtype)  # of a nullable column
    wanted = plain if isinstance(plain, np.dtype) and plain.kind == "f" else None
    try:
        if hasattr(column, "isna"):
            # `pandas.NA` is no float of its own.
            return column.to_numpy(dtype=wanted or np.float64, na_value=np.nan)
        values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        return values if values.dtype.kind == "f" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(f"{FRAME}: column {name!r} must hold numbers, its type is {dtype or _kind(column)}") from None


def _check(name: str, values: np.ndarray[Any, Any], *, free: bool) -> None:
    """Refuse values that are not finite or, unless they are free to have any sign, not positive."""
    good = np.isfinite(values) & (free | (values > 0))
    if good.all():
        return
    row, bad = int(np.argmin(good)), int((~good).sum())
    wanted = "finite" if free else "finite and greater than zero"
    more = f" ({bad} such rows)" if bad > 1 else ""
    raise InvalidValueError(
        f"{FRAME}: row {row}: {name} must be {wanted}, got {values[row]}{more}; repair such rows or leave them out first"
    )


def _kind(x: Any) -> str:
    return type(x).__name__
