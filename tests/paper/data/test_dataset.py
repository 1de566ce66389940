"""Data sets are checked, have a checksum and survive a file; splits are complete, disjoint and follow the seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqprism.errors import InvalidValueError, ShapeError
from uqprism.paper.data import Dataset, Samples, split
from uqprism.paper.data.dataset import split_rows


def samples(n: int, start: float = 0.0) -> Samples:
    return Samples(np.arange(start, start + 2.0 * n).reshape(n, 2), np.arange(start, start + n))


def dataset(name: str = "numbers", **changed: Samples) -> Dataset:
    return Dataset(name, **{"train": samples(5), "validation": samples(2, 50.0), "test": samples(3, 90.0), **changed})


def test_samples_are_arrays_that_are_taken_by_rows_and_by_masks() -> None:
    """Of integers and lists too, with targets in double precision."""
    made = Samples([[1], [2]], np.array([3, 4], np.uint8))
    assert (made.inputs.shape, made.targets.dtype) == ((2, 1), np.float64)
    five = samples(5)
    assert len(five) == 5
    taken = five.take([3, 0, 3])
    np.testing.assert_array_equal(taken.inputs, [[6, 7], [0, 1], [6, 7]])
    np.testing.assert_array_equal(taken.targets, [3, 0, 3])
    np.testing.assert_array_equal(five.take(five.targets > 2.5).targets, [3, 4])


@pytest.mark.parametrize(
    ("inputs", "targets", "error", "message"),
    [
        (np.zeros((3, 2)), np.zeros(2), ShapeError, r"one number per row of inputs, \(3,\), got shape \(2,\)"),
        (np.zeros((3, 2)), np.zeros((3, 1)), ShapeError, r"got shape \(3, 1\)"),
        (np.zeros(3), np.zeros(3), ShapeError, "inputs must be"),
        (np.zeros((3, 2)), np.array([0.0, np.nan, 1.0]), InvalidValueError, "finite, got nan in row 1"),
        (np.zeros((3, 2)), np.array([0.0, 1.0, -np.inf]), InvalidValueError, "finite, got -inf in row 2"),
        (np.array([["a"]]), np.zeros(1), InvalidValueError, "inputs must be numbers"),
    ],
)
def test_samples_that_do_not_fit_are_refused(inputs, targets, error, message: str) -> None:
    with pytest.raises(error, match=message):
        Samples(inputs, targets)


def test_parts_have_one_shape() -> None:
    with pytest.raises(ShapeError, match=r"one shape in all parts.*'test': \(3,\)"):
        dataset(test=Samples(np.zeros((1, 3)), np.zeros(1)))


def test_the_checksum_is_that_of_the_numbers() -> None:
    whole = dataset()
    known = whole.checksum()
    assert len(known) == 64
    assert dataset(name="another").checksum() == known
    swapped = Samples(whole.train.inputs.astype(">f8"), whole.train.targets)
    assert dataset(train=swapped).checksum() == known
    assert dataset(train=Samples(np.asfortranarray(whole.train.inputs), whole.train.targets)).checksum() == known
    for other in (
        dataset(train=samples(5, 1e-9)),
        dataset(train=samples(5).take([1, 0, 2, 3, 4])),
        dataset(train=Samples(samples(5).inputs.astype(np.float32), samples(5).targets)),
        dataset(train=samples(4)),
        dataset(test=samples(2, 50.0), validation=samples(3, 90.0)),
    ):
        assert other.checksum() != known


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    whole = dataset()
    whole.save(tmp_path / "d.npz")
    read = Dataset.load(tmp_path / "d.npz")
    assert read.name == "numbers"
    assert read.checksum() == whole.checksum()
    assert repr(read) == "Dataset('numbers', train=5, validation=2, test=3, inputs=(2,))"


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
    first, again, other = (np.concatenate(split_rows(count, each, 0.2, 0.1)) for each in (seed, seed, seed + 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_every_row_is_as_likely_to_be_tested_on() -> None:
    tested = np.zeros(50)
    for seed in range(2000):
        tested[split_rows(50, seed, 0.2, 0.1)[0]] += 1
    assert np.abs(tested / 2000 - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 2000)


@pytest.mark.parametrize("fractions", [(0.0, 0.1), (0.5, 0.5), (1.0, 0.1), (-0.1, 0.1), (0.2, float("nan"))])
def test_fractions_leave_rows_for_every_part(fractions: tuple[float, float]) -> None:
    with pytest.raises(InvalidValueError, match="between 0 and 1"):
        split_rows(100, 0, *fractions)
    with pytest.raises(InvalidValueError, match="3 rows cannot be split"):
        split_rows(3, 0, 0.2, 0.1)
