"""Words that figures share."""

from __future__ import annotations

from uqprism.measures.vocabulary import rule_words, told_unit


def origin(name: str) -> str:
    """Where rows are from, by the name of their data set; one without a name is called `outside`."""
    return name if name == "outside" else f"“{name}”"


NOISE, EPISTEMIC = "noise (aleatoric)", "disagreement (epistemic)"


def quantity(rule: str, unit: str = "") -> str:
    """What the risks of a rule are in, for an axis: `CRPS, minutes`."""
    return ", ".join(filter(None, (rule_words(rule).name, told_unit(rule, unit))))
