"""The split of an exported prediction, in closed form: what `decompose` computes, without its choices that depend on values."""

from __future__ import annotations

from collections.abc import Sequence

from uqprism.arrays import Array, expand, namespace
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.errors import UnsupportedError, UqprismError
from uqprism.families import Family, Mixture
from uqprism.families.base import mixing_weights
from uqprism.families.quadrature import recording
from uqprism.measures import resolve_approximation, resolve_rule
from uqprism.measures.risks import Risks
from uqprism.rules import Rule
from uqprism.rules.base import at_least_zero
from uqprism.rules.kernel import KernelRule

Tensors = dict[str, Array]
RULES = ("crps", "log", "quadratic", "squared_error")
ROLES = ("members", "mixture", "matched", "pooled")


class Split:
    """From members to their mean, variance and three risks.

    Args:
        rule: a rule or its name.
        prediction: the approximation for the prediction.
        truth: the approximation for the truth.
        of_components: whether the risks are sums over pairs of components in place of those that `decompose` takes.
    """

    def __init__(self, rule: Rule, prediction: str, truth: str, *, of_components: bool = False) -> None:
        self.rule, self.prediction, self.truth, self.of_components = rule, prediction, truth, of_components

    def __call__(self, members: Family) -> Tensors:
        """Arrays (*points) by name, for members (members, *points) of equal weight."""
        centred = CentredEnsemble(members, mixing_weights(members.centre, None, check=False))
        centring, xp = centred.centring, namespace(centred.weights)
        mean = centred.average(centred.members.mean)
        apart = centred.members.mean - mean
        variance = centred.mean_variance + centred.average(apart * apart)
        if self.of_components:
            sums = _Sums(centred, self.rule)
            bayes, excess = sums.bayes(self.truth), sums.excess(self.prediction, self.truth)
        else:
            known = Risks(centred, self.rule)
            bayes, excess = known.get("bayes", self.truth), known.get("excess", self.prediction, self.truth)
        zero = xp.zeros_like(mean)  # some risks are the same for all points
        found = {"mean": centring.centre + centring.unit * mean, "variance": centring.unit * centring.unit * variance}
        return found | {"bayes": bayes + zero, "excess": excess + zero, "total": bayes + excess + zero}


