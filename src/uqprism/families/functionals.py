"""What rules ask of two distributions, in closed form where one is known and by quadrature otherwise.

Rules speak in these functionals rather than in the parameters of families, and a family's file adds the closed forms it knows
with `closed_form`. The distances are functionals of their own, not differences of the others, because for nearly equal
distributions a difference keeps no digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from uqprism.arrays import Array, constant, exp_minus_linear, gamma_tail, is_traced, namespace
from uqprism.errors import UnsupportedError
from uqprism.families.base import Family
from uqprism.families.quadrature import Grid, gauss_legendre, grid_over, integrate, record, tolerance_of

F = TypeVar("F", bound=Callable[..., Array])


class Functional:
    """A number computed from one or two distributions; the most specific closed form wins over quadrature."""

    def __init__(self, fallback: Callable[..., Array], *, symmetric: bool = False, of_densities: bool = False) -> None:
        self.__name__, self.__doc__ = fallback.__name__, fallback.__doc__
        self.fallback = fallback
        self.symmetric, self.of_densities = symmetric, of_densities
        self._closed: dict[tuple[type, ...], Callable[..., Array]] = {}

    def __call__(self, *arguments: object) -> Array:
        """The closed form if one is known, otherwise the quadrature."""
        found = [a for a in arguments if isinstance(a, Family)]
        if self.of_densities:
            self._check(found)
        form = self._find(*map(type, found))
        if form is not None:
            return form(*arguments)
        if self.symmetric and len(arguments) == 2:
            form = self._find(*(type(a) for a in reversed(arguments)))
            if form is not None:
                return form(*reversed(arguments))
        return self.fallback(*arguments)

    def _check(self, found: list[Family]) -> None:
        """Refuse to compare probabilities with densities, and to square probabilities and densities for one sum."""
        kinds = {a.has_probabilities for a in found}
        if len(kinds) > 1:
            raise UnsupportedError(NO_COMMON_SCALE.format(kind="counts" if "counts" in kinds else "censored values"))
        if "atoms" in kinds and self.symmetric:
            raise UnsupportedError(NO_SQUARE)

    def is_closed(self, *families: type) -> bool:
        """True if a closed form is known for these families, in this or, where it does not matter, the other order."""
        return self._find(*families) is not None or (self.symmetric and self._find(*reversed(families)) is not None)

    def _find(self, *families: type) -> Callable[..., Array] | None:
        if len(families) == 1:
            return next((self._closed[(k,)] for k in families[0].__mro__ if (k,) in self._closed), None)
        # The classes of the first argument change slowest: the nearest class of the first argument decides.
        first, second = families
        keys = ((a, b) for a in first.__mro__ for b in second.__mro__)
        return next((self._closed[k] for k in keys if k in self._closed), None)


NO_COMMON_SCALE = (
    "log and quadratic cannot compare {kind}, which have probabilities, with distributions that have a density, such as matched "
    "and pooled, which are Gaussians; use members and mixture, as in log.excess.mixture.members, or crps and squared_error"
)
NO_SQUARE = (
    "quadratic is not for censored members: squares of their densities and of the probabilities at their bounds have different "
    "units and cannot be added; use log, crps or squared_error"
)


def closed_form(functional: Functional, *families: type) -> Callable[[F], F]:
    """Decorator: this is how to compute `functional` for these families (and for those derived from them)."""

    def add(form: F) -> F:
        functional._closed[families] = form
        return form

    return add


def _grid(p: Family, q: Family) -> Grid:
    """The grid of the ensemble both come from, which resolves all of it, or one made for the two."""
    record(tolerance_of(p, q))
    if p.shared_grid is not None and p.shared_grid is q.shared_grid:
        return p.shared_grid.grid
    return grid_over(p, q)


def _absolute_gap(p: Family, q: Family) -> Array:
    """E|X - Y| for independent X of p and Y of q."""
    grid = _grid(p, q)
    # E|X - Y| = int F (1 - G) + G (1 - F): a single integral of terms that are never negative. It is the same in both tails, so
    # # that the probabilities may be those of the nearer end.
    xp = namespace(grid.nodes)
    f, g = grid.evaluate(p, "cdf"), grid.evaluate(q, "cdf")
    if grid.pivot is not None:
        f, g = xp.abs(f), xp.abs(g)
    gap = grid.integrate(f * (1.0 - g) + g * (1.0 - f))
    return gap + p.beyond(grid.low, grid.high) + q.beyond(grid.low, grid.high)


def _overlap(p: Family, q: Family) -> Array:
    """The integral of the product of the densities."""
    grid = _grid(p, q)
    xp = namespace(grid.nodes)
    return grid.integrate(xp.exp(grid.evaluate(p, "log_density") + grid.evaluate(q, "log_density")))


def _cramer_distance(p: Family, q: Family) -> Array:
    """The integral of the squared difference of the distribution functions."""
    if (p.lattice is None) != (q.lattice is None):
        return _distance_of_counts(p, q) if q.lattice is None else _distance_of_counts(q, p)
    grid = _grid(p, q)
    difference = grid.evaluate(p, "cdf") - grid.evaluate(q, "cdf")
    return grid.integrate(difference * difference)


def _distance_of_counts(counts: Family, smooth: Family) -> Array:
    """The Cramer distance between a step function and a smooth one: an integral over each step, and one below all."""
    first, step = counts.lattice or (0.0, 1.0)
    record(tolerance_of(counts, smooth))
    grid = grid_over(counts, smooth)
    xp = namespace(grid.nodes)
    height, total = grid.evaluate(counts, "cdf"), 0.0 * grid.nodes[0]
    if grid.pivot is not None:  # above which it counts down
        height = xp.where(grid.nodes > grid.pivot, 1.0 + height, height)
    for node, weight in zip(*gauss_legendre(12), strict=True):
        rest = height - smooth.cdf(grid.nodes + float(node) * step)
        total = total + float(weight) * grid.integrate(rest * rest)
    low = xp.minimum(constant(smooth.bracket()[0]), constant(first)) + 0.0 * constant(total)
    total = total + integrate(lambda y: smooth.cdf(y) ** 2, smooth, between=(low, constant(first) + 0.0 * low))
    total = total + (first - constant(first)) * constant(smooth.cdf(first) ** 2)  # the gradient of the upper bound
    # What is narrower than a step is not resolved; the distance is then no small difference of gaps.
    narrow = constant(smooth.spread) < 2.0 * step
    if is_traced(narrow) or bool(xp.any(narrow)):
        gaps = absolute_gap(counts, smooth) - 0.5 * (absolute_gap(counts, counts) + absolute_gap(smooth, smooth))
        total = xp.where(narrow, gaps, total)
    return total


def _density_distance(p: Family, q: Family) -> Array:
    """The integral of the squared difference of the densities; infinite where one has no integrable square."""
    if p.lattice is not None and q.lattice is not None:
        # In counts, or the logarithm of a step would round probabilities near one.
        first, step = p.lattice
        record(tolerance_of(p, q))
        p, q = p.relative_to(first, step), q.relative_to(first, step)
        return _squared_difference(p, q, grid_over(p, q)) / step
    distance = _squared_difference(p, q, _grid(p, q))
    for power in (p.square_power, q.square_power):
        if power is not None:
            distance = _next_to_poles(p, q, power, distance)
    return distance


def _squared_difference(p: Family, q: Family, grid: Grid) -> Array:
    xp = namespace(grid.nodes)
    log_p, log_q = (xp.clip(grid.evaluate(d, "log_density"), LOG_ZERO, None) for d in (p, q))
    # Probabilities near one, such as those of zero for low rates, differ in digits that only their logarithms keep.
    difference = xp.exp(xp.maximum(log_p + 0.0 * log_q, log_q + 0.0 * log_p)) * xp.expm1(-xp.abs(log_p - log_q))
    return grid.integrate(difference * difference)


SLOW = 0.06  # the power of `Family.square_power` below which doubles end before the integral does


def _next_to_poles(p: Family, q: Family, power: Array, distance: Array) -> Array:
    """The density distance where it is infinite, or part of it lies closer to a bound than any double."""
    xp = namespace(power, distance)
    slow = power + 0.0 * distance < SLOW
    if is_traced(slow) or bool(xp.any(slow)):
        direct = overlap(p, p) + overlap(q, q) - 2.0 * overlap(p, q)
        distance = xp.where(slow & (distance > 0.0), xp.where(power > 0.0, direct, xp.full_like(distance, math.inf)), distance)
    return distance


def _cross_entropy(truth: Family, prediction: Family) -> Array:
    """The mean of minus the prediction's log density under the truth; infinite where the prediction rules out what happens."""
    grid = _grid(truth, prediction)
    log_p, log_q = grid.evaluate(truth, "log_density"), grid.evaluate(prediction, "log_density")
    xp = namespace(grid.nodes)
    density = xp.exp(log_p)
    if grid.bounded:
        log_q = xp.where(density > 0.0, log_q, xp.zeros_like(log_q))
    # Cancels against an entropy near agreement; divergences therefore use `relative_entropy`.
    value = -grid.integrate(density * log_q)
    beyond = reaches_beyond(truth, prediction)
    if beyond is not None:
        value = xp.where(beyond, xp.full_like(value, math.inf), value)
    for place, log_probability, _ in _common_atoms(truth, prediction):
        there = log_probability > -math.inf
        score = prediction.log_density(xp.where(there, place, prediction.centre))
        value = value - xp.where(there, xp.exp(log_probability) * score, xp.zeros_like(value))
    return value


