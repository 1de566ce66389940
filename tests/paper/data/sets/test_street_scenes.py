"""Street scenes are cut into tiles, and the pixels of a class are counted in each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.paper.data import files
from uqprism.errors import FileError, InvalidValueError, UnknownNameError
from uqprism.paper import data
from uqprism.paper.data.sets.street_scenes import cityscapes_pairs, read_camvid, read_cityscapes, tiled


def test_tiles_go_row_by_row_and_leave_out_the_rest() -> None:
    image = np.arange(2 * 3 * 5 * 8).reshape(2, 3, 5, 8)
    tiles = tiled(image, (2, 3))
    assert tiles.shape == (2 * 4, 3, 2, 3)
    for i in range(2):
        for k, (top, left) in enumerate([(0, 0), (0, 3), (2, 0), (2, 3)]):
            np.testing.assert_array_equal(tiles[4 * i + k], image[i, :, top : top + 2, left : left + 3])
    with pytest.raises(FileError, match="at least 6x3, got 5x8"):
        tiled(image, (6, 3))


@pytest.fixture
def camvid(tmp_path: Path, rng) -> dict[str, np.ndarray]:
    """Labels of the scenes in the file, by part."""
    labels = {part: rng.integers(0, 12, (n, 180, 240), dtype=np.uint8) for part, n in (("train", 3), ("val", 1), ("test", 2))}
    arrays: dict[str, np.ndarray] = {}
    for part, each in labels.items():
        pictures = [np.full((180, 240, 3), 40 * i + 20, np.uint8) for i in range(len(each))]
        arrays.update(files.scenes(part, pictures, each))
    np.savez(tmp_path / "camvid_180x240.npz", **arrays)
    return labels


CLASSES = {"street": 3, "building": 1, "sky": 0, "car": 8, "vegetation": 5}


@pytest.mark.parametrize("target", CLASSES)
def test_camvid_counts_pixels_of_a_class_in_four_tiles_of_each_picture(target: str, camvid, tmp_path: Path) -> None:
    whole = data.load("camvid", root=tmp_path, target=target)
    assert whole.name == f"camvid_{target}"
    for part, key in ((whole.train, "train"), (whole.validation, "val"), (whole.test, "test")):
        assert part.inputs.shape == (4 * len(camvid[key]), 3, 90, 120)
        for i, labels in enumerate(camvid[key]):
            for k, (top, left) in enumerate([(0, 0), (0, 120), (90, 0), (90, 120)]):
                assert part.targets[4 * i + k] == (labels[top : top + 90, left : left + 120] == CLASSES[target]).sum()
                assert np.abs(part.inputs[4 * i + k].astype(int) - (40 * i + 20)).max() <= 2


def test_targets_and_files_are_checked(camvid, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'street'"):
        data.load("camvid", root=tmp_path, target="streets")
    (tmp_path / "camvid_180x240.npz").unlink()
    with pytest.raises(FileError, match=r"there is no camvid_180x240\.npz in .* root= in Python.* --data .*docs/data\.md"):
        data.load("camvid", root=tmp_path)


def put_pair(folder: Path, name: str, picture: np.ndarray, labels: np.ndarray | None) -> tuple[Path, Path]:
    """Write a picture of Cityscapes and its labels, if any; the name is PART/CITY/CITY_NUMBER_NUMBER."""
    places = f"leftImg8bit/{name}_leftImg8bit.png", f"gtFine/{name}_gtFine_labelIds.png"
    files.put(folder, places[0], files.picture(picture, "PNG"))
    if labels is not None:
        files.put(folder, places[1], files.picture(labels, "PNG"))
    return folder / places[0], folder / places[1]


def test_cityscapes_pictures_are_paired_with_their_labels_in_order(tmp_path: Path, rng) -> None:
    contents = {}
    for name in ("bochum/bochum_000000_000019", "aachen/aachen_000002_000019", "aachen/aachen_000001_000019"):
        arrays = rng.integers(0, 256, (4, 6, 3), dtype=np.uint8), rng.integers(0, 34, (4, 6), dtype=np.uint8)
        pair = put_pair(tmp_path, f"train/{name}", *arrays)
        contents[pair] = arrays
        files.put(tmp_path, f"gtFine/train/{name}_gtFine_color.png", b"not read")
    assert cityscapes_pairs(tmp_path, "train") == sorted(contents)
    for pair, (picture, labels) in contents.items():
        read, numbers = read_cityscapes(*pair)
        np.testing.assert_array_equal(read.transpose(1, 2, 0), picture)
        np.testing.assert_array_equal(numbers, labels)


def test_damaged_or_missing_cityscapes_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no pictures leftImg8bit/val/CITY.*gtFine_trainvaltest\.zip"):
        cityscapes_pairs(tmp_path, "val")
    name, picture = "val/lindau/lindau_000003_000019", np.zeros((4, 6, 3), np.uint8)
    image, labels = put_pair(tmp_path, name, picture, None)
    with pytest.raises(FileError, match=f"1 of 1 pictures .* have no labels, the first is {labels}"):
        cityscapes_pairs(tmp_path, "val")
    put_pair(tmp_path, name, picture, np.zeros((4, 5), np.uint8))
    with pytest.raises(FileError, match=r"size of its picture, \(4, 6\), got \(4, 5\)"):
        read_cityscapes(image, labels)
    with pytest.raises(FileError, match="one channel of 8 bits with label numbers, got RGB"):
        read_cityscapes(image, image)
    image.write_bytes(image.read_bytes()[:-30])
    with pytest.raises(FileError, match="no complete picture"):
        read_cityscapes(image, labels)


def test_camvid_pictures_are_decoded(tmp_path: Path) -> None:
    pictures = [np.full((16, 24, 3), colour, np.uint8) for colour in ((200, 20, 40), (10, 120, 250))]
    labels = np.arange(2 * 16 * 24, dtype=np.uint8).reshape(2, 16, 24)
    np.savez(tmp_path / "s.npz", **files.scenes("val", pictures, labels))
    read, numbers = read_camvid(tmp_path / "s.npz", "val")
    assert read.shape == (2, 3, 16, 24)
    assert np.abs(read.transpose(0, 2, 3, 1).astype(int) - np.stack(pictures)).max() <= 4  # what JPEG loses
    np.testing.assert_array_equal(numbers, labels)


def test_damaged_camvid_files_are_refused(tmp_path: Path) -> None:
    whole = files.scenes("val", [np.zeros((16, 24, 3), np.uint8)], np.zeros((1, 16, 24), np.uint8))
    half = whole["val_jpeg"][: len(whole["val_jpeg"]) // 2]
    for changed, message in (
        ({"val_offsets": np.array([0, 5])}, "offsets"),
        ({"val_offsets": np.array([0])}, "offsets"),
        ({"val_jpeg": half, "val_offsets": np.array([0, len(half)])}, r"val picture 0 in .* is no complete picture"),
        ({"val_labels": np.zeros((1, 16, 20), np.uint8)}, r"labels' size \(16, 20\), got \(16, 24\)"),
    ):
        np.savez(tmp_path / "s.npz", **{**whole, **changed})
        with pytest.raises(FileError, match=message):
            read_camvid(tmp_path / "s.npz", "val")


@pytest.fixture
def cityscapes(tmp_path: Path, rng) -> Path:
    """Ten training and three validation pictures of 260x500: two tiles each, whose grey is the picture's number."""
    number = 0
    for part, n in (("train", 10), ("val", 3)):
        for i in range(n):
            number += 1
            name = f"{part}/ulm/ulm_{i:06}_000019"
            labels = rng.choice(np.array([7, 11, 23, 26, 21, 0, 24], np.uint8), (260, 500))
            put_pair(tmp_path / "cityscapes", name, np.full((260, 500, 3), number, np.uint8), labels)
    return tmp_path


