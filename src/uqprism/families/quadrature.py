"""Integrals over the real line, on grids that are planned for the distributions in the integrand.

Every distribution names its landmarks: where it sits, how fine its features are there, how far its tails matter, and whether
its density has a corner. A grid is a row of panels, short near every landmark and longer with the distance from it, each with
Gauss-Legendre nodes: spectrally accurate whether two scales differ by a factor of two or of a million. Only the geometry of the
panels depends on the data, and no gradient flows through it, so the planning is NumPy's and the integrand stays in the
caller's array library; under `jax.jit` the planning is a host callback with room for a fixed number of panels, enough for
TOLERANCE when scales differ by up to ten and means by up to ten scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast
from weakref import ReferenceType, ref

import numpy as np

from uqprism.arrays import Array, constant, from_numpy, is_traced, namespace, to_numpy

if TYPE_CHECKING:
    from uqprism.families.base import Family
    from uqprism.families.mixture import Mixture

Floats = np.ndarray[Any, np.dtype[np.float64]]

PER_PANEL = 12  # nodes
TOLERANCE = 1e-8  # relative, for densities that are smooth between their landmarks
TRACED = 1e-3  # the same under jax.jit for ensembles too spread out for a fixed number of panels
BLOCK = 2**21  # elements of a temporary: 16 MB in float64
KINK = 2.5  # half the panel length, in widths of a kink, at which 12 nodes reach 1e-11


@cache
def gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights of this many points on (0, 1); computed on first use, because loading LAPACK is slow."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


class Exactness(NamedTuple):
    """How a number was obtained, and a bound on its relative error.

    Totals and Bayes risks of two rules cross zero, where nothing is relatively exact: for `log` the bound is relative to
    max(|value|, 1), for `quadratic` totals to max(|total|, |Bayes risk|). Divergences of rules made from a score or an entropy
    alone are differences: for those the bound is relative to the total, and supposes a score that is smooth in y.
    """

    method: Literal["closed form", "quadrature"]
    tolerance: float


_recorder: ContextVar[list[float] | None] = ContextVar("recorder", default=None)


@contextmanager
def recording() -> Iterator[list[float]]:
    """Collect the tolerances of all quadratures run inside; empty means closed form throughout."""
    tolerances: list[float] = []
    token = _recorder.set(tolerances)
    try:
        yield tolerances
    finally:
        _recorder.reset(token)
        outer = _recorder.get()
        if outer is not None:
            outer.extend(tolerances)


def record(tolerance: float) -> None:
    """Note that a quadrature of this tolerance went into the result."""
    tolerances = _recorder.get()
    if tolerances is not None:
        tolerances.append(tolerance)


@dataclass(frozen=True)
class Landmarks:
    """Places that the panels must resolve; arrays (places, *batch).

    Attributes:
        location: the place.
        width: the density is smooth over this length around it; infinite if only the corner matters.
        reach: beyond this distance the distribution no longer counts.
        sharp: one flag per place: the density has a corner exactly there.
    """

    location: Array
    width: Array
    reach: Array
    sharp: tuple[bool, ...]


class Grid:
    """Quadrature nodes and weights, (nodes, *batch), with what was evaluated on them kept for the next integral."""

    def __init__(self, edges: Array) -> None:
        xp = namespace(edges)
        left, length = edges[:-1], edges[1:] - edges[:-1]
        shape = (-1, *edges.shape[1:])
        spread = (1, PER_PANEL, *(1,) * (edges.ndim - 1))
        nodes, weights = (xp.reshape(from_numpy(x, edges), spread) for x in gauss_legendre(PER_PANEL))
        self.nodes = xp.reshape(left[:, None] + length[:, None] * nodes, shape)
        self.weights = xp.reshape(length[:, None] * weights, shape)
        # Weak references: the distributions know the grid, and a cycle would hold all values until the garbage collector runs.
        self._kept: dict[tuple[int, str], tuple[ReferenceType[Family], Array]] = {}

    def evaluate(self, distribution: Family, function: str) -> Array:
        """`distribution.<function>(nodes)`, computed once."""
        key = (id(distribution), function)
        if key not in self._kept or self._kept[key][0]() is not distribution:  # a dead object's id may be in use again
            extra = len(distribution.batch_shape) - (self.nodes.ndim - 1)
            size = int(np.prod(distribution.batch_shape[: max(extra, 0)], dtype=np.int64))
            values = self.map(getattr(distribution, function), size * _cost(distribution), max(extra, 0))
            self._kept[key] = (ref(distribution), values)
        return self._kept[key][1]

    def map(self, function: Callable[[Array], Array], cost: int = 1, extra: int = 0) -> Array:
        """`function(nodes)` in blocks of nodes, so that `cost` elements per node stay small; `extra` axes go before the batch."""
        xp = namespace(self.nodes)
        nodes = xp.reshape(self.nodes, (self.nodes.shape[0], *(1,) * extra, *self.nodes.shape[1:]))
        step = max(1, BLOCK // max(1, cost * int(np.prod(nodes.shape[1:], dtype=np.int64))))
        if step >= nodes.shape[0]:
            return function(nodes)
        if is_traced(nodes):
            return _map_traced(function, nodes, step)
        return xp.concat([function(nodes[i : i + step]) for i in range(0, nodes.shape[0], step)], axis=0)

    def integrate(self, values: Array) -> Array:
        """The weighted sum of `values` (nodes, *more, *batch) over the nodes."""
        xp = namespace(values)
        extra = values.ndim - self.weights.ndim
        weights = xp.reshape(self.weights, (self.weights.shape[0], *(1,) * extra, *self.weights.shape[1:]))
        return xp.sum(weights * values, axis=0)


def _map_traced(function: Callable[[Array], Array], nodes: Array, step: int) -> Array:
    """`function` over blocks of nodes as one loop, so that the compiled program does not grow with the number of blocks."""
    import jax

    count = nodes.shape[0]
    blocks = -(-count // step)
    padded = jax.numpy.concatenate([nodes, jax.numpy.repeat(nodes[-1:], blocks * step - count, axis=0)])
    values = jax.lax.map(function, padded.reshape(blocks, step, *nodes.shape[1:]))
    return values.reshape(blocks * step, *values.shape[2:])[:count]


class SharedGrid:
    """The distributions of one ensemble, which share a grid that resolves them all."""

    def __init__(self, *distributions: Family) -> None:
        self._distributions = distributions

    @cached_property
    def grid(self) -> Grid:
        """The grid, made when first asked for."""
        return grid_over(*self._distributions)


def integrate(function: Callable[[Array], Array], *distributions: Family, between: tuple[Array, Array] | None = None) -> Array:
    """The integral of `function` over the real line, or `between` two bounds, resolved for these distributions."""
    record(TOLERANCE)
    grid = grid_over(*distributions, between=between)
    cost = sum(_cost(d) for d in distributions)
    return grid.integrate(grid.map(function, cost))


def _cost(distribution: Family) -> int:
    """Elements held per batch element: a mixture holds one per component."""
    arrays = distribution.arrays()
    size = int(np.prod(distribution.batch_shape, dtype=np.int64))
    return max((int(np.prod(x.shape, dtype=np.int64)) // max(size, 1) for x in arrays), default=1)


def grid_over(*distributions: Family, between: tuple[Array, Array] | None = None) -> Grid:
    """A grid that resolves all of these distributions."""
    bounds = () if between is None else between
    arrays = [x for d in distributions for x in d.arrays()] + list(bounds)
    shape = np.broadcast_shapes(*(d.batch_shape for d in distributions), *(b.shape for b in bounds))

    def plan(*values: Array) -> Floats:
        it = iter([np.asarray(v, dtype=np.float64) for v in values])
        hosts = [d.map(lambda _: next(it)) for d in distributions]
        return _plan(hosts, tuple(it), shape)

    like = next((a for a in arrays if is_traced(a)), arrays[0])
    if is_traced(like):
        return Grid(_callback(plan, arrays, shape, like, distributions))
    return Grid(from_numpy(plan(*[to_numpy(a) for a in arrays]), like))


def _callback(
    plan: Callable[..., Floats], arrays: list[Array], shape: tuple[int, ...], like: Array, distributions: tuple[Family, ...]
) -> Array:
    import jax

    record(TRACED)
    panels = 256 + 12 * max(_cost(d) for d in distributions)
    result = jax.ShapeDtypeStruct((panels + 1, *shape), like.dtype)

    def host(*values: Array) -> Floats:
        return _fit(plan(*values), panels).astype(like.dtype)

    return jax.pure_callback(host, result, *[constant(a) for a in arrays], vmap_method="sequential")


def _fit(edges: Floats, panels: int) -> Floats:
    """The edges (panels + 1, *shape) of exactly this many panels, point by point.

    Points that need fewer get empty ones; points that need up to four times as many get every other edge or so, which costs
    digits (TRACED bounds what is lost); beyond that the edges are NaN, and so is the result.
    """
    flat = edges.reshape(len(edges), -1)
    needed = (flat[1:] > flat[:-1]).sum(axis=0)
    rank = np.arange(panels + 1)[:, None]
    index = np.where(needed > panels, np.round(rank * (needed / panels)), np.minimum(rank, needed)).astype(int)
    fitted = np.where(needed > 4 * panels, np.nan, np.take_along_axis(flat, index, axis=0))
    return fitted.reshape(-1, *edges.shape[1:])


def _plan(distributions: list[Family], bounds: tuple[Floats, ...], shape: tuple[int, ...]) -> Floats:
    """Panel edges (panels + 1, *shape) for distributions on NumPy arrays."""
    flat = [d.map(lambda x, d=d: _flatten(x, d.batch_shape, shape)) for d in distributions]  # type: ignore[misc]
    size = int(np.prod(shape, dtype=np.int64))
    marks = [d.landmarks() for d in flat]
    location, width, reach = (np.concatenate([getattr(m, k) for m in marks]) for k in ("location", "width", "reach"))
    sharp = np.array([s for m in marks for s in m.sharp], dtype=bool)
    if bounds:
        low, high = (np.broadcast_to(b, shape).reshape(size) for b in bounds)
    else:
        low, high = (location - reach).min(axis=0), (location + reach).max(axis=0)
    edges = _march(location, width, sharp, low, high)
    for d in flat:
        edges = _resolve_kinks(d, edges, location, width, sharp)
    return edges.reshape(-1, *shape)


def _flatten(x: Floats, batch: tuple[int, ...], shape: tuple[int, ...]) -> Floats:
    """(*extra, *batch) broadcast to (*extra, prod(shape))."""
    extra = x.shape[: x.ndim - len(batch)]
    wide = x.reshape((*extra, *(1,) * (len(shape) - len(batch)), *batch))
    return np.broadcast_to(wide, (*extra, *shape)).reshape((*extra, -1))


def _march(location: Floats, width: Floats, sharp: np.ndarray[Any, Any], low: Floats, high: Floats) -> Floats:
    """Panel edges from low to high: no panel longer than two widths near a place, nor half the distance from it."""
    edges = [low]
    y = low
    while bool((y < high).any()):
        gap = location - y
        # A third of the way ahead leaves twice the panel's length to the place; behind, the panel starts at its distance from it.
        step = np.maximum(2.0 * width, np.where(gap > 0, gap / 3.0, gap / -2.0)).min(axis=0)
        stop = np.minimum(y + step, high)
        if sharp.any():
            stop = np.minimum(stop, np.where(gap > 0, location, np.inf)[sharp].min(axis=0))
        # `nextafter`: a step below the spacing of doubles must still move forward, or the loop never ends.
        y = np.where(y < high, np.maximum(stop, np.nextafter(y, np.inf)), high)
        edges.append(y)
    return np.stack(edges) if len(edges) > 1 else np.stack([low, high])


def _resolve_kinks(d: Family, edges: Floats, location: Floats, width: Floats, sharp: np.ndarray[Any, Any]) -> Floats:
    """Shorter panels where the leading component of a mixture changes: its log density all but has a corner there."""
    for _ in range(4):  # a panel may hide more than one: each round finds those that the last one uncovered
        kinks = _kinks(d, edges)
        if kinks is None:
            break
        location, width = np.concatenate([location, kinks[0]]), np.concatenate([width, KINK * kinks[1]])
        sharp = np.concatenate([sharp, np.zeros(len(kinks[0]), dtype=bool)])
        edges = _march(location, width, sharp, edges[0], edges[-1])
    return edges


def _kinks(d: Family, edges: Floats) -> tuple[Floats, Floats] | None:
    """Places and widths (kinks, points) where the lead changes within less than a panel resolves; None if nowhere."""
    if d.components is None:
        return None
    mixture = cast("Mixture", d)
    values = mixture.component_log_densities(edges)
    lead = values.argmax(axis=-2)
    panel, point = np.nonzero((lead[1:] != lead[:-1]) & (edges[1:] > edges[:-1]))
    first, second = lead[panel, point], lead[panel + 1, point]
    length = edges[panel + 1, point] - edges[panel, point]
    lost = values[panel, first, point] - values[panel, second, point]
    won = values[panel + 1, second, point] - values[panel + 1, first, point]
    sharp = lost + won > KINK / 2.0  # the change of log ratio over the panel; slower ones are resolved already
    if not sharp.any():
        return None
    panel, point, length = panel[sharp], point[sharp], length[sharp]
    pair = np.stack([first[sharp], second[sharp]])
    location, width = _cross(mixture.map(lambda x: x[..., point]), pair, edges[panel, point], edges[panel + 1, point])
    fine = 2.0 * KINK * width < 0.99 * length
    return _pad(point[fine], location[fine], width[fine], edges.shape[1]) if fine.any() else None


def _cross(mixture: Mixture, pair: np.ndarray[Any, Any], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Where the second of a pair of components overtakes the first, and over which length the log density bends there.

    Only the pair counts: a near twin of the first that leads in between bends nothing.
    """
    step, each = 1e-3 * (high - low), np.arange(len(low))

    def lead(y: Floats) -> Floats:
        values = mixture.component_log_densities(y)
        return values[pair[0], each] - values[pair[1], each]

    for _ in range(40):
        middle = 0.5 * (low + high)
        ahead = lead(middle) > 0.0
        low, high = np.where(ahead, middle, low), np.where(ahead, high, middle)
    slope = (lead(high + step) - lead(high - step)) / (2.0 * step)
    return high, 1.0 / np.maximum(np.abs(slope), 1e-300)


def _pad(point: np.ndarray[Any, Any], location: Floats, width: Floats, size: int) -> tuple[Floats, Floats]:
    """Places of which each point has its own number, as two arrays (kinks, points) padded with places that have no effect."""
    order = np.argsort(point, kind="stable")
    point = point[order]
    first = np.searchsorted(point, point)
    rank = np.arange(len(point)) - first
    places = np.zeros((int(rank.max()) + 1, size))
    widths = np.full_like(places, np.inf)
    places[rank, point], widths[rank, point] = location[order], width[order]
    return places, widths
