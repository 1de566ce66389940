"""The catalogue of measures, and the choice of some of them by names, patterns or the two named sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from uqprism.ensemble.approximations import approximations
from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.measures.meaning import meanings, unknown_measure
from uqprism.measures.measure import RISKS, Measure, RuleLike, resolve_rule
from uqprism.rules import PAPER, Rule, rules

MeasuresLike = str | Measure | Sequence[str | Measure] | None
WILDCARD = re.compile(r"[*?[]")


def catalogue(rules: Iterable[RuleLike] = PAPER) -> list[Measure]:
    """All measures of these rules: with the paper's four approximations 16 totals, 4 Bayes risks and 16 excesses each.

    By default those of the paper's four rules: 144.
    """
    found = []
    roles = approximations.names()
    for rule in map(resolve_rule, [rules] if isinstance(rules, str | Rule) else rules):
        pairs = [(prediction, truth) for prediction in roles for truth in roles]
        found += [Measure(rule.name, "total", *pair, rule) for pair in pairs]
        found += [Measure(rule.name, "bayes", None, truth, rule) for truth in roles]
        found += [Measure(rule.name, "excess", *pair, rule) for pair in pairs]
    return found


def usual() -> list[Measure]:
    """Total, Bayes and excess risk with members in both roles, under the paper's four rules: twelve measures."""
    return [m for m in catalogue() if m.prediction in (None, "members") and m.truth == "members"]


SETS = {"all": catalogue, "usual": usual}  # functions, because approximations may be registered later


def select_measures(measures: MeasuresLike = None, *, default: str = "all") -> list[Measure]:
    """The measures that are asked for, each once, in this order.

    Args:
        measures: a `Measure`, its name, a pattern such as `crps.*`, "all" (the `catalogue`), "usual" (the twelve with members in
            both roles), several of these in one string with commas between, or a list of them.
        default: what None means.

    Raises:
        ArgumentError: no measures, something that is no measure, or two different rules of one name.
        UnknownNameError: a name that is no measure, or a pattern that none matches.
    """
    if measures is None:
        return SETS[default]()
    found: dict[str, Measure] = {}
    known: dict[str, Rule] = {}
    for item in measures if isinstance(measures, Iterable) and not isinstance(measures, str) else [measures]:
        for measure in [item] if isinstance(item, Measure) else _named(item):
            found.setdefault(measure.name, measure)
            rule = measure.resolved()
            _check_same(known.setdefault(measure.rule, rule), rule)
    if not found:
        raise ArgumentError("measures must name at least one measure, got none; leave it out for the default")
    return list(found.values())


def is_measure(name: str) -> bool:
    """Whether this is the name of a measure of a registered rule."""
    rule, risk, *roles = [*name.split("."), "", ""]  # filled up, so that short names unpack
    named = [role for role in roles if role]
    right = len(named) == (1 if risk == "bayes" else 2) and all(role in approximations for role in named)
    return rule in rules and risk in RISKS and right


def _check_same(first: Rule, second: Rule) -> None:
    """Refuse two rules of one name: their measures could not be told apart."""
    # Rules are made anew at each look-up, so equal parameters count as the same rule.
    if first is not second and (type(first) is not type(second) or vars(first) != vars(second)):
        raise ArgumentError(f"two different rules named {first.name!r}; give each its own with name=")


def _named(text: object) -> list[Measure]:
    """The measures that one string asks for."""
    if not isinstance(text, str):
        those = "catalogue([rule]) lists a rule's" if isinstance(text, Rule) else "catalogue() lists them"
        raise ArgumentError(f"measures must be names or Measures, got {text!r}; {those}")
    found: list[Measure] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name.lower() in SETS:
            found += SETS[name.lower()]()
        elif WILDCARD.search(name):
            found += _matching(name)
        else:
            found.append(_parsed(name, rules.changes, approximations.changes))
    return found


@lru_cache(maxsize=4096)
def _parsed(name: str, *_: int) -> Measure:
    """The measure of this name; another text raises with the measures that it may mean. Kept until a registry changes."""
    rule, *rest = name.split(".")
    if len(rest) != (2 if rest[:1] == ["bayes"] else 3):
        known = [m.name for m in catalogue([rule] if rule in rules else PAPER)]
        if meanings(name, known):
            raise unknown_measure("", name, known)
    return Measure.parse(name)


def _matching(pattern: str) -> list[Measure]:
    """The measures of the pattern's rule, or of the paper's rules, that the pattern matches."""
    rule = pattern.split(".", maxsplit=1)[0]
    if not WILDCARD.search(rule):
        rules.get(rule)  # an unknown one suggests the nearest
    matching = [m for m in catalogue([rule] if rule in rules else PAPER) if fnmatchcase(m.name, pattern)]
    if not matching:
        raise UnknownNameError(f"no measure matches {pattern!r}; catalogue() (uqprism catalogue) lists them")
    return matching
