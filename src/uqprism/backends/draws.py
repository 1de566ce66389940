"""CRPS and squared error of members known by draws: one sort of all draws of a point, then sums along it.

Between neighbouring draws all distribution functions are constant, so an integral over y is a sum over the lengths between them.
With F_i the members' distribution functions and F the mixture's, the excess between members is twice the integral of the mean of
(F_i - F)^2, and a member's mean lies the integral of F - F_i from the mixture's: the work is draws x members, without pairs of
members. Lengths are differences of draws as they were given, so that members whose draws nearly agree keep their digits.

This is the form for devices, JAX, gradients and few points; `numba.draws` has the kernel for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np

from uqprism.arrays import (
    SQRT_PI,
    Array,
    constant,
    counting,
    expand,
    is_torch,
    is_traced,
    is_transformed,
    is_wrapped,
    merged,
    namespace,
    on_device,
    working,
)
from uqprism.backends.program import covers, terms_of
from uqprism.backends.reference import Computed, exactness_of
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.families.base import blocks, mixing_weights
from uqprism.families.draws import STEPS, Draws, from_steps
from uqprism.families.functionals import cramer_distance
from uqprism.families.quadrature import Exactness
from uqprism.families.searching import take_along
from uqprism.measures import Measure
from uqprism.rules import CRPS, SquaredError
from uqprism.rules.base import at_least_zero

AT_ONCE, AT_ONCE_ON_DEVICE = 2**17, 2**24  # draws of one part, of which a few dozen arrays of that size are made
FEW = 2**17  # draws


class DrawsBackend:
    """CRPS and squared error between members, mixture, matched and pooled, in any array library.

    Args:
        fused: whether to take the kernel, which is for arrays on a processor without gradients.
    """

    def __init__(self, *, fused: bool = False) -> None:
        self._fused = fused

    def covers(self, measure: Measure) -> bool:
        """True for these two rules and the paper's approximations."""
        return type(measure.resolved()) in (CRPS, SquaredError) and covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures, for points along one axis."""
        if self._fused:
            from uqprism.backends.numba import draws

            return draws.compute(ensemble, measures)
        whole = ensemble.counted()
        alike = are_alike(whole)
        done = [compute_part(part, measures, alike=alike) for part in parts_of(whole)]
        xp = namespace(draws_of(whole).draws)
        values = {m.name: xp.concat([part[m.name] for part in done]) if len(done) > 1 else done[0][m.name] for m in measures}
        return Computed(values, exactness(whole, measures))


def draws_of(ensemble: EnsemblePrediction) -> Draws:
    """The members, which are draws."""
    return cast("Draws", ensemble.members)


def weights_of(ensemble: EnsemblePrediction) -> Array:
    """The members' weights (members, *points) in double precision."""
    return mixing_weights(precise(draws_of(ensemble).draws[0]), ensemble.weights, check=False)


def is_small(ensemble: EnsemblePrediction) -> bool:
    """True if all draws together are few, so that a kernel would take longer to load than they take."""
    return int(np.prod(draws_of(ensemble).draws.shape, dtype=np.int64)) <= FEW


def suits_kernel(ensemble: EnsemblePrediction) -> bool:
    """True for plain values on a processor: NumPy arrays, and tensors without gradients."""
    arrays = [x for x in (*ensemble.members.arrays(), ensemble.weights) if x is not None]
    if all(isinstance(x, np.ndarray) for x in arrays):
        return True
    return all(is_torch(x) and x.device.type == "cpu" and not x.requires_grad and not is_transformed(x) for x in arrays)


