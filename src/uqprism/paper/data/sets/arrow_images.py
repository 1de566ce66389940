"""`arrow`: the angle of an arrow. The paper states 32x32 grey images of arrows that point to the left; the rest is ours.

| constant | value | meaning |
|---|---|---|
| SIZE | 32 | pixels along each side |
| ANGLE | -90 to 90 | degrees, uniform: 0 points straight to the left, 90 up, -90 down; the target |
| LENGTH | 16 | pixels from tail to tip; the arrow's middle is the image's middle |
| HEAD | 0.35 | length of the two strokes of the head, as a share of LENGTH |
| OPENING | 35 | degrees between each of these strokes and the shaft |
| STROKE | 0.8 | pixels, half the width of all strokes |
| BRIGHTNESS | 1 | of white; the background is black |
| NOISE | 0.4 | of white, standard deviation of the Gaussian noise of every pixel; the result is clipped to black and white |
| SIZES | 10,000, 2,000, 5,000 | images for training, validation and testing |

A pixel at distance d from the nearest stroke shows max(0, min(1, half the width + 0.5 - d)) of the brightness.

ANGLE, LENGTH, STROKE, BRIGHTNESS, NOISE and the common place of all arrows were chosen knowing the paper's results:
docs/results/generators.md lists the settings tried.
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
ANGLE = (-90.0, 90.0)
LENGTH = 16.0
HEAD = 0.35
OPENING = 35.0
STROKE = 0.8
BRIGHTNESS = 1.0
NOISE = 0.4
SIZES = (10_000, 2_000, 5_000)
BLOCK = 128  # images painted at a time, so that their arrays stay in the processor's cache


@register("arrow", "Generated 32x32 grey images: the angle of an arrow that points to the left, in degrees")
def load(seed: int, *, sizes: Sizes = SIZES, noise: float = NOISE) -> Dataset:
    """Images with their angles; `sizes` are those of train, validation and test."""
    return generated("arrow", [partial(arrows, noise=noise)] * 3, seed, sizes)


def arrows(n: int, seed: Any, *, noise: float = NOISE) -> tuple[Array, Array]:
    """Images (n, 1, 32, 32), uint8, and the angle of each in degrees (n,)."""
    rng = np.random.default_rng(seed)
    angle = uniform(rng, ANGLE, n)  # before the noise: one seed has the same angles at any noise
    tip = np.float32(SIZE / 2) + np.float32(0.5 * LENGTH) * _direction(angle)
    starts = np.repeat(tip[:, None], 3, axis=1)
    backwards = np.stack([_direction(angle + turn) for turn in (180.0, 180.0 - OPENING, 180.0 + OPENING)], axis=1)
    strokes = backwards * np.array([LENGTH, HEAD * LENGTH, HEAD * LENGTH], np.float32)[:, None]
    images = np.empty((n, SIZE, SIZE), np.float32)
    for at in range(0, n, BLOCK):
        rows = slice(at, at + BLOCK)
        images[rows] = BRIGHTNESS * np.clip(np.float32(STROKE + 0.5) - _distance(starts[rows], strokes[rows]), 0.0, 1.0)
    return noisy_bytes(rng, images, noise), angle.astype(np.float64)


def _direction(angle: Array) -> Array:
    """Unit vectors (n, 2), columns to the right and rows downwards, for degrees above the left."""
    radians = np.deg2rad(angle.astype(np.float64))  # rounded to the same single-precision numbers on every machine
    return np.stack([-np.cos(radians), -np.sin(radians)], axis=-1).astype(np.float32)


def _distance(starts: Array, strokes: Array) -> Array:
    """Distances (n, size, size) of the pixels' middles from the nearest stroke; starts and strokes are (n, strokes, 2)."""
    middles = np.arange(SIZE, dtype=np.float32) + np.float32(0.5)
    squares = (strokes**2).sum(-1)
    nearest = np.full((len(starts), SIZE, SIZE), np.inf, np.float32)
    for k in range(starts.shape[1]):
        start, stroke = starts[:, k], strokes[:, k]
        across = (middles - start[:, 0, None])[:, None, :]
        down = (middles - start[:, 1, None])[:, :, None]
        along = across * stroke[:, 0, None, None] + down * stroke[:, 1, None, None]
        share = np.clip(along / squares[:, k, None, None], 0.0, 1.0)
        squared = (across - share * stroke[:, 0, None, None]) ** 2 + (down - share * stroke[:, 1, None, None]) ** 2
        np.minimum(nearest, squared, out=nearest)
    return np.sqrt(nearest)
