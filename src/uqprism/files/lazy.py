"""`evaluate` for chunked data: Dask DataFrames and arrays, and xarray Datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from uqprism import evaluation as core
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns, ColumnsLike, checked_header, described
from uqprism.ensemble.labelled import is_labelled
from uqprism.ensemble.layout import Layout
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError
from uqprism.measures import Measure, MeasuresLike, select_measures
from uqprism.measures.vocabulary import measure_in_words, risk_unit
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.support.parallel import limited_to


def evaluate(
    data: Any = None,
    measures: MeasuresLike = None,
    *,
    mean: Any = None,
    variance: Any = None,
    scale: Any = None,
    weights: Sequence[float] | None = None,
    mean_columns: ColumnsLike = None,
    variance_columns: ColumnsLike = None,
    scale_columns: ColumnsLike = None,
    family: str | None = None,
    member_dim: str = "member",
    on_bad: Literal["error", "null"] = "error",
) -> Any:
    """Measures of chunked data, computed lazily, chunk by chunk.

    Args:
        data: a Dask or pandas DataFrame with member columns; the result has a column per measure in their place. Or an
            `xarray.Dataset` with variables mean and variance or scale, whose dimensions may have any order; the result is a
            Dataset with a variable per measure, the same coordinates and attributes. If the mean has the attribute `units`, each
            measure has its own.
        measures: as for `score`; all of them are computed in one pass over a chunk.
        mean: without `data`: a Dask array (members, *points); the result is a dict of Dask arrays (*points). Or DataArrays,
            which count as a Dataset.
        variance: the variances, an array like `mean`; or pass `scale`.
        scale: the standard deviations, an array like `mean`.
        weights: one per member, with sum one; by default equal.
        mean_columns: the columns with the members' means, as for `score`.
        variance_columns: the columns with their variances, as for `score`.
        scale_columns: the columns with their standard deviations, as for `score`.
        family: of the members of a table, as for `score`.
        member_dim: the dimension of a Dataset along which the members lie.
        on_bad: what to do at points where a mean is not finite or a variance or scale not finite and positive, such as the land
            in a field of the sea: "error" raises an error when the chunk is computed, "null" gives NaN there.

    Raises:
        InvalidValueError: a mean is not finite, or a variance or scale not positive; raised when the chunk is computed.
    """
    if on_bad not in {"error", "null"}:
        raise ArgumentError(str(unknown("on_bad", on_bad, ("error", "null"))))
    shared = None if weights is None else tuple(float(weight) for weight in weights)
    how = _How(tuple(select_measures(measures, default="usual")), shared, on_bad)
    if any(is_labelled(x) for x in (mean, variance, scale)) and data is None:
        given = {name: x for name, x in (("mean", mean), ("variance", variance), ("scale", scale)) if x is not None}
        return _dataset(_one_dataset(given), how, member_dim)
    if data is None:
        return _arrays(mean, variance, scale, how)
    if mean is not None or variance is not None or scale is not None:
        raise ArgumentError("pass either data or mean with variance or scale, not both")
    if hasattr(data, "data_vars"):
        return _dataset(data, how, member_dim)
    if hasattr(data, "columns"):
        columns = Columns(mean_columns, variance_columns, scale_columns, family)
        header = getattr(data, "attrs", {}).get(FORMAT)
        header = None if header is None else checked_header(header, "the table")
        layout = described(columns, list(data.columns), "the table", header)
        return _frame(data, how, layout)
    kind = type(data).__name__
    raise ArrayTypeError(
        f"data must be a DataFrame or an xarray.Dataset, got {kind}; pass arrays as mean= and variance= or scale="
    )


@dataclass(frozen=True)
class _How:
    """What to compute of a chunk.

    Attributes:
        wanted: the measures.
        weights: of the members.
        on_bad: "error" or "null".
    """

    wanted: tuple[Measure, ...]
    weights: tuple[float, ...] | None
    on_bad: str

    def measures(self, layout: Layout, arrays: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        """The measures of one chunk in memory, each (*points), NaN at bad points if those are allowed."""
        filled = {name: _filled(x) for name, x in arrays.items()}
        points = next(iter(filled.values())).shape[-1:] if layout.family != "gaussian" else filled["mean"].shape[1:]
        flat = {name: x.reshape(*x.shape[: x.ndim - len(points)], -1) for name, x in filled.items()}
        good = layout.good(flat) if self.on_bad == "null" else None
        if good is not None:
            flat = {name: x[..., good] for name, x in flat.items()}
        try:
            ensemble = EnsemblePrediction(layout.members(flat), self.weights)
        except InvalidValueError as error:
            raise InvalidValueError(f"{error}, or pass on_bad='null', which gives NaN at such points") from None
        found = [np.asarray(x) for x in core.evaluate(ensemble, self.wanted).values()]
        if good is not None:
            found = [_in_places(x, good) for x in found]
        return [x.reshape(points) for x in found]


def _gaussian(kind: str) -> Layout:
    """Gaussian members in arrays."""
    return Layout("gaussian", (("mean", ()), (kind, ())), 0)


def _filled(values: Any) -> np.ndarray[Any, Any]:
    """The values as floating numbers, NaN where they are masked."""
    numbers = values.astype(_floating(values.dtype), copy=False)
    return np.ma.filled(numbers, np.nan) if isinstance(numbers, np.ma.MaskedArray) else np.asarray(numbers)


def _in_places(values: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = np.full(places.shape, np.nan, values.dtype)
    found[places] = values
    return found


def _frame(data: Any, how: _How, layout: Layout) -> Any:
    members = {*layout.names}
    for measure in how.wanted:
        if measure.name in data.columns and measure.name not in members:
            raise InvalidValueError(f"column {measure.name!r} has the name of a measure; rename it, or choose other measures")
    compute = partial(_scored, how=how, layout=layout)
    if not hasattr(data, "map_partitions"):
        return compute(data)
    empty = data._meta.drop(columns=list(members))
    dtype = np.result_type(*(_floating(data._meta[name].dtype) for name in members))
    # With `meta`, Dask need not run the function on made-up rows to learn the types.
    return data.map_partitions(partial(_alone, compute), meta=empty.assign(**{m.name: np.empty(0, dtype) for m in how.wanted}))


def _floating(dtype: Any) -> np.dtype[Any]:
    """The precision in which a column of this type is computed."""
    plain = getattr(dtype, "numpy_dtype", dtype)  # of a nullable column
    return plain if plain.kind == "f" else np.dtype(np.float64)


def _scored(frame: Any, *, how: _How, layout: Layout) -> Any:
    """One partition with measures in place of its member columns."""

    def read(name: str) -> Any:
        column = frame[name]
        if layout.lists:
            return np.stack([np.asarray(cell, dtype=np.float64) for cell in column]) if len(column) else np.empty((0, 1))
        return column.to_numpy(dtype=_floating(column.dtype), na_value=np.nan)

    found = how.measures(layout, layout.arrays(read))
    kept = frame.drop(columns=[*layout.names])
    return kept.assign(**{measure.name: x for measure, x in zip(how.wanted, found, strict=True)})


def _arrays(mean: Any, variance: Any, scale: Any, how: _How) -> dict[str, Any]:
    dask = require("dask.array", extra="scale")
    if mean is None or (variance is None) == (scale is None):
        raise ArgumentError("pass data, or mean with one of variance and scale")
    kind, spread = ("variance", variance) if scale is None else ("scale", scale)
    mean, spread = dask.asarray(mean), dask.asarray(spread)
    if mean.shape != spread.shape:
        raise InvalidValueError(f"{kind} must match mean {mean.shape}, got {spread.shape}; axes are (members, *points)")
    mean = mean.rechunk({0: -1})  # a point needs all its members
    spread = spread.rechunk(mean.chunks)  # blocks are paired by their places
    dtype = np.result_type(*(_floating(x.dtype) for x in (mean, spread)))
    # One array of all measures, so that a block is read and computed once for all of them.
    stacked = dask.map_blocks(
        partial(_alone, partial(_stacked, kind=kind, how=how)),
        mean,
        spread,
        dtype=dtype,
        chunks=((len(how.wanted),), *mean.chunks[1:]),
        meta=np.empty((0,) * mean.ndim, dtype),
    )
    return {measure.name: stacked[i] for i, measure in enumerate(how.wanted)}


def _alone(function: Callable[..., Any], *chunks: Any) -> Any:
    """Call the function on one thread, because Dask runs several tasks at a time."""
    with limited_to(1):
        return function(*chunks)


def _stacked(mean: Any, spread: Any, *, kind: str, how: _How) -> Any:
    """The measures of one block, (measures, *points)."""
    return np.stack(how.measures(_gaussian(kind), {"mean": mean, kind: spread}))


def _dataset(data: Any, how: _How, member_dim: str) -> Any:
    xarray = require("xarray", extra="scale")
    kinds = [kind for kind in ("variance", "scale") if kind in data.data_vars]
    if "mean" not in data.data_vars or len(kinds) != 1:
        raise InvalidValueError(f"the Dataset needs variables mean and one of variance and scale, it has {list(data.data_vars)}")
    mean, spread = xarray.broadcast(data["mean"], data[kinds[0]])  # one may lack a dimension of the other
    if member_dim not in mean.dims:
        raise ArgumentError(f"member_dim {member_dim!r} is no dimension of mean, whose dimensions are {mean.dims}")
    mean = mean.transpose(member_dim, ...)
    spread = spread.transpose(*mean.dims)  # arrays are paired by the order of their axes
    given = {"mean": mean.data, kinds[0]: spread.data}
    if any(hasattr(x, "dask") for x in given.values()):
        values: Any = _arrays(given["mean"], given.get("variance"), given.get("scale"), how)
    else:
        found = how.measures(_gaussian(kinds[0]), {"mean": mean.data, kinds[0]: spread.data})
        values = {measure.name: x for measure, x in zip(how.wanted, found, strict=True)}
    like = mean.isel({member_dim: 0}, drop=True)
    variables = {measure.name: (like.dims, values[measure.name], _attributes(measure, mean.attrs)) for measure in how.wanted}
    return xarray.Dataset(variables, coords=like.coords, attrs=data.attrs)


def _one_dataset(given: dict[str, Any]) -> Any:
    """A Dataset of arrays with named axes, whose coordinates must be equal."""
    xarray = require("xarray", extra="scale")
    if not all(is_labelled(x) for x in given.values()):
        kinds = ", ".join(f"{name} is {type(x).__name__}" for name, x in given.items())
        raise ArgumentError(f"next to a DataArray, the other must be one too: {kinds}")
    try:
        aligned = xarray.align(*given.values(), join="exact", copy=False)  # any other join would leave points without values
    except ValueError as error:
        raise InvalidValueError(f"{' and '.join(given)} must have the same coordinates; {error}") from None
    return xarray.Dataset(dict(zip(given, aligned, strict=True)))


def _attributes(measure: Measure, given: dict[str, Any]) -> dict[str, Any]:
    """What describes a measure of a mean with these attributes."""
    words = {"long_name": measure_in_words(measure.name), "units": risk_unit(measure.rule, str(given.get("units", "")))}
    # Where the grid is described stays true; the mean's names and valid ranges do not.
    kept = {name: given[name] for name in ("grid_mapping",) if name in given}
    return {**kept, **{name: text for name, text in words.items() if text and ("units" in given or name != "units")}}
