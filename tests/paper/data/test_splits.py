"""Splits share nothing, leave nothing out, have the sizes asked for, and follow the seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqprism.errors import InvalidValueError
from uqprism.paper.data import Samples
from uqprism.paper.data.splits import parts, split

FRACTIONS = st.floats(0.05, 0.45)


@given(count=st.integers(40, 2000), seed=st.integers(0, 2**32), test=FRACTIONS, validation=FRACTIONS)
def test_every_row_is_in_one_part_and_parts_have_their_sizes(count: int, seed: int, test: float, validation: float) -> None:
    rows = np.arange(float(count))
    whole = split("rows", Samples(rows[:, None], rows), seed, test, validation)
    sizes = [len(whole.test), len(whole.validation), len(whole.train)]
    assert sizes[:2] == [round(test * count), round(validation * count)]
    together = np.concatenate([whole.test.targets, whole.validation.targets, whole.train.targets])
    np.testing.assert_array_equal(np.sort(together), rows)
    for part in (whole.test, whole.validation, whole.train):
        np.testing.assert_array_equal(part.inputs[:, 0], part.targets)


@given(count=st.integers(50, 500), seed=st.integers(0, 2**32 - 2))
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(count: int, seed: int) -> None:
    first, again, other = (np.concatenate(parts(count, each, 0.2, 0.1)) for each in (seed, seed, seed + 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_every_row_is_as_likely_to_be_tested_on() -> None:
    tested = np.zeros(50)
    for seed in range(2000):
        tested[parts(50, seed, 0.2, 0.1)[0]] += 1
    assert np.abs(tested / 2000 - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 2000)


@pytest.mark.parametrize("fractions", [(0.0, 0.1), (0.5, 0.5), (1.0, 0.1), (-0.1, 0.1), (0.2, float("nan"))])
def test_fractions_leave_something_for_everybody(fractions: tuple[float, float]) -> None:
    with pytest.raises(InvalidValueError, match="between 0 and 1"):
        parts(100, 0, *fractions)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="3 rows cannot be split"):
        parts(3, 0, 0.2, 0.1)
