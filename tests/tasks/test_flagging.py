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


def test_rows_as_uncertain_as_the_last_are_flagged_too_and_a_single_row_is_the_most_uncertain() -> None:
    found = up.flag([1.0, 2.0, 2.0, 2.0, 3.0], 0.4)
    assert found.rows.tolist() == [False, True, True, True, True]
    assert found.threshold == 2.0
    assert up.flag([3.0]).rows.tolist() == [True]


def test_of_a_table_the_advised_measure_decides_unless_another_is_named() -> None:
    table = up.evaluate(ensemble(40)[0])
    found = up.flag(table)
    assert (found.measure, found.count) == (ADVISED, 4)
    np.testing.assert_array_equal(found.rows, table[ADVISED] >= np.sort(table[ADVISED])[-4])
    other = up.flag(table, 0.2, measure="log.excess.members.members")
    np.testing.assert_array_equal(other.rows, up.flag(table["log.excess.members.members"], 0.2).rows)
    assert repr(other).startswith("<Flagged: 8 of 40 rows (share 0.2), log.excess.members.members >= ")


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


def test_the_threshold_is_told_in_digits_that_flag_the_same_rows() -> None:
    values = 1.66 + np.random.default_rng(0).permutation(5000) * 1e-6
    for share in (0.1, 0.05, 0.01):
        found = up.flag(values, share)
        assert (values >= float(found.shortest)).sum() == found.count == 5000 * share
        assert len(found.shortest) <= 9
        assert found.shortest in repr(found)
    for pair, shortest in (([1.0, 12345.678], "12300"), ([-2.0, -1.23456], "-1.24"), ([0.0, 0.0], "0")):
        assert up.flag(pair, 0.5).shortest == shortest


def test_a_share_that_ties_do_not_allow_is_told() -> None:
    found = up.flag([2.0] * 46 + [1.0] * 54, 0.01)
    assert (found.share, found.asked, found.tied) == (0.46, 0.01, True)
    assert "46 of 100 rows (share 0.46, 0.01 asked for: ties allow no fewer)" in repr(found)
    assert not up.flag(np.arange(21.0), 0.1).tied
    assert up.flag([0.3, 0.1 + 0.2, 0.1 + 0.2 + 1e-16, 0.0], 0.25).count == 3


def test_rows_above_a_value_or_a_number_of_rows_can_be_asked_for() -> None:
    values = [3.0, 1.0, 2.0, 2.0, 2.0]
    assert up.flag(values, above=2.0).rows.tolist() == [True, False, True, True, True]
    assert up.flag(values, above=9.0).count == 0
    assert up.flag(values, budget=2).rows.tolist() == [True, False, True, False, False]
    assert up.flag(values, budget=4).count == 4
    assert up.flag(values, budget=99).count == 5
    for how, message in (({"share": 0.1, "above": 1.0}, "got share and above"), ({"budget": 1.5}, "whole number")):
        with pytest.raises(UqprismError, match=message):
            up.flag(values, **how)


def test_the_reason_is_what_exceeds_its_usual_value_the_most() -> None:
    noise, disagreement = np.full(101, 1.0), np.full(101, 0.1)
    noise[0], disagreement[1], disagreement[2] = 4.0, 0.9, 3.0
    table = {"crps.bayes.members": noise, "crps.excess.members.members": disagreement, ADVISED: noise + disagreement}
    found = up.flag(table, budget=3)
    assert found.rows[:3].all()
    assert found.reasons[:3].tolist() == [
        "noise: 4.0 times what is usual here",
        "disagreement between the models: 9.0 times what is usual here",
        "unfamiliar: the models contradict each other, disagreement 30 times what is usual here",
    ]
    assert set(found.reasons[3:]) == {""}
    assert found.counts == {"noise": 1, "disagreement": 1, "unfamiliar": 1}
    assert up.flag(noise).reasons is None
    log = up.flag({**table, "log.total.members.members": noise}, budget=3, measure="log.total.members.members")
    assert log.counts["noise"] >= 1  # log risks may be negative, so the parts are those of the CRPS
