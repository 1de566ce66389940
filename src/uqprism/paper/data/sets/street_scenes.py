"""Street scenes: the number of pixels of a tile that belong to a class.

| target | in Cityscapes (labelIds) | in CamVid (11 classes) |
|---|---|---|
| street | road, 7 | Road, 3 |
| building | building, 11 | Building, 1 |
| sky | sky, 23 | Sky, 0 |
| car | car, 26 | Car, 8 |
| vegetation | vegetation, 21 | Tree, 5 |
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError, InvalidValueError
from uqprism.paper.data.catalogue import register
from uqprism.paper.data.dataset import Dataset, Samples, split_rows
from uqprism.paper.data.formats import read_bytes, read_labels, read_npz, read_picture
from uqprism.paper.data.root import NAMING, Root
from uqprism.registry import unknown

Array = Any
CITYSCAPES = {"street": 7, "building": 11, "sky": 23, "car": 26, "vegetation": 21}
CAMVID = {"street": 3, "building": 1, "sky": 0, "car": 8, "vegetation": 5}
CAMVID_FILE = "camvid_180x240.npz"
CAMVID_TILE = (90, 120)
CITYSCAPES_TILE = (224, 224)
KEPT_FOR_VALIDATION = 0.1  # share of the training pictures of Cityscapes
PICTURE, LABELS = "_leftImg8bit.png", "_gtFine_labelIds.png"  # how the names of Cityscapes' files end


def camvid_files(root: Root) -> list[Path]:
    """The one file of CamVid, which cannot be downloaded: docs/data.md describes how to make it."""
    if path := root.compact(CAMVID_FILE):
        return [path]
    raise FileError(
        f"there is no {CAMVID_FILE} in {root.path}; name the folder that holds it {NAMING}. "
        "It is made from the official pictures: see docs/data.md, Compact copies"
    )


def cityscapes_files(root: Root) -> list[Path]:
    """The folders of its training and validation pictures and of their labels."""
    folder = root.path / "cityscapes"
    for part in ("train", "val"):
        cityscapes_pairs(folder, part)  # raises if pictures or labels are missing
    return [folder / kind / part for kind in ("leftImg8bit", "gtFine") for part in ("train", "val")]


CAMVID_SUMMARY = "CamVid street scenes, 90x120 tiles in colour: how many pixels are street, or another class"
CITYSCAPES_SUMMARY = "Cityscapes street scenes, 224x224 tiles in colour: how many pixels are street, or another class"


@register("camvid", CAMVID_SUMMARY, files=camvid_files)
def camvid(root: Root, *, target: str = "street") -> Dataset:
    """Four tiles of each 180x240 picture, in the official parts: 1,468 for training, 404 for validation, 932 for testing."""
    label = _label(CAMVID, target)
    [path] = camvid_files(root)
    train, validation, test = (_samples(*read_camvid(path, part), label, CAMVID_TILE) for part in ("train", "val", "test"))
    return Dataset(f"camvid_{target}", train=train, validation=validation, test=test)


@register("cityscapes", CITYSCAPES_SUMMARY, files=cityscapes_files)
def cityscapes_tiles(root: Root, seed: int, *, target: str = "street", pictures: int | None = 500) -> Dataset:
    """The 36 tiles of each 2048x1024 picture; the rest at the right and the bottom is dropped.

    The labels of the official test pictures are not public: the official validation pictures are for testing, and a tenth of the
    training pictures for validation. The folder `cityscapes` in the root must have the official layout.

    Args:
        root: the data root.
        seed: of the choice of pictures.
        target: the class.
        pictures: how many of the 2,975 training and of the 500 validation pictures are used at most; None for all, 19 GB.
    """
    label, folder = _label(CITYSCAPES, target), root.path / "cityscapes"
    if pictures is not None and pictures < 2:
        raise InvalidValueError(f"pictures must be at least 2, one of them for validation, or None for all; got {pictures}")
    rng = np.random.default_rng(seed)
    train, test = (_chosen(cityscapes_pairs(folder, part), pictures, rng) for part in ("train", "val"))
    # Whole pictures, at least one: tiles of one picture resemble each other.
    kept, used = split_rows(len(train), seed, max(KEPT_FOR_VALIDATION, 1 / len(train)))
    chosen = {"train": [train[i] for i in used], "validation": [train[i] for i in kept], "test": test}
    return Dataset(f"cityscapes_{target}", **{part: _read(pairs, label) for part, pairs in chosen.items()})


def cityscapes_pairs(folder: Path, part: str) -> list[tuple[Path, Path]]:
    """Pictures of `train` or `val`, sorted by name, with their label files.

    They are leftImg8bit/PART/CITY/*_leftImg8bit.png and gtFine/PART/CITY/*_gtFine_labelIds.png.
    """
    # Sorted, because folders list files in any order and the seed chooses by number.
    images = sorted((folder / "leftImg8bit" / part).glob(f"*/*{PICTURE}"))
    if not images:
        raise FileError(
            f"there are no pictures leftImg8bit/{part}/CITY/*{PICTURE} in {folder}; unpack leftImg8bit_trainvaltest.zip and "
            "gtFine_trainvaltest.zip from https://www.cityscapes-dataset.com there (free, after registration)"
        )
    names = [image.name.removesuffix(PICTURE) + LABELS for image in images]
    labels = [folder / "gtFine" / part / image.parent.name / name for image, name in zip(images, names, strict=True)]
    absent = [each for each in labels if not each.is_file()]
    if absent:
        raise FileError(f"{len(absent)} of {len(images)} pictures in {folder} have no labels, the first is {absent[0]}")
    return list(zip(images, labels, strict=True))


