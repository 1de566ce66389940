"""Tables as they come: what becomes of their columns, what is refused, and that a model keeps it."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.training import train
from uqprism.training.columns import FEWEST, MOST, Columns

FAST: dict[str, Any] = {"n_members": 2, "hidden": (8,), "max_epochs": 3, "random_state": 0, "device": "cpu", "progress": False}


def houses(n: int = 80, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, a boolean, a category and missing values."""
    rng = np.random.default_rng(seed)
    area, town = rng.uniform(30.0, 200.0, n), rng.choice(["Bergen", "Oslo", "Tromsø"], n)
    frame = pd.DataFrame({"area": area, "town": town, "garden": rng.random(n) < 0.5, "floor": rng.integers(1, 6, n)})
    y = area * np.where(town == "Oslo", 2.0, 1.0) + rng.normal(size=n)
    frame.loc[::10, "area"] = np.nan
    frame.loc[3::20, "town"] = None
    return frame, y


def numbers(frame: pd.DataFrame, like: pd.DataFrame | None = None) -> pd.DataFrame:
    columns = Columns.of(frame)
    return pd.DataFrame(columns.apply(frame if like is None else like), columns=list(columns.names))


def test_what_becomes_of_each_column() -> None:
    frame, _ = houses()
    found = numbers(frame)
    assert list(found) == [
        "area",
        "area (missing)",
        "town=Bergen",
        "town=Oslo",
        "town=Tromsø",
        "town=(missing)",
        "garden",
        "floor",
    ]
    missing = frame["area"].isna()
    assert_array_equal(found["area"][missing], frame["area"].median())
    assert_array_equal(found["area"][~missing], frame["area"][~missing])
    assert_array_equal(found["area (missing)"], missing)
    assert_array_equal(found["town=Oslo"], frame["town"] == "Oslo")
    assert_array_equal(found["town=(missing)"], frame["town"].isna())
    assert_array_equal(found["garden"], frame["garden"])
    columns = Columns.of(frame)
    assert [name for name, switch in zip(columns.names, columns.switches, strict=True) if not switch] == ["area", "floor"]


def test_unknown_and_rare_categories_share_a_number() -> None:
    many = pd.DataFrame({"code": [f"c{i:02d}" for i in range(MOST + 2) for _ in range(40 - i)]})
    found = numbers(many)
    assert list(found)[-2:] == ["code=(other)", "code how often"]
    assert found.shape[1] == MOST + 2
    last = found.iloc[-1]
    assert last["code=(other)"] == 1.0
    assert_allclose(last["code how often"], np.log1p(40 - MOST - 1))
    new = numbers(many, pd.DataFrame({"code": ["never seen", None, "c00"]}))
    assert_array_equal(new["code=(other)"], [1.0, 1.0, 0.0])
    assert_allclose(new["code how often"], [0.0, 0.0, np.log1p(40)])
    rare = pd.DataFrame({"code": ["a"] * 9 + ["b"] * 9 + ["c"] * (FEWEST - 1)})
    assert list(numbers(rare)) == ["code=a", "code=b", "code=(other)", "code how often"]


def test_unknown_categories_without_a_number_for_the_others_are_none_of_the_known() -> None:
    frame, _ = houses()
    new = frame[:3].assign(town=["Paris", None, "Oslo"], area=[np.nan, 50.0, 60.0])
    found = numbers(frame.dropna(), new)
    assert_array_equal(found[["town=Bergen", "town=Oslo", "town=Tromsø"]], [[0, 0, 0], [0, 0, 0], [0, 1, 0]])
    assert found["area"][0] == frame.dropna()["area"].median()  # missing for the first time: a validation row must not fail


def test_types_of_columns() -> None:
    odd = pd.DataFrame(
        {
            "nullable": pd.array([1, None, 3, 5], dtype="Int64"),
            "maybe": pd.array([True, None, False, True], dtype="boolean"),
            "objects": pd.Series([True, None, False, True], dtype=object),
            "grades": pd.Categorical([1, 2, 1, 2]),
            "text": pd.array(["x", "y", "x", None], dtype="string"),
        }
    )
    found = numbers(odd)
    assert_array_equal(found["nullable"], [1, 3, 3, 5])
    for name in ("maybe", "objects"):
        assert_array_equal(found[[name, f"{name} (missing)"]], [[1, 0], [1, 1], [0, 0], [1, 0]])
    assert {"grades=1", "grades=2", "text=x", "text=y", "text=(missing)"} < set(found)


