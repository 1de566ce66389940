"""All 144 measures against 50-digit reference values, in every array library and precision."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from tests.conftest import ORACLE, as_array, error_of, is_hard

BY_NAME = {case["name"]: case for case in ORACLE}
SINGLE = [name for name, case in BY_NAME.items() if case["float32_exact"]]
NORMAL = (1.2e-38, 3.4e38)
ORDINARY = ["three_basic", "five_random_1", "ten_quarter_grid", "order_crps_M3", "near_both_M5_0.1", "sep_6_M2"]


def table(case: dict, library: str = "numpy", dtype: str = "float64") -> up.MeasureTable:
    mean, scale = (as_array(library, case[key], dtype) for key in ("mu", "sigma"))
    return up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale))


def failures(case: dict, measures: up.MeasureTable, closed: float, hard: float, representable: tuple = (0.0, np.inf)) -> dict:
    """The measures that miss their bound, with value, truth and error."""
    found = {}
    for name, truth in case["values"].items():
        if float(truth) != 0.0 and not representable[0] <= abs(float(truth)) <= representable[1]:
            continue
        error = error_of(name, measures[name], truth)
        if error > (hard if is_hard(name) else closed):
            found[name] = (float(measures[name]), truth, error)
    return found


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", BY_NAME)
def test_double_precision(name: str, library: str) -> None:
    """NumPy and PyTorch keep ten digits of closed forms and eight of the rest in float64, on every case."""
    assert failures(BY_NAME[name], table(BY_NAME[name], library), 1e-10, 1e-8) == {}


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", SINGLE)
def test_single_precision(name: str, library: str) -> None:
    """Float32 in, float32 out, with the digits float32 has."""
    measures = table(BY_NAME[name], library, "float32")
    assert str(measures["crps.excess.members.members"].dtype).endswith("float32")
    assert failures(BY_NAME[name], measures, 2e-5, 2e-4, NORMAL) == {}


ROOMS = (1, 3, 8, 50)  # members: JAX compiles anew for each shape, so all cases take one of four


def room(case: dict) -> int:
    """How many members the case has with each of its own repeated equally often, which changes no measure."""
    return next(members for members in ROOMS if members % len(case["mu"]) == 0)


@pytest.mark.parametrize("members", [size if size == 3 else pytest.param(size, marks=pytest.mark.slow) for size in ROOMS])
def test_jax_double_precision(members: int) -> None:
    """JAX keeps the same digits; cases that fit the same room go through together."""
    cases = [case for case in ORACLE if room(case) == members]
    points = max(sum(room(case) == other for case in ORACLE) for other in ROOMS)
    arrays = [np.array([np.resize(case[key], members) for case in cases]).T for key in ("mu", "sigma")]
    mean, scale = (as_array("jax", np.resize(x.T, (points, members)).T) for x in arrays)
    measures = {name: np.asarray(x) for name, x in up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale)).items()}
    for i, case in enumerate(cases):
        row = {name: float(measures[name][i]) for name in case["values"]}
        assert failures(case, row, 1e-10, 1e-8) == {}, case["name"]


def test_exactness_is_true() -> None:
    """Every stated tolerance holds, and only measures without a closed form are called quadrature."""
    for case in ORACLE:
        measures = table(case)
        for name, truth in case["values"].items():
            exactness = measures.exactness[name]
            assert error_of(name, measures[name], truth) <= exactness.tolerance, (case["name"], name)
            assert (exactness.method == "quadrature") == is_hard(name), (name, exactness)


def test_variance_input_keeps_the_digits_too() -> None:
    """Variances that agree to 1e-9 are compared as given, not as rounded roots."""
    from mpmath import mp, mpf, sqrt

    variance = np.array([2.0, 2.0 + 2.0**-30, 2.0 - 2.0**-31])
    ens = up.EnsemblePrediction.gaussian(mean=np.zeros(3), variance=variance)
    with mp.workdps(60):
        v = [mpf(float(x)) for x in variance]
        pairs = [mp.log(a / b) - 1 + b / a for a in v for b in v]
        log = sum(pairs) / 18
        crps = sum((sqrt(2 * (a + b)) - sqrt(a) - sqrt(b)) / sqrt(mp.pi) for a in v for b in v) / 9
        assert error_of("x", up.decompose(ens, rule="log").excess, str(log)) < 1e-13
        assert error_of("x", up.decompose(ens, rule="crps").excess, str(crps)) < 1e-13


def test_kinks_behind_near_twins(rng: np.random.Generator) -> None:
    """Clusters of nearly equal members far apart: the log density bends where a cluster takes over, twins or not."""
    for _ in range(20):
        jitter, distance = 10.0 ** rng.uniform(-6.0, -0.5), rng.uniform(6.0, 30.0)
        mean = np.array([0.0, 0.0, 0.0, distance, distance, 0.0]) + jitter * rng.normal(size=6)
        scale = 1.0 + 0.5 * jitter * rng.normal(size=6)
        measures = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale))
        for name, variance in (("matched", (scale**2).mean() + mean.var()), ("pooled", (scale**2).mean())):
            y = np.linspace(-9.5, 9.5, 200_001) * np.sqrt(variance) + mean.mean()
            z = (y - mean[:, None]) / scale[:, None]
            log_p = np.logaddexp.reduce(-0.5 * z * z - np.log(scale[:, None]), axis=0) - np.log(6.0)
            log_q = -0.5 * (y - mean.mean()) ** 2 / variance - 0.5 * np.log(variance)
            truth = np.trapezoid(np.exp(log_q) / np.sqrt(2.0 * np.pi) * (log_q - log_p), y)
            assert abs(measures[f"log.excess.mixture.{name}"] / truth - 1.0) < 1e-10


@pytest.mark.parametrize(("distance", "scale"), [(9.0, 1.0), (9.0, 0.6), (12.0, 0.6), (30.0, 3.0)])
def test_quadratic_total_of_two_separated_members(distance: float, scale: float) -> None:
    """The self terms of two equally weighted members cancel exactly; what remains is minus their overlap."""
    from mpmath import mp, mpf

    ens = up.EnsemblePrediction.gaussian(mean=[0.0, distance], scale=[1.0, scale])
    with mp.workdps(40):
        overlap = mp.npdf(mpf(distance), 0, mp.sqrt(1 + mpf(scale) ** 2))
        assert error_of("x", up.decompose(ens, rule="quadratic").total, str(-overlap)) < 1e-12


def test_weighted_ensembles_against_direct_integration(rng: np.random.Generator) -> None:
    """Surrogates against a weighted mixture, integrated from the definition with 30 digits."""
    import mpmath as mp

    mean, scale, weights = rng.normal(size=3), np.exp(0.5 * rng.normal(size=3)), np.array([0.2, 0.5, 0.3])
    measures = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=weights))
    with mp.workdps(30):
        m, s, w = ([mp.mpf(float(x)) for x in array] for array in (mean, scale, weights))
        centre = sum(a * b for a, b in zip(w, m, strict=True))
        pooled = sum(a * b**2 for a, b in zip(w, s, strict=True))
        matched = pooled + sum(a * (b - centre) ** 2 for a, b in zip(w, m, strict=True))
        nodes = sorted({a + k * b for a, b in zip(m, s, strict=True) for k in range(-12, 13, 3)})

        def density(y):
            return sum(c * mp.npdf(y, a, b) for a, b, c in zip(m, s, w, strict=True))

        for name, variance in (("matched", matched), ("pooled", pooled)):
            sigma = mp.sqrt(variance)

            def forward(y, sigma=sigma):
                return density(y) * mp.log(density(y) / mp.npdf(y, centre, sigma))

            def square(y, sigma=sigma):
                return (density(y) - mp.npdf(y, centre, sigma)) ** 2

            for measure, function in ((f"log.excess.{name}.mixture", forward), (f"quadratic.excess.mixture.{name}", square)):
                assert error_of(measure, measures[measure], str(mp.quad(function, nodes))) < 1e-11
