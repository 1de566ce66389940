"""Counts: probabilities against SciPy, and all risks against sums over every count."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

import uqprism as up
from tests.conftest import as_array
from uqprism.errors import UqprismError
from uqprism.families import NegativeBinomial, Poisson

WEIGHTS = np.array([0.5, 0.3, 0.2])
BACKENDS = ("reference", "fused") if find_spec("numba") else ("reference",)
MAKE = up.EnsemblePrediction


def example(name: str, level: float, seed: int = 1) -> tuple[dict, list]:
    """Parameters of three members at one point, and the same of SciPy."""
    rng = np.random.default_rng(seed)
    rate, size = level * np.exp(0.3 * rng.normal(size=3)), 3.0 * np.exp(rng.normal(size=3))
    if name == "poisson":
        return {"rate": rate[:, None]}, [scipy.stats.poisson(r) for r in rate]
    frozen = [scipy.stats.nbinom(n, n / (n + r)) for r, n in zip(rate, size, strict=True)]
    return {"rate": rate[:, None], "size": size[:, None]}, frozen


@pytest.mark.parametrize("rate", [1e-3, 1.0, 30.0, 1e3, 1e6])
def test_probabilities(rate: float, library: str) -> None:
    k = np.array([0.0, 1.0, 5.0, 40.0, 1000.0, 1e6])
    kinds = [(Poisson(rate=as_array(library, np.full(6, rate))), scipy.stats.poisson(rate))]
    for size in (0.5, 3.0, 1e3):
        given = {"rate": as_array(library, np.full(6, rate)), "size": as_array(library, np.full(6, size))}
        kinds.append((NegativeBinomial(**given), scipy.stats.nbinom(size, size / (size + rate))))
    for d, truth in kinds:
        y = as_array(library, k)
        assert_allclose(np.asarray(d.log_density(y)), truth.logpmf(k), rtol=1e-9, atol=1e-10)
        assert_allclose(np.asarray(d.cdf(y + 0.3)), truth.cdf(k), rtol=1e-8, atol=1e-14)
        assert_allclose(np.asarray(d.survival(y)), truth.sf(k), rtol=1e-8, atol=1e-14)
        assert_allclose(np.asarray(d.mean), truth.mean(), rtol=1e-9)
        assert_allclose(np.asarray(d.variance), truth.var(), rtol=1e-9)
        for level in (0.013, 0.47, 0.99):
            assert_array_equal(np.asarray(d.quantile(level)), truth.ppf(level))
        assert_array_equal(np.asarray(d.log_density(y + 0.5)), -np.inf)


def sums(members: list, end: int) -> dict[str, float]:
    """Measures by their definitions, as sums over counts."""
    k, w = np.arange(end), WEIGHTS
    p, f, s = (np.array([getattr(d, name)(k) for d in members]) for name in ("pmf", "cdf", "sf"))
    logs = np.array([d.logpmf(k) for d in members])
    px, fx, sx = w @ p, w @ f, w @ s
    log_px = np.log(np.maximum(px, 1e-320))
    mean, variance = (np.array([getattr(d, name)() for d in members]) for name in ("mean", "var"))
    pairs = [(w[i] * w[j], i, j) for i in range(3) for j in range(3)]
    centre, spread = w @ mean, w @ (mean - w @ mean) ** 2
    found = {
        "crps.bayes.members": w @ np.sum(f * s, axis=1),
        "crps.bayes.mixture": np.sum(fx * sx),
        "crps.excess.members.members": sum(a * np.sum((f[i] - f[j]) ** 2) for a, i, j in pairs),
        "crps.excess.mixture.members": w @ np.sum((f - fx) ** 2, axis=1),
        "log.bayes.members": -w @ np.sum(p * logs, axis=1),
        "log.bayes.mixture": -np.sum(px * log_px),
        "log.excess.members.members": sum(a * np.sum(p[j] * (logs[j] - logs[i])) for a, i, j in pairs),
        "log.excess.mixture.members": w @ np.sum(p * (logs - log_px), axis=1),
        "log.excess.members.mixture": w @ np.sum(px * (log_px - logs), axis=1),
        "quadratic.bayes.members": -w @ np.sum(p * p, axis=1),
        "quadratic.excess.members.members": sum(a * np.sum((p[i] - p[j]) ** 2) for a, i, j in pairs),
        "quadratic.total.mixture.members": -np.sum(px * px),
        "squared_error.bayes.members": w @ variance,
        "squared_error.excess.mixture.members": spread,
    }
    nodes, weights = np.polynomial.legendre.leggauss(20)
    for name, v in (("matched", w @ variance + spread), ("pooled", w @ variance)):
        gaussian, parts = scipy.stats.norm(centre, np.sqrt(v)), 64 if v < 1000 else 1
        total = quad(lambda y, g=gaussian: g.cdf(y) ** 2, centre - 30 * np.sqrt(v), 0.0, points=[-np.sqrt(v)], epsabs=1e-15)[0]
        for part in range(parts):
            for t, b in zip((part + 0.5 * (nodes + 1.0)) / parts, 0.5 * weights / parts, strict=True):
                total += b * np.sum((fx - gaussian.cdf(k + t)) ** 2)
        found[f"crps.excess.{name}.mixture"] = total
    return found


@pytest.mark.parametrize("level", [0.05, 2.0, 50.0, 3000.0])
@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_risks_are_sums_over_counts(name: str, level: float) -> None:
    given, members = example(name, level)
    truth = sums(members, int((60 if name == "poisson" else 400) + (5 if name == "poisson" else 80) * level))
    for backend in BACKENDS:
        table = up.evaluate(getattr(MAKE, name)(**given, weights=WEIGHTS), list(truth), backend=backend)
        for measure, value in truth.items():
            message = f"{measure} {backend}"
            assert_allclose(table[measure][0], value, rtol=table.exactness[measure].tolerance, err_msg=message)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rates_of_very_different_sizes(backend: str) -> None:
    """Panels of many counts: the mixture of a few and of a million."""
    rate, names = np.array([3.0, 1e6]), [f"{rule}.excess.mixture.members" for rule in ("crps", "log", "quadratic")]
    table = up.evaluate(MAKE.poisson(rate=rate[:, None]), names, backend=backend)
    # The two never coincide: their distribution functions differ by one between them, and a draw tells which it is from.
    own = up.rules.CRPS().entropy(Poisson(rate=rate))
    gap = 1e6 - 3.0
    assert_allclose(table["crps.excess.mixture.members"][0], 0.25 * gap - 0.25 * own.sum(), rtol=1e-8)
    assert_allclose(table["log.excess.mixture.members"][0], np.log(2.0), rtol=1e-8)
    squares = -up.rules.Quadratic().entropy(Poisson(rate=rate))
    assert_allclose(table["quadratic.excess.mixture.members"][0], 0.25 * squares.sum(), rtol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rate", [0.03, 5.0])
def test_members_that_nearly_agree(rate: float, backend: str) -> None:
    import mpmath as mp

    ens = MAKE.poisson(rate=np.array([[rate], [rate * (1.0 + 1e-6)]]))
    names = ["crps.excess.members.members", "log.excess.members.members", "quadratic.excess.members.members"]
    table = up.evaluate(ens, names, backend=backend)
    with mp.workdps(50):
        a, b = (mp.mpf(float(x)) for x in ens.members.rate[:, 0])
        p, q = ([mp.exp(-r) * r**k / mp.factorial(k) for k in range(80)] for r in (a, b))
        steps = [sum(p[: k + 1]) - sum(q[: k + 1]) for k in range(80)]
        truths = (
            sum(x * x for x in steps) / 2,
            (a - b) * mp.log(a / b) / 4,
            sum((x - y) ** 2 for x, y in zip(p, q, strict=True)) / 2,
        )
    for name, value in zip(table, truths, strict=True):
        assert_allclose(table[name][0], float(value), rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_scores_are_their_definitions(name: str) -> None:
    given, members = example(name, 4.0)
    k = np.arange(2000)
    for i, truth in enumerate(members):
        d = getattr(MAKE, name)(**given).members.map(lambda x, i=i: x[i])
        for y in (0.0, 3.0, 11.0):
            crps = np.sum((truth.cdf(k) - (k >= y)) ** 2)
            assert_allclose(up.rules.CRPS().score(d, y), crps, rtol=1e-9)
            assert_allclose(up.rules.Log().score(d, y), -truth.logpmf(y), rtol=1e-12)
            assert_allclose(up.rules.Quadratic().score(d, y), np.sum(truth.pmf(k) ** 2) - 2.0 * truth.pmf(y), rtol=1e-9)
        assert_allclose(d.absolute_deviation(2.6), truth.pmf(k) @ np.abs(k - 2.6), rtol=1e-12)
        assert_allclose(d.expectation(np.arctan), truth.pmf(k) @ np.arctan(k), rtol=1e-9)


@pytest.mark.parametrize("library", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_libraries_agree(library: str) -> None:
    rate, size = np.array([[2.0, 300.0], [3.0, 360.0]]), np.array([[0.7, 5.0], [0.9, 4.0]])
    names = ["crps.*", "log.excess.mixture.members", "quadratic.excess.members.members"]
    given = {"rate": as_array(library, rate), "size": as_array(library, size)}
    one, other = (
        up.evaluate(MAKE.negative_binomial(rate=rate, size=size), names),
        up.evaluate(MAKE.negative_binomial(**given), names),
    )
    for name in one:
        assert_allclose(np.asarray(other[name]), one[name], rtol=1e-8, err_msg=name)


def test_gradients_of_counts() -> None:
    torch = pytest.importorskip("torch")
    rate, size = np.array([[2.0], [3.0]]), np.array([[0.7], [0.9]])
    names = ["crps.excess.members.members", "log.excess.mixture.members", "crps.excess.matched.mixture"]

    def value(rate, size):
        table = up.evaluate(MAKE.negative_binomial(rate=rate, size=size), names)
        return sum(table[name].sum() for name in names)

    tensors = [torch.tensor(x, requires_grad=True) for x in (rate, size)]
    value(*tensors).backward()
    for which in (0, 1):
        moved = []
        for step in (1e-5, -1e-5):
            given = [rate.copy(), size.copy()]
            given[which][0, 0] += step
            moved.append(value(*given))
        assert_allclose(float(tensors[which].grad[0, 0]), (moved[0] - moved[1]) / 2e-5, rtol=1e-6)


def test_what_makes_no_sense_is_refused_with_its_reason(tmp_path: Path) -> None:
    ens = MAKE.poisson(rate=[[2.0], [3.0]])
    for measure in ("log.excess.matched.members", "log.total.members.pooled", "quadratic.excess.matched.mixture"):
        with pytest.raises(UqprismError, match="use members and mixture"):
            up.evaluate(ens, measure)
    with pytest.raises(UqprismError, match="gaussian_kernel"):
        up.decompose(ens, rule="gaussian_kernel")
    with pytest.raises(UqprismError, match="rate must be finite and greater than zero, got -1"):
        MAKE.poisson(rate=[[-1.0]])
    ens.save(tmp_path / "counts.npz")
    for back in (up.EnsemblePrediction.load(tmp_path / "counts.npz"), up.from_frame(ens.to_pandas())):
        assert type(back.members) is Poisson
        assert_array_equal(back.members.rate, ens.members.rate)


def exact(rates: np.ndarray, low: int, high: int) -> tuple[np.ndarray, ...]:
    """Probabilities, and those up to and above each count between two, by ratios of neighbours in 80-bit arithmetic."""
    k, logs = np.arange(low, high, dtype=np.longdouble), []
    for rate in rates.astype(np.longdouble):
        steps = np.concatenate([[np.longdouble(0.0)], np.cumsum(np.log(rate / k[1:]))])
        logs.append(steps - steps.max() - np.log(np.exp(steps - steps.max()).sum()))
    p = np.exp(logs)
    below = np.cumsum(p, axis=1)
    above = np.cumsum(p[:, ::-1], axis=1)[:, ::-1] - p
    return np.array(logs), p, below, above


@pytest.mark.parametrize("level", [1e3, 3e5])
@pytest.mark.parametrize("apart", [0.5, 4.0, 40.0])
def test_large_rates_against_80_bits(level: float, apart: float) -> None:
    """Members half a standard deviation apart, and so far that each has counts of its own."""
    rate = level + apart * np.sqrt(level) * np.array([0.0, 1.0, 2.6])
    low, high = (int(max(x, 1.0)) for x in (rate[0] - 40.0 * np.sqrt(level), rate[2] + 40.0 * np.sqrt(rate[2]) + 60.0))
    logs, p, below, above = exact(rate, low, high)
    w = WEIGHTS.astype(np.longdouble)
    px, fx, sx = w @ p, w @ below, w @ above
    log_px = np.log(np.maximum(px, np.longdouble(1e-4000)))
    truth = {
        "crps.bayes.members": w @ np.sum(below * above, axis=1),
        "crps.bayes.mixture": np.sum(fx * sx),
        "crps.excess.mixture.members": w @ np.sum((below - fx) ** 2, axis=1),
        "log.bayes.members": -w @ np.sum(p * logs, axis=1),
        "log.excess.mixture.members": w @ np.sum(p * (logs - log_px), axis=1),
        "log.excess.members.mixture": w @ np.sum(px * (log_px - logs), axis=1),
        "quadratic.bayes.members": -w @ np.sum(p * p, axis=1),
        "quadratic.excess.mixture.members": w @ np.sum((p - px) ** 2, axis=1),
    }
    for backend in BACKENDS:
        table = up.evaluate(MAKE.poisson(rate=rate[:, None], weights=WEIGHTS), list(truth), backend=backend)
        for measure, value in truth.items():
            assert_allclose(table[measure][0], float(value), rtol=1e-9, err_msg=f"{measure} {backend}")


@pytest.mark.parametrize("rate", [1e-3, 1e-6, 1e-9])
def test_low_rates_that_nearly_agree(rate: float) -> None:
    """Nearly all of the probability is that of zero, which keeps the digits of what members lack of one."""
    import mpmath as mp

    ens, names = MAKE.poisson(rate=np.array([[rate], [rate * (1.0 + 1e-4)]])), ["crps", "quadratic", "log"]
    with mp.workdps(60):
        a, b = (mp.mpf(float(x)) for x in ens.members.rate[:, 0])
        p = [[mp.exp(-x) * x**k / mp.factorial(k) for k in range(12)] for x in (a, b)]
        up_to = [[mp.fsum(q[: k + 1]) for k in range(12)] for q in p]
        truth = [mp.fsum((u - v) ** 2 for u, v in zip(*q, strict=True)) / 4 for q in (up_to, p)]
        mixed = [(u + v) / 2 for u, v in zip(*p, strict=True)]
        truth.append(mp.fsum(u * mp.log(u / v) / 2 for q in p for u, v in zip(q, mixed, strict=True)))
        for backend in BACKENDS:
            table = up.evaluate(ens, [f"{name}.excess.mixture.members" for name in names], backend=backend)
            for name, value in zip(names, truth, strict=True):
                if name == "quadratic" and backend == "reference" and rate < 1e-3:
                    continue  # it reads the probability of zero off a density in centred units: 1e-6 at a rate of 1e-6
                assert_allclose(table[f"{name}.excess.mixture.members"][0], float(value), rtol=1e-8, err_msg=f"{name} {backend}")


@pytest.mark.parametrize("rate", [2e4, 3e6])
def test_probabilities_of_large_rates_keep_their_digits(rate: float, library: str) -> None:
    """Those of SciPy and JAX are off by 2e-9 at three million."""
    low, k = int(rate - 30.0 * np.sqrt(rate)), np.floor(rate + np.sqrt(rate) * np.array([-6.0, -1.0, 0.0, 0.7, 5.0]))
    _, _, below, above = exact(np.array([rate]), low, int(rate + 40.0 * np.sqrt(rate)))
    at = k.astype(int) - low
    d, y = Poisson(rate=as_array(library, np.full(len(k), rate))), as_array(library, k)
    assert_allclose(np.asarray(d.cdf(y)), below[0, at].astype(float), rtol=1e-11)
    assert_allclose(np.asarray(d.survival(y)), above[0, at].astype(float), rtol=1e-11)
