"""Conformal intervals hold their share of outcomes whatever the models are worth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UqprismError
from uqprism.tasks.calibration import _binomial

METHODS = ("quantiles", "measure", "constant")


def world(n: int, seed: int) -> tuple[up.EnsemblePrediction, np.ndarray, np.ndarray]:
    """Overconfident, biased members; outcomes with heavy tails; and a group of each row, one three times as noisy."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    noise = np.where(group == 2, 3.0, 1.0) * np.exp(0.5 * rng.normal(size=n))
    mean = 0.3 + 0.2 * rng.normal(size=(4, n))
    y = noise * rng.standard_t(3, size=n)
    return up.EnsemblePrediction.gaussian(mean=mean, scale=0.5 * np.broadcast_to(noise, (4, n))), y, group


@pytest.mark.parametrize("method", METHODS)
def test_the_share_of_repeated_splits_is_within_the_binomial_interval(method) -> None:
    ens, y, _ = world(1000, 0)
    rng = np.random.default_rng(1)
    inside = {coverage: [] for coverage in (0.8, 0.95)}
    for _ in range(60):
        order = rng.permutation(1000)
        known, new = order[:199], order[199:201]  # n + 1 of 0.8 and 0.95 are whole, so the share is exact
        for coverage in inside:
            found = up.conformal_intervals(ens[known], y[known], ens[new], coverage, method=method)
            inside[coverage] += found.contains(y[new]).tolist()
    for coverage, found in inside.items():
        low, high = _binomial(np.array([coverage]), len(found), 0.99)
        assert low[0] <= np.mean(found) <= high[0], (coverage, np.mean(found))


def test_each_group_has_its_share_though_one_is_noisier_than_the_others() -> None:
    ens, y, group = world(9000, 2)
    known, new = slice(0, 3000), slice(3000, None)
    plain = up.conformal_intervals(ens[known], y[known], ens[new], 0.9, method="constant")
    ours = up.conformal_intervals(
        ens[known], y[known], ens[new], 0.9, method="constant", groups_calibration=group[known], groups=group[new]
    )
    assert abs(plain.contains(y[new])[group[new] == 2].mean() - 0.9) > 0.08
    for each in range(3):
        assert abs(ours.contains(y[new])[group[new] == each].mean() - 0.9) < 0.025
    assert ours.margins[2] > 2.0 * ours.margins[0]
    assert ours.guarantee.startswith(
        "In each group, at least 0.9 of outcomes lie inside, on average over calibration rows and new"
    )
    assert "3 groups" in repr(ours)


def test_margins_are_the_scores_of_the_stated_rank() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=np.zeros((2, 9)), scale=np.ones((2, 9)))
    y = np.array([3.0, -1.0, 0.5, 2.0, -4.0, 0.1, 5.0, -0.2, 1.0])
    lower, upper = found = up.conformal_intervals(ens, y, ens[:2], 0.8, method="constant")
    assert found.margins == {"all": 4.0}  # rank ceil(10 * 0.8) of nine
    assert_allclose(lower, [-4.0, -4.0])
    assert_allclose(upper, [4.0, 4.0])
    by_scale = up.conformal_intervals(ens, y, ens[:2], 0.8, method="measure", measure="squared_error.total.mixture.members")
    assert_allclose(by_scale.upper, 4.0)  # in units of the target: the root of a variance of one
    assert by_scale.measure == "squared_error.total.mixture.members"
    quantiles = up.conformal_intervals(ens, y, ens[:2], 0.8, method="quantiles")
    assert_allclose(quantiles.upper, 4.0, rtol=1e-9)


def test_intervals_that_are_too_wide_shrink_to_no_less_than_nothing() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=np.zeros((2, 50)), scale=np.full((2, 50), 9.0))
    narrow = up.EnsemblePrediction.gaussian(mean=np.zeros((2, 1)), scale=np.full((2, 1), 0.1))
    found = up.conformal_intervals(ens, np.linspace(-1.0, 1.0, 50), narrow, 0.8, method="quantiles")
    assert found.margins["all"] < -1.0
    assert_allclose(found.width, 0.0, atol=1e-12)


def test_points_keep_their_shape_and_draws_have_intervals_too() -> None:
    rng = np.random.default_rng(0)
    ens = up.EnsemblePrediction.samples(rng.normal(size=(3, 40, 6, 10)))
    y = rng.normal(size=(6, 10))
    for method in METHODS:
        found = up.conformal_intervals(ens, y, ens, 0.9, method=method)
        assert found.lower.shape == (6, 10)
        assert found.contains(y).mean() >= 0.9
    assert up.conformal_intervals(ens, y, ens[:0], 0.9).lower.shape == (0, 10)


def test_too_few_rows_are_an_error_that_says_how_many_are_needed_or_an_interval_without_end() -> None:
    ens, y, _ = world(30, 0)
    with pytest.raises(InvalidValueError, match=r"coverage 0.95 needs at least 19 calibration rows, got 10: .* without end"):
        up.conformal_intervals(ens[:10], y[:10], ens[10:], 0.95)
    assert np.isinf(up.conformal_intervals(ens[:10], y[:10], ens[10:], 0.95, infinite=True).width).all()
    assert np.isfinite(up.conformal_intervals(ens[:19], y[:19], ens[19:], 0.95).width).all()
    names = np.array(["north", "south"])[np.arange(30) % 2]
    with pytest.raises(InvalidValueError, match="rows in each group, got 0 in group 'west'"):
        up.conformal_intervals(ens, y, ens, 0.8, groups_calibration=names, groups=np.where(names == "south", "west", names))


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"coverage": 90}, InvalidValueError, "between 0 and 1, such as 0.9, got 90"),
        ({"method": "quantile"}, UqprismError, "did you mean 'quantiles'"),
        ({"groups": [1] * 30}, ArgumentError, "must be given together"),
        ({"groups": [1] * 30, "groups_calibration": [1] * 29}, ShapeError, "a label for each of the 30 rows, got 29"),
        ({"groups": [np.nan] * 30, "groups_calibration": [1.0] * 30}, InvalidValueError, "NaN as a label"),
        ({"method": "measure", "measure": "log.bayes.members"}, InvalidValueError, "above zero in all rows"),
        ({"method": "measure", "measure": "crps.*"}, ArgumentError, "must name one measure"),
    ],
)
def test_what_cannot_be_done_is_told(how, error, message) -> None:
    rng = np.random.default_rng(0)
    ens, y = up.EnsemblePrediction.gaussian(mean=rng.normal(size=(3, 30)), scale=np.full((3, 30), 0.1)), rng.normal(size=30)
    with pytest.raises(error, match=message):
        up.conformal_intervals(ens, y, ens, **how)
