"""What generated image sets share: parts of their own, noise, and grey values as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.paper.data.dataset import Dataset, Samples

Array = Any
Sizes = Sequence[int]  # of training, validation and test
Draw = Callable[[int, Any], tuple[Array, Array]]  # how many, a seed -> images and targets


def generated(name: str, draws: Sequence[Draw], seed: int, sizes: Sizes) -> Dataset:
    """Training, validation and test data, each drawn from a random stream of its own."""
    if len(sizes) != 3 or not all(size > 0 for size in sizes):
        raise InvalidValueError(f"sizes must be three positive numbers, of train, validation and test, got {sizes}")
    streams = np.random.SeedSequence(seed).spawn(3)
    train, validation, test = (Samples(*draw(size, each)) for draw, size, each in zip(draws, sizes, streams, strict=True))
    return Dataset(name, train=train, validation=validation, test=test)


def noisy_bytes(rng: np.random.Generator, images: Array, noise: float) -> Array:
    """Images (n, height, width) on [0, 1] with Gaussian noise of this scale, cut to [0, 1], as bytes (n, 1, height, width)."""
    if noise > 0.0:
        images = images + noise * rng.standard_normal(images.shape, dtype=np.float32)
    return np.rint(255.0 * np.clip(images, 0.0, 1.0)).astype(np.uint8)[:, None]


def uniform(rng: np.random.Generator, interval: tuple[float, float], *shape: int) -> Array:
    """Numbers uniform on the interval, in single precision."""
    low, high = interval
    return low + (high - low) * rng.random(shape, dtype=np.float32)
