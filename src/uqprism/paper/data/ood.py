"""Out-of-distribution mosaics: digit mosaics with quadrants replaced by other images.

The paper puts images of another set into all four quadrants, or an EMNIST letter into one. Its mixture consists here of whole
mosaics, a third from each of three sets: in its table every AUROC of the mixture is the mean of those of the three sets, up to
rounding, which would not hold if sets were mixed within a mosaic.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import ShapeError
from uqprism.paper.data.generation import assembled, padded
from uqprism.paper.data.images import GREY, emnist_letters, files, grey
from uqprism.paper.data.root import Root
from uqprism.registry import Registry
from uqprism.support.optional import require

Array = Any
Generator = np.random.Generator
QUADRANTS = {"tl": "upper left", "tr": "upper right", "bl": "lower left", "br": "lower right"}


@dataclass(frozen=True)
class Kind:
    """A kind of out-of-distribution mosaics.

    Attributes:
        summary: one sentence.
        make: a function of the mosaics, the root and a random generator that returns the new mosaics.
        sources: the sets of small pictures that it reads, by the names that `images.files` takes.
    """

    summary: str
    make: Callable[[Array, Root, Generator], Array]
    sources: tuple[str, ...] = ()

    def files(self, root: Root) -> list[Path]:
        """The files that it reads."""
        return [path for source in self.sources for path in files(source, root)]


kinds: Registry[Kind] = Registry("kind of OOD mosaics")


def ood_mosaics(
    name: str, mosaics: Array, *, root: str | os.PathLike[str] | None = None, seed: int = 0, download: bool = True
) -> Array:
    """Mosaics of another distribution, as many as are given.

    Args:
        name: one of `ood_names()`.
        mosaics: (n, 1, size, size), uint8, such as `load("mnist_mosaic").test.inputs`; they fill the quadrants that are kept.
        root: the folder of data files, as for `load`.
        seed: of the random choice of images.
        download: whether missing official files are downloaded.

    Returns:
        (n, 1, size, size), uint8.
    """
    kind = kinds.get(name)
    mosaics = np.asarray(mosaics)
    if mosaics.dtype != np.uint8 or mosaics.ndim != 4 or mosaics.shape[1] != 1 or mosaics.shape[2] != mosaics.shape[3]:
        raise ShapeError(f"mosaics must be uint8 and (n, 1, size, size), got {mosaics.dtype} and {mosaics.shape}")
    # Without sources nothing is read, and no folder need exist.
    folder = Root.of(root, downloads=download) if kind.sources else Root(Path())
    return kind.make(mosaics, folder, np.random.default_rng(seed))


def ood_names() -> list[str]:
    """The names of all kinds of OOD mosaics."""
    return kinds.names()


def ood_summaries() -> dict[str, str]:
    """One sentence about each kind of OOD mosaics, by name."""
    return {name: kind.summary for name, kind in kinds.items()}


def _from_set(source: str, mosaics: Array, root: Root, rng: Generator) -> Array:
    """Images of one other set in all quadrants."""
    return _fill(padded(GREY[source](root), _tile(mosaics)), len(mosaics), rng)


def _mixture(mosaics: Array, root: Root, rng: Generator) -> Array:
    """A third of the mosaics from each of the other sets, in random order."""
    result = np.empty_like(mosaics)
    for source, rows in zip(GREY, np.array_split(rng.permutation(len(mosaics)), len(GREY)), strict=True):
        result[rows] = _from_set(source, mosaics[rows], root, rng)
    return result


def _letter(place: int, mosaics: Array, root: Root, rng: Generator) -> Array:
    """A letter in one quadrant, numbered 0 to 3 row by row."""
    tile = _tile(mosaics)
    letters = padded(emnist_letters(root), tile)
    top, left = tile * (place // 2), tile * (place % 2)
    result = mosaics.copy()
    result[:, 0, top : top + tile, left : left + tile] = letters[rng.integers(len(letters), size=len(mosaics))]
    return result


def _photographs(mosaics: Array, _root: Root, rng: Generator) -> Array:
    """Random pieces of scikit-learn's two photographs in all quadrants."""
    require("sklearn", extra="sklearn")
    require("PIL", extra="deep")
    from sklearn.datasets import load_sample_images

    tile = _tile(mosaics)
    pictures = grey(np.stack(load_sample_images().images).transpose(0, 3, 1, 2))
    # A view: copies of all windows of 32x32 would take half a gigabyte.
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (tile, tile), axis=(1, 2))
    which, top, left = (rng.integers(length, size=(len(mosaics), 4)) for length in windows.shape[:3])
    return assembled(windows[which, top, left])


def _inverted(mosaics: Array, _root: Root, _rng: Generator) -> Array:
    """The same digits, black on white."""
    return 255 - mosaics


def _fill(tiles: Array, n: int, rng: Generator) -> Array:
    # With replacement: compact copies have fewer images than there are quadrants.
    return assembled(tiles[rng.integers(len(tiles), size=(n, 4))])


def _tile(mosaics: Array) -> int:
    """Pixels along a quadrant's side."""
    return mosaics.shape[-1] // 2


for _set, _summary in {
    "cifar10": "CIFAR-10 images in all quadrants, grey",
    "svhn": "House numbers (SVHN) in all quadrants, grey",
    "fashion_mnist": "Fashion-MNIST images in all quadrants",
}.items():
    kinds.register(_set)(Kind(_summary, partial(_from_set, _set), (_set,)))
kinds.register("mixture")(Kind("A third of the mosaics from each of CIFAR-10, SVHN and Fashion-MNIST", _mixture, tuple(GREY)))
for _place, (_short, _words) in enumerate(QUADRANTS.items()):
    _kind = Kind(f"An EMNIST letter in the {_words} quadrant", partial(_letter, _place), ("emnist",))
    kinds.register(f"emnist_{_short}")(_kind)
kinds.register("photographs")(Kind("Pieces of scikit-learn's photographs in all quadrants, without any download", _photographs))
kinds.register("inverted")(Kind("The same mosaics, black on white, without any download", _inverted))
