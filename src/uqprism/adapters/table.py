"""Tables in memory with a row per point and columns for the members' parameters."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns, ColumnsLike, checked_header, described
from uqprism.ensemble.origin import Origin
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArrayTypeError, InvalidValueError, UqprismError
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

    Members are found by the names of their columns and ordered by the numbers, as `uqprism score` finds them in a file.
    Gaussian members have the columns `mean_0`, `mean_1` and so on, with `variance_0` or `scale_0` (standard deviations) and so
    on. Those of other families have a column per parameter: `location_0`, `scale_0` and so on, and `df_0` for Student t members.
    Quantiles have a column per level, `q05_0`, `q50_0`, `q97.5_0`; draws and bars have lists, of `draws_0`, or of `edges_0` and
    `probabilities_0`. Mixtures have columns of member and component, `mean_0_0`, `scale_0_0` and `shares_0_0`, or lists of
    components. Other columns, such as the target, are ignored.

    Args:
        frame: a pandas or Polars data frame, an Arrow table, or a mapping of names to columns.
        family: the family's name, such as `laplace`, perhaps with options, as in "quantiles:tails=gaussian"; by default it is
            recognised by the columns. Laplace and logistic members have the same columns, so they need it. That of components
            is an option of mixtures, "mixture:components=laplace".
        mean_columns: for Gaussian members, a pattern such as `mu{i}`, names with commas between, or a list of names; by default
            `mean_{i}`.
        variance_columns: the same for variances, by default `variance_{i}`.
        scale_columns: the same for standard deviations, by default `scale_{i}`; give at most one of the two.
        weights: one per member, summing to one; None means equal.

    Raises:
        InvalidValueError: columns that are missing or do not fit together, or a row with a number missing, a mean that is not
            finite or a variance not above zero; named with row and column.
    """
    header = header_of(frame)
    columns = Columns(mean_columns, variance_columns, scale_columns, family)
    layout = described(columns, _names(frame), FRAME, header)
    arrays = layout.arrays(lambda name: _numbers(frame, name))
    good = layout.good(arrays)
    if good is not None:
        row, bad = int(np.argmin(good)), int((~good).sum())
        name, wanted = layout.complaint(arrays, row)
        shown, more = _numbers(frame, name)[row], f" ({bad} such rows)" if bad > 1 else ""
        raise InvalidValueError(
            f"{FRAME}: row {row}: {name} must be {wanted}, got {shown}{more}; repair such rows or leave them out first"
        )
    stated = None if header is None else header.get("weights")
    found = EnsemblePrediction(layout.members(arrays, check=False), stated if weights is None else weights)
    return found.made_by(Origin.from_dict((header or {}).get("origin")))


def header_of(frame: Any) -> dict[str, Any] | None:
    """What a table of `EnsemblePrediction.to_arrow` or `to_pandas` says of its members; None for others."""
    about = getattr(frame, "attrs", {}).get(FORMAT)
    if about is None and (text := (getattr(getattr(frame, "schema", None), "metadata", None) or {}).get(FORMAT.encode())):
        try:
            about = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidValueError(f"{FRAME}: its header is not JSON") from None
    return None if about is None else checked_header(about, FRAME)


def from_arrow(table: Any) -> EnsemblePrediction:
    """Read the table that `EnsemblePrediction.to_arrow` gives, also after it was written to Parquet and read again."""
    header = header_of(table)
    if header is None:
        raise InvalidValueError("the table lacks the header that EnsemblePrediction.to_arrow writes; from_frame reads others")
    try:
        return _described(table, header)
    except UqprismError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidValueError(
            f"the header of the table does not describe its columns: {' '.join(str(error).split())}"
        ) from None


def _described(table: Any, header: dict[str, Any]) -> EnsemblePrediction:
    layout = described(Columns(), table.column_names, FRAME, header)
    if header["members"] != layout.n_members:
        raise InvalidValueError(f"the header of the table is of {header['members']} members, its columns of {layout.n_members}")
    arrays = layout.arrays(lambda name: _numbers(table, name))
    shape = (layout.n_members, *header["points_shape"])
    if np.prod(shape[1:], dtype=np.int64) != len(table):  # rows were taken, or joined
        shape = (layout.n_members, len(table))
    members = layout.members(arrays).map(lambda x: x.reshape(*x.shape[: x.ndim - 2], *shape))
    return EnsemblePrediction(members, header["weights"]).made_by(Origin.from_dict(header.get("origin")))


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
        if hasattr(column, "isna") and not (len(column) and np.ndim(column.iloc[0])):
            # `pandas.NA` is no float of its own.
            return column.to_numpy(dtype=wanted or np.float64, na_value=np.nan)
        values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        if values.dtype.hasobject and len(values) and np.ndim(values[0]):  # lists
            values = np.stack([np.asarray(x) for x in values])
        return values if values.dtype.kind == "f" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(f"{FRAME}: column {name!r} must hold numbers, its type is {dtype or _kind(column)}") from None


def _kind(x: Any) -> str:
    return type(x).__name__
