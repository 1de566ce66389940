"""Tables in memory: members are found by the names of their columns, and what to_pandas writes is read back."""

from __future__ import annotations

import json

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import uqprism as up
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, UqprismError

RNG = np.random.default_rng(3)
MEAN, VARIANCE = RNG.normal(size=(3, 4)), np.exp(RNG.normal(size=(3, 4)))
COLUMNS = {"y": RNG.normal(size=4)} | {
    name: column
    for i in (2, 0, 1)  # not in the order of the members
    for name, column in ((f"variance_{i}", VARIANCE[i]), (f"mean_{i}", MEAN[i]))
}


FORMS = {
    "pandas": pd.DataFrame,
    "indexed": lambda x: pd.DataFrame(x, index=list("dcba")),
    "arrow": pa.table,
    "mapping": dict,
}


@pytest.mark.parametrize("form", FORMS)
def test_members_are_found_by_the_numbers_in_their_names(form: str) -> None:
    ens = up.from_frame(FORMS[form](COLUMNS))
    assert_array_equal(ens.members.mean, MEAN)
    assert_array_equal(ens.members.variance, VARIANCE)


LOCATION_SCALE = {"location": MEAN, "scale": VARIANCE}
WRITTEN = {
    "gaussian": (up.EnsemblePrediction.gaussian(mean=MEAN, variance=VARIANCE), None),
    "gaussian by scale": (up.EnsemblePrediction.gaussian(mean=MEAN, scale=VARIANCE), "gaussian"),
    "laplace": (up.EnsemblePrediction.laplace(**LOCATION_SCALE), "laplace"),
    "logistic": (up.EnsemblePrediction.logistic(**LOCATION_SCALE), "logistic"),
    "student_t": (up.EnsemblePrediction.student_t(**LOCATION_SCALE, df=VARIANCE + 1.0), None),
    "student_t by name": (up.EnsemblePrediction.student_t(**LOCATION_SCALE, df=5.0), "student_t"),
    "one member": (up.EnsemblePrediction.gaussian(mean=MEAN[:1], scale=1.0), None),
}


@pytest.mark.parametrize("case", WRITTEN)
@pytest.mark.parametrize("form", ["to_pandas", "to_arrow"])
def test_every_parametric_family_makes_the_trip_to_a_frame_and_back(case: str, form: str) -> None:
    ens, family = WRITTEN[case]
    frame = getattr(ens, form)()
    again = up.from_frame(frame.assign(y=0.0) if form == "to_pandas" else frame, family=family)
    assert type(again.members) is type(ens.members)
    for kept, read in zip(ens.members.arrays(), again.members.arrays(), strict=True):
        assert_array_equal(read, kept)


def test_both_tables_have_a_column_per_parameter_and_member() -> None:
    index = pd.Index(list("abcd"), name="station")
    frame = WRITTEN["student_t"][0].to_pandas(index=index)
    assert frame.index.equals(index)
    assert list(frame) == [f"{parameter}_{i}" for parameter in ("location", "scale", "df") for i in range(3)]
    for ens, _ in WRITTEN.values():
        assert list(ens.to_pandas()) == ens.to_arrow().column_names


MASS = RNG.dirichlet(np.ones(6), size=(2, 4)).transpose(0, 2, 1)
IN_LISTS = {
    "draws": up.EnsemblePrediction.samples(RNG.normal(size=(2, 5, 4))),
    "shared edges": up.EnsemblePrediction.histogram(edges=np.linspace(0, 1, 7), probabilities=MASS, outer="half_normal"),
    "own edges": up.EnsemblePrediction.histogram(edges=np.sort(RNG.normal(size=(2, 7, 4)), axis=1), probabilities=MASS),
    "quantiles": up.EnsemblePrediction.quantiles(
        levels=[0.1, 0.5, 0.9], values=np.sort(RNG.normal(size=(2, 3, 4)), axis=1), tails="gaussian", weights=[0.2, 0.8]
    ),
}


