"""Average ranks over runs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from uqprism.tasks import average_ranks


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
