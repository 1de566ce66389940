"""Integrals over the real line, on grids that are planned for the distributions in the integrand.

A grid is a row of panels (`panels` says how they are planned), each with Gauss-Legendre nodes. No gradient flows through the
plan: it is NumPy's, or made on the device on which tensors live, and the integrand stays in the caller's array library. Under
`jax.jit` the planning is a host callback with room for a fixed number of panels, enough for TOLERANCE when scales differ by up
to ten and means by up to ten scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import ReferenceType, ref

import numpy as np

from uqprism.arrays import Array, constant, from_numpy, is_jax, is_traced, merged, namespace, plain, to_numpy, unplain
from uqprism.errors import UnsupportedError
from uqprism.families.lattice import PER_PANEL, counted
from uqprism.families.panels import Floats, Places, plan, zones

if TYPE_CHECKING:
    from uqprism.families.base import Family

TOLERANCE = 1e-8  # relative, for densities that are as their families declare
TRACED = 1e-3  # the same under jax.jit for ensembles too spread out for a fixed number of panels
MASS = 1e-9  # by which a density may miss one
BLOCK = 2**21  # elements of a temporary: 16 MB in float64
FEWEST = 32  # panels of a grid in JAX


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


class Grid:
    """Quadrature nodes and weights, (nodes, *batch), with what was evaluated on them kept for the next integral.

    Attributes:
        low: where the first panel begins, (*batch).
        high: where the last panel ends.
        pivot: where sizes are very different, a typical value: probabilities are counted from the nearer end; else None.
        bounded: whether a density may be zero on a part of the grid.
        whole: whether the grid covers all of the distributions it was made for.
    """

    def __init__(self, edges: Array, *, pivot: Array = None, bounded: bool = False, whole: bool = False) -> None:
        xp = namespace(edges)
        left, length = edges[:-1], edges[1:] - edges[:-1]
        spread = (1, PER_PANEL, *(1,) * (edges.ndim - 1))
        nodes, weights = (xp.reshape(from_numpy(x, edges), spread) for x in gauss_legendre(PER_PANEL))
        self.nodes = merged(left[:, None] + length[:, None] * nodes, edges.ndim - 1)
        self.weights = merged(length[:, None] * weights, edges.ndim - 1)
        self.low, self.high, self.pivot, self.bounded, self.whole = edges[0], edges[-1], pivot, bounded, whole
        # Weak references: the distributions know the grid, and a cycle would hold all values until the garbage collector runs.
        self._kept: dict[tuple[int, str], tuple[ReferenceType[Family], Array]] = {}

    def evaluate(self, distribution: Family, function: str) -> Array:
        """`distribution.<function>` at the nodes, computed once; "cdf" counts from the nearer end if there is a pivot."""
        key = (id(distribution), function)
        if key not in self._kept or self._kept[key][0]() is not distribution:  # a dead object's id may be in use again
            values = self._compute(distribution, function)
            if function == "log_density" and self.whole:
                self._check_mass(distribution, values)
            self._kept[key] = (ref(distribution), values)
        return self._kept[key][1]

    def _compute(self, distribution: Family, function: str) -> Array:
        extra = len(distribution.batch_shape) - (self.nodes.ndim - 1)
        size = int(np.prod(distribution.batch_shape[: max(extra, 0)], dtype=np.int64))
        call: Callable[[Array], Array] = getattr(distribution, function)
        if function == "cdf" and self.pivot is not None:

            def call(y: Array) -> Array:
                return distribution.signed_cdf(y, self.pivot)

        return self.map(call, size * _cost(distribution), max(extra, 0))

    def _check_mass(self, distribution: Family, log_density: Array) -> None:
        """Refuse a density that does not integrate to one: what was declared of it cannot be right."""
        if is_traced(log_density) or "64" not in str(log_density.dtype):
            return
        xp = namespace(log_density)
        mass = xp.reshape(self.integrate(xp.exp(constant(log_density))), (-1,))
        for _, log_probability in distribution.atoms or []:
            mass = mass + xp.reshape(xp.exp(constant(log_probability)) + 0.0 * self.weights[0], (-1,))
        error = xp.abs(mass - 1.0)
        if bool(xp.any(error > max(distribution.tolerance / 10.0, MASS))):
            family = distribution if distribution.components is None else distribution.components
            raise UnsupportedError(
                f"the density of {type(family).__name__} integrates to {float(mass[int(xp.argmax(error))]):.10g}, not to one; "
                "declare its `support`, its `tails` and, as sharp `landmarks`, its corners, or a larger `tolerance`"
            )

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
        if self.bounded:  # values may be infinite, also where a panel is empty
            values = xp.where(weights > 0.0, values, xp.zeros_like(values))
        return xp.sum(weights * values, axis=0)


def _map_traced(function: Callable[[Array], Array], nodes: Array, step: int) -> Array:
    """`function` over blocks of nodes as one loop, so that the compiled program does not grow with the number of blocks."""
    import jax

    count = nodes.shape[0]
    blocks = -(-count // step)
    padded = jax.numpy.concatenate([nodes, jax.numpy.repeat(nodes[-1:], blocks * step - count, axis=0)])
    values = jax.lax.map(function, padded.reshape(blocks, step, *nodes.shape[1:]))
    return values.reshape(blocks * step, *values.shape[2:])[:count]


class ZonedGrid(Grid):
    """A grid whose nodes are offsets from several origins: at each, distributions are evaluated as seen from it."""

    def __init__(self, zones: list[tuple[Array, Grid]], *, pivot: Array = None, bounded: bool = False) -> None:
        self._zones = zones
        xp = namespace(zones[0][0])
        self.nodes = xp.concat([origin + grid.nodes for origin, grid in zones], axis=0)
        self.weights = xp.concat([grid.weights for _, grid in zones], axis=0)
        self.low, self.high = zones[0][0] + zones[0][1].low, zones[-1][0] + zones[-1][1].high
        self.pivot, self.bounded, self.whole = pivot, bounded, True
        self._kept = {}

    def _compute(self, distribution: Family, function: str) -> Array:
        seen = [grid._compute(distribution.relative_to(origin, 1.0), function) for origin, grid in self._zones]
        return namespace(seen[0]).concat(seen, axis=0)


class LatticeGrid(Grid):
    """Counts, or nodes that stand for many of them: a sum over these is one over all, as an integral is over panels."""

    def __init__(self, nodes: Array, weights: Array, pivot: Array = None) -> None:
        self.nodes, self.weights, self.low, self.high = nodes, weights, nodes[0], nodes[-1]
        self.pivot, self.bounded, self.whole, self._kept = pivot, False, True, {}

    def _compute(self, distribution: Family, function: str) -> Array:
        return super()._compute(distribution.interpolated(), function)


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
    record(tolerance_of(*distributions))
    grid = grid_over(*distributions, between=between, zoned=False)
    cost = sum(_cost(d) for d in distributions)
    return grid.integrate(grid.map(function, cost))


def tolerance_of(*distributions: Family) -> float:
    """The largest relative error that integrals over these distributions may have."""
    return max(d.tolerance for d in distributions)


def _cost(distribution: Family) -> int:
    """Elements held per batch element: a mixture holds one per component."""
    arrays = distribution.arrays()
    size = int(np.prod(distribution.batch_shape, dtype=np.int64))
    return max((int(np.prod(x.shape, dtype=np.int64)) // max(size, 1) for x in arrays), default=1)


def grid_over(*distributions: Family, between: tuple[Array, Array] | None = None, zoned: bool = True) -> Grid:
    """A grid that resolves all of these distributions; `zoned` allows for nodes that are offsets from narrow places."""
    bounds = () if between is None else between
    arrays = [x for d in distributions for x in d.arrays()] + list(bounds)
    shape = np.broadcast_shapes(*(d.batch_shape for d in distributions), *(b.shape for b in bounds))

    def read(*values: Array) -> tuple[list[Family], Places, list[Floats]]:
        it = iter(values)
        found = [d.map(lambda _: next(it)) for d in distributions]
        flat = [d.map(lambda x, d=d: _flatten(x, d.batch_shape, shape)) for d in found]  # type: ignore[misc]
        with np.errstate(all="ignore"):  # bounds at infinity, and densities that are zero
            return flat, Places.join([d.places() for d in flat]), [_flatten(b, b.shape, shape) for b in it]

    def edges(*values: Array) -> Floats:
        flat, places, ends = read(*[np.asarray(v, dtype=np.float64) for v in values])
        return _over(plan(flat, places, *ends), shape)

    like = next((a for a in arrays if is_traced(a)), arrays[0])
    lattice = next((d.lattice for d in distributions if d.lattice is not None), None)
    if lattice is not None:
        if is_traced(like):
            return _lattice_grid(_callback(edges, arrays, shape, like, distributions), lattice)
        centre = constant(distributions[0].centre)
        half = 0.5 * constant(lattice[1])
        # Where zero has most of the probability, what lies above it has the digits.
        low = bool(namespace(centre).any(centre - constant(lattice[0]) < half))
        return _lattice_grid(
            from_numpy(_padded(edges(*[to_numpy(a) for a in arrays]), like), like), lattice, centre - half if low else None
        )
    options: dict[str, Any] = {
        "pivot": constant(distributions[0].centre) if any(d.spans_decades for d in distributions) else None,
        "bounded": any(d.has_bounds for d in distributions),
    }
    if is_traced(like):
        return Grid(_callback(edges, arrays, shape, like, distributions), **options)
    flat, places, ends = read(*[plain(a) for a in arrays])
    if zoned and not bounds and bool(places.narrow.any()):
        return ZonedGrid(_zones(flat, places, shape, like, options["pivot"]), **options)
    return Grid(unplain(_padded(_over(plan(flat, places, *ends), shape), like), like), **options, whole=not bounds)


def _zones(flat: list[Family], places: Places, shape: tuple[int, ...], like: Array, pivot: Array) -> list[tuple[Array, Grid]]:
    """Each zone's origin (*shape) and its grid, of offsets from there."""
    found = []
    for origin, low, high in zones(places):
        seen = [d.relative_to(origin, 1.0) for d in flat]
        edges = plan(seen, Places.join([d.places() for d in seen]), low, high)
        start = unplain(origin.reshape(shape), like)
        grid = Grid(unplain(_padded(_over(edges, shape), like), like), pivot=None if pivot is None else pivot - start)
        found.append((start, grid))
    return found


