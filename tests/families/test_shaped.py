"""Families with bounds: all measures of random ensembles, against integrals of the definitions that `oracles/shaped.py` took."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from tests.conftest import as_array
from tests.test_exactness import error
from uqprism.errors import UqprismError

MAKE = up.EnsemblePrediction
CASES = json.loads((Path(__file__).parents[1] / "oracles" / "shaped.json").read_text())


def given(case: dict) -> dict[str, np.ndarray]:
    """The parameters of the case's members at one point."""
    scale, shape = np.array(case["scale"])[:, None], np.array(case["shape"])
    first, second = shape[:, :1], shape[:, -1:]
    return {
        "lognormal": {"log_mean": np.log(scale), "log_scale": first},
        "gamma": {"shape": first, "scale": scale},
        "weibull": {"shape": first, "scale": scale},
        "beta": {"a": first, "b": second, "high": scale},
        "truncated_gaussian": {"location": first * scale, "scale": second * scale, "low": 0.0, "high": 4.0 * scale},
    }[case["family"]]


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{CASES[i]['family']}-{CASES[i]['kind']}-{i}")
def test_stated_tolerances_hold(number: int, backend: str) -> None:
    """Every measure, near agreement included."""
    if backend == "fused":
        pytest.importorskip("numba")
    case = CASES[number]
    ens = getattr(MAKE, case["family"])(**given(case), weights=case["weights"])
    table = up.evaluate(ens, list(case["values"]), backend=backend)
    values = case["values"]
    ratios = {n: error(n, float(table[n][0]), truth, values) / table.exactness[n].tolerance for n, truth in values.items()}
    assert {name: ratio for name, ratio in ratios.items() if not ratio <= 1.0} == {}


FIRST = {
    family: next(case for case in CASES if (case["family"], case["kind"]) == (family, "ordinary"))
    for family in dict.fromkeys(case["family"] for case in CASES)
}


