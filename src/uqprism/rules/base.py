"""What every proper scoring rule can do, and how a rule with nothing but a score gets the rest by quadrature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uqprism.arrays import Array, is_array, is_traced, is_wrapped, namespace
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.families.base import Family
from uqprism.registry import Registry
from uqprism.rules.properness import check_proper

if TYPE_CHECKING:
    from uqprism.families.centring import Centring

rules: Registry[Callable[[], Rule]] = Registry("rule", "uqprism.rules")

Pair = tuple[str, str]  # (prediction, truth)
Identity = tuple[tuple[float, Pair], ...]  # a weighted sum of excesses; empty means zero

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Rule(ABC):
    """A proper scoring rule, negatively oriented: lower is better.

    Only `score` must be written; the other three then follow by quadrature.

    Attributes:
        name: as in measure names; no dots.
        degree: S(a P, a y) = a**degree * S(P, y) for a > 0, whatever the origin; None if the rule is not homogeneous.
        additive: True if S(a P, a y) = S(P, y) + log(a) instead.
        strictly_proper: True if only the truth itself scores best.
        entropy_cancels: True if entropy and divergence can be large, of opposite sign and nearly equal, so that a total must
            be computed by its definition rather than as their sum.
        sees_only_mean: True if nothing but the prediction's mean counts, so that two distributions with one mean never differ.
        may_be_negative: True if a good prediction may score below zero, so that zero means nothing.
        plain_name: what reports call it in a sentence; by default made from `name`.
        cost: what a prediction costs under it, as part of a sentence for people who do not know the rule.
    """

    name: str
    degree: int | None = None
    additive: bool = False
    strictly_proper: bool = False
    entropy_cancels: bool = False
    sees_only_mean: bool = False
    may_be_negative: bool = False
    plain_name: str = ""
    cost: str = ""

    @property
    def unit(self) -> str:
        """What scores are in, with `{}` for the unit of y, such as `{}²`; empty for a pure number or if the degree is None."""
        if self.additive or not self.degree:
            return "nats" if self.additive else ""
        power = str(abs(self.degree)).translate(SUPERSCRIPTS) if abs(self.degree) > 1 else ""
        return f"{'1/' if self.degree < 0 else ''}{{}}{power}"

    @abstractmethod
    def score(self, distribution: Family, y: Array) -> Array:
        """The penalty for predicting `distribution` when `y` happens; y broadcasts against the batch."""

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """The mean penalty for `prediction` when outcomes follow `truth` (the paper's S(P-hat, P)): the total risk."""
        # The grid must resolve the prediction too: the score varies where its density does.
        return truth.expectation(lambda y: self.score(prediction, y), prediction)

    def entropy(self, truth: Family) -> Array:
        """The mean penalty of predicting the truth itself: the Bayes risk."""
        return self.expected_score(prediction=truth, truth=truth)

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """How much worse `prediction` is than the truth; never negative: the excess risk."""
        # The difference is taken inside one integral, since two integrals would be rounded apart.
        gap = truth.expectation(lambda y: self.score(prediction, y) - self.score(truth, y), prediction)
        return at_least_zero(gap)

    def identities(self, members: type[Family]) -> dict[Pair, Identity]:
        """Excess risks that follow exactly from others, for ensembles whose members are of this family."""
        return {}

    def centred(self, centring: Centring) -> Rule | None:
        """The rule to apply after centring and scaling, or None if only the original units will do."""
        return self if self.degree is not None or self.additive else None

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


def check(rule: Rule) -> None:
    """Refuse a rule under the name of another, and a score that is not proper.

    Raises:
        InvalidValueError: the name is no text, has dots or is taken; a prediction beats the truth.
    """
    name: object = rule.name
    if not isinstance(name, str) or not name:
        raise InvalidValueError(f"a rule's name must be text, got {rule.name!r}; the name comes first")
    if "." in rule.name:  # dots separate the parts of a measure's name
        raise InvalidValueError(f"rule names must have no dots, got {rule.name!r}; pass another name=")
    owner = rules.get(rule.name) if rule.name in rules else None
    if isinstance(owner, type) and not isinstance(rule, owner):
        raise InvalidValueError(f"the rule name {rule.name!r} is taken by {owner.__name__}; choose another")
    # The rules of this package are proper, but for functions that a user gives them.
    if not type(rule).__module__.startswith("uqprism.") or isinstance(rule, ByFunctions):
        check_proper(rule)


def number(argument: str, value: object) -> Any:
    """The value as a float; an array of one number as it is if it has gradients or its value is not known yet."""
    given: Any = value
    if is_array(given) and given.ndim == 0 and (is_traced(value) or is_wrapped(value) or getattr(value, "requires_grad", False)):
        return value
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ArgumentError(f"{argument} must be one number, got {value!r}; make one rule for each value") from None


def default_name(name: str, value: Any, usual: float) -> str:
    """The plain name for the usual parameter, otherwise a name that includes the value, without dots: quantile_0_9."""
    return name if is_array(value) or value == usual else f"{name}_{value:g}".replace(".", "_")


def at_least_zero(x: Array) -> Array:
    """x without the negative rounding errors."""
    xp = namespace(x)
    # A product with zero rather than zeros, so that NaN stays NaN; infinity must not be multiplied.
    return xp.where(x > 0.0, x, 0.0 * xp.where(x > 0.0, xp.zeros_like(x), x))


class ByFunctions(Rule):
    """A rule that is made of a user's functions, and is checked when it is made."""


class ScoreRule(ByFunctions):
    """A rule given by nothing but its score, of which lower is better; it is checked to be proper."""

    def __init__(self, name: str, score: Callable[[Family, Array], Array]) -> None:
        self.name, self._score = name, score
        check(self)

    def score(self, distribution: Family, y: Array) -> Array:
        """The penalty for predicting `distribution` when `y` happens."""
        return self._score(distribution, y)


class EntropyRule(ByFunctions):
    """A rule given by a concave entropy H(P) and its supergradient h(P, y): S(P, y) = H(P) + h(P, y) - E_P h(P, Y)."""

    def __init__(self, name: str, entropy: Callable[[Family], Array], supergradient: Callable[[Family, Array], Array]) -> None:
        self.name, self._entropy, self._supergradient = name, entropy, supergradient
        check(self)

    def score(self, distribution: Family, y: Array) -> Array:
        """H(P) + h(P, y) - E_P h(P, Y)."""
        mean = distribution.expectation(lambda t: self._supergradient(distribution, t))
        return self._entropy(distribution) + self._supergradient(distribution, y) - mean

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """H(prediction) + <h(prediction), truth - prediction>."""
        return self._entropy(prediction) + self._shift(prediction, truth)

    def entropy(self, truth: Family) -> Array:
        """H(truth), as given."""
        return self._entropy(truth)

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """H(prediction) - H(truth) - <h(prediction), prediction - truth>."""
        return at_least_zero(self._entropy(prediction) - self._entropy(truth) + self._shift(prediction, truth))

    def _shift(self, prediction: Family, truth: Family) -> Array:
        def slope(y: Array) -> Array:
            return self._supergradient(prediction, y)

        # Both integrals use the same nodes, so that their errors cancel where the two distributions agree.
        return truth.expectation(slope, prediction) - prediction.expectation(slope, truth)
