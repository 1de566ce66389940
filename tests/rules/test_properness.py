"""Scores that are not proper are refused when a rule is made of them."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from uqprism import rules
from uqprism.rules.properness import _gaps, check_proper

ENS = up.EnsemblePrediction.gaussian(mean=np.array([[0.0, 1.0], [1.0, 3.0]]), scale=1.0)


class Turned(rules.Rule):
    """The CRPS with the wrong sign, as a class of a user."""

    name = "turned"

    def score(self, distribution, y):
        """Minus the CRPS."""
        return -rules.CRPS().score(distribution, y)


def interval(p, y):
    low, high = p.quantile(0.05), p.quantile(0.95)
    return high - low + 20.0 * np.maximum(low - y, 0.0) + 20.0 * np.maximum(y - high, 0.0)


PROPER = {
    "log": lambda p, y: -p.log_density(y),
    "spherical": lambda p, y: -p.density(y) / np.sqrt(up.families.functionals.overlap(p, p)),
    "Dawid-Sebastiani": lambda p, y: (y - p.mean) ** 2 / p.variance + np.log(p.variance),
    "interval": interval,
    "threshold, which jumps": lambda p, y: ((y <= 1.0) - p.cdf(1.0)) ** 2,
    "constant": lambda p, y: 0.0 * (y + p.mean),
    "Gaussian alone": lambda p, y: (y - p.mean) ** 2 + 0.0 * p.deviation if isinstance(p, up.Gaussian) else p.nothing,
    "fails": lambda p, y: p.nothing + y,
}
WRONG = {
    "density": (lambda p, y: p.density(y), "wrong sign.*lower is better: negate it"),
    "log density": (lambda p, y: p.log_density(y), "wrong sign.*lower is better: negate it"),
    "with an offset": (lambda p, y: 1e6 + p.log_density(y), "wrong sign"),
    "minus the squared error": (lambda p, y: -((y - p.mean) ** 2), "wrong sign"),
    "squared z": (lambda p, y: (y - p.mean) ** 2 / p.variance, "not proper"),
    "absolute error of the mean": (lambda p, y: abs(y - p.mean), "not proper"),
    "linear": (lambda p, y: -p.density(y), "not proper"),
}


@pytest.mark.parametrize("name", PROPER)
def test_proper_scores_are_taken(name: str) -> None:
    assert rules.from_score("mine", PROPER[name]).name == "mine"


@pytest.mark.parametrize("name", WRONG)
def test_scores_that_are_not_proper_are_refused(name: str) -> None:
    score, message = WRONG[name]
    with pytest.raises(up.UqprismError, match=message):
        rules.from_score("mine", score)


def test_rules_from_entropies_and_convex_functions_are_checked_too() -> None:
    assert rules.from_entropy("variance", lambda p: p.variance, lambda p, y: (y - p.mean) ** 2)
    with pytest.raises(up.UqprismError, match="wrong sign"):
        rules.from_entropy("convex", lambda p: -p.variance, lambda p, y: -((y - p.mean) ** 2))
    with pytest.raises(up.UqprismError, match="wrong sign"):
        rules.Bregman(lambda t: -t * t, lambda t: -2.0 * t, name="concave")


def test_a_class_of_a_user_is_checked_when_it_is_used() -> None:
    for rule in (Turned, Turned()):
        with pytest.raises(up.UqprismError, match="'turned' seems to have the wrong sign"):
            up.decompose(ENS, rule=rule)


@pytest.mark.parametrize("name", rules.rules.names())
def test_rules_of_the_package_pass_with_room(name: str) -> None:
    gaps, _ = _gaps(rules.rules.get(name)())
    assert len(gaps) == 14
    assert gaps.min() >= -1e-3 * gaps.max()


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(up.UqprismError, match="'crps' is taken by CRPS"):
        rules.from_score("crps", PROPER["log"])
    with pytest.raises(up.UqprismError, match="'log' is taken by Log"):
        up.decompose(ENS, rule=rules.Quantile(0.9, name="log"))
    with pytest.raises(up.UqprismError, match="must be text"):
        rules.from_score(PROPER["log"], "mine")


def test_the_same_rule_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = rules.from_score("once", PROPER["log"])
    monkeypatch.setattr("uqprism.rules.properness._gaps", None)
    check_proper(rule)
