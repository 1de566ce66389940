"""Functions for generated image sets: independent parts, noise, grey values as bytes, and mosaics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.paper.data.dataset import Dataset, Samples

Array = Any
Sizes = Sequence[int]  # of train, validation and test
Draw = Callable[[int, Any], tuple[Array, Array]]  # a number of samples and a seed -> images and targets


def generated(name: str, draws: Sequence[Draw], seed: int, sizes: Sizes) -> Dataset:
    """A data set whose three parts come from independent random streams."""
    if len(sizes) != 3 or not all(size > 0 for size in sizes):
        raise InvalidValueError(f"sizes must be three positive numbers, of train, validation and test, got {sizes}")
    # A stream for each part: more training images leave the test images as they are.
    streams = np.random.SeedSequence(seed).spawn(3)
    train, validation, test = (Samples(*draw(size, each)) for draw, size, each in zip(draws, sizes, streams, strict=True))
    return Dataset(name, train=train, validation=validation, test=test)


def noisy_bytes(rng: np.random.Generator, images: Array, noise: float) -> Array:
    """Images (n, height, width) on [0, 1] with Gaussian noise of this scale, cut to [0, 1], as bytes (n, 1, height, width)."""
    if noise > 0.0:
        images = images + noise * rng.standard_normal(images.shape, dtype=np.float32)
    return np.rint(255.0 * np.clip(images, 0.0, 1.0)).astype(np.uint8)[:, None]


def uniform(rng: np.random.Generator, interval: tuple[float, float], *shape: int) -> Array:
    """Single-precision numbers, uniform on the interval."""
    low, high = interval
    return low + (high - low) * rng.random(shape, dtype=np.float32)


def assembled(tiles: Array) -> Array:
    """Mosaics (n, 1, 2 tile, 2 tile) of tiles (n, 4, tile, tile): upper left, upper right, lower left, lower right."""
    n, _, size, _ = tiles.shape
    return tiles.reshape(n, 2, 2, size, size).transpose(0, 1, 3, 2, 4).reshape(n, 1, 2 * size, 2 * size)


def padded(images: Array, tile: int) -> Array:
    """Images (n, height, width) in the middle of black tiles (n, tile, tile)."""
    height, width = images.shape[1:]
    if max(height, width) > tile:
        raise InvalidValueError(f"images of {height}x{width} do not fit into tiles of {tile}x{tile}")
    top, left = (tile - height) // 2, (tile - width) // 2
    result = np.zeros((len(images), tile, tile), images.dtype)
    result[:, top : top + height, left : left + width] = images
    return result
