"""Measures: every (rule, risk, prediction, truth) by one name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from uqprism.ensemble.approximations import Approximation, approximations
from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.registry import unknown
from uqprism.rules import Rule, rules
from uqprism.rules.base import check

RISKS = ("total", "bayes", "excess")

Order = Literal["prediction,truth", "truth,prediction"]
ORDERS: tuple[Order, ...] = get_args(Order)
SINGLE = {"mixture", "matched", "pooled"}  # one distribution each, so two of them differ in shape only
RuleLike = str | Rule | type[Rule]
ApproximationLike = str | Approximation


def resolve_rule(rule: RuleLike) -> Rule:
    """The rule of this name, or the rule itself."""
    if isinstance(rule, type) and issubclass(rule, Rule):
        rule = rule()
    if isinstance(rule, Rule):
        check(rule)
        return rule
    found = rules.get(rule)()
    check(found)
    return found


def resolve_approximation(approximation: ApproximationLike) -> str:
    """The name under which this approximation is registered."""
    if isinstance(approximation, str | int):  # the paper's indices are numbers
        approximations.get(str(approximation))
        return str(approximation)
    name = approximations.name_of(approximation)
    if name is None:
        raise ArgumentError(f"{approximation!r} is no approximation; register the function with @approximation(name)")
    return name


@dataclass(frozen=True, order=True)
class Measure:
    """One number per point: a risk under a rule, with one approximation for the prediction and one for the truth.

    A Bayes risk has no prediction: it is None. `str(measure)` is the name, `rule.risk.prediction.truth` or `rule.bayes.truth`.
    """

    rule: str
    risk: str
    prediction: str | None
    truth: str
    scorer: Rule | None = field(default=None, compare=False, repr=False)  # the name decides

    def __post_init__(self) -> None:
        if self.risk not in RISKS:
            raise unknown("risk", self.risk, RISKS)
        if (self.prediction is None) != (self.risk == "bayes"):
            wanted = "no prediction" if self.risk == "bayes" else "a prediction"
            raise ArgumentError(f"{self.risk} risks have {wanted}, got {self.prediction!r}")

    @classmethod
    def parse(cls, name: str) -> Measure:
        """The measure of this name; an unknown part raises and suggests the nearest."""
        parts = name.split(".")
        # A Bayes risk has no prediction, so its name is one part shorter.
        if len(parts) < 2 or len(parts) != (3 if parts[1] == "bayes" else 4):
            raise UnknownNameError(
                f"unknown measure {name!r}; measures are named rule.risk.prediction.truth, or rule.bayes.truth, for example "
                "crps.excess.members.members"
            )
        scorer = resolve_rule(parts[0])
        if parts[1] not in RISKS:
            raise unknown("risk", parts[1], RISKS)
        roles = [resolve_approximation(role) for role in parts[2:]]
        return cls(parts[0], parts[1], None if parts[1] == "bayes" else roles[0], roles[-1], scorer)

    @cached_property
    def name(self) -> str:
        """The one name of this measure."""
        return ".".join(part for part in (self.rule, self.risk, self.prediction, self.truth) if part is not None)

    def __str__(self) -> str:
        return self.name

    @property
    def shows_disagreement(self) -> bool:
        """Whether this is an excess that depends on how much the members disagree; between equal approximations it is zero."""
        roles = {self.prediction or "", self.truth}
        return self.risk == "excess" and (roles == {"members"} or (len(roles) == 2 and not roles <= SINGLE))

    def resolved(self) -> Rule:
        """The rule itself."""
        return self.scorer if self.scorer is not None else resolve_rule(self.rule)

    def paper_label(self, *, order: Order) -> str:
        """The paper's superscript, such as R_exc^{1,3a}.

        Its appendix orders the indices (prediction, truth), its tables and experiments (truth, prediction), so there is no
        default.
        """
        if order not in ORDERS:
            raise unknown("order", order, ORDERS)
        symbol = {"total": "tot", "bayes": "Bayes", "excess": "exc"}[self.risk]
        roles = [self.truth] if self.prediction is None else [self.prediction, self.truth]
        if order == "truth,prediction":
            roles.reverse()
        # Measures of a loaded table may name an approximation that is not registered here.
        indices = [approximations.get(role).paper_index if role in approximations else role for role in roles]
        return f"R_{symbol}^{{{','.join(indices)}}}"