def reaches_beyond(truth: Family, prediction: Family) -> Array | None:
    """Where the truth has values outside the bounds of the prediction, however few; None if the latter has no bounds."""
    found = None
    for side, (own, bound) in enumerate(zip(truth.support, prediction.support, strict=True)):
        if bound is not None:
            end = (math.inf if side else -math.inf) + 0.0 * truth.centre if own is None else own
            outside = end > bound if side else end < bound
            found = outside if found is None else found | outside
    return found


def _relative_entropy(truth: Family, prediction: Family) -> Array:
    """The Kullback-Leibler divergence of the truth from the prediction; infinite where the prediction rules out what happens."""
    grid = _grid(truth, prediction)
    log_p, log_q = grid.evaluate(truth, "log_density"), grid.evaluate(prediction, "log_density")
    excluded = None
    if grid.bounded:
        xp = namespace(log_p, log_q)
        excluded = (log_q == -math.inf) & (log_p > -math.inf)
        log_p, log_q = (xp.clip(x, LOG_ZERO, None) for x in (log_p, log_q))
    density = relative_entropy_density(log_p, log_q)
    if excluded is not None:
        density = xp.where(excluded, xp.full_like(density, math.inf), density)
    value = grid.integrate(density) + prediction.cost_beyond(truth, grid.low, grid.high)
    beyond = reaches_beyond(truth, prediction)
    if beyond is not None:
        value = namespace(value).where(beyond, namespace(value).full_like(value, math.inf), value)
    for _, log_probability, other in _common_atoms(truth, prediction):
        value = value + relative_entropy_density(*(namespace(x).clip(x, LOG_ZERO, None) for x in (log_probability, other)))
    return value


