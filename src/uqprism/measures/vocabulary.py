"""What rules and stand-ins are called in plain words, and what risks are in: one home for the report, the app and the figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uqprism.measures.measure import is_measure


@dataclass(frozen=True)
class RuleWords:
    """A scoring rule for people who have not heard of it.

    Attributes:
        name: in a sentence.
        cost: what a prediction costs under it, once it is known what happens.
        unit: what the cost is in, with `{}` for the unit of the target; empty if nobody knows, or it has none.
        unnamed: the same where the unit of the target has no name.
    """

    name: str
    cost: str
    unit: str = ""
    unnamed: str = ""

    @property
    def title(self) -> str:
        """The name, to stand alone."""
        return self.name[0].upper() + self.name[1:]


RULES = {
    "crps": RuleWords(
        "CRPS",
        "the continuous ranked probability score, a distance between the whole predicted distribution and what happens; of a "
        "prediction that is a single number it is the absolute error",
        "{}",
        "units of the target",
    ),
    "log": RuleWords(
        "log score",
        "minus the logarithm of the predicted density at what happens, so the higher, the more improbable the prediction made it",
        "nats",
        "nats",
    ),
    "quadratic": RuleWords(
        "quadratic score",
        "the integral of the squared density less twice the density at what happens, so that an outcome far outside costs no "
        "more than one outside",
        "1/{}",
        "1/units of the target",
    ),
    "squared_error": RuleWords(
        "squared error",
        "the squared distance between the predicted mean and what happens; predicted variances do not count",
        "{}²",
        "squared units of the target",
    ),
    "quantile": RuleWords(
        "quantile score",
        "the distance between a predicted quantile, by default the median, and what happens, weighted by the side it lies on",
        "{}",
        "units of the target",
    ),
    "gaussian_kernel": RuleWords(
        "Gaussian kernel score", "a distance between the predicted distribution and what happens that never exceeds 1"
    ),
}
WITHOUT_ZERO = {"log", "quadratic"}  # may be negative, also of a good prediction: then nothing is a share of the whole


def rule_words(rule: str) -> RuleWords:
    """Those of the rule, or what can be told of one of somebody's own."""
    return RULES.get(rule) or RuleWords(f"{rule.replace('_', ' ')} score", f"the score of the rule {rule}")


def has_shares(rule: str, noise: Any) -> bool:
    """Whether it makes sense to say that so much of the total is noise: zero is the least there is, in every row."""
    return rule not in WITHOUT_ZERO and bool((noise >= 0.0).all())


def risk_unit(rule: str, unit: str) -> str:
    """What risks are in, given the unit of the target: `km²`; empty if nobody said."""
    form = rule_words(rule).unit
    whole = f"({unit})" if form != "{}" and any(sign in unit for sign in " /*·") else unit
    return form.format(whole) if unit or "{}" not in form else ""


def told_unit(rule: str, unit: str = "") -> str:
    """The same for a definition or an axis, where an unnamed unit is told as such: `squared units of the target`."""
    return risk_unit(rule, unit) or rule_words(rule).unnamed


ONE_MODEL = (
    "all of it noise as far as one model can tell. What more data would remove cannot be seen: that takes several models that "
    "were trained to differ."
)


@dataclass(frozen=True)
class StandIn:
    """What stands in for the prediction or the truth.

    Attributes:
        name: in a list to choose from.
        meaning: in a sentence.
        prediction: what one predicts with, if it stands in for the prediction.
    """

    name: str
    meaning: str
    prediction: str


STAND_INS = {
    "members": StandIn(
        "each model in turn",
        "each model takes its turn, and the penalties are averaged",
        "one of the models, picked at random",
    ),
    "mixture": StandIn(
        "the average of all models",
        "one distribution, the average of those that the models predict",
        "the average of all models",
    ),
    "matched": StandIn(
        "a bell curve like the average",
        "one bell curve (a Gaussian) with the mean and the variance of that average",
        "one bell curve like the average of all models",
    ),
    "pooled": StandIn(
        "a bell curve without disagreement",
        "one bell curve (a Gaussian) with that mean, and the models' own variances averaged: their disagreement is left out",
        "one bell curve without the models' disagreement",
    ),
}


RISK_NAMES = {"total": "total uncertainty", "bayes": "noise", "excess": "disagreement"}


def measure_in_words(name: str) -> str:
    """A measure in plain words, such as `disagreement, CRPS`; empty if this is not the name of a measure.

    Measures with another approximation than `members` are called variants.
    """
    if not is_measure(name):
        return ""
    rule, risk, *roles = name.split(".")
    words = f"{RISK_NAMES[risk]}, {rule_words(rule).name}"
    return words if set(roles) == {"members"} else f"{words} (a variant)"
