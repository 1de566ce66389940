"""Members that are mixtures, as mixture density networks give: all risks against sums of their definitions on a fine grid."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import uqprism as up
from tests.conftest import as_array
from uqprism.errors import UqprismError

WEIGHTS = [0.5, 0.3, 0.2]
Y = np.linspace(-25.0, 25.0, 400_001)
STEP = Y[1] - Y[0]


def parameters(seed: int = 0, points: int = 2) -> dict[str, np.ndarray]:
    """Three members of two components, (members, components, points)."""
    rng = np.random.default_rng(seed)
    mean, scale = 2.0 * rng.normal(size=(3, 2, points)), np.exp(0.4 * rng.normal(size=(3, 2, points)))
    return {"mean": mean, "scale": scale, "shares": rng.dirichlet(np.ones(2), size=(3, points)).transpose(0, 2, 1)}


def functions(mean, scale, shares, point: int) -> tuple[list, list]:
    """The densities and distribution functions of the members, and of their mixture last."""
    at = [(shares[i, :, point, None], mean[i, :, point, None], scale[i, :, point, None]) for i in range(3)]
    p = [(s * norm.pdf(Y, m, v)).sum(axis=0) for s, m, v in at]
    f = [(s * norm.cdf(Y, m, v)).sum(axis=0) for s, m, v in at]
    return [*p, np.average(p, axis=0, weights=WEIGHTS)], [*f, np.average(f, axis=0, weights=WEIGHTS)]


def relative_entropy(p: np.ndarray, q: np.ndarray) -> float:
    return STEP * np.sum(p * (np.log(p + 1e-300) - np.log(q + 1e-300)))


@pytest.mark.parametrize("library", ["numpy", "torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_risks_of_mixture_members(library: str) -> None:
    given = parameters()
    arrays = {name: as_array(library, x) for name, x in given.items()}
    table = up.evaluate(up.EnsemblePrediction.gaussian_mixture(**arrays, weights=WEIGHTS))
    w = np.array(WEIGHTS)
    for n in range(2):
        p, f = functions(**given, point=n)
        mean = [STEP * np.sum(Y * each) for each in p]
        spread = np.sqrt(STEP * np.sum((Y - mean[3]) ** 2 * p[3]))
        p.append(norm.pdf(Y, mean[3], spread))
        f.append(norm.cdf(Y, mean[3], spread))
        roles = {"members": [(a, i) for i, a in enumerate(w)], "mixture": [(1.0, 3)], "matched": [(1.0, 4)]}
        distances = {
            "crps": lambda i, j, f=f: STEP * np.sum((f[i] - f[j]) ** 2),
            "quadratic": lambda i, j, p=p: STEP * np.sum((p[i] - p[j]) ** 2),
            "log": lambda i, j, p=p: relative_entropy(p[j], p[i]),
        }
        own = {
            "crps": lambda i, f=f: STEP * np.sum(f[i] * (1.0 - f[i])),
            "quadratic": lambda i, p=p: -STEP * np.sum(p[i] ** 2),
            "log": lambda i, p=p: -STEP * np.sum(p[i] * np.log(p[i] + 1e-300)),
        }
        for rule, (prediction, truth) in product(distances, product(roles, roles)):
            excess = sum(a * b * distances[rule](i, j) for a, i in roles[prediction] for b, j in roles[truth])
            bayes = sum(a * own[rule](i) for a, i in roles[truth])
            at = {"rtol": 1e-8, "atol": 1e-12}
            assert_allclose(float(table[f"{rule}.excess.{prediction}.{truth}"][n]), excess, **at)
            assert_allclose(float(table[f"{rule}.bayes.{truth}"][n]), bayes, **at)
            assert_allclose(float(table[f"{rule}.total.{prediction}.{truth}"][n]), bayes + excess, rtol=1e-8, atol=1e-9)
        assert_allclose(float(table["squared_error.excess.mixture.members"][n]), np.sum(w * (mean[:3] - mean[3]) ** 2), rtol=1e-8)


def test_mixture_members_that_nearly_agree() -> None:
    """Excesses of second order, against the first derivative of density and distribution function."""
    given, gap = parameters(), 1e-7
    first = {name: x[:1] for name, x in given.items()}
    moved = gap * np.random.default_rng(1).normal(size=(1, 2, 2))
    both = {name: np.concatenate([x, x]) for name, x in first.items()}
    both["mean"][1:] += moved
    table = up.evaluate(up.EnsemblePrediction.gaussian_mixture(**both))
    s, m, v, d = (x[0, :, 0, None] for x in (first["shares"], first["mean"], first["scale"], both["mean"][1:] - both["mean"][:1]))
    density = s * norm.pdf(Y, m, v)
    slope, p = np.sum(density * (Y - m) / v**2 * d, axis=0), density.sum(axis=0)
    assert_allclose(table["crps.excess.members.members"][0], 0.5 * STEP * np.sum((density * d).sum(axis=0) ** 2), rtol=1e-7)
    assert_allclose(table["quadratic.excess.members.members"][0], 0.5 * STEP * np.sum(slope**2), rtol=1e-7)
    there = p > 1e-250
    assert_allclose(table["log.excess.members.members"][0], 0.25 * STEP * np.sum(slope[there] ** 2 / p[there]), rtol=1e-7)


def test_files_and_parts(tmp_path: Path) -> None:
    ens = up.EnsemblePrediction.gaussian_mixture(**parameters(points=4), weights=WEIGHTS)
    ens.save(tmp_path / "mixtures.npz")
    back = up.EnsemblePrediction.load(tmp_path / "mixtures.npz")
    for one, other in zip(ens.members.arrays(), back.members.arrays(), strict=True):
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)
    twice = up.EnsemblePrediction.concatenate([ens[:1], ens[1:]])
    assert_array_equal(up.decompose(twice).excess, up.decompose(ens).excess)
    laplace = up.Mixture(up.Laplace(location=np.zeros((2, 3, 1)), scale=np.ones((2, 3, 1))))
    up.EnsemblePrediction(laplace).save(tmp_path / "laplace.npz")
    assert up.EnsemblePrediction.load(tmp_path / "laplace.npz").members.components.name == "laplace"


def test_wrong_mixtures_are_refused() -> None:
    given = parameters()
    with pytest.raises(UqprismError, match="weights must sum to one"):
        up.EnsemblePrediction.gaussian_mixture(**given | {"shares": 0.4 * given["shares"]})
    with pytest.raises(UqprismError, match="components"):
        up.EnsemblePrediction.gaussian_mixture(mean=np.zeros(3), scale=1.0)