def _common_atoms(truth: Family, prediction: Family) -> list[tuple[Array, Array, Array]]:
    """Values that have a probability of their own, with the logarithms of those of both."""
    found = []
    for distribution in (truth, prediction):
        if distribution.components is not None:
            for place, _ in distribution.components.atoms or []:
                _refuse_different(place != place[0])
    for (place, log_p), (other, log_q) in zip(truth.atoms or [], prediction.atoms or [], strict=True):
        _refuse_different(place != other)
        found.append((place, log_p, log_q))
    return found


def _refuse_different(differ: Array) -> None:
    """Refuse probabilities at values that differ."""
    if not is_traced(differ) and bool(namespace(differ).any(differ)):
        raise UnsupportedError("log compares censored members with the same bounds only; give all members one low and one high")


LOG_ZERO = -1e200  # stands for minus infinity: differences of these are numbers


def relative_entropy_density(log_p: Array, log_q: Array) -> Array:
    """p log(p/q) - p + q, which integrates to KL(p || q) like p log(p/q) but is nowhere negative, so nothing cancels."""
    xp = namespace(log_p, log_q)
    ratio = log_p - log_q
    size = xp.abs(ratio)
    # With the larger of the two factored out, no exponential of the ratio can overflow.
    larger = xp.where(ratio > 0, log_p + 0.0 * ratio, log_q + 0.0 * ratio)
    return xp.exp(larger) * xp.where(ratio > 0, exp_minus_linear(size), gamma_tail(size))


def _smooth(p: Family, variance: Array) -> Family:
    """The distribution of Y plus independent Gaussian noise of this variance."""
    # Not at the top: `smoothed` builds on `gaussian`, which adds its closed forms to the functionals of this module.
    from uqprism.families.smoothed import Smoothed

    return Smoothed(p, variance)


absolute_gap = Functional(_absolute_gap, symmetric=True)
overlap = Functional(_overlap, symmetric=True, of_densities=True)
cramer_distance = Functional(_cramer_distance, symmetric=True)
density_distance = Functional(_density_distance, symmetric=True, of_densities=True)
cross_entropy = Functional(_cross_entropy, of_densities=True)
relative_entropy = Functional(_relative_entropy, of_densities=True)
smooth = Functional(_smooth)