class _Sums:
    """Risks of a kernel rule from the distances between pairs of components.

    With weights c and b that sum to one,

        entropy = sum c_k entropy_k + 1/2 sum c_k c_l d_kl        distance = sum c_k b_l d_kl - 1/2 (own of c) - 1/2 (own of b)

    where d_kl is the rule's divergence between two components. Of two mixtures this is a difference, in double precision.
    """

    def __init__(self, ensemble: CentredEnsemble, rule: Rule) -> None:
        if not isinstance(rule, KernelRule):
            raise UnsupportedError(f"{rule.name} has no closed form between mixtures")
        local = rule.centred(ensemble.centring)
        self.rule: KernelRule = local if isinstance(local, KernelRule) else rule
        self._ensemble, self._degree = ensemble, rule.degree or 0
        mixed = ensemble.mixture  # flat: the components of all members, a member's as far apart as there are members
        assert isinstance(mixed, Mixture)  # noqa: S101  draws are no networks' predictions
        self._components, self._weights = mixed.components, mixed.weights
        if any(x.ndim != self._weights.ndim for x in self._components.arrays()):  # bars and quantiles
            raise UnsupportedError(f"{rule.name} has no closed form between {self._components.name} members")
        self._n_members = ensemble.weights.shape[0]
        self._distances()

    def bayes(self, truth: str) -> Array:
        """The entropy of the truth."""
        if truth in ("matched", "pooled"):
            return self._restore(self.rule.entropy(getattr(self._ensemble, truth)))
        xp = namespace(self._weights)
        own = xp.sum(self._weights * self.rule.entropy(self._components), axis=0)
        return self._restore(own + 0.5 * self._own(truth))

    def excess(self, prediction: str, truth: str) -> Array:
        """The distance between the two."""
        if prediction == truth and prediction != "members":
            return 0.0 * self._all
        value = self._cross(prediction, truth) - 0.5 * self._own(prediction) - 0.5 * self._own(truth)
        return at_least_zero(self._restore(value))

    def _distances(self) -> None:
        """Distances of all pairs of components, and of those that belong to one member, each pair once."""
        count, xp = self._weights.shape[0], namespace(self._weights)
        pairs = [(k, m) for k in range(count) for m in range(k + 1, count)]
        first, second = ([pair[i] for pair in pairs] for i in range(2))
        left, right = self._components.map(lambda x: _rows(x, first)), self._components.map(lambda x: _rows(x, second))
        weighted = 2.0 * _rows(self._weights, first) * _rows(self._weights, second) * self._distance(left, right)
        together = [i for i, (k, m) in enumerate(pairs) if k % self._n_members == m % self._n_members]
        self._all = xp.sum(weighted, axis=0)
        # Components of one member carry the weight of the member twice.
        self._within = self._n_members * xp.sum(_rows(weighted, together), axis=0)

    def _distance(self, p: Family, q: Family) -> Array:
        if self.rule.distance.is_closed(type(p), type(q)):
            return self.rule.divergence(prediction=p, truth=q)
        return self.rule.gap(p, q) - 0.5 * (self.rule.gap(p, p) + self.rule.gap(q, q))

    def _own(self, role: str) -> Array:
        """The sum of the distances within a candidate, averaged over candidates."""
        return {"members": self._within, "mixture": self._all}.get(role, 0.0 * self._all)

    def _cross(self, one: str, other: str) -> Array:
        """The sum of the distances between two candidates, averaged over pairs of candidates."""
        single = [getattr(self._ensemble, role) for role in (one, other) if role in ("matched", "pooled")]
        if not single:
            return self._all
        if len(single) == 2:
            return self._distance(*single)
        surrogate = single[0].map(lambda x: expand(x, 0))
        return namespace(self._weights).sum(self._weights * self._distance(surrogate, self._components), axis=0)

    def _restore(self, value: Array) -> Array:
        return self._ensemble.centring.restore(value, self._degree)


def _rows(x: Array, at: Sequence[int]) -> Array:
    """Entries of the first axis."""
    xp = namespace(x)
    return xp.take(x, xp.asarray(at, dtype=xp.int64), axis=0)


def choose(members: Family, rule: object, prediction: str, truth: str) -> Split:
    """The closed form of a rule for members like these.

    Raises:
        UnsupportedError: there is none; the message says for what there is one.
    """
    scorer = resolve_rule(rule)  # type: ignore[arg-type]
    roles = resolve_approximation(prediction), resolve_approximation(truth)
    if (found := closed_form_of(members, scorer, *roles)) is not None:
        return found
    named = f"rule={scorer.name!r}, prediction={roles[0]!r}, truth={roles[1]!r}"
    raise UnsupportedError(
        f"{named} has no closed form for these members, which export needs; {_ways_out(members, scorer, *roles)}"
    )


def closed_form_of(members: Family, rule: Rule, prediction: str, truth: str) -> Split | None:
    """The closed form, found by computing the risks of these members and watching whether integrals are taken."""
    for of_components in (False, True):
        split = Split(rule, prediction, truth, of_components=of_components)
        try:
            with recording() as integrals:
                split(members)
        except UqprismError:  # such as surrogates without a variance, or a rule that these members do not have
            continue
        if not integrals:
            return split
    return None


def _ways_out(members: Family, rule: Rule, prediction: str, truth: str) -> str:
    """What can be exported in place of it."""
    same = [name for name in RULES if name != rule.name and closed_form_of(members, resolve_rule(name), prediction, truth)]
    found = [f"rule={' or '.join(map(repr, same))} with the same prediction and truth"] if same else []
    others = [(p, t) for p in ROLES for t in ROLES if {p, t} & {"members", "mixture"} and (p, t) != (prediction, truth)]
    if roles := [f"{p}/{t}" for p, t in others if closed_form_of(members, rule, p, t)]:
        found.append(f"rule={rule.name!r} with prediction/truth {', '.join(roles)}")
    return "these have one: " + "; or ".join(found) if found else "export with head='mixture', 'natural' or 'laplace'"
