"""What one pass over the nodes gives for an ensemble of any family: the integrals that every risk follows from.

With p_i, F_i the members' densities and distribution functions, p and F those of the mixture, g and G those of a surrogate, and a
bar for the weighted mean over the members, in centred coordinates:

    crps.bayes.members                  mean of the integrals of F_i (1 - F_i)
    crps.excess.mixture.members         integral of mean (F_i - F)^2
    crps.excess.matched.mixture         integral of (G - F)^2; pooled likewise
    quadratic.bayes.members             minus the mean of the integrals of p_i^2
    quadratic.excess.mixture.members    integral of mean (p_i - p)^2
    quadratic.excess.matched.mixture    integral of (g - p)^2; pooled likewise
    quadratic.bayes.matched             minus the integral of g^2; pooled likewise
    quadratic.overlap.matched           integral of g p; pooled likewise
    log.bayes.members                   minus the mean of the integrals of p_i log p_i
    log.excess.mixture.members          mean of the integrals of p_i log(p_i / p) - p_i + p
    log.excess.members.mixture          mean of the integrals of p log(p / p_i) - p + p_i
    log.excess.members.matched          mean of the integrals of g log(g / p_i) - g + p_i; pooled likewise
    log.excess.matched.mixture          integral of p log(p / g) - p + g; pooled likewise
    log.excess.mixture.matched          integral of g log(g / p) - g + p; pooled likewise

The means over pairs of members are variances between members, so the work is members x nodes. Integrands of excesses are nowhere
negative, so nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from uqprism.arrays import Array, namespace
from uqprism.ensemble.approximations import NEAR, CentredEnsemble
from uqprism.families.base import Family
from uqprism.families.functionals import LOG_ZERO, overlap, relative_entropy_density
from uqprism.families.gaussian import Surrogate
from uqprism.families.quadrature import gauss_legendre, record
from uqprism.measures import Measure
from uqprism.measures.risks import AT_BOUNDS, Primitive, recipe
from uqprism.rules import CRPS, Log, Quadratic, Rule

RULES: dict[type[Rule], str] = {CRPS: "crps", Log: "log", Quadratic: "quadratic"}
SURROGATES = ("matched", "pooled")

ROWS = (
    "crps.bayes.members",
    "crps.excess.mixture.members",
    "crps.excess.matched.mixture",
    "crps.excess.pooled.mixture",
    "quadratic.bayes.members",
    "quadratic.excess.mixture.members",
    "quadratic.excess.matched.mixture",
    "quadratic.excess.pooled.mixture",
    "quadratic.bayes.matched",
    "quadratic.bayes.pooled",
    "quadratic.overlap.matched",
    "quadratic.overlap.pooled",
    "log.bayes.members",
    "log.excess.mixture.members",
    "log.excess.members.mixture",
    "log.excess.members.matched",
    "log.excess.members.pooled",
    "log.excess.matched.mixture",
    "log.excess.pooled.mixture",
    "log.excess.mixture.matched",
    "log.excess.mixture.pooled",
)
ROW = {name: index for index, name in enumerate(ROWS)}
CANCELLING = tuple(ROW[name] for name in ROWS if name.endswith(("mixture.members", "members.mixture")))
"""The rows that vanish with the members' disagreement."""


def _sums() -> dict[tuple[str, Primitive], dict[str, float]]:
    """For every risk that follows from rows, by rule, the rows and their factors; see docs/theory.md for why."""
    found: dict[tuple[str, Primitive], dict[str, float]] = {}
    for rule in ("crps", "quadratic"):
        own, between = f"{rule}.bayes.members", f"{rule}.excess.mixture.members"
        found[rule, ("bayes", "members")] = {own: 1.0}
        found[rule, ("bayes", "mixture")] = {own: 1.0, between: 1.0}
        found[rule, ("excess", "mixture", "members")] = found[rule, ("excess", "members", "mixture")] = {between: 1.0}
        found[rule, ("excess", "members", "members")] = {between: 2.0}
        found[rule, ("total", "members", "members")] = {own: 1.0, between: 2.0}
        for name in SURROGATES:
            to_mixture = f"{rule}.excess.{name}.mixture"
            found[rule, ("excess", name, "mixture")] = found[rule, ("excess", "mixture", name)] = {to_mixture: 1.0}
            found[rule, ("excess", name, "members")] = {to_mixture: 1.0, between: 1.0}
            found[rule, ("excess", "members", name)] = found[rule, ("excess", name, "members")]
    for name in SURROGATES:
        # The squared density of a prediction is what it costs whatever happens.
        overlap = {f"quadratic.overlap.{name}": -2.0}
        found["quadratic", ("total", "members", name)] = {"quadratic.bayes.members": -1.0, **overlap}
        found["quadratic", ("total", name, "members")] = {f"quadratic.bayes.{name}": -1.0, **overlap}
    own, between, back = "log.bayes.members", "log.excess.mixture.members", "log.excess.members.mixture"
    found["log", ("bayes", "members")] = {own: 1.0}
    found["log", ("bayes", "mixture")] = {own: 1.0, between: 1.0}
    found["log", ("excess", "mixture", "members")] = {between: 1.0}
    found["log", ("excess", "members", "mixture")] = {back: 1.0}
    found["log", ("excess", "members", "members")] = {between: 1.0, back: 1.0}
    for name in SURROGATES:
        found["log", ("excess", name, "mixture")] = {f"log.excess.{name}.mixture": 1.0}
        found["log", ("excess", name, "members")] = {f"log.excess.{name}.mixture": 1.0, between: 1.0}
        found["log", ("excess", "mixture", name)] = {f"log.excess.mixture.{name}": 1.0}
        found["log", ("excess", "members", name)] = {f"log.excess.members.{name}": 1.0}
    return found


