"""`dots`: the number of dots in an image. The paper states 32x32 grey images and dots that do not overlap; the rest is ours.

| constant | value | meaning |
|---|---|---|
| SIZE | 32 | pixels along each side |
| COUNT | 1 to 12 | dots requested, each number equally likely |
| RADIUS | 1 to 2.5 | pixels, uniform for each dot |
| GAP | 2 | pixels at least between the edges of two dots |
| MARGIN | 0.5 | pixels at least between a dot's edge and the border |
| TRIES | 16 | random places tried for each dot; a dot without a free place is left out and not counted |
| BRIGHTNESS | 0.1 to 1 | of white, uniform for each dot; the background is black |
| NOISE | 0.1 | of white, standard deviation of the Gaussian noise of every pixel; the result is clipped to black and white |
| SIZES | 10,000, 2,000, 5,000 | images for training, validation and testing |

A pixel at distance d from a dot's centre shows max(0, min(1, radius + 0.5 - d)) of its brightness, for a soft edge.

NOISE and BRIGHTNESS were chosen knowing the paper's results: docs/results/generators.md lists the settings tried.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from uqprism.paper.data.catalogue import register
from uqprism.paper.data.dataset import Dataset
from uqprism.paper.data.generation import Sizes, generated, noisy_bytes, uniform

Array = Any
SIZE = 32
COUNT = (1, 12)
RADIUS = (1.0, 2.5)
GAP = 2.0
MARGIN = 0.5
TRIES = 16
BRIGHTNESS = (0.1, 1.0)
NOISE = 0.1
SIZES = (10_000, 2_000, 5_000)
REACH = int(RADIUS[1] + 1.5)  # pixels that a dot can reach from the pixel of its centre


@register("dots", "Generated 32x32 grey images: how many dots there are")
def load(seed: int, *, sizes: Sizes = SIZES, noise: float = NOISE) -> Dataset:
    """Images with their counts; `sizes` are those of train, validation and test."""
    return generated("dots", [partial(dots, noise=noise)] * 3, seed, sizes)


def dots(n: int, seed: Any, *, noise: float = NOISE) -> tuple[Array, Array]:
    """Images (n, 1, 32, 32), uint8, and how many dots each has (n,)."""
    rng = np.random.default_rng(seed)
    # The order of the draws is part of the data set: checksums of stored results depend on it.
    wanted = rng.integers(COUNT[0], COUNT[1], n, endpoint=True)
    radius = uniform(rng, RADIUS, n, COUNT[1])
    across, down, placed = _place(rng, wanted, radius)
    brightness = uniform(rng, BRIGHTNESS, n, COUNT[1])
    return noisy_bytes(rng, _paint(across, down, radius, brightness, placed), noise), placed.sum(1).astype(np.float64)


def _place(rng: np.random.Generator, wanted: Array, radius: Array) -> tuple[Array, Array, Array]:
    """Columns and rows of the centres, and which dots exist, each (n, dots): every dot takes the first free place tried."""
    n, most = radius.shape
    across, down, placed = np.zeros_like(radius), np.zeros_like(radius), np.zeros(radius.shape, bool)
    for dot in range(most):
        room = (radius[:, dot] + MARGIN)[:, None]
        x, y = room + (SIZE - 2.0 * room) * rng.random((2, n, TRIES), dtype=np.float32)
        free = np.ones(x.shape, bool)
        for other in range(dot):
            apart = (x - across[:, other, None]) ** 2 + (y - down[:, other, None]) ** 2
            free &= (apart >= ((radius[:, other] + radius[:, dot] + GAP) ** 2)[:, None]) | ~placed[:, other, None]
        chosen = np.arange(n), free.argmax(1)
        across[:, dot], down[:, dot] = x[chosen], y[chosen]
        placed[:, dot] = free[chosen] & (dot < wanted)  # dots not wanted are drawn as well, to keep arrays rectangular
    return across, down, placed


def _paint(across: Array, down: Array, radius: Array, brightness: Array, placed: Array) -> Array:
    """Images (n, size, size) on [0, 1]: each dot changes only the pixels around it, which no other dot touches."""
    wide = SIZE + 2 * REACH  # with a border for dots that reach beyond the image, cut off below
    images = np.zeros((len(placed), wide, wide), np.float32)
    steps = np.arange(2 * REACH + 1)
    for dot in range(placed.shape[1]):
        image = np.flatnonzero(placed[:, dot])
        x, y, most = across[image, dot], down[image, dot], radius[image, dot] + np.float32(0.5)
        column, row = x.astype(np.intp)[:, None] + steps, y.astype(np.intp)[:, None] + steps
        aside = (column - np.float32(REACH - 0.5) - x[:, None]).astype(np.float32) ** 2
        above = (row - np.float32(REACH - 0.5) - y[:, None]).astype(np.float32) ** 2
        distance = np.sqrt(above[:, :, None] + aside[:, None, :])
        shown = np.clip(most[:, None, None] - distance, 0.0, 1.0) * brightness[image, dot, None, None]
        images[image[:, None, None], row[:, :, None], column[:, None, :]] += shown
    return images[:, REACH:-REACH, REACH:-REACH]
