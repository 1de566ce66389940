"""Extreme shapes, rates and bounds, against closed forms and integrals in 30 or 50 digits."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up

MAKE = up.EnsemblePrediction
BACKENDS = ("reference", "fused") if find_spec("numba") else ("reference",)


def column(*values: float) -> np.ndarray:
    """One point, a member for each value."""
    return np.array(values, dtype=np.float64)[:, None]


def agree(ens: up.EnsemblePrediction, truth: dict[str, Any], backend: str) -> None:
    """Every measure within its stated tolerance: of log Bayes risks relative to max(|value|, 1)."""
    table = up.evaluate(ens, list(truth), backend=backend)
    for name, value in truth.items():
        slack = table.exactness[name].tolerance
        size = max(abs(float(value)), 1.0 if name.startswith("log.bayes") else 0.0)
        assert_allclose(table[name][0], float(value), rtol=0.0, atol=slack * size, err_msg=name)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rates", [(1e-4, 3e-4), (1e-6, 1e-6 * (1.0 + 1e-6)), (1e-10, 3e-10)])
@pytest.mark.parametrize("size", [None, 1.5])
def test_low_rates(rates: tuple[float, float], size: float | None, backend: str) -> None:
    """Probabilities of zero differ by less than they are rounded."""
    with mp.workdps(50):
        p, q = ([probability(k, mp.mpf(r), size) for k in range(12)] for r in rates)
        mixed = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
        squares = sum((x - y) ** 2 for x, y in zip(p, q, strict=True))
        steps = [sum(p[: k + 1]) - sum(q[: k + 1]) for k in range(12)]
        truth = {
            "quadratic.excess.members.members": squares / 2,
            "quadratic.excess.mixture.members": squares / 4,
            "quadratic.bayes.members": -sum(x * x + y * y for x, y in zip(p, q, strict=True)) / 2,
            "crps.excess.members.members": sum(x * x for x in steps) / 2,
            "log.excess.mixture.members": sum(
                (x * mp.log(x / z) + y * mp.log(y / z)) / 2 for x, y, z in zip(p, q, mixed, strict=True)
            ),
        }
    rate = column(*rates)
    agree(MAKE.poisson(rate=rate) if size is None else MAKE.negative_binomial(rate=rate, size=size), truth, backend)


def probability(k: int, rate: Any, size: float | None) -> Any:
    if size is None:
        return mp.exp(-rate) * rate**k / mp.factorial(k)
    n = mp.mpf(size)
    return mp.binomial(k + n - 1, k) * (n / (n + rate)) ** n * (rate / (n + rate)) ** k


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [0.6, 30.0, 1e5, 1e8, 9e9])
def test_gamma_shapes(shape: float, backend: str) -> None:
    pair = shape, shape + 3.0 * shape**0.5
    with mp.workdps(50):
        k, m = map(mp.mpf, pair)
        truth = {
            "crps.bayes.members": sum(mp.gammaprod([x + 0.5], [x]) for x in (k, m)) / mp.sqrt(mp.pi) / 2,
            "quadratic.bayes.members": -sum(gamma_overlap(x, x) for x in (k, m)) / 2,
            "quadratic.excess.members.members": (gamma_overlap(k, k) + gamma_overlap(m, m) - 2 * gamma_overlap(k, m)) / 2,
            "log.bayes.members": sum(x + mp.loggamma(x) + (1 - x) * mp.digamma(x) for x in (k, m)) / 2,
            "log.excess.members.members": (k - m) * (mp.digamma(k) - mp.digamma(m)) / 4,
        }
    agree(MAKE.gamma(shape=column(*pair), scale=1.0), truth, backend)


def gamma_overlap(k: Any, m: Any) -> Any:
    return mp.exp(mp.loggamma(k + m - 1) - mp.loggamma(k) - mp.loggamma(m) - (k + m - 1) * mp.log(2))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "shapes", [(0.7, 2.0, 0.8, 2.2), (2e6, 3e6, 1.999e6, 3.001e6), (1e8, 1e8, 0.9999e8, 1e8), (0.6, 1e8, 0.9, 0.5e8)]
)
def test_beta_shapes(shapes: tuple[float, ...], backend: str) -> None:
    with mp.workdps(50):
        (a, b), (c, d) = members = [tuple(map(mp.mpf, shapes[i : i + 2])) for i in (0, 2)]
        truth = {
            "crps.bayes.members": sum(beta_gap(*x) for x in members) / 4,
            "quadratic.bayes.members": -sum(beta_overlap(x, x) for x in members) / 2,
            "quadratic.excess.members.members": (
                beta_overlap((a, b), (a, b)) + beta_overlap((c, d), (c, d)) - 2 * beta_overlap((a, b), (c, d))
            )
            / 2,
            "log.bayes.members": sum(beta_cross_entropy(x, x) for x in members) / 2,
            "log.excess.members.members": sum(
                beta_cross_entropy(x, y) - beta_cross_entropy(x, x) for x, y in (members, members[::-1])
            )
            / 4,
        }
    agree(MAKE.beta(a=column(shapes[0], shapes[2]), b=column(shapes[1], shapes[3])), truth, backend)


def log_beta(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def beta_gap(a: Any, b: Any) -> Any:
    return 4 / (a + b) * mp.exp(log_beta(a + b, a + b) - log_beta(a, a) - log_beta(b, b))


def beta_overlap(p: tuple[Any, Any], q: tuple[Any, Any]) -> Any:
    return mp.exp(log_beta(p[0] + q[0] - 1, p[1] + q[1] - 1) - log_beta(*p) - log_beta(*q))


def beta_cross_entropy(truth: tuple[Any, Any], prediction: tuple[Any, Any]) -> Any:
    whole = mp.digamma(sum(truth))
    below, above = (mp.digamma(x) - whole for x in truth)
    return log_beta(*prediction) - (prediction[0] - 1) * below - (prediction[1] - 1) * above


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("distance", [1e3, 1e5])
def test_gaussians_truncated_far_in_the_tail(distance: float, side: float, backend: str) -> None:
    """Next to the bound they are exponential distributions, with scales of a part in `distance`."""
    given = [(-distance, 1.0), (-1.2 * distance, 1.1)]
    with mp.workdps(30):
        members = [(mp.mpf(m), mp.mpf(s), tail(-mp.mpf(m) / mp.mpf(s))) for m, s in given]

        def density(y: Any, m: Any, s: Any, held: Any) -> Any:
            return mp.exp(-y * (y - 2 * m) / (2 * s * s)) / (s * held)

        def above(y: Any, m: Any, s: Any, held: Any) -> Any:
            return mp.exp(-y * (y - 2 * m) / (2 * s * s)) * tail((y - m) / s) / held

        def integral(function: Any) -> Any:
            return mp.quad(function, [mp.mpf(x) / distance for x in (0, 1, 4, 12, 36)], maxdegree=3)

        p, q = members
        truth = {
            "crps.bayes.members": integral(lambda y: sum(above(y, *x) * (1 - above(y, *x)) for x in members)) / 2,
            "crps.excess.members.members": integral(lambda y: (above(y, *p) - above(y, *q)) ** 2) / 2,
            "quadratic.bayes.members": -integral(lambda y: sum(density(y, *x) ** 2 for x in members)) / 2,
            "log.excess.members.members": integral(
                lambda y: (density(y, *p) - density(y, *q)) * mp.log(density(y, *p) / density(y, *q))
            )
            / 4,
        }
    location, scale = column(*(side * m for m, _ in given)), column(*(s for _, s in given))
    bounds = {"low": 0.0} if side > 0 else {"high": 0.0}
    agree(MAKE.truncated_gaussian(location=location, scale=scale, **bounds), truth, backend)


def tail(z: Any) -> Any:
    """What a standard Gaussian holds above a large z, over its density there: a continued fraction."""
    value = z
    for n in range(12, 0, -1):
        value = z + n / value
    return 1 / value


@pytest.mark.parametrize("backend", BACKENDS)
def test_bounds_of_their_own(backend: str) -> None:
    """Uniform distributions, of which one reaches beyond the other on both sides."""
    ens = MAKE.beta(a=column(1.0, 1.0), b=1.0, low=column(0.0, -0.5), high=column(1.0, 1.25))
    # On (0, 1), which holds 4/7 of the second, the densities are 1 and 4/7; outside, the second has 2/7 below and 1/7 above.
    inside, below, above = 4 / 7, 2 / 7, 1 / 7
    nodes, weights = np.polynomial.legendre.leggauss(8)
    y = 0.5 * (nodes + 1.0)
    gap = 0.5 * weights @ (y - (below + inside * y)) ** 2 + 0.5 * below**2 / 3 + 0.25 * above**2 / 3
    mixed = 0.5 * (1.0 + inside)
    truth = {
        "crps.excess.members.members": gap / 2,
        "quadratic.excess.members.members": 0.5 * ((1.0 - inside) ** 2 + 0.75 * inside**2),
        "log.excess.mixture.members": 0.5 * -np.log(mixed)
        + 0.5 * (inside * np.log(inside / mixed) + (below + above) * np.log(2.0)),
    }
    agree(ens, truth, backend)
    table = up.evaluate(ens, ["log.excess.members.members", "log.excess.members.mixture"], backend=backend)
    assert np.isinf(table["log.excess.members.members"]).all()
    assert np.isinf(table["log.excess.members.mixture"]).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_gaussians_reach_beyond_bounds_however_far(backend: str) -> None:
    """A log risk is infinite where the truth has values that the prediction rules out, also those that no number shows."""
    for ens in (
        MAKE.beta(a=column(2e4, 3e4), b=column(3e4, 2e4)),
        MAKE.gamma(shape=column(1e4, 1.1e4), scale=1.0),
        MAKE.lognormal(log_mean=column(0.0, 1e-3), log_scale=1e-3),
        MAKE.truncated_gaussian(location=column(0.0, 0.1), scale=1.0, low=-50.0),
    ):
        names = [f"log.{risk}.{prediction}.matched" for risk in ("excess", "total") for prediction in ("members", "mixture")]
        table = up.evaluate(ens, [*names, "log.excess.matched.members"], backend=backend)
        assert all(table[name][0] == np.inf for name in names)
        assert np.isfinite(table["log.excess.matched.members"]).all()
