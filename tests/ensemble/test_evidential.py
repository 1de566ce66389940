"""Normal-inverse-gamma predictions: closed forms, and members whose squared-error measures are those closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from scipy.special import digamma, gammaln

import uqprism as up
from tests.conftest import as_array
from uqprism.errors import UqprismError

ALPHA = np.array([1.3, 1.5, 2.0 + 1e-6, 2.1, 3.0, 10.0, 1e3, 1e6])
MEASURES = ["squared_error.bayes.members", "squared_error.excess.mixture.members", "squared_error.excess.members.members"]


def example(alpha: np.ndarray = ALPHA) -> up.EvidentialPrediction:
    gamma, nu, beta = (np.linspace(low, high, len(alpha)) for low, high in ((-3.0, 5.0), (0.2, 9.0), (0.5, 4.0)))
    return up.EvidentialPrediction(gamma, nu, alpha, beta)


def test_closed_forms() -> None:
    e = up.EvidentialPrediction(gamma=[1.0, 2.0], nu=[2.0, 4.0], alpha=[3.0, 1.0], beta=[4.0, 1.0])
    assert_array_equal(e.mean, [1.0, 2.0])
    assert_array_equal(e.aleatoric, [2.0, np.inf])
    assert_array_equal(e.epistemic, [1.0, np.inf])


def test_the_predictive_is_what_the_definition_integrates_to() -> None:
    """Against draws of the definition: a variance, then a mean, then a target."""
    rng = np.random.default_rng(0)
    variance = stats.invgamma(3.0, scale=2.0).rvs(size=400_000, random_state=rng)
    y = rng.normal(rng.normal(1.5, np.sqrt(variance / 0.7)), np.sqrt(variance))
    predictive = up.EvidentialPrediction(1.5, 0.7, 3.0, 2.0).predictive
    levels = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
    assert_allclose(predictive.cdf(np.quantile(y, levels)), levels, atol=2e-3)


def test_its_variance_is_both_uncertainties() -> None:
    e = example()
    assert_allclose(e.predictive.variance, e.aleatoric + e.epistemic, rtol=1e-9)


@pytest.mark.parametrize("n_members", [2, 5, 6, 64, 501])
def test_squared_error_measures_of_the_members_are_the_closed_forms(n_members: int) -> None:
    """For any number of members, as strata count with their means and the deviations are stretched to match."""
    e = example()
    table = up.evaluate(e.as_ensemble(n_members), MEASURES)
    for name, expected in zip(MEASURES, (e.aleatoric, e.epistemic, 2.0 * e.epistemic), strict=True):
        assert_allclose(table[name], expected, rtol=1e-9, err_msg=name)
    assert_allclose(e.as_ensemble(n_members).members.mean.mean(axis=0), e.gamma, rtol=1e-12)


@pytest.mark.parametrize("rule", ["crps", "log"])
def test_other_rules_converge_to_the_predictive(rule: str) -> None:
    """The mixture of the members approaches the Student t: its entropy is within 1% with 64 members, 0.5% with 256."""
    alpha = np.array([2.05, 3.0, 10.0, 100.0])
    e = up.EvidentialPrediction(np.zeros(4), 1.0, alpha, 1.0)
    limit = up.decompose(up.EnsemblePrediction(e.predictive.map(lambda x: x[None])), rule=rule).bayes
    for n_members, tolerance in ((64, 1e-2), (256, 5e-3)):
        entropy = up.decompose(e.as_ensemble(n_members), rule=rule, truth="mixture", prediction="mixture").bayes
        assert_allclose(entropy, limit, rtol=tolerance)


def test_members_converge_in_the_mean_scale_and_the_mean_log_variance() -> None:
    alpha = np.array([2.05, 3.0, 10.0, 1e4])
    for n_members, tolerance in ((64, 1e-2), (1024, 1e-3)):
        scale = up.EvidentialPrediction(np.zeros(4), 1.0, alpha, 1.0).as_ensemble(n_members).members.scale
        assert_allclose(scale.mean(axis=0), np.exp(gammaln(alpha - 0.5) - gammaln(alpha)), rtol=tolerance)
        assert_allclose(2.0 * np.log(scale).mean(axis=0), -digamma(alpha), atol=tolerance)


def test_strata_hold_their_own_mean() -> None:
    """The variances are the means of SciPy's inverse gamma between its quantiles, by direct integration."""
    variance = np.sort(up.EvidentialPrediction([0.0], 1.0, 2.5, 3.0).as_ensemble(8).members.scale[:4, 0] ** 2)
    quantile = stats.invgamma(2.5, scale=3.0).ppf
    expected = [4.0 * quad(quantile, i / 4, (i + 1) / 4, epsabs=1e-12, limit=200)[0] for i in range(4)]
    assert_allclose(variance, expected, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 1.0 + 1e-12, 1.0 + 1e-6, 1.1, 1e6, 1e9])