SUMS = _sums()


def cumulative_rule(count: int) -> np.ndarray[Any, Any]:
    """The matrix (nodes, nodes) that takes values at the nodes on (0, 1) to the integrals from 0 to each node."""
    nodes, weights = gauss_legendre(count)
    # Legendre polynomials are orthogonal on the nodes, so that their coefficients are sums; their integrals are known.
    legendre = np.polynomial.legendre.legvander(2.0 * nodes - 1.0, count)
    degrees = np.arange(count)
    coefficients = legendre[:, :-1].T * weights * (2.0 * degrees[:, None] + 1.0)
    integrals = np.empty((count, count))
    integrals[:, 0] = 2.0 * nodes
    integrals[:, 1:] = (legendre[:, 2:] - legendre[:, :-2]) / (2.0 * degrees[1:] + 1.0)
    return 0.5 * integrals @ coefficients


@dataclass(frozen=True)
class Wanted:
    """The rows that some measures need, by kind; `members` says whether log rows of single members are among them."""

    crps: bool = False
    quadratic: bool = False
    log: bool = False
    surrogates: bool = False
    members: bool = True

    def against_mixture(self) -> list[int]:
        """The rows among them that vanish where a Gaussian mixture is its surrogate."""
        pairs = [f"{rule}.excess.{name}.mixture" for rule in ("crps", "quadratic") if getattr(self, rule) for name in SURROGATES]
        logs = ["log.excess.matched.mixture", "log.excess.mixture.matched", "log.excess.mixture.pooled"]
        return [ROW[name] for name in pairs + logs * self.log]

    @staticmethod
    def by(measures: Iterable[Measure], members: type[Family]) -> Wanted:
        """What these measures need, of members of this family."""
        rows = set()
        for measure in measures:
            rule = measure.resolved()
            name = RULES.get(type(rule))
            if name is not None:
                roles = [role for role in (measure.prediction, measure.truth) if role is not None]
                for primitive in recipe(rule, members, measure.risk, *roles):
                    rows |= set(SUMS.get((name, primitive), ()))
        kinds = {row.split(".")[0] for row in rows}
        needs_surrogates = any(name in row for row in rows for name in SURROGATES)
        return Wanted("crps" in kinds, "quadratic" in kinds, "log" in kinds, needs_surrogates)


class Rows:
    """The integrals of one pass, and every risk that follows from them."""

    def __init__(self, values: Array, members: Family) -> None:
        self._values, self._members = values, members

    def risk(self, rule: Rule, primitive: Primitive) -> Array | None:
        """The risk in centred units, without the logarithm of the unit; None if it is no sum of rows."""
        name = RULES.get(type(rule))
        parts = None if name is None else SUMS.get((name, primitive))
        if parts is None or self._makes_no_sense(name, primitive):
            return None
        record(self._members.tolerance)
        if (
            self._members.has_bounds
            and name == "log"
            and primitive[0] == "excess"
            and {"members", "mixture"}.issuperset(primitive[1:])
        ):
            record(AT_BOUNDS)
        each = [factor * self._values[ROW[row]] for row, factor in parts.items()]
        value = sum(each, start=0.0)
        if name == "log" and primitive[0] == "excess" and primitive[2] in SURROGATES:
            value = self._with_bounds(value, each=primitive[1] == "members")
        if primitive[0] == "bayes" and len(each) > 1:  # to squares without an integral no disagreement adds
            value = namespace(value).where(each[0] == -math.inf, each[0], value)
        return value

    def _with_bounds(self, value: Array, *, each: bool) -> Array:
        """Infinite where Gaussians reach beyond the bounds of all members, or of `each`."""
        for bound in self._members.support:
            if bound is not None:
                xp = namespace(value)
                bounded = xp.isfinite(bound + 0.0 * self._members.centre)
                beyond = xp.any(bounded, axis=0) if each else xp.all(bounded, axis=0)
                value = xp.where(beyond, xp.full_like(value, math.inf), value)
        return value

    def _makes_no_sense(self, rule: str | None, primitive: Primitive) -> bool:
        """True for what the functionals refuse: log and quadratic where probabilities and densities meet."""
        kind = self._members.has_probabilities
        if not kind or rule == "crps":
            return False
        if any(name in primitive for name in SURROGATES) or (kind == "atoms" and rule == "quadratic"):
            return True
        return kind == "atoms" and any(bool((place != place[0]).any()) for place, _ in self._members.atoms or [])


