"""The special cases that the framework recovers, by the names they have in the literature."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

import uqprism as up

MEAN, SCALE = np.array([0.0, 1.0, -0.5]), np.array([1.0, 0.5, 2.0])


@pytest.fixture
def table() -> up.MeasureTable:
    return up.evaluate(up.EnsemblePrediction.gaussian(mean=MEAN, scale=SCALE))


def density(y: float) -> float:
    return float(norm.pdf(y, MEAN, SCALE).mean())


def entropy_of_the_mixture() -> float:
    return quad(lambda y: -density(y) * np.log(density(y)), -30, 30, points=[-1, 0, 1], epsabs=1e-13, limit=200)[0]


def test_variance_decomposition(table: up.MeasureTable) -> None:
    """The law of total variance: variance of the mixture = mean variance + variance of the means."""
    assert_allclose(table["squared_error.bayes.members"], (SCALE**2).mean())
    assert_allclose(table["squared_error.excess.mixture.members"], MEAN.var())
    assert_allclose(table["squared_error.total.mixture.members"], (SCALE**2).mean() + MEAN.var())


def test_entropy_decomposition_and_mutual_information(table: up.MeasureTable) -> None:
    """Entropy of the mixture = mean entropy + mutual information between outcome and member."""
    members = 0.5 * np.log(2 * np.pi * np.e * SCALE**2).mean()
    assert_allclose(table["log.total.mixture.members"], entropy_of_the_mixture(), rtol=1e-10)
    assert_allclose(table["log.bayes.members"], members, rtol=1e-14)
    assert_allclose(table["log.excess.mixture.members"], entropy_of_the_mixture() - members, rtol=1e-9)


def test_expected_pairwise_kl(table: up.MeasureTable) -> None:
    """EPKL (Malinin & Gales): the mean Kullback-Leibler divergence over all pairs of members."""
    kl = [
        np.log(SCALE[i] / SCALE[j]) - 0.5 + (SCALE[j] ** 2 + (MEAN[i] - MEAN[j]) ** 2) / (2 * SCALE[i] ** 2)
        for i in range(3)
        for j in range(3)
    ]
    assert_allclose(table["log.excess.members.members"], np.mean(kl), rtol=1e-13)


def test_bregman_information(table: up.MeasureTable) -> None:
    """For every rule, the drop of Bayes risk from mixture to members; for the log score, the mutual information."""
    for rule in ("crps", "log", "quadratic", "squared_error"):
        drop = table[f"{rule}.bayes.mixture"] - table[f"{rule}.bayes.members"]
        assert_allclose(table[f"{rule}.excess.mixture.members"], drop, rtol=1e-12)


def test_reverse_mutual_information(table: up.MeasureTable) -> None:
    """RMI: the mean divergence of the mixture from its members."""

    def integrand(y: float) -> float:
        return density(y) * (np.log(density(y)) - norm.logpdf(y, MEAN, SCALE).mean())

    value = quad(integrand, -30, 30, points=[-1, 0, 1], epsabs=1e-12, limit=200)[0]
    assert_allclose(table["log.excess.members.mixture"], value, rtol=1e-9)


def test_entropy_measure_with_the_pooled_gaussian(table: up.MeasureTable) -> None:
    """Bülte et al. (2025): log of the mean variance less mean log variance, plus scaled variance of the means."""
    pooled = (SCALE**2).mean()
    value = 0.5 * (np.log(pooled) - np.log(SCALE**2).mean() + MEAN.var() / pooled)
    assert_allclose(table["log.excess.pooled.members"], value, rtol=1e-13)


@pytest.mark.parametrize(("scale", "crps", "log"), [(5.0, 0.1120916, 0.04), (0.5, 0.7183942, 4.0), (0.005, 0.9971791, 40000.0)])
def test_published_values_of_the_kernel_score_work(scale: float, crps: float, log: float) -> None:
    """Means -1 and +1 with equal scales, excess of members against members."""
    ens = up.EnsemblePrediction.gaussian(mean=[[-1.0], [1.0]], scale=[[scale], [scale]])
    assert_allclose(up.decompose(ens, rule="crps").excess, crps, rtol=1e-6)
    assert_allclose(up.decompose(ens, rule="log").excess, log, rtol=1e-12)


def test_the_open_question_is_settled() -> None:
    """The order bayes(members) <= bayes(mixture) <= bayes(matched) holds for the log score; CRPS and quadratic break it."""
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=[-1.0, 1.0], scale=[1.0, 1.0]))
    assert table["log.bayes.members"] < table["log.bayes.mixture"] < table["log.bayes.matched"]
    assert_allclose(table["crps.bayes.mixture"], 0.8072220626038842540, rtol=1e-14)
    assert_allclose(table["crps.bayes.matched"], 0.7978845608028653559, rtol=1e-14)
    assert_allclose(table["quadratic.bayes.mixture"], -0.1929358330645134097, rtol=1e-14)
    assert_allclose(table["quadratic.bayes.matched"], -0.1994711402007163390, rtol=1e-14)
    assert table["crps.bayes.mixture"] > table["crps.bayes.matched"]
    assert table["quadratic.bayes.mixture"] > table["quadratic.bayes.matched"]


@pytest.mark.parametrize(("rule", "limit"), [("crps", 2.9416005833), ("quadratic", 1.5200563663)])
def test_where_the_order_breaks(rule: str, limit: float) -> None:
    """Two equal members a scales from their mean break the order up to a known distance, and not beyond."""
    for factor, broken in ((0.01, True), (1.0 - 1e-8, True), (1.0 + 1e-8, False), (2.0, False)):
        table = up.evaluate(up.EnsemblePrediction.gaussian(mean=[-limit * factor, limit * factor], scale=[1.0, 1.0]))
        assert (table[f"{rule}.bayes.mixture"] > table[f"{rule}.bayes.matched"]) == broken


def test_no_order_between_mixture_and_pooled() -> None:
    """Means that spread raise the mixture above the pooled Gaussian; scales that spread put it below."""
    spread = up.evaluate(up.EnsemblePrediction.gaussian(mean=[-1.0, 1.0], scale=[1.0, 1.0]))
    nested = up.evaluate(up.EnsemblePrediction.gaussian(mean=[0.0, 0.0], scale=[1.0, 5.0]))
    assert spread["crps.bayes.mixture"] > spread["crps.bayes.pooled"]
    assert nested["crps.bayes.mixture"] < nested["crps.bayes.pooled"]
