"""Mosaics that a model of digit mosaics has never seen: the same number of them, with quadrants that show something else.

The paper puts images of another set into all four quadrants, or an EMNIST letter into one. Its mixture is made here of whole
mosaics, a third from each of the three sets: in its table every AUROC of the mixture is the mean of the three sets' own, up to
rounding, which mixing within a mosaic would not give.
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
from uqprism.paper.data.mosaics import assembled, padded
from uqprism.paper.data.pictures import GREY, emnist_letters, files, grey
from uqprism.paper.data.root import Root
from uqprism.registry import Registry
from uqprism.support.optional import require

Array = Any
Generator = np.random.Generator
QUADRANTS = {"tl": "upper left", "tr": "upper right", "bl": "lower left", "br": "lower right"}


@dataclass(frozen=True)
class Change:
    """What is filed under a name.

    Attributes:
        summary: one sentence.
        apply: of the mosaics, the root and a random generator, to the changed mosaics.
        sources: the sets that are read for it, by their names in `pictures.FILES`.
    """

    summary: str
    apply: Callable[[Array, Root, Generator], Array]
    sources: tuple[str, ...] = ()

    def files(self, root: Root) -> list[Path]:
        """What is read for it."""
        return [path for source in self.sources for path in files(source, root)]


changes: Registry[Change] = Registry("kind of outliers")


def outliers(
    name: str, mosaics: Array, *, root: str | os.PathLike[str] | None = None, seed: int = 0, download: bool = True
) -> Array:
    """As many mosaics from outside the distribution of these.

    Args:
        name: one of `outlier_names()`.
        mosaics: (n, 1, size, size), uint8, as `load("mnist_mosaic").test.inputs`; quadrants that are not replaced are theirs.
        root: the folder with the files, as for `load`.
        seed: of what is drawn.
        download: whether official files that are missing are fetched.

    Returns:
        (n, 1, size, size), uint8.
    """
    change = changes.get(name)
    mosaics = np.asarray(mosaics)
    if mosaics.dtype != np.uint8 or mosaics.ndim != 4 or mosaics.shape[1] != 1 or mosaics.shape[2] != mosaics.shape[3]:
        raise ShapeError(f"mosaics must be uint8 and (n, 1, size, size), got {mosaics.dtype} and {mosaics.shape}")
    return change.apply(mosaics, Root.of(root, downloads=download), np.random.default_rng(seed))


def outlier_names() -> list[str]:
    """What `outliers` knows."""
    return changes.names()


def outlier_summaries() -> dict[str, str]:
    """A sentence for each name."""
    return {name: changes.get(name).summary for name in outlier_names()}


def _elsewhere(source: str, mosaics: Array, root: Root, rng: Generator) -> Array:
    """All quadrants from one other set."""
    return _filled(padded(GREY[source](root), _tile(mosaics)), len(mosaics), rng)


def _mixture(mosaics: Array, root: Root, rng: Generator) -> Array:
    """A third of the mosaics from each of the other sets, in random order."""
    result = np.empty_like(mosaics)
    for source, rows in zip(GREY, np.array_split(rng.permutation(len(mosaics)), len(GREY)), strict=True):
        result[rows] = _elsewhere(source, mosaics[rows], root, rng)
    return result


def _letter(place: int, mosaics: Array, root: Root, rng: Generator) -> Array:
    """A letter in one quadrant: 0 to 3, row by row."""
    tile = _tile(mosaics)
    letters = padded(emnist_letters(root), tile)
    top, left = tile * (place // 2), tile * (place % 2)
    result = mosaics.copy()
    result[:, 0, top : top + tile, left : left + tile] = letters[rng.integers(len(letters), size=len(mosaics))]
    return result


def _photographs(mosaics: Array, _root: Root, rng: Generator) -> Array:
    """All quadrants cut at random places out of scikit-learn's two photographs."""
    require("sklearn", extra="sklearn")
    require("PIL", extra="deep")
    from sklearn.datasets import load_sample_images

    tile = _tile(mosaics)
    pictures = grey(np.stack(load_sample_images().images).transpose(0, 3, 1, 2))
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (tile, tile), axis=(1, 2))
    which, top, left = (rng.integers(length, size=(len(mosaics), 4)) for length in windows.shape[:3])
    return assembled(windows[which, top, left])


def _inverted(mosaics: Array, _root: Root, _rng: Generator) -> Array:
    """The same digits, black on white."""
    return 255 - mosaics


def _filled(tiles: Array, n: int, rng: Generator) -> Array:
    return assembled(tiles[rng.integers(len(tiles), size=(n, 4))])


def _tile(mosaics: Array) -> int:
    """Pixels along a quadrant's side."""
    return mosaics.shape[-1] // 2


SUMMARIES = {
    "cifar10": "CIFAR-10 images in all quadrants, grey",
    "svhn": "House numbers (SVHN) in all quadrants, grey",
    "fashion_mnist": "Fashion-MNIST images in all quadrants",
}
for _set, _sentence in SUMMARIES.items():
    changes.register(_set)(Change(_sentence, partial(_elsewhere, _set), (_set,)))
changes.register("mixture")(Change("A third of the mosaics from each of CIFAR-10, SVHN and Fashion-MNIST", _mixture, tuple(GREY)))
for _place, (_short, _words) in enumerate(QUADRANTS.items()):
    _change = Change(f"An EMNIST letter in the {_words} quadrant", partial(_letter, _place), ("emnist",))
    changes.register(f"emnist_{_short}")(_change)
changes.register("photographs")(
    Change("Pieces of scikit-learn's photographs in all quadrants, without any download", _photographs)
)
changes.register("inverted")(Change("The same mosaics, black on white, without any download", _inverted))
