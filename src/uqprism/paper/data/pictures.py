"""Public sets of small pictures, grey, from compact or official files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data import remotes
from uqprism.paper.data.formats import cifar, emnist, idx, svhn
from uqprism.paper.data.formats.compact import read_images
from uqprism.paper.data.remotes import Remote
from uqprism.paper.data.root import Root

Array = Any
COMPACT = ".npz"
LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601: how bright red, green and blue look


FILES: dict[str, tuple[str, tuple[Remote, ...]]] = {  # the compact copy of each set, and its official files
    "mnist": (
        "mnist.npz",
        (remotes.MNIST_TRAIN_IMAGES, remotes.MNIST_TRAIN_LABELS, remotes.MNIST_TEST_IMAGES, remotes.MNIST_TEST_LABELS),
    ),
    "fashion_mnist": ("fashion_mnist.npz", (remotes.FASHION_MNIST,)),
    "cifar10": ("cifar10.npz", (remotes.CIFAR10,)),
    "svhn": ("svhn.npz", (remotes.SVHN,)),
    "emnist": ("emnist_letters.npz", (remotes.EMNIST,)),
}


def files(name: str, root: Root) -> list[Path]:
    """What the set of this name in `FILES` is read from."""
    compact, official = FILES[name]
    return root.files(compact, *official)


def mnist(root: Root, part: str) -> tuple[Array, Array]:
    """Digits (n, 28, 28) and their labels (n,), uint8, of part `train` or `test`."""
    paths = files("mnist", root)
    if paths[0].suffix == COMPACT:
        images, labels = read_images(paths[0], (f"x_{part}", f"y_{part}"))
    else:
        image_path, label_path = paths[:2] if part == "train" else paths[2:]
        images, labels = idx.of_bytes(idx.read(image_path), 3, image_path), idx.of_bytes(idx.read(label_path), 1, label_path)
    if labels.shape != images.shape[:1]:
        raise FileError(f"MNIST in {root.path} must have an image per label, got {images.shape} and {labels.shape}")
    if (labels > 9).any():
        raise FileError(f"MNIST in {root.path} must have labels 0 to 9, got {labels.max()} in its part {part}")
    return images, labels


def fashion_mnist(root: Root) -> Array:
    """Clothes (n, 28, 28), uint8, of the test set."""
    [path] = files("fashion_mnist", root)
    return read_images(path)[0] if path.suffix == COMPACT else idx.of_bytes(idx.read(path), 3, path)


def cifar10(root: Root) -> Array:
    """Animals and vehicles (n, 32, 32), uint8, of the test set; the compact file holds training images."""
    [path] = files("cifar10", root)
    return grey((read_images(path) if path.suffix == COMPACT else cifar.read(path))[0])


def svhn_digits(root: Root) -> Array:
    """House numbers (n, 32, 32), uint8, of the test set."""
    [path] = files("svhn", root)
    return grey((read_images(path) if path.suffix == COMPACT else svhn.read(path))[0])


def emnist_letters(root: Root) -> Array:
    """Handwritten letters (n, 28, 28), uint8, upright, of the test set."""
    [path] = files("emnist", root)
    return (read_images(path) if path.suffix == COMPACT else emnist.read(path))[0]


def grey(images: Array) -> Array:
    """The brightness (n, height, width), uint8, of images (n, 3, height, width)."""
    return np.rint(np.einsum("nchw,c->nhw", images, LUMA, optimize=True)).astype(np.uint8)


GREY: dict[str, Callable[[Root], Array]] = {"cifar10": cifar10, "svhn": svhn_digits, "fashion_mnist": fashion_mnist}