def numbers(samples: data.Samples) -> set[int]:
    return set(np.unique(samples.inputs).tolist())


def test_cityscapes_tests_on_its_validation_pictures_and_keeps_pictures_together(cityscapes: Path) -> None:
    whole = data.load("cityscapes", root=cityscapes, target="car")
    assert whole.name == "cityscapes_car"
    assert whole.train.inputs.shape == (18, 3, 224, 224)
    assert numbers(whole.test) == {11, 12, 13}
    assert len(numbers(whole.validation)) == 1
    assert numbers(whole.train) | numbers(whole.validation) == set(range(1, 11))
    labels = np.asarray(Image.open(cityscapes / "cityscapes/gtFine/val/ulm/ulm_000000_000019_gtFine_labelIds.png"))
    assert whole.test.targets[:2].tolist() == [(labels[:224, at : at + 224] == 26).sum() for at in (0, 224)]


def test_cityscapes_may_be_less_but_not_none_and_of_one_size(cityscapes: Path) -> None:
    few = data.load("cityscapes", root=cityscapes, pictures=4)
    assert [len(numbers(part)) for part in (few.train, few.validation, few.test)] == [3, 1, 3]
    chosen = {frozenset(numbers(data.load("cityscapes", root=cityscapes, pictures=2, seed=seed).train)) for seed in range(5)}
    assert len(chosen) > 1
    with pytest.raises(InvalidValueError, match="pictures must be at least 2"):
        data.load("cityscapes", root=cityscapes, pictures=1)
    with pytest.raises(FileError, match=f"{cityscapes / 'none' / 'cityscapes'}; unpack"):
        data.load("cityscapes", root=files.put(cityscapes, "none/a", b"").parent)
    name = "train/ulm/ulm_000003_000019"
    put_pair(cityscapes / "cityscapes", name, np.zeros((460, 500, 3), np.uint8), np.zeros((460, 500), np.uint8))
    with pytest.raises(FileError, match="must have the size of the other pictures"):
        data.load("cityscapes", root=cityscapes)
