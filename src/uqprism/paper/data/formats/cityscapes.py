"""A Cityscapes folder: leftImg8bit/PART/CITY/*_leftImg8bit.png with gtFine/PART/CITY/*_gtFine_labelIds.png beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats.pictures import read_labels, read_picture

Array = Any
IMAGE, LABELS = "_leftImg8bit.png", "_gtFine_labelIds.png"


def pairs(folder: Path, part: str) -> list[tuple[Path, Path]]:
    """Pictures of `train` or `val` with their label files, in the order of their names."""
    images = sorted((folder / "leftImg8bit" / part).glob(f"*/*{IMAGE}"))
    if not images:
        raise FileError(
            f"there are no pictures leftImg8bit/{part}/CITY/*{IMAGE} in {folder}; unpack leftImg8bit_trainvaltest.zip and "
            "gtFine_trainvaltest.zip from https://www.cityscapes-dataset.com there (free, after registration)"
        )
    found = [(image, _labels_of(folder, part, image)) for image in images]
    absent = [labels for _, labels in found if not labels.is_file()]
    if absent:
        raise FileError(f"{len(absent)} of {len(found)} pictures in {folder} have no labels, the first is {absent[0]}")
    return found


def read(image: Path, labels: Path) -> tuple[Array, Array]:
    """A picture (3, height, width) and its label numbers (height, width), uint8."""
    picture, numbers = read_picture(image), read_labels(labels)
    if picture.shape[1:] != numbers.shape:
        raise FileError(f"{labels} must have the size of its picture, {picture.shape[1:]}, got {numbers.shape}")
    return np.ascontiguousarray(picture), numbers


def _labels_of(folder: Path, part: str, image: Path) -> Path:
    return folder / "gtFine" / part / image.parent.name / (image.name.removesuffix(IMAGE) + LABELS)