def _padded(edges: Floats, like: Array) -> Floats:
    """The edges as they are, for JAX with empty panels at the end, to a power of two: it compiles anew for each shape."""
    if not is_jax(like):
        return edges
    panels = len(edges) - 1
    more = max(FEWEST, 1 << (panels - 1).bit_length()) - panels
    return np.concatenate([edges, np.repeat(edges[-1:], more, axis=0)])


def _lattice_grid(bounds: Array, lattice: tuple[Array, Array], pivot: Array = None) -> Grid:
    """The grid of counts in the panels between these edges."""
    xp, shape = namespace(bounds), tuple(bounds.shape[1:])
    first, step = (xp.broadcast_to(x, shape) for x in lattice)  # with their gradients: counts move with the lattice
    if is_traced(bounds):
        result = jax_shape((PER_PANEL * (bounds.shape[0] - 1), *shape), bounds)
        counts, weights = jax_callback(lambda *x: counted(*map(np.asarray, x)), (result, result), bounds, first, step)
    else:
        counts, weights = (from_numpy(x, bounds) for x in counted(*map(to_numpy, (bounds, first, step))))
    return LatticeGrid(first + step * counts, step * weights, pivot)


def _callback(
    plan: Callable[..., Floats], arrays: list[Array], shape: tuple[int, ...], like: Array, distributions: tuple[Family, ...]
) -> Array:
    record(TRACED)
    panels = 256 + 12 * max(_cost(d) for d in distributions)
    return jax_callback(lambda *values: _fit(plan(*values), panels), jax_shape((panels + 1, *shape), like), *arrays)


def jax_shape(shape: tuple[int, ...], like: Array) -> Any:
    """What a callback of JAX returns."""
    import jax

    return jax.ShapeDtypeStruct(shape, like.dtype)


def jax_callback(function: Callable[..., Any], result: Any, *arrays: Array) -> Any:
    """A function of NumPy arrays within a traced computation; no gradient flows through it."""
    import jax

    def host(*values: Array) -> Any:
        return jax.tree.map(lambda x, to: np.asarray(x).astype(to.dtype), function(*values), result)

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


def _over(edges: Floats, shape: tuple[int, ...]) -> Floats:
    """Edges (n, points) as (n, *shape)."""
    return edges.reshape(len(edges), *shape)


def _flatten(x: Floats, batch: tuple[int, ...], shape: tuple[int, ...]) -> Floats:
    """(*extra, *batch) broadcast to (*extra, prod(shape))."""
    extra = tuple(x.shape[: x.ndim - len(batch)])
    wide = x.reshape((*extra, *(1,) * (len(shape) - len(batch)), *batch))
    return namespace(x).broadcast_to(wide, (*extra, *shape)).reshape((*extra, -1))
