"""The generators draw from the distributions that they name."""

from __future__ import annotations

import numpy as np
import pytest

from uqprism.errors import InvalidValueError
from uqprism.paper.data.synthetic import sine, sine_mean, sine_scale, two_curves, two_curves_truth

N = 200_000


def binned(x: np.ndarray, values: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Means of the values in 12 bins of x, and how far they may lie from their expectation: five standard errors."""
    inside = np.clip(((x - low) / (high - low) * 12).astype(int), 0, 11)
    groups = [values[inside == i] for i in range(12)]
    return np.array([g.mean() for g in groups]), np.array([5.0 * g.std() / np.sqrt(len(g)) for g in groups])


@pytest.mark.parametrize(("generate", "reach"), [(sine, 3.0), (two_curves, 4.0)])
def test_inputs_are_uniform_on_their_region_and_follow_the_seed(generate, reach: float) -> None:
    inputs, targets = generate(N, 0)
    assert inputs.shape == (N, 1)
    assert targets.shape == (N,)
    counts, _ = np.histogram(inputs, bins=12, range=(-reach, reach))
    assert counts.sum() == N
    assert np.abs(counts - N / 12).max() < 5.0 * np.sqrt(N / 12)
    again, same = generate(N, 0)
    assert (again == inputs).all()
    assert (same == targets).all()
    assert (generate(N, 1)[1] != targets).all()


def test_sine_has_its_mean_and_five_times_the_noise_on_the_right() -> None:
    inputs, targets = sine(N, 0)
    x = inputs[:, 0]
    for values, expected in ((targets, np.sin(2.0 * x)), ((targets - np.sin(2.0 * x)) ** 2, np.where(x > 0, 0.25, 0.01))):
        gap, room = binned(x, values - expected, -3.0, 3.0)
        assert (np.abs(gap) < room).all()
    assert sine_mean(0.3) == np.sin(0.6)
    assert sine_scale([-1.0, 0.0, 1e-9]).tolist() == [0.1, 0.1, 0.5]


def test_two_curves_has_the_moments_of_the_papers_mixture() -> None:
    inputs, targets = two_curves(N, 0)
    x = inputs[:, 0]
    weight = 1.0 / (1.0 + np.exp(1.2 * x))
    first, second = x / 3.0 + 1.2 * np.sin(0.8 * x), x / 3.0 - 1.2 * np.cos(0.8 * x)
    scale = 0.12 + 0.28 * (0.5 + 0.5 * np.sin(0.7 * x)) ** 2
    mean = weight * first + (1.0 - weight) * second
    centred = targets - mean
    a, b = first - mean, second - mean
    second_moment = weight * a**2 + (1 - weight) * b**2 + scale**2
    third_moment = weight * (a**3 + 3 * a * scale**2) + (1 - weight) * (b**3 + 3 * b * scale**2)
    for values, expected in ((centred, 0.0), (centred**2, second_moment), (centred**3, third_moment)):
        gap, room = binned(x, values - expected, -4.0, 4.0)
        assert (np.abs(gap) < room).all()
    truth = two_curves_truth(x)
    np.testing.assert_allclose(truth[0], weight, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(truth[1], (first, second))
    np.testing.assert_allclose(truth[2], scale)
    assert two_curves_truth(np.array([-1e4, 1e4]))[0].tolist() == [1.0, 0.0]


def test_two_curves_may_leave_gaps() -> None:
    inputs, _ = two_curves(30_000, 3, regions=[(-4.0, -2.0), (1.0, 2.0)])
    left = (inputs >= -4.0) & (inputs <= -2.0)
    assert (left | ((inputs >= 1.0) & (inputs <= 2.0))).all()
    assert abs(left.mean() - 2.0 / 3.0) < 0.02


@pytest.mark.parametrize("regions", [[(1.0, 1.0)], [(2.0, 1.0)], [(0.0, np.inf)]])
def test_regions_are_intervals(regions: list[tuple[float, float]]) -> None:
    with pytest.raises(InvalidValueError, match="low < high"):
        two_curves(3, 0, regions=regions)
