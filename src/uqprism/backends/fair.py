"""Estimates of members known by draws that leave out each draw's pair with itself.

With weights a of a member's draws, pairs of a draw with itself have the weight s = sum a^2 and no distance, so that the mean over
pairs of different draws is the entropy divided by 1 - s: what they hide is s / (1 - s) of the entropy. Each pair of different
members loses what both of them hide. That holds for kernel rules and the squared error, whose entropies are means over pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from uqprism.arrays import Array, is_traced, namespace
from uqprism.backends.choose import BackendName, compute
from uqprism.backends.draws import are_alike, draws_of, parts_of, precise, weights_of
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.errors import InvalidValueError
from uqprism.families.draws import Draws
from uqprism.measures import Measure
from uqprism.rules import KernelRule, Rule, SquaredError

ALONE = 1e-12  # the weight that other draws of a member must have


def without_own_pairs(
    ensemble: EnsemblePrediction, wanted: Sequence[Measure], values: Mapping[str, Array], backend: BackendName
) -> dict[str, Array]:
    """The values, with Bayes risks of members and excesses over their pairs corrected if the members are draws."""
    fair = dict(values)
    for rule, scorer in {m.rule: m.resolved() for m in wanted}.items():
        parts = {f"{rule}.bayes.members": 1.0, f"{rule}.excess.members.members": -2.0}
        if (
            not isinstance(ensemble.members, Draws)
            or not isinstance(scorer, KernelRule | SquaredError)
            or not parts.keys() & fair
        ):
            continue
        for (name, factor), hidden in zip(parts.items(), _hidden(ensemble, scorer, backend), strict=True):
            if name in fair:
                fair[name] = namespace(hidden).astype(values[name] + factor * hidden, values[name].dtype)
    return fair


def _hidden(ensemble: EnsemblePrediction, rule: Rule, backend: BackendName) -> tuple[Array, Array]:
    """What pairs of a draw with itself hide: the mean over the members, and over the first of pairs of different members.

    Raises:
        InvalidValueError: a member has only one draw.
    """
    counted = ensemble.counted()
    if not are_alike(counted):
        found = [_hidden_by_member(part, rule) for part in parts_of(counted)]
        xp = namespace(*found[0])
        one, two = (xp.concat(list(parts)) for parts in zip(*found, strict=True))
        return one, two
    count = draws_of(counted).draws.shape[0]
    _require_others(count > 1)
    if counted.weights is None:
        one = _entropy(counted, rule, backend) / (count - 1.0)
        return one, (1.0 - 1.0 / counted.n_members) * one
    xp, pairs = namespace(counted.weights), counted.weights * (1.0 - counted.weights)
    across = EnsemblePrediction(counted.members, pairs / xp.sum(pairs), check=False)
    one, two = (_entropy(weighed, rule, backend) / (count - 1.0) for weighed in (counted, across))
    return one, xp.sum(pairs) * two


def _entropy(ensemble: EnsemblePrediction, rule: Rule, backend: BackendName) -> Array:
    measure = Measure(rule.name, "bayes", None, "members", rule)
    return precise(compute(ensemble, [measure], backend).values[measure.name])


def _hidden_by_member(part: EnsemblePrediction, rule: Rule) -> tuple[Array, Array]:
    """The same from each member's own entropy and weights."""
    centred = CentredEnsemble(part.members.map(precise), weights_of(part))
    draws, centring = cast("Draws", centred.members), centred.centring
    alone = namespace(draws.weights).sum(draws.weights**2, axis=0)
    _require_others(is_traced(alone) or bool((alone < 1.0 - ALONE).all()))
    local = rule.centred(centring)
    entropy = rule.entropy(draws.affine(centring.centre, centring.unit)) if local is None else local.entropy(draws)
    hidden = alone / (1.0 - alone) * (entropy if local is None else centring.restore(entropy, rule.degree or 0))
    return centred.average(hidden), centred.average((1.0 - centred.weights) * hidden)


def _require_others(there: bool) -> None:
    if not there:
        raise InvalidValueError("estimator='unbiased' needs at least two draws with weight of each member; use 'plugin'")
