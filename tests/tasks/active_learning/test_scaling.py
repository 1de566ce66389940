"""Scores as they are, standardised, or by rank."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from uqprism.errors import UnknownNameError
from uqprism.tasks.active_learning import average_ranks, scaled, softmax

SCORES = np.array([-3.0, 2.0, 2.0, 0.5, -7.0])


def test_raw_scores_are_left_alone() -> None:
    assert_array_equal(scaled(SCORES, "raw"), SCORES)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_standardised_scores_count_standard_deviations(unit: float) -> None:
    assert_allclose(scaled(SCORES * unit, "standardised"), (SCORES - SCORES.mean()) / SCORES.std(), rtol=1e-12)


@pytest.mark.parametrize("level", [0.0, 0.1, -1e12])
def test_equal_scores_standardise_to_zeros(level: float) -> None:
    """Ten times 0.1 has a mean that is not 0.1; that rounding must not become a standard deviation."""
    assert_array_equal(scaled(np.full(10, level), "standardised"), np.zeros(10))


def test_ranks_are_logs_of_places_from_the_top_with_ties_averaged() -> None:
    assert_allclose(scaled(SCORES, "rank"), -np.log([4.0, 1.5, 1.5, 3.0, 5.0]))
    many = np.random.default_rng(0).integers(-20, 20, 1000) / 7.0
    assert_allclose(scaled(many, "rank"), -np.log(rankdata(-many)))


def test_ranks_do_not_depend_on_units_where_raw_scores_do() -> None:
    """What CRPS in metres picks, CRPS in millimetres picks too."""
    scores = np.random.default_rng(1).exponential(size=200)
    for how, same in (("raw", False), ("standardised", True), ("rank", True)):
        picks = [softmax(scaled(scores * unit, how), 20, np.random.default_rng(2)) for unit in (1.0, 1024.0)]
        assert np.array_equal(*picks) is same


def test_unknown_scalings_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'standardised'"):
        scaled(SCORES, "standardized")  # type: ignore[arg-type]


def test_average_ranks_share_ties_and_know_the_direction() -> None:
    values = {"a": [1.0, 5.0, 2.0], "b": [1.0, 4.0, 3.0], "c": [0.5, 9.0, 2.0]}
    found = average_ranks(values)
    table = np.array([rankdata(run) for run in np.array(list(values.values())).T])  # (runs, names)
    assert_allclose(list(found.mean.values()), table.mean(axis=0))
    assert_allclose(list(found.spread.values()), table.std(axis=0, ddof=1))
    assert_array_equal(found.ranks["a"], [2.5, 2.0, 1.5])
    best_last = average_ranks(values, higher_is_better=True)
    assert_array_equal(best_last.ranks["a"], [1.5, 2.0, 2.5])


def test_a_single_run_has_ranks_without_a_spread() -> None:
    found = average_ranks({"a": 0.3, "b": -1.0})
    assert found.mean == {"a": 2.0, "b": 1.0}
    assert np.isnan(found.spread["a"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at least one name"),
        ([1.0, 2.0], "must be a mapping"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "the same runs, got 2 for 'a' and 1 for 'b'"),
        ({"a": [1.0, np.nan]}, r"values\['a'\] must not be NaN, run 1 is"),
        ({"a": [[1.0]]}, "one number for each run"),
    ],
)
def test_bad_values_to_rank_are_refused(values: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        average_ranks(values)  # type: ignore[arg-type]
