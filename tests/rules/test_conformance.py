"""What must hold of every registered rule on every registered family, by direct integration of the score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import uqprism as up
from tests.families.test_conformance import SMOOTH, each, integral, make
from uqprism.rules import rules

RULES = {name: rules.get(name)() for name in rules.names()} | {
    "kernel_wide": up.rules.GaussianKernel(bandwidth=20.0, name="kernel_wide"),
    "quantile_90": up.rules.Quantile(0.9, name="quantile_90"),
    "huber": up.rules.Bregman(
        lambda t: (1 + t * t) ** 0.5, lambda t: t / (1 + t * t) ** 0.5, curvature=lambda t: (1 + t * t) ** -1.5, name="huber"
    ),
}
DEFINITION = {
    "crps": lambda d, y: (
        quad(lambda t: d.cdf(t) ** 2, -math.inf, y, epsabs=1e-12)[0]
        + quad(lambda t: (1 - d.cdf(t)) ** 2, y, math.inf, epsabs=1e-12)[0]
    ),
    "log": lambda d, y: -math.log(d.density(y)) if d.density(y) > 0.0 else math.inf,
    "quadratic": lambda d, y: integral(lambda t: d.density(t) ** 2, d) - 2.0 * d.density(y),
    "squared_error": lambda d, y: (y - d.mean) ** 2,
    "quantile_90": lambda d, y: (0.9 - (y < d.quantile(0.9))) * (y - d.quantile(0.9)),
}


@pytest.mark.parametrize("family", SMOOTH)
@pytest.mark.parametrize("name", DEFINITION)
def test_score_is_the_definition(name: str, family: str) -> None:
    batch, y = make(family, (3,)), np.array([-1.0, 0.2, 3.0])
    scores = RULES[name].score(batch, y)
    for index, d in each(batch):
        assert_allclose(scores[index], DEFINITION[name](d, float(y[index])), rtol=1e-7, atol=1e-10)


def test_kernel_score_of_a_gaussian() -> None:
    """The definition as sums over Gauss-Hermite nodes, which stand for the distribution to the last digit."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    x, w = 0.3 + 1.2 * nodes, weights / weights.sum()
    kernel = np.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * 1.5**2))
    score = 0.5 + 0.5 * w @ kernel @ w - w @ np.exp(-((x - 1.7) ** 2) / (2 * 1.5**2))
    assert_allclose(up.rules.GaussianKernel(1.5).score(up.Gaussian(mean=0.3, scale=1.2), 1.7), score, rtol=1e-10)


def test_kernel_score_of_samples_is_a_double_sum(rng: np.random.Generator) -> None:
    """Half the squared maximum mean discrepancy between the samples and the outcome, or other samples."""
    rule, x, y = up.rules.GaussianKernel(bandwidth=0.7), rng.normal(size=20), rng.normal(size=15) + 0.5

    def kernel(a, b):
        return np.exp(-((a[:, None] - b[None, :]) ** 2) / (2 * 0.7**2)).mean()

    p, q = up.Draws(x), up.Draws(y)
    assert_allclose(rule.score(p, 1.5), 0.5 * kernel(x, x) - kernel(x, np.array([1.5])) + 0.5, rtol=1e-10)
    assert_allclose(rule.divergence(prediction=p, truth=q), 0.5 * (kernel(x, x) + kernel(y, y)) - kernel(x, y), rtol=1e-7)


@pytest.mark.parametrize("family", SMOOTH)
@pytest.mark.parametrize("name", RULES)
def test_expected_score_is_the_mean_score(name: str, family: str) -> None:
    """Total, entropy and divergence are what the score and the truth's density say, whichever way they are computed."""
    rule = RULES[name]
    small = family not in ("gaussian", "laplace") and "kernel" in name
    p, q = make(family, (1,) if small else (2,), 3), make(family, (1,) if small else (2,), 4)
    total, entropy = rule.expected_score(prediction=p, truth=q), rule.entropy(q)
    divergence = rule.divergence(prediction=p, truth=q)
    for index, a, b in each(p, q):
        kink = up.Gaussian(mean=a.quantile(getattr(rule, "level", 0.5)), scale=1.0)
        if not small:

            def weighted(t: float, a=a, b=b) -> float:
                density = float(b.density(t))
                return float(np.squeeze(rule.score(a, t))) * density if density > 0.0 else 0.0

            mean = integral(weighted, a, b, kink)
            assert_allclose(total[index], mean, rtol=3e-7, atol=1e-10)
        assert_allclose(divergence[index], total[index] - entropy[index], rtol=1e-6, atol=1e-10)
        assert divergence[index] >= 0.0


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("name", RULES)
def test_divergence_from_itself_is_exactly_zero(name: str, family: str) -> None:
    d = make(family, (4,))
    assert (RULES[name].divergence(prediction=d, truth=d.map(np.copy)) == 0.0).all()


@pytest.mark.parametrize("name", [n for n, r in RULES.items() if r.strictly_proper])
def test_strictly_proper_rules_see_every_difference(name: str) -> None:
    p = up.Gaussian(mean=np.array([0.0, 0.0, 1e-9]), scale=np.array([1.0, 1.0 + 1e-9, 1.0]))
    q = up.Gaussian(mean=np.zeros(3), scale=np.ones(3))
    divergence = RULES[name].divergence(prediction=p, truth=q)
    assert divergence[0] == 0.0
    assert (divergence[1:] > 0.0).all()


@pytest.mark.parametrize("name", ["squared_error", "bregman", "huber"])
def test_rules_of_the_mean_see_only_the_mean(name: str) -> None:
    q = up.Gaussian(mean=np.zeros(2), scale=np.ones(2))
    p = up.Gaussian(mean=np.array([0.0, 1e-3]), scale=np.array([5.0, 1.0]))
    divergence = RULES[name].divergence(prediction=p, truth=q)
    assert divergence[0] == 0.0
    assert divergence[1] > 0.0


