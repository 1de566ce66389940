"""Mosaics of four digits with the number that they form: the paper's set for out-of-distribution detection.

A mosaic is 64x64 grey: a 28x28 digit in the middle of each 32x32 quadrant. Read from the upper left to the lower right, the
digits are the thousands, hundreds, tens and ones of the target. The parts show different digits, each drawn at random.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.paper.data.catalogue import register
from uqprism.paper.data.dataset import Dataset, split_rows
from uqprism.paper.data.generation import Sizes, assembled, generated, padded
from uqprism.paper.data.images import files, mnist
from uqprism.paper.data.root import Root
from uqprism.support.optional import require

Array = Any
TILE = 32
PLACES = (1000, 100, 10, 1)  # upper left, upper right, lower left, lower right
MNIST_SIZES = (50_000, 10_000, 10_000)  # the numbers of digits to draw from
KEPT_FROM_TRAINING = 1 / 6  # share of MNIST's training digits for validation: 10,000
DIGITS_SIZES = (4_000, 500, 1_000)


@register("mnist_mosaic", "64x64 grey mosaics of four MNIST digits: the four-digit number", files=partial(files, "mnist"))
def mnist_mosaic(root: Root, seed: int, *, sizes: Sizes = MNIST_SIZES) -> Dataset:
    """Test mosaics show MNIST's test digits, validation mosaics a sixth of its training digits."""
    (images, digits), (test_images, test_digits) = mnist(root, "train"), mnist(root, "test")
    tiles = padded(images, TILE)
    kept, used = split_rows(len(digits), seed, KEPT_FROM_TRAINING)
    draws = [partial(_draw, tiles[rows], digits[rows]) for rows in (used, kept)]
    return generated("mnist_mosaic", [*draws, partial(_draw, padded(test_images, TILE), test_digits)], seed, sizes)


@register("digits_mosaic", "Mosaics of scikit-learn's 8x8 digits, without any download: the four-digit number")
def digits_mosaic(seed: int, *, sizes: Sizes = DIGITS_SIZES, tile: int = TILE) -> Dataset:
    """Quadrants of `tile` pixels, a multiple of 8; a fifth of the digits is for testing, a fifth for validation."""
    require("sklearn", extra="sklearn")
    from sklearn.datasets import load_digits

    if tile < 8 or tile % 8:
        raise InvalidValueError(f"tile must be a multiple of 8, got {tile}")
    pixels, digits = load_digits(return_X_y=True)
    small = np.rint(pixels.reshape(-1, 8, 8) * (255.0 / 16.0)).astype(np.uint8)
    tiles = small.repeat(tile // 8, axis=1).repeat(tile // 8, axis=2)
    test, validation, train = split_rows(len(digits), seed, 0.2, 0.2)
    draws = [partial(_draw, tiles[rows], digits[rows]) for rows in (train, validation, test)]
    return generated("digits_mosaic", draws, seed, sizes)


def _draw(tiles: Array, digits: Array, n: int, stream: Any) -> tuple[Array, Array]:
    """Mosaics of tiles (k, tile, tile) drawn at random, and the numbers that their digits (k,) form."""
    chosen = np.random.default_rng(stream).integers(len(digits), size=(n, 4))
    return assembled(tiles[chosen]), digits[chosen] @ np.array(PLACES, dtype=np.float64)
