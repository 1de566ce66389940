"""Street scenes: how many pixels of a tile belong to a class, from pictures with a class for every pixel.

| class | in Cityscapes (labelIds) | in CamVid (11 classes) |
|---|---|---|
| street | road, 7 | Road, 3 |
| building | building, 11 | Building, 1 |
| sky | sky, 23 | Sky, 0 |
| car | car, 26 | Car, 8 |
| vegetation | vegetation, 21 | Tree, 5 |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError, InvalidValueError
from uqprism.paper.data.catalogue import register
from uqprism.paper.data.dataset import Dataset, Samples
from uqprism.paper.data.download import NAMING
from uqprism.paper.data.formats import cityscapes
from uqprism.paper.data.formats.compact import read_scenes
from uqprism.paper.data.root import Root
from uqprism.paper.data.splits import parts
from uqprism.registry import unknown

Array = Any
CITYSCAPES = {"street": 7, "building": 11, "sky": 23, "car": 26, "vegetation": 21}
CAMVID = {"street": 3, "building": 1, "sky": 0, "car": 8, "vegetation": 5}
CAMVID_FILE = "camvid_180x240.npz"
CAMVID_TILE = (90, 120)
CITYSCAPES_TILE = (224, 224)
KEPT_FOR_VALIDATION = 0.1  # of the training pictures of Cityscapes


def camvid_files(root: Root) -> list[Path]:
    """The one file of CamVid, which nobody offers: docs/data.md says how it is made."""
    if path := root.own(CAMVID_FILE):
        return [path]
    raise FileError(
        f"there is no {CAMVID_FILE} in {root.path}; name the folder that holds it {NAMING}. "
        "It is made from the official pictures: see docs/data.md, Compact copies"
    )


def cityscapes_files(root: Root) -> list[Path]:
    """The folders of its training and validation pictures and of their labels."""
    folder = root.path / "cityscapes"
    for part in ("train", "val"):
        cityscapes.pairs(folder, part)
    return [folder / kind / part for kind in ("leftImg8bit", "gtFine") for part in ("train", "val")]


CAMVID_SUMMARY = "CamVid street scenes, 90x120 tiles in colour: how many pixels are street, or another class"
CITYSCAPES_SUMMARY = "Cityscapes street scenes, 224x224 tiles in colour: how many pixels are street, or another class"


@register("camvid", CAMVID_SUMMARY, files=camvid_files)
def camvid(root: Root, *, target: str = "street") -> Dataset:
    """Four tiles of each 180x240 picture, in the official parts: 1,468 to train on, 404 to stop on, 932 to test on."""
    label = _label(CAMVID, target)
    [path] = camvid_files(root)
    train, validation, test = (_samples(*read_scenes(path, part), label, CAMVID_TILE) for part in ("train", "val", "test"))
    return Dataset(f"camvid_{target}", train=train, validation=validation, test=test)


@register("cityscapes", CITYSCAPES_SUMMARY, files=cityscapes_files)
def cityscapes_tiles(root: Root, seed: int, *, target: str = "street", pictures: int | None = 500) -> Dataset:
    """The 36 tiles of each 2048x1024 picture, without what is left at the right and the bottom.

    The labels of the official test pictures are not public: the validation pictures are tested on, and a tenth of the training
    pictures is stopped on. The folder `cityscapes` in the root has the official layout.

    Args:
        root: the data root.
        seed: of the choice of pictures.
        target: the class.
        pictures: at most so many of the 2,975 training and 500 validation pictures each; None for all, which takes 19 GB.
    """
    label, folder = _label(CITYSCAPES, target), root.path / "cityscapes"
    if pictures is not None and pictures < 2:
        raise InvalidValueError(f"pictures must be at least 2, of which one is to stop on, or None for all; got {pictures}")
    rng = np.random.default_rng(seed)
    train, test = (_chosen(cityscapes.pairs(folder, part), pictures, rng) for part in ("train", "val"))
    kept, used = parts(len(train), seed, max(KEPT_FOR_VALIDATION, 1 / len(train)))
    chosen = {"train": [train[i] for i in used], "validation": [train[i] for i in kept], "test": test}
    return Dataset(f"cityscapes_{target}", **{part: _read(pairs, label) for part, pairs in chosen.items()})


def tiled(images: Array, size: tuple[int, int]) -> Array:
    """Tiles (n * k, channels, *size) of images (n, channels, height, width), row by row; what is left at the end is cut off."""
    n, channels, height, width = images.shape
    down, across = height // size[0], width // size[1]
    if not down or not across:
        raise FileError(f"pictures must be at least {size[0]}x{size[1]}, got {height}x{width}")
    cut = images[:, :, : down * size[0], : across * size[1]].reshape(n, channels, down, size[0], across, size[1])
    return cut.transpose(0, 2, 4, 1, 3, 5).reshape(n * down * across, channels, *size)


def _samples(pictures: Array, labels: Array, label: int, size: tuple[int, int]) -> Samples:
    """Tiles of pictures (n, 3, height, width), and how many of the pixels of each have this label."""
    return Samples(tiled(pictures, size), (tiled(labels[:, None], size) == label).sum((1, 2, 3)))


def _read(pairs: list[tuple[Path, Path]], label: int) -> Samples:
    """The same of files, which may be gigabytes: each is put in its place and forgotten."""
    made: Any = None
    for i, pair in enumerate(pairs):
        picture, numbers = cityscapes.read(*pair)
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
