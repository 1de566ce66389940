"""Samples that stand for themselves: everything against the plain double sums."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from tests.conftest import as_array
from uqprism.families.functionals import absolute_gap, cramer_distance


def pairs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(x[:, None] - y[None, :]).mean(axis=(0, 1))


def test_crps_of_samples(library: str, rng: np.random.Generator) -> None:
    draws, y = rng.normal(size=(50, 4)), rng.normal(size=4)
    score = up.rules.CRPS().score(up.Draws(as_array(library, draws)), as_array(library, y))
    assert_allclose(np.asarray(score), np.abs(draws - y).mean(axis=0) - 0.5 * pairs(draws, draws), rtol=1e-12)


def test_distances_of_samples(library: str, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(30, 4)), rng.normal(size=(20, 4)) + 0.5
    p, q = up.Draws(as_array(library, x)), up.Draws(as_array(library, y))
    assert_allclose(np.asarray(absolute_gap(p, q)), pairs(x, y), rtol=1e-12)
    distance = pairs(x, y) - 0.5 * pairs(x, x) - 0.5 * pairs(y, y)
    assert_allclose(np.asarray(cramer_distance(p, q)), distance, rtol=1e-10)


def test_samples_against_a_gaussian(rng: np.random.Generator) -> None:
    draws, g = rng.normal(size=(40, 3)), up.Gaussian(mean=np.zeros(3), scale=np.ones(3))
    gap = np.stack([g.absolute_deviation(row) for row in draws]).mean(axis=0)
    assert_allclose(absolute_gap(up.Draws(draws), g), gap, rtol=1e-12)
    expected = gap - 0.5 * pairs(draws, draws) - 1.0 / np.sqrt(np.pi)
    assert_allclose(up.rules.CRPS().divergence(prediction=g, truth=up.Draws(draws)), expected, rtol=1e-10)


def test_weighted_draws_are_repeated_draws() -> None:
    twice, weighted = up.Draws(np.array([1.0, 1.0, 4.0])), up.Draws(np.array([1.0, 4.0]), [2 / 3, 1 / 3])
    for rule in (up.rules.CRPS(), up.rules.SquaredError()):
        assert_allclose(rule.entropy(weighted), rule.entropy(twice), rtol=1e-14)
    assert weighted.quantile(0.5) == twice.quantile(0.5) == 1.0
    assert weighted.quantile(0.9) == 4.0
    assert_allclose(weighted.cdf(1.0), 2 / 3)


@pytest.mark.parametrize("rule", ["log", "quadratic"])
def test_rules_that_need_a_density_say_so(rule: str) -> None:
    ens = up.EnsemblePrediction.samples(np.random.default_rng(0).normal(size=(3, 10, 2)))
    with pytest.raises(up.UqprismError, match="no density"):
        up.decompose(ens, rule=rule)


def test_ensembles_of_samples(library: str, rng: np.random.Generator) -> None:
    """Every CRPS risk of members and mixture is a plain double sum."""
    draws = rng.normal(size=(3, 25, 4)) + rng.normal(size=(3, 1, 1))
    ens = up.EnsemblePrediction.samples(as_array(library, draws))
    table = up.evaluate(ens, list(up.catalogue(["crps", "squared_error"])))
    bayes = np.mean([0.5 * pairs(x, x) for x in draws], axis=0)
    total = np.mean([[pairs(x, y) - 0.5 * pairs(x, x) for y in draws] for x in draws], axis=(0, 1))
    pooled = draws.reshape(-1, 4)
    assert_allclose(np.asarray(table["crps.bayes.members"]), bayes, rtol=1e-12)
    assert_allclose(np.asarray(table["crps.total.members.members"]), total, rtol=1e-12)
    assert_allclose(np.asarray(table["crps.excess.members.members"]), total - bayes, rtol=1e-9)
    assert_allclose(np.asarray(table["crps.bayes.mixture"]), 0.5 * pairs(pooled, pooled), rtol=1e-12)
    assert_allclose(np.asarray(table["squared_error.bayes.matched"]), pooled.var(axis=0), rtol=1e-12)
    assert_allclose(np.asarray(ens.mixture.mean), pooled.mean(axis=0), rtol=1e-12)


def test_member_and_draw_axes(rng: np.random.Generator) -> None:
    draws = rng.normal(size=(3, 25, 4))
    straight = up.EnsemblePrediction.samples(draws)
    turned = up.EnsemblePrediction.samples(np.moveaxis(draws, (0, 1), (2, 0)), member_axis=2, draw_axis=0)
    assert turned.n_members == 3
    assert turned.points_shape == (4,)
    assert_allclose(up.decompose(turned).excess, up.decompose(straight).excess, rtol=1e-14)


def test_members_with_different_numbers_of_draws(library: str, rng: np.random.Generator) -> None:
    """A list of arrays: every risk is a plain double sum, and each member counts alike."""
    parts = [rng.normal(size=(n, 3)) for n in (4, 1, 9)]
    ens = up.from_draws([as_array(library, x) for x in parts])
    d = up.decompose(ens)
    bayes = np.mean([0.5 * pairs(x, x) for x in parts], axis=0)
    total = np.mean([[pairs(x, y) - 0.5 * pairs(x, x) for y in parts] for x in parts], axis=(0, 1))
    assert_allclose(np.asarray(d.bayes), bayes, rtol=1e-12)
    assert_allclose(np.asarray(d.excess), total - bayes, rtol=1e-9)
    assert_allclose(np.asarray(ens.mixture.mean), np.mean([x.mean(axis=0) for x in parts], axis=0), rtol=1e-12)
    assert_allclose(np.asarray(up.from_draws([[1.0, 2.0], [3.0]]).mixture.mean), 2.25)


@pytest.mark.parametrize("parts", [[np.zeros((2, 3)), np.zeros((4, 2))], [np.zeros((0, 3)), np.zeros((4, 3))], [[], [1.0]]])
def test_members_that_do_not_fit_together(parts: list) -> None:
    with pytest.raises(up.UqprismError, match="at least one draw"):
        up.from_draws(parts)
