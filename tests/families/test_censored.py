"""Censored Gaussians: all risks against integrals and the probabilities at the bounds."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import norm

import uqprism as up
from tests.conftest import as_array
from uqprism.errors import UqprismError

WEIGHTS = np.array([0.5, 0.3, 0.2])
LOCATION, SCALE = np.array([0.4, -0.8, 1.7]), np.array([1.0, 0.6, 1.5])
BOUNDS = {"both": (0.0, 2.0), "below": (0.0, np.inf), "above": (-np.inf, 2.0)}
MAKE = up.EnsemblePrediction


def members(kind: str, library: str = "numpy", unit: float = 1.0) -> up.EnsemblePrediction:
    given = {"location": unit * LOCATION[:, None], "scale": unit * SCALE[:, None]}
    given |= {name: np.full((3, 1), unit * x) for name, x in zip(("low", "high"), BOUNDS[kind], strict=True)}
    return MAKE.censored_gaussian(**{name: as_array(library, x) for name, x in given.items()}, weights=WEIGHTS)


def definition(kind: str, unit: float = 1.0) -> dict[str, float]:
    """Measures by their definitions, with densities between the bounds and probabilities at them."""
    low, high = (unit * x for x in BOUNDS[kind])
    d, w = [norm(unit * m, unit * s) for m, s in zip(LOCATION, SCALE, strict=True)], WEIGHTS
    start, end = max(low, -12.0 * unit), min(high, 14.0 * unit)
    atoms = np.array([[x.cdf(low), x.sf(high)] for x in d])

    def integral(function) -> float:
        edges = np.linspace(start, end, 14)
        return sum(quad(function, a, b, epsabs=1e-13 / unit, epsrel=1e-11)[0] for a, b in itertools.pairwise(edges))

    def density(i: int, y: float) -> float:
        return w @ [x.pdf(y) for x in d] if i == 3 else d[i].pdf(y)

    def below(i: int, y: float) -> float:
        return w @ [x.cdf(y) for x in d] if i == 3 else d[i].cdf(y)

    mass = [*atoms, w @ atoms]

    def kl(i: int, j: int) -> float:
        def part(p, q) -> float:
            return p * np.log(p / q) if p > 0.0 else 0.0

        inside = integral(lambda y: part(density(i, y), density(j, y)))
        return inside + sum(part(p, q) for p, q in zip(mass[i], mass[j], strict=True))

    def entropy(i: int) -> float:
        def part(p) -> float:
            return -p * np.log(p) if p > 0.0 else 0.0

        return integral(lambda y: part(density(i, y))) + sum(part(p) for p in mass[i])

    def moment(i: int, function) -> float:
        at = sum(p * function(b) for p, b in zip(mass[i], (low, high), strict=True) if p > 0.0)
        return integral(lambda y: function(y) * density(i, y)) + at

    means = np.array([moment(i, lambda y: y) for i in range(4)])
    variances = np.array([moment(i, lambda y, m=m: (y - m) ** 2) for i, m in enumerate(means)])
    pairs = [(w[i] * w[j], i, j) for i in range(3) for j in range(3)]
    bell = norm(means[3], np.sqrt(variances[3]))

    def step(y: float) -> float:
        return 0.0 if y < low else 1.0 if y >= high else below(3, y)

    far = [means[3] + k * np.sqrt(variances[3]) for k in (-12.0, -4.0, 0.0, 4.0, 12.0)]
    edges = sorted({*far, *(x for x in (low, high) if np.isfinite(x))})
    matched = sum(
        quad(lambda y: (step(y) - bell.cdf(y)) ** 2, a + 1e-15, b - 1e-15, epsrel=1e-10, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    )
    return {
        "crps.bayes.members": w @ [integral(lambda y, i=i: below(i, y) * (1.0 - below(i, y))) for i in range(3)],
        "crps.excess.members.members": sum(
            a * integral(lambda y, i=i, j=j: (below(i, y) - below(j, y)) ** 2) for a, i, j in pairs if i != j
        ),
        "crps.excess.matched.mixture": matched,
        "log.bayes.members": w @ [entropy(i) for i in range(3)],
        "log.bayes.mixture": entropy(3),
        "log.excess.members.members": sum(a * kl(j, i) for a, i, j in pairs if i != j),
        "log.excess.mixture.members": w @ [kl(i, 3) for i in range(3)],
        "log.total.members.mixture": entropy(3) + w @ [kl(3, i) for i in range(3)],
        "squared_error.bayes.members": w @ variances[:3],
        "squared_error.excess.mixture.members": w @ (means[:3] - means[3]) ** 2,
    }


@pytest.mark.parametrize("unit", [1.0, 8.0])
@pytest.mark.parametrize("kind", BOUNDS)
def test_risks_are_integrals_and_probabilities(kind: str, unit: float) -> None:
    truth = definition(kind, unit)
    for backend in ("reference", "fused") if find_spec("numba") else ("reference",):
        table = up.evaluate(members(kind, unit=unit), list(truth), backend=backend)
        for name, value in truth.items():
            assert_allclose(table[name][0], value, rtol=2e-8, err_msg=f"{name} {backend}")


@pytest.mark.parametrize("library", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_libraries_agree(library: str) -> None:
    names = ["crps.*", "squared_error.*", "log.bayes.*mix*", "log.excess.members.members"]
    one, other = up.evaluate(members("both"), names), up.evaluate(members("both", library), names)
    for name in one:
        assert_allclose(np.asarray(other[name]), one[name], rtol=1e-9, atol=1e-14, err_msg=name)


def test_scores_at_bounds_and_between() -> None:
    d = members("both").members.map(lambda x: x[0, 0])
    log = up.rules.Log()
    assert_allclose(log.score(d, 0.0), -norm.logcdf(-0.4), rtol=1e-13)
    assert_allclose(log.score(d, 2.0), -norm.logsf(1.6), rtol=1e-13)
    assert_allclose(log.score(d, 1.0), -norm.logpdf(0.6), rtol=1e-13)
    assert log.score(d, -0.1) == np.inf
    assert_allclose(d.quantile(np.array([0.01, 0.5, 0.999])), [0.0, 0.4, 2.0], atol=1e-15)
    # Censoring all but nothing leaves the Gaussian.
    wide = up.families.CensoredGaussian(location=0.4, scale=1.0)
    for y in (-3.0, 0.2):
        assert_allclose(up.rules.CRPS().score(wide, y), up.rules.CRPS().score(up.Gaussian(mean=0.4, scale=1.0), y), rtol=1e-8)


@pytest.mark.parametrize("backend", ["reference", "fused"])
def test_members_that_nearly_agree(backend: str) -> None:
    gap, names = 1e-7, ["log.excess.members.members", "crps.excess.members.members"]
    given = {"location": np.array([[0.4], [0.4 + gap]]), "scale": 1.0, "low": 0.0}
    table = up.evaluate(MAKE.censored_gaussian(**given), names, backend=backend)
    z = -0.4
    information = norm.sf(z) + z * norm.pdf(z) + norm.pdf(z) ** 2 / norm.cdf(z)  # of the location
    assert_allclose(table["log.excess.members.members"][0], 0.25 * gap**2 * information, rtol=1e-5)
    crps = quad(lambda y: norm.pdf(y, 0.4) ** 2, 0.0, 9.0, epsabs=1e-13)[0]
    assert_allclose(table["crps.excess.members.members"][0], 0.5 * gap**2 * crps, rtol=1e-7)


def test_what_makes_no_sense_is_refused_with_its_reason(tmp_path: Path) -> None:
    ens = members("both")
    with pytest.raises(UqprismError, match="quadratic is not for censored members"):
        up.evaluate(ens, "quadratic.bayes.members")
    with pytest.raises(UqprismError, match="cannot compare censored values"):
        up.evaluate(ens, "log.excess.matched.mixture")
    with pytest.raises(UqprismError, match="low must be less than high"):
        MAKE.censored_gaussian(location=[[0.0]], scale=1.0, low=2.0, high=1.0)
    other = MAKE.censored_gaussian(location=np.zeros((2, 1)), scale=1.0, low=[[0.0], [0.1]])
    for name in ("log.excess.members.members", "log.bayes.mixture"):
        for backend in ("reference", "fused"):
            with pytest.raises(UqprismError, match="the same bounds"):
                up.evaluate(other, name, backend=backend)
    ens.save(tmp_path / "censored.npz")
    back = up.EnsemblePrediction.load(tmp_path / "censored.npz")
    assert_array_equal(up.decompose(back).total, up.decompose(ens).total)