@pytest.mark.parametrize("case", IN_LISTS)
def test_members_of_several_numbers_are_lists_in_both_tables(case: str) -> None:
    ens = IN_LISTS[case]
    frame, table = ens.to_pandas(), ens.to_arrow()
    for read in (up.from_frame(frame, weights=ens.weights), up.from_frame(table), up.from_arrow(table)):
        assert type(read.members) is type(ens.members)
        assert read.members.options() == ens.members.options()
        for ours, theirs in zip(ens.members.arrays(), read.members.arrays(), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_quantiles_have_a_column_for_each_level() -> None:
    values = np.sort(RNG.normal(size=(2, 3, 4)), axis=1)
    names = ["q05_0", "q50_0", "q97.5_0", "q05_7", "q50_7", "q0.975_7"]
    frame = pd.DataFrame(dict(zip(names, values.reshape(6, 4), strict=True)))[names[::-1]]
    read = up.from_frame(frame, family="quantiles:tails=none")
    assert read.members.options() == {"levels": [0.05, 0.5, 0.975], "tails": "none"}
    np.testing.assert_array_equal(read.members.values, values.swapaxes(0, 1))
    assert up.from_frame(frame).members.options()["tails"] == "exponential"
    for found, message in (
        ({"q5_0": [0.0], "q50_0": [1.0]}, "0.05 or 0.5; write q05 or q50"),
        ({"q50_0": [0.0], "q0.5_0": [1.0]}, "both hold the level 0.5"),
        ({"q50_0": [0.0]}, "at least two levels"),
        ({"q10_0": [0.0], "q50_0": [1.0], "q10_1": [0.0], "q51_1": [0.0]}, "member 1 must have the levels"),
        ({"q10_0": [0.0, 0.0], "q50_0": [1.0, np.nan]}, "row 1: q50_0 must be finite, got nan"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            up.from_frame(found)


CELLS = {
    "mean": ({"mean_1": [0.0, np.nan, 0.0, np.inf]}, r"row 1: mean_1 must be finite, got nan \(2 such rows\)"),
    "variance": ({"variance_2": [1.0, 1.0, 1.0, 0.0]}, "row 3: variance_2 must be finite and greater than zero, got 0.0"),
    "null": ({"mean_0": pd.array([1.0, None, 1.0, 1.0], "Float64")}, "row 1: mean_0 must be finite, got nan"),
    "text": ({"mean_0": list("abcd")}, "column 'mean_0' must hold numbers, its type is object"),
    "half": ({"mean_3": [0.0] * 4}, "member 3 has a mean but no variance column"),
}


def changed(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(COLUMNS | columns)


LONELY, LAPLACE = {"location_0": [0.0], "scale_0": [1.0]}, {"family": "laplace"}
TWICE = pd.DataFrame([[0.0, 1.0, 1.0]], columns=["location_0", "scale_0", "scale_0"])
TWO_SPREADS = {"variance_columns": "v{i}", "scale_columns": "s{i}"}
BAD = {
    "twice": (TWICE, LAPLACE, UqprismError, "column 'scale_0' appears twice"),
    "ambiguous": (LONELY, {}, UqprismError, "laplace or logistic.*choose with family='laplace'"),
    "unknown": (COLUMNS, {"family": "laplacian"}, UqprismError, "did you mean 'laplace'"),
    "draws": (COLUMNS, {"family": "draws"}, UqprismError, r"no columns like draws_\{i\}, which draws members need"),
    "missing": (COLUMNS, LAPLACE, UqprismError, r"no columns like location_\{i\}, which laplace members need"),
    "lonely": (LONELY | {"scale_1": [1.0]}, LAPLACE, UqprismError, "member 1 has no location column"),
    "patterns": (COLUMNS, LAPLACE | {"mean_columns": "m{i}"}, UqprismError, "are for Gaussian members, not laplace"),
    "df": (LONELY | {"df_0": [0.0]}, {}, UqprismError, "row 0: df_0 must be finite and greater than zero"),
    **{case: (changed(**columns), {}, InvalidValueError, message) for case, (columns, message) in CELLS.items()},
    "path": ("predictions.csv", {}, ArrayTypeError, "read_csv"),
    "array": (MEAN, {}, ArrayTypeError, "EnsemblePrediction.gaussian"),
    "dask": (dd.from_pandas(changed(), npartitions=1), {}, ArrayTypeError, "uqprism.files.evaluate"),
    "no number": (pd.DataFrame({"mean": [1.0]}), {}, InvalidValueError, "mean_columns"),
    "two spreads": (changed(), TWO_SPREADS, ArgumentError, "not both"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_with_reason_row_and_column(case: str) -> None:
    frame, options, error, message = BAD[case]
    with pytest.raises(error, match=message):
        up.from_frame(frame, **options)


def test_a_csv_file_gives_the_members_that_the_command_reads(tmp_path) -> None:
    """Frame and command agree on every default measure of one file."""
    from uqprism import files

    path, scored = tmp_path / "predictions.csv", tmp_path / "scored.parquet"
    pd.DataFrame(COLUMNS).to_csv(path, index=False)
    files.score(path, scored)
    expected = pd.read_parquet(scored).drop(columns="y")
    table = up.evaluate(up.from_frame(pd.read_csv(path)), list(expected.columns))
    for name in expected:
        np.testing.assert_allclose(table[name], expected[name], rtol=1e-12)


def test_other_names_scales_and_weights() -> None:
    frame = pd.DataFrame({"a": MEAN[0], "b": MEAN[1], "s1": VARIANCE[0], "s2": VARIANCE[1]})
    ens = up.from_frame(frame, mean_columns="a,b", scale_columns="s{i}", weights=[0.25, 0.75])
    assert_array_equal(ens.members.mean, MEAN[:2])
    assert_array_equal(ens.members.scale, VARIANCE[:2])
    assert_array_equal(ens.weights, [0.25, 0.75])


@pytest.mark.parametrize(("given", "wanted"), [("float32", "float32"), ("Float32", "float32"), ("int64", "float64")])
def test_the_precision_of_the_columns_is_kept(given: str, wanted: str) -> None:
    frame = pd.DataFrame({"mean_0": [1, 2], "scale_0": [1, 3]}).astype(given)
    assert up.from_frame(frame).members.mean.dtype == wanted


DAMAGED = [b"{}", b"[]", b"x", b"\xff", b"[" * 100_000]
SAID = {"members": 2, "points_shape": [3], "family": "gaussian", "weights": None}
DAMAGED += [
    json.dumps({**SAID, name: value}).encode() for name, value in [("members", "a"), ("members", 9), ("points_shape", ["a"])]
]
DAMAGED += [json.dumps({**SAID, name: value}).encode() for name, value in [("family", "x"), ("family", []), ("weights", "x")]]


@pytest.mark.parametrize("header", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_header_of_an_arrow_table_is_an_error(header: bytes) -> None:
    table = up.EnsemblePrediction.gaussian(mean=np.zeros((2, 3)), scale=1.0).to_arrow()
    with pytest.raises(UqprismError) as caught:
        up.from_arrow(table.replace_schema_metadata({FORMAT: header}))
    assert "\n" not in str(caught.value)


def test_a_part_of_an_arrow_table_has_the_points_that_are_left() -> None:
    table = up.EnsemblePrediction.gaussian(mean=np.arange(8.0).reshape(2, 2, 2), scale=1.0).to_arrow()
    assert_array_equal(up.from_arrow(table.slice(1)).members.mean, [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])


@pytest.mark.parametrize("family", ["laplace", "logistic", "gamma", "weibull", "truncated_gaussian", "censored_gaussian"])
def test_a_frame_of_members_whose_columns_are_those_of_two_families_is_read_back(family: str) -> None:
    names = {"gamma": ("shape", "scale"), "weibull": ("shape", "scale")}.get(family, ("location", "scale"))
    x = np.random.default_rng(0).uniform(0.6, 2.0, size=(2, 4))
    members = up.from_frame(getattr(up.EnsemblePrediction, family)(**dict.fromkeys(names, x)).to_pandas()).members
    assert members.name == family
    assert_array_equal(getattr(members, names[0]), x)
