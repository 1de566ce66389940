"""Measures of chunked data are those computed in memory, and are computed lazily."""

from __future__ import annotations

import itertools

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import uqprism as up
from tests.files.tables import DEFAULT, FEW, expected, members, table
from uqprism import files
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError

dask.config.set(scheduler="synchronous")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dask_frames(dtype: str) -> None:
    frame = table(30, dtype=dtype, note=[f"n{i}" for i in range(30)]).to_pandas()
    lazy = files.evaluate(dd.from_pandas(frame, npartitions=4))
    assert list(lazy.columns) == ["key", "note", *DEFAULT]
    found = lazy.compute()
    assert found.dtypes.to_dict() == lazy.dtypes.to_dict()
    assert found[["key", "note"]].to_dict() == frame[["key", "note"]].to_dict()
    for name, values in expected(members(30, dtype=dtype)).items():
        assert found[name].dtype == dtype
        np.testing.assert_allclose(found[name], values, rtol=1e-12 if dtype == "float64" else 1e-6)


def test_frames_in_memory_and_other_columns_and_weights() -> None:
    given, weights = members(9), [0.2, 0.3, 0.5]
    frame = pd.DataFrame({"a": given["mean"][0], "b": given["mean"][1], "c": given["mean"][2]}).assign(
        **{f"s{i}": np.sqrt(given["variance"][i]) for i in range(3)}
    )
    chosen = {"mean_columns": "a,b,c", "scale_columns": "s{i}"}
    wanted = expected(given, FEW, weights)
    for data in (frame, dd.from_pandas(frame, npartitions=2)):
        found = files.evaluate(data, FEW, weights=weights, **chosen)
        assert list(found.columns) == FEW
        for name in FEW:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12)


@pytest.mark.parametrize("shape", [(30,), (5, 6)])
def test_dask_arrays_of_any_chunks(shape: tuple[int, ...]) -> None:
    given = {name: x.reshape(-1, *shape) for name, x in members(30).items()}
    mean = da.from_array(given["mean"], chunks=(1, *(4 for _ in shape)))
    variance = da.from_array(given["variance"], chunks=(2, *(3 for _ in shape)))
    found = files.evaluate(mean=mean, variance=variance)
    assert list(found) == DEFAULT
    values = dask.compute(found)[0]
    for name, wanted in expected(given).items():
        assert found[name].chunks == mean.chunks[1:]
        np.testing.assert_allclose(values[name], wanted, rtol=1e-12)


def test_all_measures_of_a_block_are_one_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    evaluate = files.lazy.core.evaluate
    monkeypatch.setattr(files.lazy.core, "evaluate", lambda *given: calls.append(1) or evaluate(*given))
    given = {name: da.from_array(x, chunks=(3, 10)) for name, x in members(30).items()}
    found = files.evaluate(**given)
    assert calls == []
    dask.compute(found)
    assert len(calls) == 3


@pytest.mark.parametrize("chunks", [None, {"lat": 2}])
@pytest.mark.parametrize("kind", ["variance", "scale"])
@pytest.mark.parametrize("dim", ["member", "model"])
def test_xarray_datasets(chunks: dict[str, int] | None, kind: str, dim: str) -> None:
    given = {name: x.reshape(-1, 4, 5) for name, x in members(20).items()}
    spread = given["variance"] if kind == "variance" else np.sqrt(given["variance"])
    data = xr.Dataset(
        {"mean": (("lat", dim, "lon"), np.moveaxis(given["mean"], 0, 1)), kind: ((dim, "lat", "lon"), spread)},
        coords={"lat": [1.0, 2.0, 3.0, 4.0], "lon": np.arange(5), dim: list("abc"), "zone": ("lat", list("wxyz"))},
    )
    found = files.evaluate(data if chunks is None else data.chunk(chunks), FEW, member_dim=dim)
    assert list(found.data_vars) == FEW
    assert set(found.coords) == {"lat", "lon", "zone"}
    assert (found[FEW[0]].chunks is None) == (chunks is None)
    for name, wanted in expected(given, FEW).items():
        assert found[name].dims == ("lat", "lon")
        np.testing.assert_allclose(found[name].values, wanted, rtol=1e-12)


