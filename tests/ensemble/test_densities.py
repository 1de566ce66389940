"""Densities estimated from draws: their definitions, and convergence to the distribution that was drawn from."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import UqprismError


def drawn(count: int, seed: int = 0) -> up.EnsemblePrediction:
    rng = np.random.default_rng(seed)
    return up.EnsemblePrediction.samples(np.array([0.0, 0.7])[:, None, None] + rng.normal(size=(2, count, 3)), weights=[0.6, 0.4])


def test_kernel_density_is_that_of_scipy() -> None:
    ens = drawn(50)
    members = up.kernel_density(ens, bandwidth=0.3).members
    draws, y = ens.members.draws, np.linspace(-2.0, 2.0, 5)
    for i in range(2):
        truth = scipy.stats.gaussian_kde(draws[:, i, 1], bw_method=0.3 / draws[:, i, 1].std(ddof=1))
        assert_allclose([members.density(t)[i, 1] for t in y], truth(y), rtol=1e-12)
    scott = up.kernel_density(ens, bandwidth="scott").members.components.scale[0]
    assert_allclose(scott, 1.06 * draws.std(axis=0) * 50**-0.2, rtol=1e-12)
    quartiles = np.subtract(*np.quantile(draws, [0.75, 0.25], axis=0, method="inverted_cdf")) / 1.34
    silverman = up.kernel_density(ens).members.components.scale[0]
    assert_allclose(silverman, 0.9 * np.minimum(draws.std(axis=0), quartiles) * 50**-0.2, rtol=1e-12)


@pytest.mark.parametrize("count", [60, 200])
def test_risks_of_kernel_densities(count: int) -> None:
    """By pairs of components or, of many, by integrals: sums over a fine grid of the definitions."""
    ens = up.kernel_density(drawn(count), bandwidth=0.4)[:1]
    names = ["crps.bayes.members", "quadratic.bayes.members", "log.bayes.members", "log.excess.members.members"]
    table = up.evaluate(ens, names)
    y, w = np.linspace(-8.0, 9.0, 20_001), np.array([0.6, 0.4])
    step = y[1] - y[0]
    draws = ens.members.components.mean[:, :, 0]
    p = np.stack([scipy.stats.norm.pdf(y[:, None], draws[:, i], 0.4).mean(axis=1) for i in range(2)])
    f = np.stack([scipy.stats.norm.cdf(y[:, None], draws[:, i], 0.4).mean(axis=1) for i in range(2)])
    log = np.log(p)
    truth = [step * w @ np.sum(f * (1.0 - f), axis=1), -step * w @ np.sum(p * p, axis=1), -step * w @ np.sum(p * log, axis=1)]
    truth.append(0.24 * step * np.sum((p[0] - p[1]) * (log[0] - log[1])))
    assert_allclose([table[name][0] for name in names], truth, rtol=1e-7)


@pytest.mark.slow
def test_more_draws_come_closer_to_the_distribution() -> None:
    """Of two Gaussians, whose mutual information and entropy are known."""
    truth = up.evaluate(up.EnsemblePrediction.gaussian(mean=[[0.0], [0.7]], scale=1.0, weights=[0.6, 0.4]), "log.bayes.mixture")
    for estimate in (up.kernel_density, up.histogram_density):
        errors = []
        for count in (100, 3000):
            values = up.evaluate(estimate(drawn(count)), "log.bayes.mixture")["log.bayes.mixture"]
            errors.append(np.abs(values - truth["log.bayes.mixture"][0]).mean())
        assert errors[1] < 0.5 * errors[0], estimate.__name__


def test_histogram_density_counts_draws() -> None:
    ens = drawn(400)
    members = up.histogram_density(ens, bars=8, pseudo_count=0.0).members
    draws = ens.members.draws
    for point in range(3):
        edges = np.linspace(draws[:, :, point].min(), draws[:, :, point].max(), 9)
        for i in range(2):
            assert_allclose(members.probabilities[:, i, point], np.histogram(draws[:, i, point], edges)[0] / 400, atol=1e-15)
    table = up.evaluate(up.histogram_density(ens), ["log.excess.members.members", "quadratic.bayes.mixture"])
    assert all(np.isfinite(table[name]).all() for name in table)


def test_what_has_no_density_is_refused() -> None:
    for estimate in (up.kernel_density, up.histogram_density):
        with pytest.raises(UqprismError, match="takes members given by draws"):
            estimate(up.EnsemblePrediction.gaussian(mean=[[0.0]], scale=1.0))
    equal = up.EnsemblePrediction.samples(np.ones((2, 5, 1)))
    with pytest.raises(UqprismError, match="pass a number"):
        up.kernel_density(equal)
    with pytest.raises(UqprismError, match="draws that differ"):
        up.histogram_density(equal)
    with pytest.raises(UqprismError, match="silverman"):
        up.kernel_density(drawn(5), bandwidth="silvermann")
