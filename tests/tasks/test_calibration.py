"""Calibration: where targets fall in what was predicted for them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism.errors import ArrayTypeError, InvalidValueError, ShapeError
from uqprism.tasks import Calibration

WEIGHTS = np.array([0.1, 0.2, 0.4, 0.3])
MAKE = up.EnsemblePrediction


@pytest.mark.parametrize(
    ("make", "cdf", "rtol"),
    [
        (lambda m, s, w: MAKE.gaussian(mean=m, scale=s, weights=w), stats.norm.cdf, 1e-12),
        (lambda m, s, w: MAKE.laplace(location=m, scale=s, weights=w), stats.laplace.cdf, 1e-9),
        (lambda m, s, w: MAKE.logistic(location=m, scale=s, weights=w), stats.logistic.cdf, 1e-9),
        (lambda m, s, w: MAKE.student_t(location=m, scale=s, df=3.0, weights=w), lambda y, *ms: stats.t.cdf(y, 3.0, *ms), 1e-9),
    ],
)
def test_the_pit_of_a_weighted_mixture_of_every_family_is_that_of_scipy(make, cdf, rtol) -> None:
    rng = np.random.default_rng(1)
    mean, scale, y = rng.normal(size=(4, 30)), np.exp(rng.normal(size=(4, 30))), 3.0 * rng.normal(size=30)
    np.testing.assert_allclose(up.calibration(make(mean, scale, WEIGHTS), y).pit, WEIGHTS @ cdf(y, mean, scale), rtol=rtol)


def test_samples_give_the_rank_of_the_target_among_the_draws() -> None:
    """Ten draws leave eleven places, each of which is as wide as the others."""
    draws = np.arange(10.0).reshape(2, 5, 1) + np.zeros(3)
    found = up.calibration(up.EnsemblePrediction.samples(draws), [-1.0, 4.5, 99.0])
    np.testing.assert_array_equal(np.floor(11.0 * found.pit), [0, 5, 10])


@pytest.mark.parametrize("n_draws", [1, 10, 20, 100])
@pytest.mark.parametrize("kind", ["continuous", "integers", "constant"])
def test_draws_from_the_truth_are_about_right_however_few_or_equal_they_are(kind: str, n_draws: int) -> None:
    rng = np.random.default_rng(n_draws)
    make = {
        "continuous": rng.standard_normal,
        "integers": lambda shape: rng.poisson(1.0, shape).astype(float),
        "constant": lambda shape: np.full(shape, 3.0),
    }[kind]
    found = up.calibration(up.EnsemblePrediction.samples(make((2, n_draws, 4000))), make(4000))
    assert stats.kstest(found.pit, "uniform").pvalue > 0.001
    assert abs(found.coverage(0.9)[0] - 0.9) < 4.0 * np.sqrt(0.9 * 0.1 / 4000)


def test_the_random_part_of_ranks_follows_the_seed_and_weights_count() -> None:
    ens = up.EnsemblePrediction.samples(np.zeros((2, 3, 50)), weights=np.array([0.9, 0.1]))
    first, again, other = (up.calibration(ens, np.zeros(50), seed=seed).pit for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    apart = up.EnsemblePrediction.samples(np.stack([np.zeros((3, 50)), np.ones((3, 50))]), weights=np.array([0.9, 0.1]))
    itself = 3 * ((0.9 / 3) ** 2 + (0.1 / 3) ** 2)
    pit = up.calibration(apart, np.full(50, 0.5)).pit
    assert 0.9 / (1.0 + itself) <= pit.min()
    assert pit.max() <= (0.9 + itself) / (1.0 + itself)


def test_coverage_counts_the_targets_between_the_quantiles_of_the_mixture() -> None:
    ens, y = ensemble(400)
    found = up.calibration(ens, y).coverage([0.5, 0.9])
    for level, share in zip((0.5, 0.9), found, strict=True):
        low, high = (ens.mixture.quantile(end) for end in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
        assert share == np.mean((low <= y) & (y <= high))


def test_true_predictions_are_about_right_and_others_are_told_apart() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(size=2000)
    for scale, verdict in {0.7: "too narrow", 1.0: "about right", 1.4: "too wide"}.items():
        ens = MAKE.gaussian(mean=np.zeros((2, 2000)), scale=np.full((2, 2000), scale))
        assert up.calibration(ens, y).verdict() == verdict


def test_chance_is_binomial() -> None:
    found = Calibration(np.linspace(0.001, 0.999, 500))
    low, high = found.by_chance([0.5, 0.9])
    np.testing.assert_array_equal(low * 500, stats.binom.ppf(0.025, 500, [0.5, 0.9]))
    np.testing.assert_array_equal(high * 500, stats.binom.ppf(0.975, 500, [0.5, 0.9]))
    assert found.histogram_by_chance(10) == tuple(stats.binom.ppf([0.0025, 0.9975], 500, 0.1))


def test_the_histogram_counts_every_target_once() -> None:
    found = Calibration(np.array([0.0, 0.04, 0.05, 0.5, 1.0]))
    assert found.histogram(20).tolist() == [2, 1, *[0] * 7, 0, 1, *[0] * 8, 1]
    assert found.rows([0.9])[0] == {"level": 0.9, "coverage": 0.4, "low": 0.6, "high": 1.0}
    assert found.to_pandas().loc[0.9, "coverage"] == found.coverage(0.9)[0]


def test_points_of_any_shape_and_single_precision() -> None:
    mean, scale = np.zeros((2, 3, 4), dtype=np.float32), np.ones((2, 3, 4), dtype=np.float32)
    found = up.calibration(up.EnsemblePrediction.gaussian(mean=mean, scale=scale), np.ones((3, 4)))
    np.testing.assert_allclose(found.pit, np.full(12, stats.norm.cdf(1.0)), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda ens, y: up.calibration(y, ens), ArrayTypeError, "the target comes second"),
        (lambda ens, y: up.calibration(ens, y[:5]), ShapeError, r"shape of the points \(20,\)"),
        (lambda ens, y: up.calibration(ens, y * np.nan), InvalidValueError, "target must not be NaN"),
        (lambda ens, y: up.calibration(ens, y).coverage(90), InvalidValueError, "levels must be between 0 and 1"),
        (lambda ens, y: up.calibration(ens, y).by_chance(0.9, 95), InvalidValueError, "confidence must be between"),
        (lambda ens, y: up.calibration(ens, y).histogram(1), InvalidValueError, "bins must be at least 2"),
    ],
)
def test_bad_arguments_are_named(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call(*ensemble(20))
