"""Plain words for rules and approximations, and units, all read from what is registered."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from uqprism.ensemble.approximations import Approximation, approximations
from uqprism.measures import resolve_rule
from uqprism.measures.vocabulary import has_shares, risk_unit, rule_words, unit_in_words
from uqprism.plots.words import quantity
from uqprism.rules import PAPER


def test_every_rule_of_the_paper_and_every_approximation_has_words() -> None:
    assert all(known.plain_name and known.cost for known in map(resolve_rule, PAPER))
    for name, known in approximations.items():
        assert known.label != name
        assert known.meaning != Approximation(name, known.function).meaning


@pytest.mark.parametrize(
    ("rule", "named", "compound", "unnamed"),
    [
        ("crps", "km", "km/h", "units of the target"),
        ("squared_error", "km²", "(km/h)²", "squared units of the target"),
        ("quadratic", "1/km", "1/(km/h)", "1/units of the target"),
        ("log", "nats", "nats", "nats"),
        ("gaussian_kernel", "", "", ""),
        ("mine", "", "", ""),
    ],
)
def test_risks_are_in_units_that_follow_from_the_rule(rule: str, named: str, compound: str, unnamed: str) -> None:
    assert (risk_unit(rule, "km"), risk_unit(rule, "km/h"), unit_in_words(rule)) == (named, compound, unnamed)
    assert quantity(rule, "km").removeprefix(rule_words(rule).name) == (f", {named}" if named else "")


def test_an_own_rule_has_words() -> None:
    """Those it gives, and for the rest what follows from its name and its degree."""
    plain = rule_words(up.rules.from_score("fourth_moment", lambda d, y: y**4 - d.mean**4 - 4.0 * d.mean**3 * (y - d.mean)))
    assert (plain.name, plain.title, plain.unit) == ("fourth moment score", "Fourth moment score", "")

    class Fourth(up.rules.Rule):
        name, degree, plain_name = "fourth", 4, "fourth power"

        def score(self, distribution, y):
            return (y - distribution.mean) ** 4

    assert (rule_words(Fourth()).name, rule_words(Fourth()).unit) == ("fourth power", "{}⁴")


def test_parts_are_shares_where_zero_is_the_least() -> None:
    positive, mixed = np.array([0.0, 1.0]), np.array([-1.0, 1.0])
    assert [has_shares(rule, positive) for rule in ("crps", "quantile", "mine", "log", "quadratic")] == [True] * 3 + [False] * 2
    assert not has_shares("mine", mixed)