def seen_from_bound(centred: CentredEnsemble, *, surrogates: bool, upper: bool = False) -> tuple[Family, list[Surrogate], Array]:
    """Members and surrogates as seen from the members' common bound, and where it lies; without one, as they are, and zero.

    Next to a bound densities may vary over lengths that a distance from the centre would round away.
    """
    members, found = centred.members, [centred.matched, centred.pooled] if surrogates else []
    origin = common_bound(members, upper=upper)
    if origin is None:
        origin = 0.0 * members.centre[0]
    else:
        xp = namespace(origin)
        origin = xp.where(xp.isfinite(origin), origin, xp.zeros_like(origin))
        unit = xp.ones_like(origin)
        members, found = members.relative_to(origin, unit), [s.relative_to(origin, unit) for s in found]
    return members, found, origin


def common_bound(members: Family, *, upper: bool) -> Array | None:
    """The bound (points,) that all members share, infinite where there is no such; None if they have no bounds."""
    each = members.components or members
    bound = each.support[1 if upper else 0]
    if bound is None:
        return None
    xp = namespace(bound)
    bound = xp.reshape(bound + 0.0 * each.centre, (-1, members.batch_shape[-1]))
    return xp.where(xp.all(bound == bound[0], axis=0), bound[0], xp.full_like(bound[0], math.inf))


def has_two_ends(members: Family) -> bool:
    """Whether densities may vary over very short lengths next to two bounds."""
    return members.spans_decades and all(bound is not None for bound in members.support)


def near_agreement(centred: CentredEnsemble, rows: Array, one_pass: Callable[[CentredEnsemble, Array], Array]) -> Array:
    """The rows with those that vanish with the disagreement mended where members nearly agree, see `CentredEnsemble.along_ray`.

    Args:
        centred: the ensemble.
        rows: its rows (rows, points), which are changed.
        one_pass: from an ensemble of some points, and their positions, to its rows.
    """
    gap = centred.members.differences(spikes=True)
    xp, vanishing = namespace(gap), list(CANCELLING)
    rows[vanishing] = xp.where(gap > 0.0, rows[vanishing], xp.zeros_like(gap))
    at = xp.nonzero((gap > 0.0) & (gap < NEAR))[0]
    if len(at):
        mended = centred.at(at).along_ray(lambda other: one_pass(other, at)[vanishing], rows[vanishing][:, at])
        for row, values in zip(vanishing, mended, strict=True):
            rows[row, at] = values
    return rows


def add_atoms(out: Array, mass: Array, centred: CentredEnsemble) -> None:
    """Add what the values that have a probability of their own hold of the mass, and of the rows of log."""
    members, weights, mixture = centred.members, centred.weights, centred.mixture
    xp = namespace(mass)
    for (place, own), (_, mixed) in zip(members.atoms or [], mixture.atoms or [], strict=True):
        log_p, log_all = xp.clip(own, LOG_ZERO, None), xp.clip(mixed, LOG_ZERO, None)
        there = own > -math.inf
        level = members.log_density(xp.where(there, place, members.centre))
        mass += xp.exp(log_all)
        for row, values in (
            ("bayes.members", -xp.exp(log_p) * xp.where(there, level, xp.zeros_like(level))),
            ("excess.mixture.members", relative_entropy_density(log_p, log_all)),
            ("excess.members.mixture", relative_entropy_density(log_all, log_p)),
        ):
            out[ROW[f"log.{row}"]] += xp.sum(weights * values, axis=0)


def squares_by_pairs(out: Array, at: Array, centred: CentredEnsemble) -> None:
    """Set the rows of squared densities at some points from the closed forms of pairs of members."""
    members, weights = centred.members, centred.weights
    between = overlap(members.map(lambda x: x[:, None]), members.map(lambda x: x[None]))
    xp, power = namespace(between), cast("Array", members.square_power)
    own = sum(weight * between[i, i] for i, weight in enumerate(weights))
    mixed = xp.sum(weights[:, None] * weights[None] * between, axis=(0, 1))
    infinite = xp.any(power <= 0.0, axis=0)
    never = xp.full_like(own, math.inf)
    out[ROW["quadratic.bayes.members"], at] = -own
    out[ROW["quadratic.excess.mixture.members"], at] = xp.where(infinite, never, xp.clip(own - mixed, 0.0, None))
    for name in SURROGATES:
        alone, overlapping = (out[ROW[f"quadratic.{what}.{name}"], at] for what in ("bayes", "overlap"))
        out[ROW[f"quadratic.excess.{name}.mixture"], at] = xp.where(infinite, never, mixed - 2.0 * overlapping - alone)
