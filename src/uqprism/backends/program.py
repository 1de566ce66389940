"""Which terms a set of measures needs, and how each measure is put together from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from uqprism.backends.reference import exactness_of
from uqprism.families.gaussian import Gaussian
from uqprism.families.quadrature import TOLERANCE, Exactness
from uqprism.measures import Measure
from uqprism.measures.risks import recipe
from uqprism.rules import CRPS, Log, Quadratic, Rule, SquaredError

RULES: dict[type[Rule], str] = {CRPS: "crps", Log: "log", Quadratic: "quadratic", SquaredError: "squared_error"}
# `numba.integrals` relies on the order of the six excesses of CRPS and of the quadratic rule.
TERMS = (
    "crps.bayes.members",
    "crps.bayes.matched",
    "crps.bayes.pooled",
    "crps.excess.members.members",
    "crps.excess.matched.members",
    "crps.excess.pooled.members",
    "crps.excess.matched.pooled",
    "crps.excess.matched.mixture",
    "crps.excess.pooled.mixture",
    "quadratic.bayes.members",
    "quadratic.bayes.matched",
    "quadratic.bayes.pooled",
    "quadratic.excess.members.members",
    "quadratic.excess.matched.members",
    "quadratic.excess.pooled.members",
    "quadratic.excess.matched.pooled",
    "quadratic.excess.matched.mixture",
    "quadratic.excess.pooled.mixture",
    "quadratic.total.members.members",
    "quadratic.total.members.matched",
    "quadratic.total.members.pooled",
    "quadratic.total.matched.members",
    "quadratic.total.pooled.members",
    "quadratic.total.matched.pooled",
    "quadratic.total.pooled.matched",
    "log.bayes.members",
    "log.bayes.matched",
    "log.bayes.pooled",
    "log.excess.members.members",
    "log.excess.matched.members",
    "log.excess.pooled.members",
    "log.excess.members.matched",
    "log.excess.members.pooled",
    "log.excess.matched.pooled",
    "log.excess.pooled.matched",
    "log.excess.matched.mixture",
    "log.excess.mixture.matched",
    "log.excess.mixture.pooled",
    "squared_error.bayes.members",
    "squared_error.bayes.matched",
    "squared_error.excess.members.matched",
    "log.unit",
)
"""The risks that a kernel computes; every measure is a weighted sum of a few of them."""

PAIRS = ("crps.excess.members.members", "quadratic.excess.members.members", "quadratic.total.members.members")
APPROXIMATIONS = frozenset({"members", "mixture", "matched", "pooled"})
MANY_TOLERANCE = 1e-9  # of what has a closed form over pairs, when an integral is shorter

Weighted = tuple[str, float]  # a term and its factor


def covers(measure: Measure) -> bool:
    """True if the terms suffice for this measure: the paper's four rules and four approximations."""
    roles = {measure.prediction, measure.truth} - {None}
    return type(measure.resolved()) in RULES and roles <= APPROXIMATIONS


def _term(rule: str, primitive: tuple[str, ...]) -> Weighted:
    """The term that holds this risk; symmetric ones are held once."""
    risk, *roles = primitive
    if rule == "squared_error":
        if risk == "excess":
            return "squared_error.excess.members.matched", 2.0 if roles == ["members", "members"] else 1.0
        # The pooled variance is the mean of the members' variances.
        roles = ["members" if role == "pooled" else role for role in roles]
    # The prediction is the truth, so that the total is the Bayes risk.
    if risk == "total" and roles[0] == roles[1] != "members":
        risk, roles = "bayes", roles[:1]
    names = [".".join([rule, risk, *order]) for order in (roles, roles[::-1])]
    # Neither is symmetric.
    if rule == "log" or risk == "total":
        names = names[:1]
    return next(name for name in names if name in TERMS), 1.0


@lru_cache(maxsize=4096)
def terms_of(measure: Measure) -> list[Weighted]:
    """The terms of a measure that is covered, with their factors."""
    rule = measure.resolved()
    name = RULES[type(rule)]
    roles = [role for role in (measure.prediction, measure.truth) if role is not None]
    found = []
    for primitive, factor in recipe(rule, Gaussian, measure.risk, *roles).items():
        term, own = _term(name, primitive)
        found.append((term, factor * own))
        if rule.additive and primitive[0] == "bayes":
            # Kernels work in centred coordinates, where the entropy lacks the logarithm of the unit.
            found.append(("log.unit", factor))
    return found


@dataclass(frozen=True, eq=False)
class Program:
    """Measures as weighted sums of terms: measure k takes `factor[i] * terms[row[i]]` for i from start[k] to start[k + 1].

    Attributes:
        start: (measures + 1,).
        row: (entries,), of the term.
        factor: (entries,).
        degree: (measures,), the power of the unit to multiply with.
        excess: (measures,), whether negative rounding errors become zero.
        terms: the names of all terms needed.
        tolerances: (measures,), zero for closed forms.
        measures: what it is for.
    """

    start: np.ndarray[Any, Any]
    row: np.ndarray[Any, Any]
    factor: np.ndarray[Any, Any]
    degree: np.ndarray[Any, Any]
    excess: np.ndarray[Any, Any]
    terms: frozenset[str]
    tolerances: tuple[float, ...]
    measures: tuple[Measure, ...]

    @staticmethod
    def of(measures: Sequence[Measure], *, many: bool = False) -> Program:
        """The program for these measures; `many` if terms over pairs will be integrals."""
        return Program._of(tuple(measures), many)

    @classmethod
    @lru_cache(maxsize=64)
    def _of(cls, measures: tuple[Measure, ...], many: bool) -> Program:
        parts = [terms_of(measure) for measure in measures]
        entries = [entry for part in parts for entry in part]
        return cls(
            start=np.cumsum([0, *map(len, parts)]),
            row=np.array([TERMS.index(term) for term, _ in entries], dtype=np.int64),
            factor=np.array([factor for _, factor in entries], dtype=np.float64),
            degree=np.array([measure.resolved().degree or 0 for measure in measures], dtype=np.int64),
            excess=np.array([measure.risk == "excess" for measure in measures]),
            terms=frozenset(term for term, _ in entries),
            tolerances=tuple(max((_tolerance(term, many) for term, _ in part), default=0.0) for part in parts),
            measures=measures,
        )

    @cached_property
    def used(self) -> list[int]:
        """The positions of the terms needed, in order."""
        return sorted(TERMS.index(term) for term in self.terms)

    def exactness(self, worked: object, given: object) -> list[Exactness]:
        """How exact each measure is, computed in one precision from input in another."""
        known = {t: exactness_of([t] if t else [], worked, given) for t in set(self.tolerances)}
        return [known[t] for t in self.tolerances]

    def needs(self, rule: str, *, mixture: bool = False, pairs: bool = False, surrogates: bool = False) -> bool:
        """True if any term of this rule is needed; with `mixture`, `pairs` or `surrogates` only of those kinds."""
        terms = [term for term in self.terms if term.startswith(f"{rule}.") and term != "log.unit"]
        if mixture:
            return any("mixture" in term for term in terms)
        if pairs:
            return any(term in PAIRS for term in terms)
        if surrogates:
            return any("matched" in term or "pooled" in term for term in terms)
        return bool(terms)


def _tolerance(term: str, many: bool) -> float:
    if "mixture" in term:
        return TOLERANCE
    return MANY_TOLERANCE if many and term in PAIRS else 0.0
