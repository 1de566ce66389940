"""`evaluate` for chunked data: Dask DataFrames and arrays, and xarray Datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from uqprism import evaluation as core
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns, ColumnsLike, NoMembersError, checked_header, described
from uqprism.ensemble.given import INNER
from uqprism.ensemble.labelled import is_labelled
from uqprism.ensemble.layout import MIXTURE, SHARES, Layout
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, UqprismError
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
    **parameters: Any,
) -> Any:
    """Measures of chunked data, computed lazily, chunk by chunk.

    Args:
        data: a Dask or pandas DataFrame with member columns; the result has a column per measure in their place. Or an
            `xarray.Dataset` with variables mean and variance or scale, or the parameters of another family, whose dimensions may
            have any order; the result is a Dataset with a variable per measure, the same coordinates and attributes. If the first
            variable has the attribute `units`, each measure has its own. `draws` have a dimension draw or sample, `values` a
            dimension quantile or level with the levels as coordinates, `probabilities` a dimension bar, bin or bucket and
            `edges` one called edge, and mixtures, with `shares`, a dimension component.
        measures: as for `score`; all of them are computed in one pass over a chunk.
        mean: without `data`: a Dask array (members, *points); the result is a dict of Dask arrays (*points). Or DataArrays,
            which count as a Dataset.
        variance: the variances, an array like `mean`; or pass `scale`.
        scale: the standard deviations, an array like `mean`.
        weights: one per member, with sum one; by default equal.
        mean_columns: the columns with the members' means, as for `score`.
        variance_columns: the columns with their variances, as for `score`.
        scale_columns: the columns with their standard deviations, as for `score`.
        family: of the members, as for `score`.
        member_dim: the dimension of a Dataset along which the members lie.
        on_bad: what to do at points where a mean is not finite or a variance or scale not finite and positive, such as the land
            in a field of the sea: "error" raises an error when the chunk is computed, "null" gives NaN there.
        parameters: arrays of another family by name, as its constructor takes them: `location`, `draws`, or `values` with
            `levels`.

    Raises:
        InvalidValueError: a mean is not finite, or a variance or scale not positive; raised when the chunk is computed.
    """
    if on_bad not in {"error", "null"}:
        raise ArgumentError(str(unknown("on_bad", on_bad, ("error", "null"))))
    shared = None if weights is None else tuple(float(weight) for weight in weights)
    how = _How(tuple(select_measures(measures, default="usual")), shared, on_bad)
    given = {**{"mean": mean, "variance": variance, "scale": scale}, **parameters}
    given = {name: x for name, x in given.items() if x is not None}
    if data is None and any(is_labelled(x) for x in given.values()):
        return _dataset(_one_dataset(given), how, member_dim, family)
    if data is None:
        return _arrays(given, how, family)
    if given:
        raise ArgumentError("pass either data or mean with variance or scale, not both")
    if hasattr(data, "data_vars"):
        return _dataset(data, how, member_dim, family)
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
        """The measures of one chunk in memory, each (points,), NaN at bad points if those are allowed."""
        flat = {name: _filled(x) for name, x in arrays.items()}
        good = layout.good(flat) if self.on_bad == "null" else None
        if good is not None:
            flat = {name: x[..., good] for name, x in flat.items()}
        try:
            ensemble = EnsemblePrediction(layout.members(flat), self.weights)
        except InvalidValueError as error:
            raise InvalidValueError(f"{error}, or pass on_bad='null', which gives NaN at such points") from None
        found = [np.asarray(x) for x in core.evaluate(ensemble, self.wanted).values()]
        return found if good is None else [_in_places(x, good) for x in found]


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


MEMBER = "member"
INSIDE = {**INNER, "weights": INNER["draws"], "edges": ("edge",), SHARES: ("component",)}


def _arrays(given: dict[str, Any], how: _How, family: str | None) -> dict[str, Any]:
    """The measures of arrays (members, *points), or (members, draws, bars, levels or components, *points), as Dask arrays."""
    dask, xarray = require("dask.array", extra="scale"), require("xarray", extra="scale")
    levels = given.pop("levels", None)
    layout = _layout(given, family, "evaluate", ArgumentError)
    wanted = [name for name, _ in layout.columns]
    arrays = {name: np.asarray(x) if name == "edges" and np.ndim(x) == 1 else dask.asarray(x) for name, x in given.items()}
    if unused := sorted({*arrays} - {*wanted}):
        raise ArgumentError(f"{unused[0]} is no parameter of {layout.family} members, which have {', '.join(wanted)}")
    first = next(name for name in wanted if name != "edges")
    axes = arrays[first].ndim - 1 - layout.lists
    points = [f"axis {i}" for i in range(axes)]
    named = {}
    for name, x in arrays.items():
        inside = [INSIDE[name][0] if layout.family != MIXTURE else "component"] if layout.lists else []
        dims = inside if x.ndim == 1 and name == "edges" else [MEMBER, *inside, *points]
        if x.ndim != len(dims) or (x.shape != arrays[first].shape and name != "edges"):
            shapes = f"{first} {arrays[first].shape}, got {x.shape}"
            raise InvalidValueError(f"{name} must match {shapes}; axes are ({', '.join(['members', *inside, '*points'])})")
        named[name] = xarray.DataArray(x, dims=dims)
    if levels is not None:
        named["values"] = named["values"].assign_coords({INSIDE["values"][0]: np.asarray(levels, dtype=np.float64)})
    found = _dataset(xarray.Dataset(named), how, MEMBER, family)
    return {measure.name: found[measure.name].data for measure in how.wanted}


def _alone(function: Callable[..., Any], *chunks: Any) -> Any:
    """Call the function on one thread, because Dask runs several tasks at a time."""
    with limited_to(1):
        return function(*chunks)


def _layout(names: Iterable[Any], family: str | None, where: str, error: type[UqprismError] = InvalidValueError) -> Layout:
    """What variables of these names hold: each stands for the columns of all members."""
    known = [str(name) for name in names]
    if family is None and "mean" in known and SHARES not in known and len({"variance", "scale"} & {*known}) != 1:
        raise error(f"{where} needs mean with one of variance and scale, or another family, got {known}")
    try:
        layout = described(Columns(family=family), [f"{name}_0" for name in known], where)
    except NoMembersError:
        raise error(
            f"{where} needs mean with one of variance and scale, or the parameters of another family by their names, such as "
            f"location and scale, draws, or values of quantiles, got {known}"
        ) from None
    if layout.family == "quantiles" and not layout.lists:
        raise InvalidValueError(f"{where}: quantiles are one variable, values, with their levels along a dimension of it")
    return layout


def _dataset(data: Any, how: _How, member_dim: str, family: str | None) -> Any:
    xarray = require("xarray", extra="scale")
    layout = _layout(data.data_vars, family, "the Dataset")
    arrays = {name: data[name] for name, _ in layout.columns}
    inside = {name: _inside(name, x, layout) for name, x in arrays.items()}
    first = next(iter(arrays))
    if not any(member_dim in x.dims for x in arrays.values()):
        raise ArgumentError(f"member_dim {member_dim!r} is no dimension of {first}, whose dimensions are {arrays[first].dims}")
    layout = _completed(layout, arrays, inside)
    arrays = {name: x for name, x in arrays.items() if name not in dict(layout.shared)}
    like = next(iter(arrays.values()))
    # One may lack a dimension of another, but each has its own of draws, bars, levels or components.
    wide = xarray.broadcast(*arrays.values(), exclude={*inside.values()} - {None})
    core = [[*filter(None, [inside[name]]), member_dim] for name in arrays]
    chunked = any(x.chunks is not None for x in wide)
    if chunked:
        chunks = {**next(x.chunksizes for x in wide if x.chunks is not None)}  # blocks are paired by their places
        wide = [
            x.chunk({dim: -1 if dim in own else chunks.get(dim, -1) for dim in x.dims}) for x, own in zip(wide, core, strict=True)
        ]
    compute = partial(_stacked, layout=layout, names=tuple(arrays), how=how)
    # One array of all measures, so that a block is read and computed once for all of them.
    stacked = xarray.apply_ufunc(
        partial(_alone, compute) if chunked else compute,
        *(x.drop_vars(member_dim, errors="ignore") for x in wide),
        input_core_dims=core,
        output_core_dims=[["measure"]],
        dask="parallelized",
        output_dtypes=[np.result_type(*(_floating(x.dtype) for x in wide))],
        dask_gufunc_kwargs={"output_sizes": {"measure": len(how.wanted)}},
    )
    variables = {measure.name: stacked.isel(measure=i, drop=True) for i, measure in enumerate(how.wanted)}
    for measure in how.wanted:
        variables[measure.name].attrs = _attributes(measure, like.attrs)
    return xarray.Dataset(variables, attrs=data.attrs)


def _inside(name: str, x: Any, layout: Layout) -> str | None:
    """The dimension of the draws, bars, levels or components of a variable; None for a family without."""
    if not layout.lists:
        return None
    wanted = ("component",) if layout.family == MIXTURE else INSIDE[name]
    found = [dim for dim in wanted if dim in x.dims]
    if len(found) != 1:
        raise InvalidValueError(f"{name} must have one dimension called {' or '.join(wanted)}, got {x.dims}; rename one")
    return found[0]


def _completed(layout: Layout, arrays: Mapping[str, Any], inside: Mapping[str, str | None]) -> Layout:
    """The layout with the levels of quantiles, and with edges that all members and points share."""
    if layout.family == "quantiles":
        dim = inside["values"]
        if dim not in arrays["values"].coords:
            raise InvalidValueError(
                f"values must have their levels, from 0 to 1, as coordinates of {dim}; pass levels= with arrays"
            )
        levels = tuple(map(float, arrays["values"][dim].values))
        return replace(layout, options=(("levels", levels), *((name, x) for name, x in layout.options if name != "levels")))
    if layout.family == "histogram" and arrays["edges"].dims == (inside["edges"],):
        return replace(layout, shared=(("edges", tuple(map(float, arrays["edges"].values))),))
    return layout


def _stacked(*blocks: Any, layout: Layout, names: Sequence[str], how: _How) -> Any:
    """The measures of one block, (*points, measures); of blocks (*points, members) or (*points, numbers, members)."""
    points = blocks[0].shape[: blocks[0].ndim - 1 - layout.lists]
    arrays = {}
    for name, x in zip(names, blocks, strict=True):
        flat = x.reshape(-1, *x.shape[len(points) :])
        arrays[name] = np.moveaxis(flat, 0, -1)
    return np.stack(how.measures(layout, arrays), axis=-1).reshape(*points, len(how.wanted))


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