TODAY = datetime.date(2020, 1, 1)
REFUSED = {
    "dates": (pd.date_range("2020", periods=40), "column 'c' holds dates.*dt.month"),
    "date objects": ([TODAY] * 40, "column 'c' holds dates"),
    "durations": (pd.to_timedelta(np.arange(40), unit="s"), "durations.*total_seconds"),
    "free text": ([f"remark {i}" for i in range(40)], r"hardly repeats \(40 different values in 40 rows\).*astype\('category'\)"),
    "numbers as text": ([f"{i}.5" for i in range(40)], "numbers as text.*to_numeric"),
    "dates as text": (pd.date_range("2020", periods=40).strftime("%Y-%m-%d"), "dates as text.*to_datetime"),
    "few dates as text": (["24.12.2020", "31.12.2020"] * 20, "dates as text.*to_datetime"),
    "text and numbers": (["a", 1] * 20, "text and int objects"),
    "lists": ([[1, 2]] * 40, "list objects"),
    "nothing": ([None] * 40, "column 'c' is empty: drop it"),
    "infinity": ([*range(39), np.inf], "column 'c' must be finite: 1 of 40 rows hold infinity, the first is row 39"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_cannot_be_used_are_named_with_the_way_out(case: str) -> None:
    values, message = REFUSED[case]
    with pytest.raises(up.UqprismError, match=message):
        up.DeepEnsembleRegressor(**FAST).fit(pd.DataFrame({"fine": np.arange(40.0), "c": values}), np.arange(40.0))


def test_dates_as_text_may_be_said_to_be_a_category() -> None:
    days = pd.DataFrame({"day": ["2020-12-24", "2020-12-31"] * 20})
    assert Columns.of(days.astype("category")).names == ("day=2020-12-24", "day=2020-12-31")
    assert Columns.of(pd.DataFrame({"version": ["1.2", "1.3"] * 20})).names == ("version=1.2", "version=1.3")


def test_categories_that_are_whole_numbers_are_found_where_one_is_missing() -> None:
    """With a missing value, a column of whole numbers becomes one of floats: 2 and 2.0 are the same category."""
    columns = Columns.of(pd.DataFrame({"grade": pd.Categorical([1, 2] * 10)}))
    assert columns.names == ("grade=1", "grade=2")
    found = columns.apply(pd.DataFrame({"grade": [2.0, np.nan, 1.0, 1.5]}))
    assert_array_equal(found, [[0, 1], [0, 0], [1, 0], [0, 0]])


def test_a_column_of_booleans_stays_one() -> None:
    columns = Columns.of(pd.DataFrame({"paid": [True, False] * 10}))
    assert_array_equal(columns.apply(pd.DataFrame({"paid": [1, 0]})), [[1], [0]])
    with pytest.raises(up.UqprismError, match="'paid' held booleans in training, and holds 2 now"):
        columns.apply(pd.DataFrame({"paid": [1, 2]}))


def test_all_refused_columns_are_named_at_once() -> None:
    frame = pd.DataFrame({"when": pd.date_range("2020", periods=40), "what": [f"no {i}" for i in range(40)]})
    with pytest.raises(up.UqprismError, match=r"'when' holds dates.*'what' holds text"):
        Columns.of(frame)
    assert numbers(frame[["what"]].astype("category")).shape == (40, 2)  # which was said to be one


def test_a_table_in_and_out_of_a_file(tmp_path: Any) -> None:
    frame, y = houses()
    model = up.DeepEnsembleRegressor(**FAST, head="crps").fit(frame, y)
    assert list(model.feature_names_in_) == list(frame)
    assert model.n_features_in_ == 4
    model.save(tmp_path / "model.safetensors")
    again = up.DeepEnsembleRegressor.load(tmp_path / "model.safetensors")
    assert again.get_params() == model.get_params()
    new = houses(20, seed=1)[0].assign(town="Paris")
    assert_array_equal(again.predict(new), model.predict(new))
    assert_array_equal(again.predict_ensemble(pa.Table.from_pandas(new)).members.mean, model.predict_ensemble(new).members.mean)
    alone = up.DeepEnsemble.load(tmp_path / "model.safetensors")
    assert_array_equal(alone.predict_ensemble(new).members.mean, model.predict_ensemble(new).members.mean)
    for wrong in (new[["town", "area", "garden", "floor"]], new.rename(columns={"area": "size"})):
        with pytest.raises(ValueError, match="feature names"):
            again.predict(wrong)
        with pytest.raises(up.UqprismError, match="the columns area, town, garden, floor, in this order"):
            alone.predict_ensemble(wrong)
    with pytest.raises(up.UqprismError, match="'town' held categories; got an array"):
        alone.predict_ensemble(new.to_numpy())
    with pytest.raises(up.UqprismError, match="column 'area' held numbers in training, and holds text now"):
        again.predict(new.assign(area="large"))


def test_a_table_of_numbers_is_an_array() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    frame = pd.DataFrame(x, columns=["a", "b"])
    one, other = (train(given, y, n_members=2, max_epochs=2, device="cpu") for given in (x, frame))
    assert torch.equal(one.stack.rows, other.stack.rows)
    for given in (x, torch.tensor(x), frame):
        assert_array_equal(np.asarray(other.predict_ensemble(given).members.mean), one.predict_ensemble(x).members.mean)


def test_zeros_and_ones_keep_their_unit() -> None:
    """A category of few rows, standardised, would lie far from all others."""
    frame = pd.DataFrame({"size": np.arange(1000.0), "code": ["usual"] * 895 + ["some"] * 100 + ["rare"] * 5})
    found = train(frame, np.arange(1000.0), n_members=1, max_epochs=1, device="cpu").input_scaling
    assert_allclose(found.mean, Columns.of(frame).apply(frame).mean(0))
    assert_array_equal(found.scale[1:], 1.0)
    assert_allclose(found.scale[0], frame["size"].std(ddof=0))


def test_validation_rows_are_a_table_too() -> None:
    frame, y = houses()
    model = up.DeepEnsembleRegressor(**FAST).fit(frame[:60], y[:60], validation=(frame[60:], y[60:]))
    assert model.ensemble_.history.validation_loss.shape == (3, 2)


def test_names_that_occur_twice_are_refused() -> None:
    frame = pd.DataFrame(np.zeros((4, 2)), columns=["a", "a"])
    with pytest.raises(up.UqprismError, match="more than one column 'a'"):
        Columns.of(frame)
    with pytest.raises(up.UqprismError, match="more than one column 'a'"):  # before scikit-learn sees it
        up.DeepEnsembleRegressor(**FAST).fit(frame, np.zeros(4))


def test_a_table_without_rows_is_refused_as_such() -> None:
    with pytest.raises(up.UqprismError, match="the table has no rows"):
        up.DeepEnsembleRegressor(**FAST).fit(pd.DataFrame({"a": [], "b": []}), np.zeros(0))


def test_an_array_in_place_of_a_table_with_categories_is_refused() -> None:
    frame, y = houses()
    model = up.DeepEnsembleRegressor(**FAST).fit(frame, y)
    with pytest.raises(up.UqprismError, match="inputs must be a table like that of training, since"):
        model.predict(frame.to_numpy())


def test_polars_columns_that_are_said_to_be_categories_are() -> None:
    class Series:
        def __init__(self, dtype: str, values: Any) -> None:
            self.dtype, self.values = dtype, np.array(values)

        def to_numpy(self) -> Any:
            return self.values

    class Frame(dict[str, Series]):  # stands for polars.DataFrame
        columns = property(list)
        shape = (40, 1)

        def __len__(self) -> int:
            return 40

    names = [f"no {i}" for i in range(40)]
    for dtype in ("Categorical", "Enum(categories=[...])"):
        assert Columns.of(Frame(what=Series(dtype, names))).names == ("what=(other)", "what how often")
    with pytest.raises(up.UqprismError, match="'what' holds text that hardly repeats"):
        Columns.of(Frame(what=Series("String", names)))
    with pytest.raises(up.UqprismError, match="'pair' holds ndarray objects"):
        Columns.of(Frame(pair=Series("Struct({'a': Int64, 'b': Int64})", np.zeros((40, 2)))))


def test_a_table_whose_rows_are_not_there_yet_is_refused() -> None:
    lazy = type("LazyFrame", (), {"shape": (4, 1), "columns": ["a"]})()
    with pytest.raises(up.UqprismError, match=r"call its collect\(\)"):
        train(lazy, np.zeros(4))
