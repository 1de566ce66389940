"""The paper's idea: every risk is a mean over candidates.

    bayes  = mean over truths of rule.entropy(truth)
    excess = mean over predictions and truths of rule.divergence(prediction, truth)
    total  = mean over predictions and truths of rule.expected_score(prediction, truth) = bayes + excess

Nothing here knows a formula of any rule or family. Where an excess follows exactly from others the rule says so
(`Rule.identities`), and `recipe` says which risks are left to compute.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uqprism.arrays import Array, from_numpy, namespace
from uqprism.ensemble.approximations import Candidates, CentredEnsemble
from uqprism.families.base import Family
from uqprism.families.quadrature import BLOCK, record, recording
from uqprism.rules.base import Rule, at_least_zero
from uqprism.rules.kernel import KernelRule

Primitive = tuple[str, ...]  # ("bayes", truth), ("excess", prediction, truth) or ("total", prediction, truth)
Recipe = dict[Primitive, float]
SINGLE = ("mixture", "matched", "pooled")  # one candidate each


def recipe(rule: Rule, members: type[Family], risk: str, *roles: str) -> Recipe:
    """The risks that must be computed for this one, with their factors; all others follow from them exactly."""
    identities = rule.identities(members)
    if risk == "bayes":
        if roles == ("mixture",) and ("mixture", "members") in identities:
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
    return {} if prediction == truth and truth in SINGLE else {("excess", prediction, truth): 1.0}


def _sum(*parts: tuple[float, Recipe]) -> Recipe:
    total: Recipe = {}
    for factor, part in parts:
        for primitive, inner in part.items():
            total[primitive] = total.get(primitive, 0.0) + factor * inner
    return total


class Risks:
    """The risks of one ensemble under one rule, in the units of y, each computed once."""

    def __init__(self, ensemble: CentredEnsemble, rule: Rule) -> None:
        local = rule.centred(ensemble.centring)
        self._ensemble, self._centred = ensemble, local is not None
        self.rule = local or rule
        self._known: dict[Primitive, tuple[Array, list[float]]] = {}

    def bayes(self, truth: str) -> Array:
        """What remains if the truth is predicted: the aleatoric part."""
        return self._mixed("bayes", truth)

    def excess(self, prediction: str, truth: str) -> Array:
        """What predicting the truth would save: the epistemic part, never negative."""
        return at_least_zero(self._mixed("excess", prediction, truth))

    def total(self, prediction: str, truth: str) -> Array:
        """What the prediction is expected to cost."""
        return self._mixed("total", prediction, truth)

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
        candidates = [self._candidates(role) for role in roles]
        if risk == "bayes":
            distribution, weights = candidates[0].columns
            return self._restore(_mean(weights * self.rule.entropy(distribution))) + self._log_unit()
        if risk == "excess":
            return self._restore(average(self.rule.divergence, *candidates))
        if roles == ("members", "members") and isinstance(self.rule, KernelRule):
            return self._restore(self._total_of_pairs(self.rule, candidates[0]))
        return self._restore(average(self.rule.expected_score, *candidates))

    def _total_of_pairs(self, rule: KernelRule, members: Candidates) -> Array:
        """The mean gap of different members, and each one's own with its net weight: for two equal members exactly zero."""

        def gap(*, prediction: Family, truth: Family) -> Array:
            return rule.gap(prediction, truth)

        distribution, weights = members.columns
        own = _mean(weights * (weights - 0.5) * rule.gap(distribution, distribution))
        return average(gap, members, members, distinct=True) + own

    def _candidates(self, name: str) -> Candidates:
        candidates = self._ensemble.candidates(name)
        return candidates if self._centred else candidates.affine(self._ensemble.centring)

    def _restore(self, value: Array) -> Array:
        return self._ensemble.centring.restore(value, self.rule.degree or 0) if self._centred else value

    def _log_unit(self) -> Array | float:
        return self._ensemble.centring.log_unit if self._centred and self.rule.additive else 0.0


def average(function: Callable[..., Array], predictions: Candidates, truths: Candidates, *, distinct: bool = False) -> Array:
    """The weighted sum of function(prediction=, truth=) over all pairs, in blocks so that no temporary is large.

    With `distinct`, a candidate's pair with itself counts nothing.
    """
    (prediction, left), (truth, right) = predictions.rows, truths.columns
    count = left.shape[0]
    step = max(1, BLOCK // max(1, int(np.prod(right.shape, dtype=np.int64))))
    total = 0.0
    for start in range(0, count, step):
        rows = slice(start, start + step)
        weights = left[rows] * right
        if distinct:
            other = np.arange(count)[rows, None] != np.arange(right.shape[1])
            weights = weights * from_numpy(other.astype(np.float64).reshape(*other.shape, *(1,) * (right.ndim - 2)), right)
        part = prediction if step >= count else _rows(prediction, rows)
        total = total + _mean(weights * function(prediction=part, truth=truth))
    return total


def _rows(distribution: Family, rows: slice) -> Family:
    """A slice of the first batch axis."""
    batch = len(distribution.batch_shape)
    part = distribution.map(lambda x: x[(slice(None),) * (x.ndim - batch) + (rows,)])
    part.shared_grid = distribution.shared_grid
    return part


def _mean(weighted: Array) -> Array:
    """The sum over both candidate axes of values that already carry their weights."""
    return namespace(weighted).sum(weighted, axis=(0, 1))
