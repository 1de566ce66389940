"""What `exactness` states holds: random ensembles of every kind of family, against integrals of the definitions.

`oracles/families.py` wrote the reference values; it uses nothing of the package.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.conftest import as_array
from tests.families.written import WRITTEN

CASES = json.loads((Path(__file__).parent / "oracles" / "families.json").read_text())
GIVEN = {"gaussian": ("mean", "scale"), "student_t": ("location", "scale", "df")}


def ensemble(case: dict) -> up.EnsemblePrediction:
    """The case's members at one point."""
    family = WRITTEN.get(case["family"]) or up.families.families.get(case["family"])
    names = GIVEN.get(case["family"]) or tuple(family.parameters)
    values = [np.array(case[key])[:, None] for key in ("location", "scale", "shape")]
    return up.EnsemblePrediction(family(**dict(zip(names, values, strict=False))), case["weights"])


def error(name: str, value: float, truth: float, values: dict[str, float]) -> float:
    """The error relative to what `Exactness` says it is relative to."""
    if value == truth:
        return 0.0
    size = abs(truth)
    rule, risk, *roles = name.split(".")
    if rule == "log" and risk != "excess":
        size = max(size, 1.0)
    if rule == "quadratic" and risk == "total":
        size = max(size, abs(values[f"quadratic.bayes.{roles[-1]}"]))
    difference = abs(value - truth)
    return difference / size if size and math.isfinite(difference) else math.inf


def ratios(case: dict, backend: str) -> dict[str, float]:
    """Each measure's error over its stated tolerance."""
    table = up.evaluate(ensemble(case), list(case["values"]), backend=backend)
    values = case["values"]
    return {n: error(n, float(table[n][0]), truth, values) / table.exactness[n].tolerance for n, truth in values.items()}


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{CASES[i]['family']}-{CASES[i]['kind']}-{i}")
def test_stated_tolerances_hold(number: int) -> None:
    """Every measure of the reference."""
    assert {name: ratio for name, ratio in ratios(CASES[number], "reference").items() if not ratio <= 1.0} == {}


FUSED = [i for i, case in enumerate(CASES) if ensemble(case).members.form is not None]


@pytest.mark.parametrize("number", FUSED, ids=lambda i: f"{CASES[i]['family']}-{CASES[i]['kind']}-{i}")
def test_stated_tolerances_hold_for_kernels(number: int) -> None:
    """Every measure of the fused kernels."""
    pytest.importorskip("numba")
    assert {name: ratio for name, ratio in ratios(CASES[number], "fused").items() if not ratio <= 1.0} == {}


def gini_of_t(df: float) -> float:
    """Half of E|X - X'| of a standard Student t."""
    from mpmath import beta, mp, mpf, sqrt

    with mp.workdps(30):
        n = mpf(df)
        return float(2 * sqrt(n) / (n - 1) * beta(mpf(1) / 2, n - mpf(1) / 2) / beta(n / 2, mpf(1) / 2) ** 2)


@pytest.mark.parametrize("df", [1.001, 1.01, 1.05, 1.2, 1.9, 2.0, 3.0, 30.0, 1e6])
def test_crps_of_heavy_tails(df: float, library: str) -> None:
    """As long as there is a mean, whatever share of it lies beyond any grid."""
    t = up.StudentT(**{key: as_array(library, [x]) for key, x in (("location", 0.3), ("scale", 1.0), ("df", df))})
    np.testing.assert_allclose(float(up.rules.CRPS().entropy(t)[0]), gini_of_t(df), rtol=1e-9)


@pytest.mark.parametrize("df", [2.001, 2.01, 2.1, 2.3, 3.0, 30.0, 1e3])
def test_relative_entropy_of_heavy_tails(df: float, library: str) -> None:
    """From matched: half the log of the ratio of what a Gaussian and a Student t of one variance occupy."""
    from mpmath import beta, digamma, log, mp, mpf, pi, sqrt

    given = {key: as_array(library, [[x], [x]]) for key, x in (("location", 0.3), ("scale", 2.0), ("df", df))}
    table = up.evaluate(up.EnsemblePrediction.student_t(**given), "log.excess.matched.*")
    with mp.workdps(30):
        n = mpf(df)
        entropy = (n + 1) / 2 * (digamma((n + 1) / 2) - digamma(n / 2)) + log(sqrt(n) * beta(n / 2, mpf(1) / 2))
        truth = float(log(2 * pi * mp.e * n / (n - 2)) / 2 - entropy)
    for name in ("log.excess.matched.members", "log.excess.matched.mixture"):
        np.testing.assert_allclose(float(table[name][0]), truth, rtol=1e-9)


