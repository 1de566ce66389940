"""Public sets of small pictures, grey, from compact or official files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uqprism.data import remotes
from uqprism.data.formats import cifar, emnist, idx, svhn
from uqprism.data.formats.compact import read_images
from uqprism.data.root import Root
from uqprism.errors import FileError

Array = Any
LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601: how bright red, green and blue look


def mnist(root: Root, part: str) -> tuple[Array, Array]:
    """Digits (n, 28, 28) and their labels (n,), uint8, of part `train` or `test`."""
    if compact := root.own("mnist.npz"):
        return read_images(compact, (f"x_{part}", f"y_{part}"))
    files = {
        "train": (remotes.MNIST_TRAIN_IMAGES, remotes.MNIST_TRAIN_LABELS),
        "test": (remotes.MNIST_TEST_IMAGES, remotes.MNIST_TEST_LABELS),
    }
    images, labels = (idx.read(root.file(remote)) for remote in files[part])
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise FileError(f"MNIST in {root.path} must have an image per label, got {images.shape} and {labels.shape}")
    return images, labels


def fashion_mnist(root: Root) -> Array:
    """Clothes (n, 28, 28), uint8, of the test set."""
    compact = root.own("fashion_mnist.npz")
    return read_images(compact)[0] if compact else idx.read(root.file(remotes.FASHION_MNIST))


def cifar10(root: Root) -> Array:
    """Animals and vehicles (n, 32, 32), uint8, of the test set; the compact file holds training images."""
    compact = root.own("cifar10.npz")
    return grey((read_images(compact) if compact else cifar.read(root.file(remotes.CIFAR10)))[0])


def svhn_digits(root: Root) -> Array:
    """House numbers (n, 32, 32), uint8, of the test set."""
    compact = root.own("svhn.npz")
    return grey((read_images(compact) if compact else svhn.read(root.file(remotes.SVHN)))[0])


def emnist_letters(root: Root) -> Array:
    """Handwritten letters (n, 28, 28), uint8, upright, of the test set."""
    compact = root.own("emnist_letters.npz")
    return (read_images(compact) if compact else emnist.read(root.file(remotes.EMNIST)))[0]


def grey(images: Array) -> Array:
    """The brightness (n, height, width), uint8, of images (n, 3, height, width)."""
    return np.rint(np.einsum("nchw,c->nhw", images, LUMA, optimize=True)).astype(np.uint8)


GREY: dict[str, Callable[[Root], Array]] = {"cifar10": cifar10, "svhn": svhn_digits, "fashion_mnist": fashion_mnist}
