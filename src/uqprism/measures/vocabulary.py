"""What rules are called in plain words and what risks are in, read from the rules: for the report, the app and the figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uqprism.ensemble.approximations import approximations
from uqprism.measures.catalogue import is_measure
from uqprism.rules import Rule, rules
from uqprism.support.numbers import is_sign


@dataclass(frozen=True)
class RuleWords:
    """A scoring rule for people who have not heard of it.

    Attributes:
        name: in a sentence.
        cost: what a prediction costs under it.
        unit: what the cost is in, as `Rule.unit`.
        may_be_negative: as `Rule.may_be_negative`.
    """

    name: str
    cost: str
    unit: str
    may_be_negative: bool

    @property
    def title(self) -> str:
        """The name with a capital letter."""
        return self.name[0].upper() + self.name[1:]


def rule_words(rule: str | Rule) -> RuleWords:
    """The words of a rule, by the registered name or the rule itself; any other name is that of an unknown rule."""
    known = rule if isinstance(rule, Rule) else rules.get(rule)() if rule in rules else None
    name = known.name if known else str(rule)
    return RuleWords(
        name=(known and known.plain_name) or f"{name.replace('_', ' ')} score",
        cost=(known and known.cost) or f"the score of the rule {name}",
        unit=known.unit if known else "",
        may_be_negative=known is not None and known.may_be_negative,
    )


def has_shares(rule: str, noise: Any) -> bool:
    """Whether a part of the total can be called noise: the rule is never negative, and neither is the noise in any row."""
    return not rule_words(rule).may_be_negative and bool((noise >= 0.0).all())


def risk_unit(rule: str, unit: str) -> str:
    """What risks are in, given the unit of the target: `km²`, `per $`; empty if unknown, or a power of a currency's sign."""
    form = rule_words(rule).unit
    if unit and is_sign(unit) and form != "{}":
        return f"per {unit}" if form == "1/{}" else "" if "{}" in form else form
    # A power or an inverse applies to the whole unit: `(km/h)²`.
    whole = f"({unit})" if form != "{}" and any(sign in unit for sign in " /*·") else unit
    return form.format(whole) if unit or "{}" not in form else ""


def unit_in_words(rule: str, unit: str = "") -> str:
    """The same for a definition or an axis, where the target's unit may have no name: `squared units of the target`."""
    named = rule_words(rule).unit.replace("{}²", "squared {}").replace("{}³", "cubed {}")
    return risk_unit(rule, unit) or named.format("units of the target")


def is_square(rule: str) -> bool:
    """Whether risks are in squares of the target's unit, so that their roots are in the unit itself."""
    return rule_words(rule).unit == "{}²"


ONE_MODEL = (
    "all of it noise as far as one model can tell; to see what more data could reduce takes several models that were trained to "
    "differ."
)


RISK_NAMES = {"total": "total uncertainty", "bayes": "noise", "excess": "disagreement"}


def measure_in_words(name: str) -> str:
    """A measure in plain words, such as `disagreement, CRPS`; empty if this is not the name of a measure.

    With another approximation than `members` it says which: `noise, CRPS (of the average of all models)`.
    """
    if not is_measure(name):
        return ""
    rule, risk, *roles = name.split(".")
    words = f"{RISK_NAMES[risk]}, {rule_words(rule).name}"
    if set(roles) == {"members"}:
        return words
    labels = [approximations.get(role).label for role in roles]
    return f"{words} ({f'{labels[0]}, judged by {labels[1]}' if labels[1:] else f'of {labels[0]}'})"