def test_densities_that_exclude_each_other() -> None:
    """A log risk is infinite where the prediction rules out what happens, and never NaN; nothing else is infinite."""
    members = WRITTEN["exponential"](location=np.array([[0.0], [0.5]]), scale=np.ones((2, 1)))
    table = up.evaluate(up.EnsemblePrediction(members))
    infinite = {name for name in table if not np.isfinite(table[name]).all()}
    assert not any(np.isnan(table[name]).any() for name in table)
    assert "log.excess.members.mixture" in infinite
    assert "log.excess.mixture.members" not in infinite
    assert all(name.startswith("log.") for name in infinite)


def test_densities_that_are_not_as_declared() -> None:
    """A missing declaration is refused with its remedy, not integrated wrongly."""

    class Undeclared(WRITTEN["triangular"]):
        support = (None, None)

        def landmarks(self):
            wide = self.scale[None]
            return up.families.panels.Landmarks(self.location[None] + 0.3 * wide, wide, 2.0 * wide, (False,))

    members = Undeclared(location=np.zeros((2, 1)), scale=np.array([[1.0], [2.0]]))
    with pytest.raises(up.UqprismError, match="support"):
        up.evaluate(up.EnsemblePrediction(members), "log.bayes.mixture")

    class Light(WRITTEN["lomax"]):
        tails = (None, None)

    with pytest.raises(up.UqprismError, match="tails"):
        up.evaluate(up.EnsemblePrediction(Light(location=np.zeros((2, 1)), scale=np.ones((2, 1)), shape=np.full((2, 1), 1.5))))


SCALES = {1e6: (0.69312985212509, 70523.164743507), 3e8: (0.69314708736304, 21157108.849841)}
SCALES |= {1e10: (0.69314717703021, 705236978.9015), 1e15: (0.69314718055988, 70523697943469.0)}


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("ratio", SCALES)
def test_members_of_very_different_scales(ratio: float, backend: str) -> None:
    """A member far narrower than the distance between doubles at its mean, against integrals with 40 digits."""
    ens = up.EnsemblePrediction.gaussian(mean=np.array([[0.3], [1.0]]), scale=np.array([[1.0], [1.0 / ratio]]))
    names = ["log.excess.mixture.members", "quadratic.total.mixture.matched"]
    table = up.evaluate(ens, names, backend=backend)
    for name, truth in zip(names, SCALES[ratio], strict=True):
        np.testing.assert_allclose(table[name][0], truth, rtol=1e-9, err_msg=name)


FAINT = {1e-4: (1.5307698299623e-7, 2.5369253768834e-7), 1e-9: (1.5337605923539e-17, 2.5439022044884e-17)}
FAINT |= {1e-12: (1.5337606222803e-23, 2.5439022743462e-23)}


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("weight", FAINT)
def test_members_of_next_to_no_weight(weight: float, backend: str) -> None:
    """All that a faint member adds to the mixture is of its weight: distances from the surrogate keep its digits."""
    ens = up.EnsemblePrediction.gaussian(mean=[0.3, 5.0], scale=[1.0, 0.2], weights=[1.0 - weight, weight])
    names = ["crps.excess.matched.mixture", "quadratic.excess.matched.mixture"]
    table = up.evaluate(ens, names, backend=backend)
    for name, truth in zip(names, FAINT[weight], strict=True):
        np.testing.assert_allclose(float(table[name]), truth, rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("spread", [1.0, 1e-7, 1e-15])
def test_draws_close_to_each_other(spread: float, rng: np.random.Generator) -> None:
    """The kernel score of draws much closer than its bandwidth, against double sums with 50 digits."""
    from mpmath import expm1, mp, mpf

    draws = 1.0 + spread * rng.normal(size=(3, 8))
    names = [f"gaussian_kernel.{risk}" for risk in ("bayes.members", "total.members.members", "excess.members.members")]
    table = up.evaluate(up.EnsemblePrediction.samples(draws[:, :, None]), names)
    with mp.workdps(50):
        x = [[mpf(float(v)) for v in row] for row in draws]
        gaps = [[sum(-expm1(-((a - b) ** 2) / 2) for a in p for b in q) / 64 for q in x] for p in x]
        own = sum(gaps[i][i] for i in range(3)) / 6
        total = sum(sum(row) for row in gaps) / 9 - own
    for name, truth in zip(names, (own, total, total - own), strict=True):
        np.testing.assert_allclose(table[name][0], float(truth), rtol=table.exactness[name].tolerance, err_msg=name)
