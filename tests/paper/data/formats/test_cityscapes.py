"""A Cityscapes folder is listed and read as it is unpacked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import cityscapes


def place(root: Path, part: str, city: str, number: int) -> tuple[Path, Path]:
    name = f"{city}_{number:06}_000019"
    return (
        root / "leftImg8bit" / part / city / f"{name}_leftImg8bit.png",
        root / "gtFine" / part / city / f"{name}_gtFine_labelIds.png",
    )


def test_pictures_are_paired_with_their_labels_in_order(tmp_path: Path, rng) -> None:
    wanted = [("aachen", 1), ("aachen", 2), ("bochum", 0)]
    contents = {}
    for city, number in reversed(wanted):
        image, labels = place(tmp_path, "train", city, number)
        contents[image] = rng.integers(0, 256, (4, 6, 3), dtype=np.uint8)
        contents[labels] = rng.integers(0, 34, (4, 6), dtype=np.uint8)
        files.png(image, contents[image])
        files.png(labels, contents[labels])
        files.png(labels.with_name(labels.name.replace("labelIds", "color")), contents[image])
    pairs = cityscapes.pairs(tmp_path, "train")
    assert pairs == [place(tmp_path, "train", *each) for each in wanted]
    for image, labels in pairs:
        picture, numbers = cityscapes.read(image, labels)
        np.testing.assert_array_equal(picture.transpose(1, 2, 0), contents[image])
        np.testing.assert_array_equal(numbers, contents[labels])


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no pictures leftImg8bit/val/CITY.*gtFine_trainvaltest\.zip"):
        cityscapes.pairs(tmp_path, "val")
    image, labels = place(tmp_path, "val", "lindau", 3)
    files.png(image, np.zeros((4, 6, 3), np.uint8))
    with pytest.raises(FileError, match=f"1 of 1 pictures .* have no labels, the first is {labels}"):
        cityscapes.pairs(tmp_path, "val")


def test_damaged_pictures_are_refused(tmp_path: Path) -> None:
    image, labels = place(tmp_path, "val", "lindau", 3)
    files.png(image, np.zeros((4, 6, 3), np.uint8))
    files.png(labels, np.zeros((4, 5), np.uint8))
    with pytest.raises(FileError, match=r"size of its picture, \(4, 6\), got \(4, 5\)"):
        cityscapes.read(image, labels)
    with pytest.raises(FileError, match="one channel of 8 bits with label numbers, got RGB"):
        cityscapes.read(image, image)
    image.write_bytes(image.read_bytes()[:-30])
    with pytest.raises(FileError, match="no complete picture"):
        cityscapes.read(image, labels)
