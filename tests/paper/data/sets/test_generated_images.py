"""Generated images show what their target says, follow their seed, and take little time."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy import ndimage

from uqprism.paper import data
from uqprism.paper.data.sets.arrow_images import arrows
from uqprism.paper.data.sets.dot_images import dots

Generator = Callable[..., tuple[np.ndarray, np.ndarray]]


def test_dots_can_be_counted() -> None:
    """Connected regions brighter than half the darkest dot, in images without noise, are the dots."""
    images, counts = dots(1500, 0, noise=0.0)
    regions = [ndimage.label(image[0] > 0.5 * 0.1 * 255)[1] for image in images]
    np.testing.assert_array_equal(regions, counts)
    found, often = np.unique(counts, return_counts=True)
    assert found.tolist() == list(range(1, 13))
    assert often.min() > 60


def test_dots_have_the_area_of_their_radii() -> None:
    """Single dots: the brightness over that of the middle is the area of a disc, with radii up to the largest."""
    images, counts = dots(20_000, 1, noise=0.0)
    single = images[counts == 1, 0].astype(float)
    radius = np.sqrt(single.sum((1, 2)) / single.max((1, 2)) / np.pi)
    assert 0.95 < radius.min() < 1.1
    assert 2.45 < radius.max() < 2.6
    assert abs(radius.mean() - 1.75) < 0.1


def test_arrows_point_where_their_angle_says() -> None:
    """The main axis of the bright pixels is the angle's, and the head, which is the heavier end, is on its side."""
    images, angles = arrows(1500, 0, noise=0.0)
    weight = images[:, 0].astype(float)
    weight /= weight.sum((1, 2), keepdims=True)
    down, across = np.mgrid[:32, :32] + 0.5
    x = across - (weight * across).sum((1, 2))[:, None, None]
    y = -(down - (weight * down).sum((1, 2))[:, None, None])  # upwards
    xx, yy, xy = ((weight * product).sum((1, 2)) for product in (x * x, y * y, x * y))
    axis = np.rad2deg(0.5 * np.arctan2(2 * xy, xx - yy))  # of 180 degrees, against the horizontal
    gap = (axis + angles + 90.0) % 180.0 - 90.0  # an arrow to the left that points up has an axis that falls to the right
    assert np.median(np.abs(gap)) < 1.0
    assert np.abs(gap).max() < 8.0
    radians = np.deg2rad(angles)[:, None, None]
    along = -np.cos(radians) * x + np.sin(radians) * y
    farthest = np.where(weight > 0.2 * weight.max((1, 2), keepdims=True), along, np.nan)
    assert (np.nanmax(farthest, (1, 2)) < -np.nanmin(farthest, (1, 2))).mean() > 0.99
    counts, _ = np.histogram(angles, 6, (-90.0, 90.0))
    assert counts.sum() == len(angles)
    assert np.abs(counts - 250).max() < 5 * np.sqrt(250)


@pytest.mark.parametrize("generate", [dots, arrows])
def test_images_are_bytes_and_follow_the_seed(generate: Generator) -> None:
    first, again, other = (generate(300, seed) for seed in (0, 0, 1))
    assert first[0].shape == (300, 1, 32, 32)
    assert first[0].dtype == np.uint8
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[0] != other[0]).any((1, 2, 3)).all()


@pytest.mark.parametrize("generate", [dots, arrows])
def test_noise_has_its_scale(generate: Generator) -> None:
    clean, noisy = (generate(400, 0, noise=noise)[0].astype(float) / 255 for noise in (0.0, 0.1))
    dark, bright = clean == 0.0, (clean > 0.45) & (clean < 0.55)
    assert abs((noisy - clean)[bright].std() - 0.1) < 0.01
    assert abs(np.sqrt((noisy[dark] ** 2).mean()) - 0.1 / np.sqrt(2)) < 0.002  # half of it is cut off at black


@pytest.mark.parametrize("generate", [dots, arrows])
def test_ten_thousand_images_take_less_than_two_seconds(generate: Generator) -> None:
    times = []
    for _ in range(3):
        started = time.process_time()
        generate(10_000, 0)
        times.append(time.process_time() - started)
        if times[-1] < 2.0:
            break
    assert min(times) < 2.0


@pytest.mark.parametrize("name", ["dots", "arrow"])
def test_parts_are_drawn_apart(name: str) -> None:
    whole = data.load(name, sizes=(200, 100, 150))
    parts = [{image.tobytes() for image in part.inputs} for part in (whole.train, whole.validation, whole.test)]
    assert [len(part) for part in parts] == [200, 100, 150]
    assert len(set.union(*parts)) == 450
    assert data.load(name, sizes=(200, 50, 150)).train.targets.tolist() == whole.train.targets.tolist()
