"""A threshold decides which rows are flagged, here and on new rows."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UqprismError

ADVISED = "crps.total.members.members"


@pytest.mark.parametrize(("n", "share", "count"), [(750, 0.1, 75), (100, 0.07, 7), (30, 0.01, 1), (21, 0.1, 3), (5, 1.0, 5)])
def test_the_highest_share_of_the_rows_is_flagged_rounded_up(n: int, share: float, count: int) -> None:
    values = np.random.default_rng(0).permutation(n) * 1.5
    found = up.flag(values, share)
    assert found.count == count
    assert sorted(values[found.rows]) == sorted(values)[-count:]
    assert found.threshold == sorted(values)[-count]


def test_rows_as_uncertain_as_the_last_are_flagged_too() -> None:
    found = up.flag([1.0, 2.0, 2.0, 2.0, 3.0], 0.4)
    assert found.rows.tolist() == [False, True, True, True, True]
    assert found.threshold == 2.0


def test_a_single_row_is_the_most_uncertain() -> None:
    assert up.flag([3.0]).rows.tolist() == [True]


def test_of_a_table_the_advised_measure_decides_unless_another_is_named() -> None:
    table = up.evaluate(ensemble(40)[0])
    found = up.flag(table)
    assert (found.measure, found.count) == (ADVISED, 4)
    np.testing.assert_array_equal(found.rows, table[ADVISED] >= np.sort(table[ADVISED])[-4])
    other = up.flag(table, 0.2, measure="log.excess.members.members")
    np.testing.assert_array_equal(other.rows, up.flag(table["log.excess.members.members"], 0.2).rows)
    assert repr(other).startswith("<Flagged: 8 of 40 rows, log.excess.members.members >= ")


@pytest.mark.parametrize(
    ("table", "how", "error", "message"),
    [
        ([1.0, 2.0], {"share": 0.0}, InvalidValueError, "share must be above 0 and up to 1, got 0.0"),
        ([1.0, 2.0], {"share": 10}, InvalidValueError, "share must be above 0 and up to 1, got 10"),
        ([1.0, np.nan], {}, InvalidValueError, "must not be NaN"),
        (np.ones((2, 2)), {}, ShapeError, "one axis"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {}, ArgumentError, "measure= must say which of 2 columns"),
        ({"mine": [1.0, 2.0], "b": [1.0, 2.0]}, {"measure": "mien"}, UqprismError, "did you mean 'mine'"),
    ],
)
def test_what_cannot_be_flagged_is_told(table, how, error, message) -> None:
    with pytest.raises(error, match=message):
        up.flag(table, **how)