def read_cityscapes(image: Path, labels: Path) -> tuple[Array, Array]:
    """A picture (3, height, width) and its label numbers (height, width), uint8."""
    picture, numbers = read_picture(read_bytes(image), image), read_labels(labels)
    if picture.shape[1:] != numbers.shape:
        raise FileError(f"{labels} must have the size of its picture, {picture.shape[1:]}, got {numbers.shape}")
    return np.ascontiguousarray(picture), numbers


def read_camvid(path: Path, part: str) -> tuple[Array, Array]:
    """Pictures (n, 3, height, width) and pixel labels (n, height, width), uint8, of part `train`, `val` or `test`."""
    jpeg, offsets, labels = read_npz(path, [f"{part}_{field}" for field in ("jpeg", "offsets", "labels")])
    if len(offsets) != len(labels) + 1 or offsets[0] != 0 or offsets[-1] != len(jpeg) or (np.diff(offsets) <= 0).any():
        raise FileError(f"{path} must have offsets from 0 to {len(jpeg)}, one more than its {len(labels)} label images")
    pictures = np.empty((len(labels), 3, *labels.shape[1:]), np.uint8)
    for i, (start, end) in enumerate(pairwise(offsets)):
        picture = read_picture(jpeg[start:end].tobytes(), f"{part} picture {i} in {path}")
        if picture.shape[1:] != labels.shape[1:]:
            raise FileError(
                f"{part} picture {i} in {path} must be of its labels' size {labels.shape[1:]}, got {picture.shape[1:]}"
            )
        pictures[i] = picture
    return pictures, labels


def tiled(images: Array, size: tuple[int, int]) -> Array:
    """Tiles (n * k, channels, *size) of images (n, channels, height, width), row by row; the rest is dropped."""
    n, channels, height, width = images.shape
    down, across = height // size[0], width // size[1]
    if not down or not across:
        raise FileError(f"pictures must be at least {size[0]}x{size[1]}, got {height}x{width}")
    cut = images[:, :, : down * size[0], : across * size[1]].reshape(n, channels, down, size[0], across, size[1])
    return cut.transpose(0, 2, 4, 1, 3, 5).reshape(n * down * across, channels, *size)


def _samples(pictures: Array, labels: Array, label: int, size: tuple[int, int]) -> Samples:
    """Tiles of pictures (n, 3, height, width), with the number of pixels that have this label."""
    return Samples(tiled(pictures, size), (tiled(labels[:, None], size) == label).sum((1, 2, 3)))


def _read(pairs: list[tuple[Path, Path]], label: int) -> Samples:
    """The tiles of these files, read one at a time, as all pictures together may take gigabytes."""
    made: Any = None
    for i, pair in enumerate(pairs):
        picture, numbers = read_cityscapes(*pair)
        one = _samples(picture[None], numbers[None], label, CITYSCAPES_TILE)
        if made is None:
            made = np.empty((len(pairs), *one.inputs.shape), np.uint8), np.empty((len(pairs), len(one)))
        if one.inputs.shape != made[0].shape[1:]:
            raise FileError(f"{pair[0]} must have the size of the other pictures, got {picture.shape[1:]}")
        made[0][i], made[1][i] = one.inputs, one.targets
    inputs, targets = made
    return Samples(inputs.reshape(-1, *inputs.shape[2:]), targets.ravel())


def _chosen(pairs: list[tuple[Path, Path]], most: int | None, rng: np.random.Generator) -> list[tuple[Path, Path]]:
    if most is None or most >= len(pairs):
        return pairs
    return [pairs[i] for i in sorted(rng.choice(len(pairs), most, replace=False))]


def _label(labels: dict[str, int], target: str) -> int:
    if target not in labels:
        raise unknown("target", target, labels)
    return labels[target]