def test_extreme_alphas_stay_finite_and_positive(alpha: float) -> None:
    for n_members in (2, 64, 1000):
        members = up.EvidentialPrediction([1.0], 1e-3, alpha, 1e-2).as_ensemble(n_members).members
        assert np.isfinite(members.mean).all()
        assert np.isfinite(members.scale).all()
        assert (members.scale > 0.0).all()


def test_members_change_smoothly_as_the_variance_loses_its_mean() -> None:
    """No jump at alpha = 1, where the mean becomes infinite, in what the members say under the CRPS."""
    alpha = np.array([1.0 - 1e-7, 1.0, 1.0 + 1e-7])
    excess = up.decompose(up.EvidentialPrediction(np.zeros(3), 1.0, alpha, 1.0).as_ensemble(), rule="crps").excess
    assert_allclose(excess, excess[1], rtol=5e-3)


def test_networks_bring_their_own_members() -> None:
    rng = np.random.default_rng(1)
    gamma, (nu, alpha, beta) = rng.normal(size=(3, 4)), np.exp(rng.normal(size=(3, 3, 4)))
    alpha = alpha + 1.5
    e = up.EvidentialPrediction(gamma, nu, alpha, beta, networks=True)
    ens = e.as_ensemble(10)
    assert (ens.n_members, ens.points_shape) == (30, (4,))
    one = up.EvidentialPrediction(gamma[1], nu[1], alpha[1], beta[1]).as_ensemble(10)
    assert_array_equal(ens.members.mean[10:20], one.members.mean)
    assert_array_equal(ens.members.scale[10:20], one.members.scale)
    d = up.decompose(ens, rule="squared_error", prediction="mixture", truth="members")
    assert_allclose(d.aleatoric, e.aleatoric.mean(axis=0), rtol=1e-10)
    assert_allclose(d.epistemic, e.epistemic.mean(axis=0) + gamma.var(axis=0), rtol=1e-10)


def test_points_of_any_shape_and_arrays_of_any_library(library: str) -> None:
    for shape in ((), (4,), (2, 3), (0,)):
        alpha = as_array(library, np.full(shape, 3.0))
        e = up.EvidentialPrediction(gamma=0.5, nu=2.0, alpha=alpha, beta=1.0)
        assert e.as_ensemble(4).points_shape == shape
        assert_array_equal(e.epistemic, np.full(shape, 0.25))


def test_save_and_load_give_back_every_bit(tmp_path) -> None:
    e = up.EvidentialPrediction(np.zeros((2, 3)), 1.0, 2.5, math.pi, networks=True)
    e.save(tmp_path / "e.npz")
    again = up.EvidentialPrediction.load(tmp_path / "e.npz")
    assert again.networks
    for name in ("gamma", "nu", "alpha", "beta"):
        assert_array_equal(getattr(again, name), getattr(e, name))
    with pytest.raises(UqprismError, match="not written by EnsemblePrediction"):
        up.EnsemblePrediction.load(tmp_path / "e.npz")
    assert repr(again) == "<EvidentialPrediction: 2 x 3 networks x points>"


BAD = {
    "nu": (lambda: up.EvidentialPrediction(0.0, 0.0, 2.0, 1.0), "nu must be finite and greater than zero"),
    "alpha": (lambda: up.EvidentialPrediction(0.0, 1.0, -2.0, 1.0), "alpha must be"),
    "gamma": (lambda: up.EvidentialPrediction([np.nan], 1.0, 2.0, 1.0), "gamma must be finite"),
    "shapes": (lambda: up.EvidentialPrediction(np.zeros(3), np.ones(2), 2.0, 1.0), "nu must match gamma"),
    "no members": (lambda: up.EvidentialPrediction(0.0, 1.0, 2.0, 1.0).as_ensemble(0), "n_members must be at least 1"),
    "no networks": (lambda: up.EvidentialPrediction(0.0, 1.0, 2.0, 1.0, networks=True), "first axis of networks"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_reason(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(UqprismError, match=message):
        call()