@pytest.mark.parametrize("chunks", [None, {"lat": 2}])
def test_any_order_of_named_axes_gives_the_same_numbers(chunks: dict[str, int] | None) -> None:
    """As a Dataset and as arrays, one of which may lack a dimension; land stays NaN, and units and attributes are kept."""
    given = {name: x.reshape(-1, 4, 5) for name, x in members(20).items()}
    given["mean"][1, 2, 3] = np.nan
    mean = xr.DataArray(
        given["mean"], dims=("member", "lat", "lon"), attrs={"units": "K", "grid_mapping": "crs", "standard_name": "x"}
    )
    mean = mean.assign_coords(lat=("lat", np.arange(4.0), {"units": "degrees_north"}))
    variances = xr.DataArray(given["variance"], dims=mean.dims)
    for variance in (variances, variances[:, 0, 0]):
        wide = variance.broadcast_like(mean).values
        good = {name: np.delete(x.reshape(3, -1), 13, axis=1) for name, x in (("mean", given["mean"]), ("variance", wide))}
        for order in itertools.permutations(mean.dims):
            turned = mean.transpose(*order), variance.transpose(*(dim for dim in order[::-1] if dim in variance.dims))
            pair = turned if chunks is None else tuple(x.chunk({d: n for d, n in chunks.items() if d in x.dims}) for x in turned)
            data = xr.Dataset({"mean": pair[0], "variance": pair[1]}, attrs={"title": "sea"})
            for found in (
                files.evaluate(data, FEW, on_bad="null"),
                files.evaluate(measures=FEW, mean=pair[0], variance=pair[1], on_bad="null"),
            ):
                assert set(found[FEW[0]].dims) == {"lat", "lon"}
                assert found["lat"].attrs == {"units": "degrees_north"}
                for name, wanted in expected(good, FEW).items():
                    values = found[name].transpose("lat", "lon").values
                    assert np.flatnonzero(np.isnan(values)).tolist() == [13]
                    np.testing.assert_allclose(np.delete(values.ravel(), 13), wanted, rtol=1e-12)
            assert found.attrs == {}
            assert files.evaluate(data, FEW, on_bad="null").attrs == {"title": "sea"}
    assert found["crps.excess.members.members"].attrs["units"] == "K"
    squares = files.evaluate(data, "squared_error.bayes.members", on_bad="null")["squared_error.bayes.members"]
    assert squares.attrs == {"grid_mapping": "crs", "long_name": "noise, squared error", "units": "K²"}


def test_arrays_with_named_axes_must_agree() -> None:
    mean = xr.DataArray(np.ones((2, 3)), dims=("member", "lat"), coords={"lat": [1, 2, 3]})
    with pytest.raises(InvalidValueError, match="mean and scale must have the same coordinates"):
        files.evaluate(mean=mean, scale=mean.assign_coords(lat=[1, 2, 4]))
    with pytest.raises(ArgumentError, match="scale is ndarray"):
        files.evaluate(mean=mean, scale=mean.values)


PLACE = np.random.default_rng(3).normal(size=(2, 4, 5))
INNER = np.sort(np.random.default_rng(4).normal(size=(2, 3, 4, 5)), axis=1)
DIMS, WITH = ("member", "lat", "lon"), {"draws": "draw", "values": "quantile", "probabilities": "bar"}
MASS = np.random.default_rng(5).dirichlet(np.ones(3), size=(2, 4, 5)).transpose(0, 3, 1, 2)
OTHERS: dict[str, tuple[dict, dict, str | None]] = {  # arrays with the members first, further arguments, and the family to name
    "student_t": ({"location": PLACE, "scale": 1.0 + PLACE**2, "df": 5.0 + PLACE**2}, {}, None),
    "laplace": ({"location": PLACE, "scale": 1.0 + PLACE**2}, {}, "laplace"),
    "poisson": ({"rate": 1.0 + PLACE**2}, {}, None),
    "samples": ({"draws": INNER}, {}, None),
    "quantiles": ({"values": INNER}, {"levels": [0.1, 0.5, 0.9]}, "quantiles:tails=gaussian"),
    "histogram": ({"probabilities": MASS}, {"edges": np.array([0.0, 1.0, 3.0, 4.0])}, "histogram:outer=half_normal"),
    "own edges": ({"probabilities": MASS[:, :2] + 0.5 * MASS[:, 2:], "edges": INNER}, {}, None),
    "gaussian_mixture": ({"mean": INNER, "scale": 1.0 + INNER**2, "shares": MASS}, {}, None),
}


def named_dims(name: str, arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    inside = "edge" if name == "edges" else WITH.get(name, "component")
    return DIMS if arrays[name].ndim == 3 else ("edge",) if arrays[name].ndim == 1 else (DIMS[0], inside, *DIMS[1:])


@pytest.mark.parametrize("case", OTHERS)
@pytest.mark.parametrize("chunks", [None, {"lat": 2, "member": 1}])
def test_every_family_in_arrays_datasets_and_chunks(case: str, chunks: dict[str, int] | None) -> None:
    arrays, more, family = OTHERS[case]
    options = dict([family.split(":")[1].split("=")]) if family and ":" in family else {}
    make = getattr(up.EnsemblePrediction, "histogram" if case == "own edges" else case)
    ens = make(arrays["draws"]) if case == "samples" else make(**arrays, **more, **options)
    wanted = up.evaluate(ens, FEW)
    whole = arrays | {name: x for name, x in more.items() if name == "edges"}
    data = xr.Dataset({name: (named_dims(name, whole), x) for name, x in whole.items()}, coords={"lat": [1.0, 2.0, 3.0, 4.0]})
    if "levels" in more:
        data = data.assign_coords(quantile=more["levels"])
    turned = data.transpose(*reversed(list(data.dims)))
    for given in (data, turned) if chunks is None else (data.chunk({k: n for k, n in chunks.items() if k in data.dims}),):
        found = files.evaluate(given, FEW, family=family)
        assert (found[FEW[0]].chunks is None) == (chunks is None)
        assert {*found.coords} == {"lat"}
        for name in FEW:
            np.testing.assert_allclose(found[name].transpose("lat", "lon").values, wanted[name], rtol=1e-10, atol=1e-14)
    plain = {name: da.from_array(x, chunks=2) if chunks else x for name, x in arrays.items()}
    found = dask.compute(files.evaluate(measures=FEW, family=family, **plain, **more))[0]
    for name in FEW:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-10, atol=1e-14)


