"""Which measures a text may mean that is not the name of one: an abbreviation, other words for its parts, or a slip."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from uqprism.ensemble.approximations import approximations
from uqprism.errors import UnknownNameError, UqprismError
from uqprism.families.gaussian import Gaussian
from uqprism.measures.measure import RISKS, Measure
from uqprism.measures.risks import recipe
from uqprism.registry import unknown
from uqprism.rules import PAPER, rules
from uqprism.synonyms import normal, word


def unknown_measure(where: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for a measure that is not among those known, with those that may be meant; `where` is, say, `in this table`."""
    names = list(known)
    meant = meanings(str(name), names)
    if not meant:
        # A measure that is zero at every point would be no help.
        useful = [each for each in names if not always_zero(each)]
        return unknown(f"measure {where}", name, useful or names)
    listed = " or ".join([", ".join(map(repr, meant[:-1])), repr(meant[-1])] if len(meant) > 1 else [repr(meant[0])])
    return UnknownNameError(f"unknown measure {where and f'{where} '}{str(name)!r}; did you mean {listed}?")


def meanings(text: str, known: Collection[str]) -> list[str]:
    """The known measures that the text may mean, none if its parts are not understood."""
    parts = [part for part in normal(text).split(".") if part]
    if len(parts) == 1 and _part(parts[0]) is None:
        parts = [part for part in parts[0].split("_") if part]
    found: dict[str, list[str]] = {"rule": [], "risk": [], "approximation": []}
    for part in parts:
        known_part = _part(part, first=not any(found.values()))
        if known_part is None:
            return []
        found[known_part[0]].append(known_part[1])
    if not parts or len(found["rule"]) > 1 or len(found["risk"]) > 1:
        return []
    rule = found["rule"][0] if found["rule"] else next((r for r in PAPER if any(k.startswith(f"{r}.") for k in known)), PAPER[0])
    for roles in _roles(found["approximation"]):
        names = [_name(rule, risk, roles) for risk in found["risk"] or RISKS]
        if meant := [name for name in names if name in known and not always_zero(name)]:
            return meant
    return []


def always_zero(name: str) -> bool:
    """Whether a measure is zero at every point of every ensemble, as the excess of one distribution over itself is."""
    risk, *roles = [*name.split("."), ""][1:-1] or [""]
    if risk != "excess" or len(roles) != 2:
        return False
    try:
        return not recipe(Measure.parse(name).resolved(), Gaussian, risk, *roles)
    except UqprismError:  # a rule that is not registered
        return roles[0] == roles[1] != "members"


def _part(text: str, *, first: bool = True) -> tuple[str, str] | None:
    """What a part of a name is, and how it is called here; slips count as what is nearest."""
    kinds = {"risk": RISKS, "approximation": approximations.names()} | ({"rule": rules.names()} if first else {})
    # Risks before rules, as a text such as `entropy` can be a word for either.
    for kind, names in kinds.items():
        if (called := word(kind, text)) in names:
            return kind, called
    for kind, names in kinds.items():
        if near := difflib.get_close_matches(text, names, n=1, cutoff=0.6):
            return kind, near[0]
    return None


def _roles(given: list[str]) -> Iterable[list[str]]:
    """Prediction and truth as they may be meant, the likeliest first."""
    if len(given) == 1:
        return [given * 2, [given[0], "members"]]
    return [given[:2] or ["members", "members"]]


def _name(rule: str, risk: str, roles: list[str]) -> str:
    return ".".join([rule, risk, *(roles[-1:] if risk == "bayes" else roles)])
