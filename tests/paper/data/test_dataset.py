"""What flows into training is checked once, has a checksum, and survives a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from uqprism.errors import InvalidValueError, ShapeError
from uqprism.paper.data import Dataset, Samples


def samples(n: int, start: float = 0.0) -> Samples:
    return Samples(np.arange(start, start + 2.0 * n).reshape(n, 2), np.arange(start, start + n))


def dataset(name: str = "numbers", **changed: Samples) -> Dataset:
    return Dataset(name, **{"train": samples(5), "validation": samples(2, 50.0), "test": samples(3, 90.0), **changed})


def test_samples_count_and_are_taken_by_rows_and_by_masks() -> None:
    five = samples(5)
    assert len(five) == 5
    taken = five.take([3, 0, 3])
    np.testing.assert_array_equal(taken.inputs, [[6, 7], [0, 1], [6, 7]])
    np.testing.assert_array_equal(taken.targets, [3, 0, 3])
    np.testing.assert_array_equal(five.take(five.targets > 2.5).targets, [3, 4])


def test_integers_and_lists_become_arrays_with_targets_in_double_precision() -> None:
    made = Samples([[1], [2]], np.array([3, 4], np.uint8))
    assert made.inputs.shape == (2, 1)
    assert made.targets.dtype == np.float64


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
