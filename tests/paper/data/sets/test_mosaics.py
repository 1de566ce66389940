"""Mosaics show four digits, their target is the number that they form, and parts are made of different digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError, InvalidValueError
from uqprism.paper import data

TRAIN, TEST = 120, 30


def recognisable(labels: np.ndarray, first: int) -> np.ndarray:
    """28x28 images with the label in the upper left pixel and a number of their own in the two pixels at the lower right."""
    images = np.zeros((len(labels), 28, 28), np.uint8)
    images[:, 0, 0] = labels
    images[:, 27, 26:] = np.stack(np.divmod(first + np.arange(len(labels)), 200), axis=1) + 1
    return images


@pytest.fixture
def digits(rng) -> dict[str, np.ndarray]:
    y_train, y_test = rng.integers(0, 10, TRAIN, dtype=np.uint8), rng.integers(0, 10, TEST, dtype=np.uint8)
    return {"x_train": recognisable(y_train, 0), "y_train": y_train, "x_test": recognisable(y_test, TRAIN), "y_test": y_test}


def quadrants(mosaics: np.ndarray) -> list[np.ndarray]:
    half = mosaics.shape[-1] // 2
    return [mosaics[:, 0, top : top + half, left : left + half] for top in (0, half) for left in (0, half)]


def seen(samples: data.Samples) -> set[int]:
    """The numbers of the digits that these mosaics are made of."""
    return {int(number) for tile in quadrants(samples.inputs) for number in (tile[:, 29, 28] - 1) * 200 + tile[:, 29, 29] - 1}


def test_digits_form_the_target_and_parts_are_of_different_digits(digits, tmp_path: Path) -> None:
    np.savez(tmp_path / "mnist.npz", **digits)
    whole = data.load("mnist_mosaic", root=tmp_path, sizes=(600, 200, 300))
    used = []
    for part, size in ((whole.train, 600), (whole.validation, 200), (whole.test, 300)):
        assert part.inputs.shape == (size, 1, 64, 64)
        tiles = quadrants(part.inputs)
        for tile in tiles:
            border = tile.copy()
            border[:, 2:30, 2:30] = 0
            assert not border.any()
        shown = [tile[:, 2, 2].astype(float) for tile in tiles]
        np.testing.assert_array_equal(part.targets, 1000 * shown[0] + 100 * shown[1] + 10 * shown[2] + shown[3])
        used.append(seen(part))
    assert used[2] == set(range(TRAIN, TRAIN + TEST))
    assert used[0] | used[1] == set(range(TRAIN))
    assert not used[0] & used[1]
    assert len(used[1]) == TRAIN // 6


def test_official_files_give_the_same_mosaics_as_the_compact_one(digits, tmp_path: Path) -> None:
    np.savez(tmp_path / "mnist.npz", **digits)
    compact = data.load("mnist_mosaic", root=tmp_path, seed=5, sizes=(9, 9, 9))
    official = tmp_path / "official"
    *_, labels = files.put_official(official, "mnist", *map(files.idx_gz, digits.values()))
    assert data.load("mnist_mosaic", root=official, seed=5, sizes=(9, 9, 9)).checksum() == compact.checksum()
    assert data.load("mnist_mosaic", root=official, seed=6, sizes=(9, 9, 9)).checksum() != compact.checksum()
    labels.write_bytes(files.idx_gz(digits["y_test"][:-1]))
    with pytest.raises(FileError, match="an image per label"):
        data.load("mnist_mosaic", root=official)


def test_scikit_learns_digits_are_enlarged() -> None:
    from sklearn.datasets import load_digits

    whole = data.load("digits_mosaic", sizes=(50, 20, 30), tile=16)
    assert whole.train.inputs.shape == (50, 1, 32, 32)
    known = {}
    for image, digit in zip(*load_digits(return_X_y=True), strict=True):
        known.setdefault(np.rint(image * 255 / 16).astype(np.uint8).tobytes(), set()).add(int(digit))
    used = []
    for part in (whole.train, whole.validation, whole.test):
        small = [tile[:, ::2, ::2] for tile in quadrants(part.inputs)]
        for tile, less in zip(quadrants(part.inputs), small, strict=True):
            np.testing.assert_array_equal(tile, np.kron(less, np.ones((1, 2, 2), np.uint8)))
        for row, target in enumerate(part.targets):
            for place, tile in zip((1000, 100, 10, 1), small, strict=True):
                assert target // place % 10 in known[tile[row].tobytes()]
        used.append({image.tobytes() for tile in small for image in tile})
    assert not used[0] & used[1]
    assert not used[0] & used[2]
    assert not used[1] & used[2]


@pytest.mark.parametrize(
    ("options", "message"), [({"tile": 12}, "multiple of 8"), ({"sizes": (5, 0, 5)}, "positive"), ({"sizes": (5, 5)}, "three")]
)
def test_sizes_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        data.load("digits_mosaic", **options)
