"""Words for rules, stand-ins and units."""

from __future__ import annotations

import numpy as np
import pytest

from uqprism.app import choices
from uqprism.ensemble.approximations import approximations
from uqprism.measures.vocabulary import RULES, STAND_INS, has_shares, risk_unit, rule_words, told_unit
from uqprism.plots.labels import quantity
from uqprism.rules import PAPER


def test_every_rule_of_the_paper_and_every_stand_in_has_words() -> None:
    assert set(PAPER) <= set(RULES)
    assert set(approximations.names()) <= set(STAND_INS)


@pytest.mark.parametrize(
    ("rule", "named", "compound", "unnamed"),
    [
        ("crps", "km", "km/h", "units of the target"),
        ("squared_error", "km²", "(km/h)²", "squared units of the target"),
        ("quadratic", "1/km", "1/(km/h)", "1/units of the target"),
        ("log", "nats", "nats", "nats"),
        ("mine", "", "", ""),
    ],
)
def test_risks_are_in_units_that_follow_from_the_rule(rule: str, named: str, compound: str, unnamed: str) -> None:
    assert (risk_unit(rule, "km"), risk_unit(rule, "km/h"), told_unit(rule)) == (named, compound, unnamed)
    assert quantity(rule, "km").removeprefix(rule_words(rule).name) == (f", {named}" if named else "")


def test_parts_are_shares_where_zero_is_the_least() -> None:
    positive, mixed = np.array([0.0, 1.0]), np.array([-1.0, 1.0])
    assert [has_shares(rule, positive) for rule in ("crps", "quantile", "mine", "log", "quadratic")] == [True] * 3 + [False] * 2
    assert not has_shares("mine", mixed)


def test_the_app_has_the_same_words() -> None:
    assert {rule: RULES[rule].title for rule in PAPER} == choices.RULES