@pytest.mark.parametrize("family", FIRST)
def test_libraries_agree_and_have_gradients(family: str) -> None:
    """PyTorch gives the numbers of NumPy, and gradients in every parameter are those of central differences."""
    torch = pytest.importorskip("torch")
    case = FIRST[family]
    arrays = {name: np.asarray(x, dtype=float) + 0.0 * np.array(case["scale"])[:, None] for name, x in given(case).items()}
    names = ["crps.excess.mixture.members", "crps.bayes.mixture", "log.excess.members.members", "log.bayes.mixture"]

    def value(**parameters):
        table = up.evaluate(getattr(MAKE, family)(**parameters, weights=case["weights"]), names)
        return table, sum((1.0 + i) * table[name].sum() for i, name in enumerate(names))

    tensors = {name: torch.tensor(x, requires_grad=name not in ("low", "high")) for name, x in arrays.items()}
    one, other = value(**arrays)[0], value(**tensors)
    for name in names:
        assert_allclose(other[0][name].detach().numpy(), one[name], rtol=1e-9, err_msg=name)
    other[1].backward()
    for name, x in arrays.items():
        if name in ("low", "high"):
            continue
        moved = []
        for step in (1e-5, -1e-5):
            changed = x.copy()
            changed[0, 0] += step * abs(x[0, 0])
            moved.append(float(value(**arrays | {name: changed})[1]))
        slope = (moved[0] - moved[1]) / (2e-5 * abs(x[0, 0]))
        assert_allclose(float(tensors[name].grad[0, 0]), slope, rtol=2e-6, atol=1e-8, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("family", FIRST)
def test_jax_agrees(family: str) -> None:
    case = FIRST[family]
    names = ["crps.*", "log.bayes.*", "log.excess.members.members", "quadratic.bayes.mixture"]
    tables = []
    for library in ("numpy", "jax"):
        arrays = {name: as_array(library, x) for name, x in given(case).items()}
        tables.append(up.evaluate(getattr(MAKE, family)(**arrays, weights=case["weights"]), names))
    for name in tables[0]:
        assert_allclose(np.asarray(tables[1][name]), tables[0][name], rtol=1e-8, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("family", FIRST)
def test_files_and_tables(family: str, tmp_path: Path) -> None:
    ens = getattr(MAKE, family)(**given(FIRST[family]))
    ens.save(tmp_path / "members.npz")
    for back in (MAKE.load(tmp_path / "members.npz"), up.from_frame(ens.to_pandas(), family=family)):
        assert type(back.members) is type(ens.members)
        for name, x in ens.members.stored().items():
            assert_array_equal(getattr(back.members, name), x)


def test_squares_without_an_integral_are_infinite_and_never_nan() -> None:
    for ens in (
        MAKE.gamma(shape=[[0.4], [0.9]], scale=1.0),
        MAKE.weibull(shape=[[0.5], [0.9]], scale=1.0),
        MAKE.beta(a=[[0.3], [2.0]], b=2.0),
    ):
        table = up.evaluate(ens)
        assert not any(np.isnan(table[name]).any() for name in table)
        for name in ("excess.members.members", "excess.members.mixture", "total.members.matched", "excess.matched.mixture"):
            assert table[f"quadratic.{name}"][0] == np.inf, name
        assert table["quadratic.bayes.mixture"][0] == -np.inf
        assert np.isfinite(table["quadratic.total.matched.members"]).all()
        assert np.isfinite(table["log.excess.members.members"]).all()


REFUSED = {
    "log_scale must lie between 1e-06 and 10, got 20": lambda: MAKE.lognormal(log_mean=[[0.0]], log_scale=20.0),
    "shape must lie between 0.05 and 1e[+]10, got 0.01": lambda: MAKE.gamma(shape=[[0.01]], scale=1.0),
    "shape must be finite and greater than zero, got -1": lambda: MAKE.weibull(shape=[[-1.0]], scale=1.0),
    "low must be less than high, got 2 and 1": lambda: MAKE.beta(a=[[1.0]], b=1.0, low=2.0),
    "low must be a number or infinite, got nan": lambda: MAKE.truncated_gaussian(location=[[0.0]], scale=1.0, low=np.nan),
    "use log_scale=": lambda: MAKE.lognormal(log_mean=[[0.0]], sigma=1.0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_parameters_are_refused(message: str) -> None:
    with pytest.raises(UqprismError, match=message):
        REFUSED[message]()


@pytest.mark.parametrize(("low", "high"), [(30.0, 31.0), (-np.inf, -6.0), (5.0, np.inf), (0.0, 1e-5), (-np.inf, np.inf)])
def test_truncated_gaussians_in_tails_and_between_close_bounds(low: float, high: float) -> None:
    """Moments and distribution function, of which the usual formulas keep nothing, with 40 digits."""
    import mpmath as mp

    d = up.families.TruncatedGaussian(location=0.0, scale=1.0, low=low, high=high)
    with mp.workdps(40):
        start, end = (
            max(mp.mpf(low), mp.mpf(high) - 12 if np.isfinite(high) else -15),
            min(mp.mpf(high), max(mp.mpf(low), -15) + 30),
        )
        edges = mp.linspace(start, end, 60)
        total, mean = (mp.quad(lambda x, k=k: (x - start) ** k * mp.npdf(x), edges) for k in (0, 1))
        mean /= total
        variance = mp.quad(lambda x: (x - start - mean) ** 2 * mp.npdf(x), edges) / total
        y = start + mean
        share = mp.quad(mp.npdf, mp.linspace(start, y, 60)) / total
    assert_allclose(float(d.mean), float(start + mean), rtol=1e-10, atol=1e-12)
    assert_allclose(float(d.variance), float(variance), rtol=1e-9)
    assert_allclose(float(d.cdf(float(y))), float(share), rtol=1e-8)
    assert_allclose(float(d.cdf(float(y)) + d.survival(float(y))), 1.0, rtol=1e-12)
