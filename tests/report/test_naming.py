"""Names of columns tell the unit of the target and which column identifies the rows, and nothing is guessed from values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import uqprism as up
from tests.report.pages import PAIR, frame, plain, table
from tests.tasks.problems import ensemble
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.files.points import Points
from uqprism.report.naming import split_unit
from uqprism.report.readers import read_subject


@pytest.mark.parametrize(
    ("column", "name", "unit"),
    [
        ("price ($)", "price", "$"),
        ("load [kWh]", "load", "kWh"),
        ("speed_(km/h)", "speed", "km/h"),
        ("y", "y", ""),
        ("log(price)", "log(price)", ""),
        ("price (log)", "price (log)", ""),
        ("rank (2024)", "rank (2024)", ""),
        ("a [b] c", "a [b] c", ""),
        ("(m)", "(m)", ""),
    ],
)
def test_a_unit_stands_in_brackets_at_the_end_of_a_name(column: str, name: str, unit: str) -> None:
    assert split_unit(column) == (name, unit)


@pytest.mark.parametrize(("given", "expected"), [(None, ("price", "$")), ("", ("price ($)", "")), ("€", ("price ($)", "€"))])
def test_a_given_unit_goes_before_that_of_the_column(given: str | None, expected: tuple[str, str], tmp_path: Path) -> None:
    changed = frame().rename(columns={"y": "price ($)"})
    changed.to_csv(tmp_path / "in.csv", index=False)
    for source in (changed, tmp_path / "in.csv"):
        found = read_subject(source, target="price ($)", unit=given)
        assert (found.target_name, found.unit) == expected
    series = read_subject(ensemble(40)[0], target=changed["price ($)"], unit=given)
    assert (series.target_name, series.unit) == expected


@pytest.mark.parametrize("name", ["id", "ID", "name", "key", "uuid", "index", "house_id", "house id", "houseId", "row-key"])
@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_a_column_named_like_an_identifier_names_the_rows(name: str, kind: str, tmp_path: Path) -> None:
    source = frame().rename(columns={"id": name})
    if kind == "parquet":
        source.to_parquet(tmp_path / "in.parquet")
        source = tmp_path / "in.parquet"
    found = read_subject(source)
    assert (found.id_name, found.called([3, 1])) == (name, "rows trip 3 and trip 1")


def test_other_columns_and_repeated_values_are_no_identifiers(tmp_path: Path) -> None:
    for changed in (frame().rename(columns={"id": "paid"}), frame().assign(id="the same"), frame().assign(id=[None, *range(39)])):
        assert read_subject(changed).id_name == ""
        changed.to_parquet(tmp_path / "in.parquet")
        assert read_subject(tmp_path / "in.parquet").called([3, 1]) == "rows 3 and 1"


def test_a_named_index_names_the_rows_also_from_a_file(tmp_path: Path) -> None:
    source = frame().drop(columns="id").set_index(pd.Index(np.arange(40) * 7, name="house"))
    source.to_parquet(tmp_path / "in.parquet")
    for each in (source, tmp_path / "in.parquet"):
        found = read_subject(each)
        assert (found.id_name, found.called([3]), found.called([0, 1])) == (
            "house", "row with house 21", "rows with house 0 and 7"
        )  # fmt: skip


def test_identifiers_are_chosen_and_stay_with_their_rows(tmp_path: Path) -> None:
    source = frame().assign(other=[f"B-{i}" for i in range(40)])
    source.to_csv(tmp_path / "in.csv", index=False)
    ens, ids = ensemble(40)[0], [f"B-{i}" for i in range(40)]
    d = up.decompose(ens)
    first = f"B-{int(np.argmax(d.epistemic))}"
    named = [(source, "other"), (tmp_path / "in.csv", "other"), (ens, ids), (up.evaluate(ens), np.array(ids))]
    for each, given in named:
        found = up.write_report(each, tmp_path / "page", id=given, resamples=0)
        head, row, *_ = table(found, "The rows with the most disagreement")
        assert (head[0], row[0]) == (given if isinstance(given, str) else "id", first)
        assert first in found.sentences["rows"]


@pytest.mark.parametrize(
    ("source", "given", "error", "message"),
    [
        (frame(), "hosue", InvalidValueError, "unknown column 'hosue'"),
        (ensemble(40)[0], "id", ArgumentError, "id must be an array for an ensemble"),
        (ensemble(40)[0], ["a"], ShapeError, "id must have one value for each of the 40 rows"),
    ],
)
def test_wrong_identifiers_are_refused(source: object, given: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_subject(source, id=given)


def test_identifiers_stay_in_step_where_bad_rows_are_left_out(tmp_path: Path) -> None:
    given = frame()
    given.loc[2, "mean_0"] = np.nan
    given.to_csv(tmp_path / "in.csv", index=False)
    found = read_subject(Points.of(tmp_path / "in.csv", on_bad="drop"))
    assert found.called([1, 2]) == "rows trip 1 and trip 3"


def test_names_with_markup_are_text(made) -> None:
    evil = '<img src=x onerror="alert(1)">'
    source = {**dict.fromkeys(PAIR, np.arange(1.0, 41.0)), "![x](http://example.com)": np.arange(40.0)}
    found, page = made(source, id=[f"{evil} {i}" for i in range(40)], title="&lt;a-b&gt;", unit="<b>")
    assert "img" not in page.tags
    assert evil in page.text
    assert "&lt;a-b&gt;" in page.text
    assert plain(found.advice[0].why).endswith(f"{evil} 37.")