def test_rules_of_a_quantile_see_only_the_quantile() -> None:
    rule, truth = up.rules.Quantile(0.5), up.Gaussian(mean=0.0, scale=1.0)
    assert rule.divergence(prediction=up.Gaussian(mean=0.0, scale=5.0), truth=truth) == 0.0
    assert rule.divergence(prediction=up.Gaussian(mean=1e-3, scale=1.0), truth=truth) > 0.0


def test_bregman_with_a_square_is_the_squared_error() -> None:
    p, q = make("laplace", (5,), 1), make("gaussian", (5,), 2)
    square, ours = up.rules.Bregman(), up.rules.SquaredError()
    for call in ("expected_score", "divergence"):
        assert_allclose(getattr(square, call)(prediction=p, truth=q), getattr(ours, call)(prediction=p, truth=q), rtol=1e-11)


def test_bregman_divergence_of_means_far_apart() -> None:
    rule = up.rules.Bregman(lambda t: -np.log(t), lambda t: -1.0 / t, curvature=lambda t: t**-2)
    p, q = up.Gaussian(mean=0.0105, scale=1.0), up.Gaussian(mean=105.0, scale=1.0)
    expected = -np.log(105.0) + np.log(0.0105) + (105.0 - 0.0105) / 0.0105
    assert_allclose(rule.divergence(prediction=p, truth=q), expected, rtol=1e-12)


def test_bregman_divergence_keeps_its_digits_with_the_curvature() -> None:
    import mpmath as mp

    exact = up.rules.Bregman(np.exp, np.exp, curvature=np.exp)
    plain = up.rules.Bregman(np.exp, np.exp)
    p, q = up.Gaussian(mean=0.3, scale=1.0), up.Gaussian(mean=0.3 + 1e-7, scale=1.0)
    with mp.workdps(50):
        a, b = mp.mpf(0.3), mp.mpf(float(q.mean))
        truth = float(mp.exp(b) - mp.exp(a) - mp.exp(a) * (b - a))
    assert_allclose(exact.divergence(prediction=p, truth=q), truth, rtol=1e-13)
    assert_allclose(plain.divergence(prediction=p, truth=q), truth, rtol=1e-7)


SCORES = {name: up.rules.from_score(f"{name}_again", RULES[name].score) for name in ("crps", "log", "quadratic", "squared_error")}
ENTROPIES = {
    "crps": up.rules.from_entropy("crps_rebuilt", up.rules.CRPS().entropy, lambda d, y: d.absolute_deviation(y)),
    "log": up.rules.from_entropy("log_rebuilt", up.rules.Log().entropy, lambda d, y: -d.log_density(y)),
    "quadratic": up.rules.from_entropy("quadratic_rebuilt", up.rules.Quadratic().entropy, lambda d, y: -2.0 * d.density(y)),
    "squared_error": up.rules.from_entropy(
        "squared_error_rebuilt", up.rules.SquaredError().entropy, lambda d, y: y * y - 2.0 * y * d.mean
    ),
}


@pytest.mark.parametrize("rebuilt", [SCORES, ENTROPIES], ids=["score", "entropy"])
@pytest.mark.parametrize("name", SCORES)
def test_rules_rebuilt_from_less_are_the_same(name: str, rebuilt: dict) -> None:
    """A rule given by its score alone, or by its entropy and supergradient (the paper's appendix D), is the rule."""
    ours, again = RULES[name], rebuilt[name]
    p, q = make("gaussian", (3,), 5), make("laplace", (3,), 6)
    y = np.array([-0.5, 0.4, 2.0])
    assert_allclose(again.score(p, y), ours.score(p, y), rtol=1e-9, atol=1e-12)
    assert_allclose(again.entropy(q), ours.entropy(q), rtol=1e-8)
    for call in ("expected_score", "divergence"):
        mine, theirs = (getattr(rule, call)(prediction=p, truth=q) for rule in (ours, again))
        assert_allclose(theirs, mine, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("rebuilt", [SCORES, ENTROPIES], ids=["score", "entropy"])
@pytest.mark.parametrize("name", SCORES)
def test_rules_rebuilt_from_less_give_all_measures(name: str, rebuilt: dict) -> None:
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0, 2.0], [1.0, 2.5], [-0.5, 2.2]], scale=[[1.0, 0.3], [0.5, 0.2], [2.0, 0.4]])
    ours, again = up.evaluate(ens, up.catalogue([name])), up.evaluate(ens, up.catalogue([rebuilt[name]]))
    assert len(again) == 36
    for mine, theirs in zip(ours, again, strict=True):
        assert_allclose(again[theirs], ours[mine], rtol=1e-6, atol=1e-9, err_msg=mine)


def test_log_bayes_of_the_mixture_has_cheap_bounds(rng: np.random.Generator) -> None:
    """Jensen below, the matched Gaussian above; both closed form, and the truth lies between."""
    ens = up.EnsemblePrediction.gaussian(mean=3 * rng.normal(size=(5, 20)), scale=np.exp(rng.normal(size=(5, 20))))
    table = up.evaluate(ens)
    lower, upper = up.rules.Log().mixture_entropy_bounds(ens.mixture)
    assert (lower <= table["log.bayes.mixture"]).all()
    assert (table["log.bayes.mixture"] <= upper).all()
    assert_allclose(lower, table["log.bayes.members"], rtol=1e-14)
    assert_allclose(upper, table["log.bayes.matched"], rtol=1e-14)
