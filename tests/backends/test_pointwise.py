"""One pass over the nodes for any family, against the reference path; `test_exactness` has the independent values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import uqprism as up
from tests.backends.test_conformance import disagreement
from uqprism.arrays import to_numpy
from uqprism.errors import UnsupportedError

pytest.importorskip("numba")

from uqprism.backends.numba.pointwise import PointwiseBackend

MEMBERS, POINTS = 4, 12
# A kernel is compiled for each set of rules: here for all of them.
EACH_RULE = [f"{rule}.excess.members.members" for rule in ("crps", "quadratic", "log", "squared_error")]
TOLERANCE = 1e-9  # a tenth of what is stated: near agreement two paths of eight digits meet
BUILD: dict[str, Callable[[np.ndarray, float], up.EnsemblePrediction]] = {
    "laplace": lambda z, s: up.EnsemblePrediction.laplace(location=3.0 + s * z[0], scale=np.exp(0.3 * s * z[1])),
    "logistic": lambda z, s: up.EnsemblePrediction.logistic(location=3.0 + s * z[0], scale=np.exp(0.3 * s * z[1])),
    "student_t": lambda z, s: up.EnsemblePrediction.student_t(
        location=3.0 + s * z[0], scale=np.exp(0.3 * s * z[1]), df=2.0 + 3.0 * np.exp(0.5 * s * z[2])
    ),
    "lognormal": lambda z, s: up.EnsemblePrediction.lognormal(
        log_mean=1.0 + 0.5 * s * z[0], log_scale=0.5 * np.exp(0.2 * s * z[1])
    ),
    "gamma": lambda z, s: up.EnsemblePrediction.gamma(shape=1.5 * np.exp(0.3 * s * z[0]), scale=np.exp(0.3 * s * z[1])),
    "truncated_gaussian": lambda z, s: up.EnsemblePrediction.truncated_gaussian(
        location=0.5 + s * z[0], scale=np.exp(0.3 * s * z[1]), low=0.0, high=3.0
    ),
    "beta": lambda z, s: up.EnsemblePrediction.beta(a=1.5 * np.exp(0.3 * s * z[0]), b=2.5 * np.exp(0.3 * s * z[1])),
    "mixture": lambda z, s: up.EnsemblePrediction.gaussian_mixture(
        mean=np.stack([1.0 + s * z[0], 4.0 + s * z[1]], axis=1),
        scale=np.exp(0.3 * s * np.stack([z[1], z[2]], axis=1)),
        shares=np.stack([0.5 + 0.4 * np.tanh(s * z[2]), 0.5 - 0.4 * np.tanh(s * z[2])], axis=1),
    ),
    "weibull": lambda z, s: up.EnsemblePrediction.weibull(shape=1.5 * np.exp(0.2 * s * z[0]), scale=np.exp(0.3 * s * z[1])),
}
SPREADS = {"ordinary": 1.0, "apart": 6.0, "near": 1e-3, "nearly agreeing": 1e-7}
# The reference takes seconds for a point of betas, for which `test_shaped` has values. Of mixtures that nearly agree it
# takes distances on the nodes alone, which keeps eight digits.
PAIRS = [(family, spread) for family in BUILD for spread in SPREADS if family != "beta" or spread == "ordinary"]
PAIRS.remove(("mixture", "nearly agreeing"))


def both(ensemble: up.EnsemblePrediction, **options: object) -> dict[str, float]:
    """Where the kernel and the reference differ by too much."""
    fused, reference = (up.evaluate(ensemble, backend=backend, **options) for backend in ("fused", "reference"))
    return {name: error for name, error in disagreement(fused, reference).items() if not error <= TOLERANCE}


@pytest.mark.parametrize(("family", "spread"), PAIRS)
def test_fused_is_reference(family: str, spread: str, rng: np.random.Generator) -> None:
    ensemble = BUILD[family](
        rng.normal(size=(3, MEMBERS, POINTS if family != "beta" else 1)),
        min(SPREADS[spread], 1.5 if family in ("beta", "gamma", "weibull") else 6.0),
    )
    assert both(ensemble) == {}


@pytest.mark.parametrize("family", BUILD)
def test_equal_members(family: str, rng: np.random.Generator) -> None:
    """Their excesses over one another are zero, not rounding errors."""
    table = up.evaluate(BUILD[family](rng.normal(size=(3, MEMBERS, POINTS)), 0.0), backend="fused")
    for pair in ("members.members", "mixture.members", "members.mixture"):
        for rule in ("crps", "log", "quadratic", "squared_error"):
            assert np.max(table[f"{rule}.excess.{pair}"]) == 0.0


@pytest.mark.parametrize("family", BUILD)
def test_weights_and_estimators(family: str, rng: np.random.Generator) -> None:
    """Members may weigh nothing, and pairs with themselves be left out."""
    ensemble = BUILD[family](rng.normal(size=(3, MEMBERS, POINTS if family != "beta" else 1)), 0.5)
    options = {"measures": ["quadratic.*", *EACH_RULE]} if family == "beta" else {}
    for weights in ([0.2, 0.5, 0.0, 0.3], [1e-9, 0.5, 0.25, 0.25 - 1e-9]):
        assert both(up.EnsemblePrediction(ensemble.members, weights), **options) == {}
    assert both(ensemble, measures=EACH_RULE, estimator="unbiased") == {}


@pytest.mark.parametrize("family", BUILD)
def test_ordinary_points_are_not_declined(family: str, rng: np.random.Generator) -> None:
    ensemble = BUILD[family](rng.normal(size=(3, MEMBERS, POINTS)), 0.5)
    assert list(PointwiseBackend().compute(ensemble, up.catalogue()).declined) == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_and_single_precision(dtype: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    location, scale = rng.normal(size=(MEMBERS, POINTS)).astype(dtype), np.exp(rng.normal(size=(MEMBERS, POINTS))).astype(dtype)
    expected = up.evaluate(up.EnsemblePrediction.logistic(location=location, scale=scale), backend="fused")
    given = {"location": torch.from_numpy(location), "scale": torch.from_numpy(scale)}
    found = up.evaluate(up.EnsemblePrediction.logistic(**given), backend="fused")
    for name in expected:
        assert expected[name].dtype == dtype
        np.testing.assert_array_equal(to_numpy(found[name]), expected[name])


@pytest.mark.parametrize("components", [2, 4])
def test_members_that_are_mixtures(components: int, rng: np.random.Generator) -> None:
    """Log risks against sums over a fine grid: the log density of every member bends where its leading component changes."""
    z = rng.normal(size=(3, components, 3, 4))
    mean, scale = 8.0 * z[0], np.exp(0.5 * z[1])
    share = np.exp(3.0 * z[2]) / np.exp(3.0 * z[2]).sum(axis=0)
    ens = up.EnsemblePrediction(up.families.Mixture(up.Gaussian(mean=mean, scale=scale), share))
    names = ["log.excess.members.members", "log.excess.members.pooled", "log.excess.pooled.mixture"]
    tables = [up.evaluate(ens, names, backend=backend) for backend in ("fused", "reference")]
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(-60.0, 60.0, 6001)
    y = (edges[:-1, None] + 0.01 * (1.0 + nodes)).ravel()
    w = np.tile(0.01 * weights, 6000)
    for point in range(4):
        m, s, v = (x[..., point, None] for x in (mean, scale, share))
        each = logsumexp(norm.logpdf(y, m, s) + np.log(v), axis=0)
        mixture = logsumexp(each, axis=0) - np.log(3.0)
        means = np.sum(v * m, axis=0)
        variance = np.mean(np.sum(v * (s**2 + (m - means) ** 2), axis=0))
        pooled = norm.logpdf(y, np.mean(means), np.sqrt(variance))
        truth = (
            sum(w @ (np.exp(q) * (q - p)) for p in each for q in each) / 9.0,
            sum(w @ (np.exp(pooled) * (pooled - p)) for p in each) / 3.0,
            w @ (np.exp(mixture) * (mixture - pooled)),
        )
        for table in tables:
            np.testing.assert_allclose([table[name][point] for name in names], truth, rtol=1e-8)


def test_mixtures_that_nearly_agree(rng: np.random.Generator) -> None:
    """CRPS against the closed form for pairs of components, with 50 digits."""
    from mpmath import erf, exp, mp, mpf, pi, sqrt

    z = rng.normal(size=(2, MEMBERS, 2, 1))
    mean, scale, share = np.array([[1.0], [4.0]]) + 1e-7 * z[0], np.exp(0.3e-7 * z[1]), [0.375, 0.625]
    shares = np.broadcast_to(np.array(share)[:, None], mean.shape)
    ens = up.EnsemblePrediction.gaussian_mixture(mean=mean, scale=scale, shares=shares)
    found = up.evaluate(ens, "crps.excess.members.members", backend="fused")["crps.excess.members.members"][0]
    with mp.workdps(50):
        m, s = ([[mpf(float(v)) for v in row[:, 0]] for row in x] for x in (mean, scale))

        def gap(i: int, j: int) -> mpf:
            total = mpf(0)
            for k, n in np.ndindex(2, 2):
                d, v = m[i][k] - m[j][n], s[i][k] ** 2 + s[j][n] ** 2
                total += share[k] * share[n] * (sqrt(2 * v / pi) * exp(-d * d / (2 * v)) + d * erf(d / sqrt(2 * v)))
            return total

        between = [[gap(i, j) for j in range(MEMBERS)] for i in range(MEMBERS)]
        own = sum(between[i][i] for i in range(MEMBERS)) / MEMBERS
        truth = sum(map(sum, between)) / MEMBERS**2 - own
    np.testing.assert_allclose(found, float(truth), rtol=1e-9)


def test_mixtures_of_one_component_are_that_component(rng: np.random.Generator) -> None:
    z = 1e-5 * rng.normal(size=(2, MEMBERS, 30))
    mixed = up.Gaussian(mean=z[:1], scale=np.exp(z[1:]))
    ens = up.EnsemblePrediction.gaussian(mean=z[0], scale=np.exp(z[1]))
    expected, found = up.evaluate(ens), up.evaluate(up.EnsemblePrediction(up.families.Mixture(mixed)))
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize("shapes", [(0.2, 0.3), (0.4, 3.0), (0.52, 0.8)])
def test_betas_with_poles(shapes: tuple[float, float], rng: np.random.Generator) -> None:
    """Also those whose squares have no integral, or one closer to the bounds than any double."""
    a, b = (x * np.exp(0.1 * rng.normal(size=(3, 1))) for x in shapes)
    assert both(up.EnsemblePrediction.beta(a=a, b=b, low=-1.0, high=2.0)) == {}


def test_slices_change_nothing(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble = BUILD["student_t"](rng.normal(size=(3, MEMBERS, 101)), 1.0)
    expected = up.evaluate(ensemble, "log.*", backend="fused")
    monkeypatch.setattr("uqprism.backends.numba.pointwise.SLICE", 9 * MEMBERS)
    monkeypatch.setenv("UQPRISM_THREADS", "3")
    for name, values in up.evaluate(ensemble, "log.*", backend="fused").items():
        np.testing.assert_array_equal(values, expected[name])


def test_a_density_without_mass_is_left_to_the_reference(rng: np.random.Generator) -> None:
    """Which says what is wrong with it."""

    class Wrong(up.families.Logistic):
        form = up.families.Laplace.form  # with a corner that its landmarks do not tell of

    ensemble = up.EnsemblePrediction(Wrong(location=rng.normal(size=(2, 3)), scale=np.full((2, 3), 0.5)))
    with pytest.raises(UnsupportedError, match="the density of Wrong integrates to"):
        up.evaluate(ensemble, "log.excess.mixture.members", backend="fused")


def test_missing_variances_leave_members_and_mixture(rng: np.random.Generator) -> None:
    """Surrogates are formed only where a measure needs them."""
    ensemble = up.EnsemblePrediction.student_t(location=rng.normal(size=(3, 5)), scale=np.ones((3, 5)), df=np.full((3, 5), 1.5))
    assert both(ensemble, measures=[*EACH_RULE[:3], "quadratic.bayes.mixture"]) == {}
    with pytest.raises(ValueError, match="matched needs a positive, finite variance"):
        up.evaluate(ensemble, "log.excess.matched.mixture", backend="fused")
