"""The paper's idea: every risk is a mean over candidates, written once for all rules, families and approximations.

Nothing here knows a formula of any rule or family. Where an excess follows exactly from others, `recipe` says which risks are
left to compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from uqprism.arrays import Array, from_numpy, is_traced, namespace
from uqprism.ensemble.approximations import Candidates, CentredEnsemble, approximations
from uqprism.families.base import Family
from uqprism.families.draws import Draws
from uqprism.families.functionals import relative_entropy
from uqprism.families.gaussian import Gaussian
from uqprism.families.quadrature import BLOCK, record, recording
from uqprism.rules.base import Rule, at_least_zero
from uqprism.rules.kernel import KernelRule
from uqprism.rules.log import Log
from uqprism.rules.squared_error import SquaredError

AT_BOUNDS = 1e-6  # the tolerance of log excesses between members whose densities have bounds

Primitive = tuple[str, ...]  # ("bayes", truth), ("excess", prediction, truth) or ("total", prediction, truth)
Recipe = dict[Primitive, float]


def bayes(rule: Rule, truths: Candidates) -> Array:
    """What remains if the truth is predicted: the aleatoric part."""
    return mean(rule.entropy, truths)


def excess(rule: Rule, predictions: Candidates, truths: Candidates) -> Array:
    """What predicting the truth would save: the epistemic part."""
    return mean_over_pairs(rule.divergence, predictions, truths)


def total(rule: Rule, predictions: Candidates, truths: Candidates) -> Array:
    """What the prediction is expected to cost: Bayes risk and excess risk together."""
    return mean_over_pairs(rule.expected_score, predictions, truths)


def recipe(rule: Rule, members: type[Family], risk: str, *roles: str) -> Recipe:
    """The risks that must be computed for this one, with their factors; all others follow from them exactly."""
    identities = rule.identities(members)
    if risk == "bayes":
        if roles == ("mixture",) and (rule.sees_only_mean or ("mixture", "members") in identities):
            # B(x) = B(m) + E(x,m): the excess needs no integral of its own here.
            return _sum((1.0, {("bayes", "members"): 1.0}), (1.0, recipe(rule, members, "excess", "mixture", "members")))
        return {("bayes", *roles): 1.0}
    prediction, truth = roles
    if risk == "total":
        truth = "members" if truth == "mixture" else truth  # totals are linear in the truth
        if rule.entropy_cancels and prediction != "mixture":
            return {("total", prediction, truth): 1.0}
        return _sum((1.0, recipe(rule, members, "bayes", truth)), (1.0, recipe(rule, members, "excess", prediction, truth)))
    identity = identities.get((prediction, truth))
    if identity is not None:
        return _sum(*((factor, recipe(rule, members, "excess", *pair)) for factor, pair in identity))
    return _excess(rule, prediction, truth)


def _excess(rule: Rule, prediction: str, truth: str) -> Recipe:
    """An excess for which the rule has no identity: zero between equal distributions, which may be equal only for this rule."""
    one, other = approximations.get(prediction), approximations.get(truth)
    if prediction == truth and one.single:
        return {}
    if rule.sees_only_mean:
        if one.keeps_mean and other.keeps_mean:
            return {}
        # The two have one mean, so that they are equal to such a rule, and matched is a single Gaussian.
        prediction, truth = ("matched" if role == "mixture" else role for role in (prediction, truth))
    return {("excess", prediction, truth): 1.0}


def _sum(*parts: tuple[float, Recipe]) -> Recipe:
    total: Recipe = {}
    for factor, part in parts:
        for primitive, inner in part.items():
            total[primitive] = total.get(primitive, 0.0) + factor * inner
    return total


class Integrals(Protocol):
    """Risks that were computed elsewhere, all in one pass."""

    def risk(self, rule: Rule, primitive: Primitive) -> Array | None:
        """The risk in centred units, without the logarithm of the unit; None if it is not among them."""


class Risks:
    """The risks of one ensemble under one rule, in the units of y, each computed once or taken from `integrals`."""

    def __init__(self, ensemble: CentredEnsemble, rule: Rule, integrals: Integrals | None = None) -> None:
        self._integrals = integrals
        local = rule.centred(ensemble.centring)  # in centred coordinates nothing overflows and offsets cost no digits
        self._ensemble, self._centred = ensemble, local is not None
        self.rule = local or rule
        self._known: dict[Primitive, tuple[Array, list[float]]] = {}

    def get(self, risk: str, *roles: str) -> Array:
        """The risk of this name for these approximations: (truth) of a Bayes risk, else (prediction, truth)."""
        value = self._mixed(risk, *roles)
        if risk == "total" and self.rule.entropy_cancels and self._ensemble.members.square_power is not None:
            # Both parts are infinite where the squared density of the prediction has no integral, and so is each of its scores.
            xp = namespace(value)
            value = xp.where(self._mixed("bayes", roles[0]) == -math.inf, xp.full_like(value, math.inf), value)
        return at_least_zero(value) if risk == "excess" else value  # an identity may subtract, and leave a rounding error

    def _mixed(self, risk: str, *roles: str) -> Array:
        zero = 0.0 * self._ensemble.members.centre[0]  # gradients can be asked of it
        parts = recipe(self.rule, type(self._ensemble.members), risk, *roles)
        return sum((factor * self._once(primitive) for primitive, factor in parts.items()), start=zero)

    def _once(self, primitive: Primitive) -> Array:
        """Compute, or recall and record again how exact it was."""
        if primitive in self._known:
            for tolerance in self._known[primitive][1]:
                record(tolerance)
        else:
            with recording() as tolerances:
                value = self._compute(*primitive)
            self._known[primitive] = (value, tolerances)
        return self._known[primitive][0]

    def _compute(self, risk: str, *roles: str) -> Array:
        known = self._integrals.risk(self.rule, (risk, *roles)) if self._integrals else None
        if known is not None:
            return self._restore(known) + (0.0 if risk == "excess" else self._log_unit())
        candidates = [self._candidates(role) for role in roles]
        if risk == "excess":  # a difference of scores, of which the logarithm of the unit drops out
            return self._restore(self._excess(*roles))
        if risk == "bayes":
            value = bayes(self.rule, *candidates)
        elif roles == ("members", "members") and isinstance(self.rule, KernelRule):
            value = _total_of_members(self.rule, *candidates[:1])
        else:
            value = total(self.rule, *candidates)
        return self._restore(value) + self._log_unit()

    def _excess(self, *roles: str) -> Array:
        """The excess, by way of members that agree less where they nearly agree and it would cancel."""
        one_mean = all(role == "members" or approximations.get(role).keeps_mean for role in roles)
        if isinstance(self.rule, SquaredError) and one_mean and not self._ensemble.means_are_exact:
            return (2.0 if roles == ("members", "members") else 1.0) * self._ensemble.variance_of_means
        direct = excess(self.rule, *[self._candidates(role) for role in roles])
        if not self._may_cancel(roles):
            return direct
        if isinstance(self.rule, Log) and self._ensemble.members.has_bounds:
            # Next to bounds that nearly agree, the logarithm of the disagreement enters, which no ray resolves.
            record(AT_BOUNDS)
        return self._ensemble.along_ray(lambda other: excess(self.rule, *map(other.candidates, roles)), direct)

    def _may_cancel(self, roles: tuple[str, ...]) -> bool:
        """True for the excess between members, or members and mixture, where it takes an integral over their difference."""
        members = type(self._ensemble.members)
        if not self._centred or members is Gaussian or members is Draws or not {"members", "mixture"}.issuperset(roles):
            return False
        if isinstance(self.rule, KernelRule):
            return not self.rule.pairs_are_closed(members)
        return isinstance(self.rule, Log) and not (
            roles == ("members", "members") and relative_entropy.is_closed(members, members)
        )

    def _candidates(self, name: str) -> Candidates:
        candidates = self._ensemble.candidates(name)
        return candidates if self._centred else candidates.affine(self._ensemble.centring)

    def _restore(self, value: Array) -> Array:
        return self._ensemble.centring.restore(value, self.rule.degree or 0) if self._centred else value

    def _log_unit(self) -> Array | float:
        return self._ensemble.centring.log_unit if self._centred and self.rule.additive else 0.0


def mean(function: Callable[..., Array], truths: Candidates) -> Array:
    """The weighted sum of function(truth=) over the candidates."""
    distribution, weights = truths.columns
    return _sum_over_candidates(weights * function(truth=distribution))


def mean_over_pairs(
    function: Callable[..., Array], predictions: Candidates, truths: Candidates, *, distinct: bool = False
) -> Array:
    """The weighted sum of function(prediction=, truth=) over all pairs, in blocks so that no temporary is large.

    With `distinct`, a candidate's pair with itself counts nothing.
    """
    (prediction, left), (truth, right) = predictions.rows, truths.columns
    count = left.shape[0]
    # Where values are not known, the number of points may not be either.
    step = count if is_traced(right) else max(1, BLOCK // max(1, int(np.prod(right.shape, dtype=np.int64))))
    total = 0.0
    for start in range(0, count, step):
        rows = slice(start, start + step)
        weights = left[rows] * right
        if distinct:
            other = np.arange(count)[rows, None] != np.arange(right.shape[1])
            weights = weights * from_numpy(other.astype(np.float64).reshape(*other.shape, *(1,) * (right.ndim - 2)), right)
        part = prediction if step >= count else _rows(prediction, rows)
        total = total + _sum_over_candidates(weights * function(prediction=part, truth=truth))
    return total


def _total_of_members(rule: KernelRule, members: Candidates) -> Array:
    """The mean gap of different members, and each one's own with its net weight: for two equal members exactly zero."""

    def gap(*, prediction: Family, truth: Family) -> Array:
        return rule.gap(prediction, truth)

    distribution, weights = members.columns
    # The weight of a pair with itself, less half that of the prediction's own gap.
    own = _sum_over_candidates(weights * (weights - 0.5) * rule.gap(distribution, distribution))
    return mean_over_pairs(gap, members, members, distinct=True) + own


def _rows(distribution: Family, rows: slice) -> Family:
    """A slice of the first batch axis."""
    batch = len(distribution.batch_shape)
    part = distribution.map(lambda x: x[(slice(None),) * (x.ndim - batch) + (rows,)])
    part.shared_grid = distribution.shared_grid
    return part


def _sum_over_candidates(weighted: Array) -> Array:
    """The sum over both candidate axes of values that already carry their weights."""
    return namespace(weighted).sum(weighted, axis=(0, 1))