def test_a_point_without_a_value_is_null_in_every_family() -> None:
    draws = INNER.copy()
    draws[1, 0, 2, 3] = np.nan
    data = xr.Dataset({"draws": (("member", "draw", "lat", "lon"), draws)})
    found = files.evaluate(data, "crps.bayes.members", on_bad="null")["crps.bayes.members"]
    assert np.argwhere(np.isnan(found.values)).tolist() == [[2, 3]]
    with pytest.raises(InvalidValueError, match="pass on_bad='null'"):
        files.evaluate(data, "crps.bayes.members")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"location": PLACE, "scale": PLACE**2}, "laplace or logistic members; choose with family="),
        ({"values": INNER}, "levels, from 0 to 1, as coordinates of level; pass levels="),
        (
            {"location": PLACE, "scale": PLACE[:, :2], "family": "laplace"},
            r"scale must match location \(2, 4, 5\), got \(2, 2, 5\)",
        ),
        ({"draws": INNER, "rate": PLACE, "family": "draws"}, "rate is no parameter of draws members, which have draws"),
        ({"place": PLACE}, "or the parameters of another family by their names"),
    ],
)
def test_arrays_that_do_not_fit_a_family_are_errors(given: dict, message: str) -> None:
    with pytest.raises(up.UqprismError, match=message):
        files.evaluate(measures=FEW, **given)


X = np.ones((2, 3))
NEEDS = "mean with one of variance and scale"


@pytest.mark.parametrize(
    ("data", "given", "error", "message"),
    [
        (None, {}, ArgumentError, NEEDS),
        (None, {"mean": X}, ArgumentError, NEEDS),
        (None, {"mean": X, "variance": X, "scale": X}, ArgumentError, NEEDS),
        (None, {"mean": X, "variance": X[:, :2]}, InvalidValueError, "variance must match mean"),
        (table(3).to_pandas(), {"mean": X}, ArgumentError, "not both"),
        (X, {}, ArrayTypeError, "got ndarray; pass arrays as mean="),
        (table(3, **{FEW[0]: X[0]}).to_pandas(), {"measures": FEW}, InvalidValueError, "has the name of a measure"),
        (xr.Dataset({"mean": ("member", [1.0])}), {}, InvalidValueError, "the Dataset needs"),
        (xr.Dataset({"mean": ("m", [1.0]), "scale": ("m", [1.0])}), {}, ArgumentError, "member_dim 'member' is no dimension"),
    ],
)
def test_what_makes_no_ensemble_is_refused(data: object, given: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        files.evaluate(data, **given)


def test_bad_values_are_named_when_they_are_met() -> None:
    given = members(4)
    given["variance"][1, 2] = -1.0
    lazy = files.evaluate(**{name: da.from_array(x) for name, x in given.items()})
    with pytest.raises(InvalidValueError, match=r"variance must be finite and greater than zero, got -1\.0"):
        lazy[DEFAULT[0]].compute()


@pytest.mark.parametrize("form", ["frame", "dask frame", "dask", "masked dask", "xarray", "dask in xarray"])
def test_bad_points_are_nan_if_they_may_be(form: str) -> None:
    """As on the land in a field of the sea; by default they are an error that names the option."""
    given, bad = members(12), [3, 7]
    wanted = expected(given, FEW)
    given["mean"][1, 3], given["variance"][0, 7] = np.nan, -1.0
    kinds = {name: (("member", "x"), values) for name, values in given.items()}
    if form == "masked dask":
        mask = np.isnan(given["mean"])
        given["mean"] = np.ma.masked_array(np.where(mask, 0.0, given["mean"]), mask)
    frame = table(12).to_pandas().assign(mean_1=given["mean"][1], variance_0=given["variance"][0])
    data = {
        "frame": frame,
        "dask frame": dd.from_pandas(frame, npartitions=2),
        "xarray": xr.Dataset(kinds),
        "dask in xarray": xr.Dataset(kinds).chunk(x=5),
    }
    chunks = {name: da.from_array(values, chunks=(3, 5)) for name, values in given.items()} if "dask" in form else given
    arguments = {"data": data[form]} if form in data else chunks
    found = dask.compute(files.evaluate(measures=FEW, on_bad="null", **arguments))[0]
    for name in FEW:
        values = np.asarray(found[name])
        assert np.flatnonzero(np.isnan(values)).tolist() == bad
        np.testing.assert_allclose(np.delete(values, bad), np.delete(wanted[name], bad), rtol=1e-12)
    with pytest.raises(InvalidValueError, match="on_bad='null'"):
        dask.compute(files.evaluate(measures=FEW, **arguments))
    with pytest.raises(ArgumentError, match="unknown on_bad 'drop'"):
        files.evaluate(measures=FEW, on_bad="drop", **arguments)