def exactness(ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> dict[str, Exactness]:
    """How exact each measure is: only distances between draws and Gaussians are more than sums of lengths."""
    draws = draws_of(ensemble).draws
    worked = precise(draws[:0]).dtype
    return {m.name: exactness_of([STEPS] if _is_over_steps(m) else [], worked, draws.dtype) for m in measures}


def _is_over_steps(measure: Measure) -> bool:
    roles = [set(term.split(".")[2:]) for term, _ in terms_of(measure) if term.startswith("crps.excess.")]
    return any(pair & {"matched", "pooled"} and pair & {"members", "mixture"} for pair in roles)


def precise(x: Array) -> Array:
    """In double precision, also on a device that has it; with 32-bit JAX in single."""
    return x.double() if on_device(x) else working(x)


def parts_of(ensemble: EnsemblePrediction) -> list[EnsemblePrediction]:
    """Parts of so many points that temporaries stay small; traced and wrapped arrays stay whole."""
    draws = draws_of(ensemble).draws
    if any(is_traced(x) or is_wrapped(x) for x in (*ensemble.members.arrays(), ensemble.weights)):
        return [ensemble]
    size = max(1, (AT_ONCE_ON_DEVICE if on_device(draws) else AT_ONCE) // (draws.shape[0] * draws.shape[1]))
    return [ensemble[start : start + size] for start in range(0, max(1, ensemble.n_points), size)]


def compute_part(part: EnsemblePrediction, measures: Sequence[Measure], *, alike: bool) -> dict[str, Array]:
    """The measures of points that are few enough to be taken at once."""
    sums = DrawsSums(part, alike=alike)
    found = {}
    for measure in measures:
        value = 0.0 * sums.weights[0]
        for term, factor in terms_of(measure):
            value = value + factor * sums.get(term)
        value = sums.centring.restore(value, measure.resolved().degree or 0)
        value = at_least_zero(value) if measure.risk == "excess" else value
        with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
            found[measure.name] = namespace(value).astype(value, draws_of(part).draws.dtype)
    return found


def are_alike(ensemble: EnsemblePrediction) -> bool:
    """True if it is known that all draws of a member have one weight, the same in all members, and no gradients are asked for."""
    draws = draws_of(ensemble)
    if any(_is_differentiable(x) for x in (draws.draws, draws.weights, ensemble.weights)):
        return False
    return all(bool((part == draws.weights[:1, :1]).all()) for part in blocks(draws.weights))


def _is_differentiable(x: Array) -> bool:
    return is_traced(x) or is_wrapped(x) or bool(getattr(x, "requires_grad", False))


class DrawsSums(CentredEnsemble):
    """The terms of one ensemble of draws, in centred coordinates, each computed once.

    Args:
        part: the ensemble.
        alike: what `are_alike` says of it.
    """

    def __init__(self, part: EnsemblePrediction, *, alike: bool) -> None:
        self.given = draws_of(part)
        self._distances: dict[str, Array] = {}
        # Shares are counts, whose sums are exact in double precision: see `_counted`, for which each member's draws are sorted.
        self._counts = alike and part.weights is None and "64" in str(precise(self.given.draws[:0]).dtype)
        if self._counts:
            self.given = self.given.map(lambda x: x)
            self.given.draws = namespace(self.given.draws).sort(self.given.draws, axis=0, stable=False)
        super().__init__(self.given.map(precise), weights_of(part))

    def get(self, term: str) -> Array:
        """The term of this name, see `program.TERMS`."""
        rule, risk, *roles = term.split(".")
        if rule == "squared_error":
            if risk == "excess":
                return self.variance_of_means
            return self.mean_variance + (self.variance_of_means if roles == ["matched"] else 0.0)
        if risk == "bayes":
            return self._bayes if roles == ["members"] else self._surrogate_gap(roles[0])
        if roles == ["members", "members"]:
            return 2.0 * self._between
        if roles == ["matched", "pooled"]:
            return cramer_distance(self.matched, self.pooled)
        # The mean distance to the members is that to their mixture and the members' own from it.
        return self._to_mixture(roles[0]) + (self._between if roles[1] == "members" else 0.0)

    def _surrogate_gap(self, name: str) -> Array:
        return getattr(self, name).scale / SQRT_PI

    def _to_mixture(self, name: str) -> Array:
        if name not in self._distances:
            surrogate, draws = getattr(self, name), self._flat(cast("Draws", self.members).draws)
            found = [from_steps(take_along(draws, order), mixture, surrogate) for order, mixture in self._walks]
            self._distances[name] = sum(found) / len(found)
        return self._distances[name]

    @property
    def _bayes(self) -> Array:
        return self._sums[0]

    @property
    def _between(self) -> Array:
        return self._sums[1]

    @cached_property
    def variance_of_means(self) -> Array:
        """The variance of the members' means, from their distances to the mixture's."""
        return self._sums[2]

    @cached_property
    def mean_variance(self) -> Array:
        """The mean of the members' variances, of draws as they were given."""
        unit = self.centring.unit
        return self.average(self.given.map(precise).widened().relative_to(0.0 * unit, unit).variance)

    def _flat(self, x: Array) -> Array:
        """The draws of all members along one axis."""
        return merged(x, x.ndim - 2)

    @cached_property
    def _walks(self) -> list[tuple[Array, Array]]:
        """Orders of all draws, and the mixture's shares along them.

        Equal draws are kinks of the distance between them. With gradients there is a second order with equal draws reversed: the
        mean over both has the gradient between the two sides.
        """
        given, draws = self.given.draws, constant(self._flat(self.given.draws))
        xp = namespace(draws)
        if _is_differentiable(given):
            orders = [xp.argsort(draws, axis=0), draws.shape[0] - 1 - xp.argsort(xp.flip(draws, axis=0), axis=0)]
        else:
            orders = [xp.argsort(draws, axis=0, stable=False)]
        mass = self._flat(cast("Draws", self.members).weights * self.weights)
        return [(order, _cumulated(take_along(mass, order))) for order in orders]

    @cached_property
    def _sums(self) -> tuple[Array, ...]:
        """The mean of the members' CRPS entropies, their mean distance to the mixture, and the variance of their means."""
        if self._counts:
            return self._counted(self._walks[0][0])
        found = [self._along(order, mixture) for order, mixture in self._walks]
        return tuple(sum(parts) / len(found) for parts in zip(*found, strict=True))

    def _counted(self, order: Array) -> tuple[Array, Array, Array]:
        """The three sums where all draws count alike: a draw of a member with c so far adds 2 c + 1 to the sum of c^2."""
        xp, (each, count) = namespace(order), self.given.draws.shape[:2]
        draws = precise(take_along(self._flat(self.given.draws), order))
        lengths = (draws[1:] - draws[:-1]) / self.centring.unit
        squares = xp.cumulative_sum(xp.astype(2 * (order // count) + 1, draws.dtype), axis=0)[:-1]
        so_far = expand(counting(draws)[1:], 1, draws.ndim - 1)
        bayes = xp.sum(lengths * (each * so_far - squares), axis=0) / (count * each**2)
        between = xp.sum(lengths * (count * squares - so_far * so_far), axis=0) / (count * each) ** 2
        given = precise(self.given.draws)
        shift = xp.mean((given - given[:, :1]) / self.centring.unit, axis=0)
        shift = shift - self.average(shift)
        return bayes, between, self.average(shift * shift)

    def _along(self, order: Array, mixture: Array) -> tuple[Array, Array, Array]:
        """The three sums in this order of all draws."""
        xp, count = namespace(order), self.given.draws.shape[1]
        draws = precise(take_along(self._flat(self.given.draws), order))
        owner, mass = order % count, take_along(self._flat(cast("Draws", self.members).weights), order)
        lengths = (draws[1:] - draws[:-1]) / self.centring.unit
        bayes = between = 0.0 * draws[0]
        first, shifts = None, []
        for i in range(count):
            share = _cumulated(xp.where(owner == i, mass, 0.0 * mass))
            gap = share - mixture
            bayes = bayes + self.weights[i] * xp.sum(lengths * share * (1.0 - share), axis=0)
            between = between + self.weights[i] * xp.sum(lengths * gap * gap, axis=0)
            # The first member's mean less this one's: shares of members that agree differ by exactly nothing.
            first = share if first is None else first
            shifts.append(xp.sum(lengths * (share - first), axis=0))
        shift = xp.stack(shifts)
        shift = shift - self.average(shift)
        return bayes, between, self.average(shift * shift)


def _cumulated(mass: Array) -> Array:
    """The share of the mass up to each draw but the last; exactly one where none is left."""
    share = namespace(mass).cumulative_sum(mass, axis=0)
    return share[:-1] / share[-1]
