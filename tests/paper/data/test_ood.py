"""OOD mosaics replace the quadrants that their name says with images of the set that it says, and keep the others."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError, InvalidValueError, ShapeError, UnknownNameError
from uqprism.paper import data

N = 60
LEVELS = {"cifar10": 100, "svhn": 150, "fashion_mnist": 200, "emnist": 250}  # each set here is of one grey


@pytest.fixture
def root(tmp_path: Path, monkeypatch) -> Path:
    """The official files, each with five images of one colour."""
    colours = {name: np.full((5, 3, 32, 32), level, np.uint8) for name, level in LEVELS.items()}
    files.put_ood(tmp_path, monkeypatch, colours, np.ones(5, np.uint8))
    return tmp_path


@pytest.fixture
def mosaics(rng) -> np.ndarray:
    return rng.integers(0, 60, (N, 1, 64, 64), dtype=np.uint8)


def quadrants(mosaics: np.ndarray) -> dict[str, np.ndarray]:
    rows = {"t": slice(0, 32), "b": slice(32, 64)}
    columns = {"l": slice(0, 32), "r": slice(32, 64)}
    return {r + c: mosaics[:, 0, rows[r], columns[c]] for r in rows for c in columns}


def tile(name: str) -> np.ndarray:
    """What a quadrant with an image of this set looks like."""
    small = name in {"fashion_mnist", "emnist"}
    return np.pad(np.full((28, 28), LEVELS[name]), 2) if small else np.full((32, 32), LEVELS[name])


@pytest.mark.parametrize("name", ["cifar10", "svhn", "fashion_mnist"])
def test_other_sets_fill_all_quadrants(name: str, root: Path, mosaics) -> None:
    for quadrant in quadrants(data.ood_mosaics(name, mosaics, root=root)).values():
        np.testing.assert_array_equal(quadrant, np.broadcast_to(tile(name), quadrant.shape))


def test_a_mixture_takes_a_third_of_the_mosaics_from_each(root: Path, mosaics) -> None:
    made = data.ood_mosaics("mixture", mosaics, root=root)
    middles = np.stack([quadrant[:, 16, 16] for quadrant in quadrants(made).values()], axis=1)
    assert (middles == middles[:, :1]).all()
    levels, counts = np.unique(middles[:, 0], return_counts=True)
    assert dict(zip(levels.tolist(), counts.tolist(), strict=True)) == {100: 20, 150: 20, 200: 20}
    assert (np.diff(middles[:, 0].astype(int)) != 0).sum() > 10  # in no order


@pytest.mark.parametrize("place", ["tl", "tr", "bl", "br"])
def test_a_letter_replaces_one_quadrant(place: str, root: Path, mosaics) -> None:
    before = mosaics.copy()
    made, kept = quadrants(data.ood_mosaics(f"emnist_{place}", mosaics, root=root)), quadrants(mosaics)
    np.testing.assert_array_equal(mosaics, before)
    for each, quadrant in made.items():
        expected = np.broadcast_to(tile("emnist"), quadrant.shape) if each == place else kept[each]
        np.testing.assert_array_equal(quadrant, expected)


def test_colours_become_their_brightness(tmp_path: Path, mosaics) -> None:
    images = np.zeros((3, 32, 32, 3), np.uint8)
    images[0, :, :, 0] = images[1, :, :, 1] = images[2, :, :, 2] = 200
    np.savez(tmp_path / "cifar10.npz", x=images, y=np.zeros(3, np.uint8))
    made = data.ood_mosaics("cifar10", mosaics, root=tmp_path)
    assert set(np.unique(made).tolist()) == {60, 117, 23}  # 0.299, 0.587 and 0.114 of 200


@pytest.mark.parametrize(
    ("name", "file", "shape"),
    [
        ("svhn", "svhn.npz", (4, 32, 32, 3)),
        ("fashion_mnist", "fashion_mnist.npz", (4, 28, 28)),
        ("emnist_br", "emnist_letters.npz", (4, 28, 28)),
    ],
)
def test_compact_files_are_read(name: str, file: str, shape: tuple[int, ...], tmp_path: Path, mosaics) -> None:
    np.savez(tmp_path / file, x=np.full(shape, 77, np.uint8), y=np.zeros(4, np.uint8))
    assert (quadrants(data.ood_mosaics(name, mosaics, root=tmp_path))["br"][:, 2:30, 2:30] == 77).all()


def test_the_seed_decides(tmp_path: Path, mosaics, rng) -> None:
    np.savez(tmp_path / "svhn.npz", x=rng.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8), y=np.zeros(40, np.uint8))
    first, again, other = (data.ood_mosaics("svhn", mosaics, root=tmp_path, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_photographs_are_cut_to_the_size_of_the_quadrants() -> None:
    from sklearn.datasets import load_sample_images

    made = data.ood_mosaics("photographs", np.zeros((40, 1, 32, 32), np.uint8))
    assert made.shape == (40, 1, 32, 32)
    grey = [np.rint(image @ np.array([0.299, 0.587, 0.114])) for image in load_sample_images().images]
    windows = [np.lib.stride_tricks.sliding_window_view(image, (16, 16)) for image in grey]
    for row in range(3):
        assert any((each == made[row, 0, :16, :16]).all((2, 3)).any() for each in windows)


def test_inverted_digits_are_the_same_ones_and_need_no_root(mosaics, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("UQPRISM_DATA", raising=False)
    np.testing.assert_array_equal(data.ood_mosaics("inverted", mosaics).astype(int), 255 - mosaics.astype(int))


def test_names_and_shapes_are_checked(root: Path, mosaics) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mixture'"):
        data.ood_mosaics("mixtur", mosaics, root=root)
    for wrong in (mosaics[:, 0], mosaics.astype(float), mosaics[..., :60]):
        with pytest.raises(ShapeError, match="mosaics must be uint8"):
            data.ood_mosaics("svhn", wrong, root=root)
    with pytest.raises(InvalidValueError, match="32x32 do not fit into tiles of 16x16"):
        data.ood_mosaics("svhn", mosaics[:, :, :32, :32], root=root)


def test_without_files_the_error_says_what_to_put_where(tmp_path: Path, mosaics) -> None:
    with pytest.raises(FileError, match=r"cifar-10-binary\.tar\.gz is not in"):
        data.ood_mosaics("mixture", mosaics, root=tmp_path, download=False)


def test_every_kind_has_a_sentence() -> None:
    assert list(data.ood_summaries()) == data.ood_names()
    assert all(len(sentence) > 20 for sentence in data.ood_summaries().values())
    letters = {f"emnist_{place}" for place in ("tl", "tr", "bl", "br")}
    assert {"cifar10", "svhn", "fashion_mnist", "mixture"} | letters < set(data.ood_names())
