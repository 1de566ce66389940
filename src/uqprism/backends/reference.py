"""The readable backend: `measures.risks`, in parts of points whose temporaries stay small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np

from uqprism.arrays import Array, is_torch, is_traced, is_wrapped, namespace, plain
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.families.mixture import PAIRS
from uqprism.families.panels import NARROW
from uqprism.families.quadrature import Exactness, recording
from uqprism.measures import Measure
from uqprism.measures.risks import Integrals, Risks

Integrate = Callable[[CentredEnsemble], Integrals]

ELEMENTS = 2**21  # of the largest temporary in one part
ON_DEVICE = 16  # times as many: small parts leave an accelerator idle


@dataclass(frozen=True)
class Computed:
    """What a backend computed.

    Attributes:
        values: by measure name, (points,).
        exactness: by measure name.
        declined: positions of points, and the names of the measures that another backend must compute there; to be asked
            once, and last.
    """

    values: dict[str, Array]
    exactness: dict[str, Exactness]
    declined: Iterable[tuple[Array, Sequence[str]]] = ()


class Reference:
    """Any measure of any family, in any array library."""

    def covers(self, measure: Measure) -> bool:
        """True: nothing is left to other backends."""
        return True

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures, for points along one axis."""
        parts, order = split(ensemble.counted())
        done = [compute_part(part, measures) for part in parts]
        xp = namespace(ensemble.members.centre)
        table = {}
        for measure in measures:
            pieces = [part.values.pop(measure.name) for part in done]  # popped, so that no result is held twice
            whole = xp.concat(pieces, axis=0) if len(pieces) > 1 else pieces[0]
            if order is not None:
                whole = xp.take(whole, index_like(namespace(order).argsort(order), whole), axis=0)
            table[measure.name] = whole
        return Computed(table, done[-1].exactness)  # the same in all parts: it does not depend on the data


def compute_part(
    part: EnsemblePrediction, measures: Sequence[Measure], integrate: Integrate | None = None, dtype: Any = None
) -> Computed:
    """The measures of points that are few enough to be taken at once, by default in the precision of the ensemble.

    `integrate` takes integrals in one pass.
    """
    centred = CentredEnsemble(part.members, part.member_weights())
    integrals = None if integrate is None else integrate(centred)
    known: dict[str, Risks] = {}
    values, exactness = {}, {}
    dtype = dtype or part.members.centre.dtype
    for measure in measures:
        if measure.rule not in known:
            known[measure.rule] = Risks(centred, measure.resolved(), integrals)
        roles = [role for role in (measure.prediction, measure.truth) if role is not None]
        with recording() as tolerances:
            value = known[measure.rule].get(measure.risk, *roles)
        exactness[measure.name] = exactness_of(tolerances, value.dtype, dtype)
        with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
            values[measure.name] = namespace(value).astype(value, dtype)
    return Computed(values, exactness)


def exactness_of(tolerances: Sequence[float], worked: Any, given: Any) -> Exactness:
    """How exact a value is that took integrals of these tolerances, computed in one precision from input in another.

    Closed forms keep ten digits and quadratures eight in double precision, four and a half and four in single.
    """
    double = "64" in str(worked)
    # Half a unit in the last place of float32; for float16 and bfloat16 one bound that covers both.
    rounding = 0.0 if "64" in str(given) else (6e-8 if "32" in str(given) else 5e-3)
    if not tolerances:
        return Exactness("closed form", max(1e-10 if double else 2e-5, rounding))
    return Exactness("quadrature", max(*tolerances, 0.0 if double else 2e-4, rounding))


def split(flat: EnsemblePrediction) -> tuple[list[EnsemblePrediction], Array | None]:
    """Parts of at most so many points that temporaries stay small, easy points first, and the order that was used.

    Points whose members nearly agree need no quadrature and points of like difficulty the same number of panels, so sorting
    them saves more than it costs. Traced and wrapped arrays stay whole: their values are not known.
    """
    count, size = flat.n_points, _points_per_part(flat)
    centre, spread = flat.members.centre, flat.members.spread
    if any(is_traced(x) or is_wrapped(x) for x in (centre, spread, flat.weights)):
        return [flat], None
    middle, width = plain(centre), plain(spread)
    xp = namespace(middle)
    narrowest = xp.min(width, axis=0)
    extent = (xp.max(middle, axis=0) - xp.min(middle, axis=0)) + xp.max(width, axis=0)
    # Narrow members need grids of their own kind, which would cost the other points time.
    easy = int(xp.count_nonzero(narrowest >= NARROW * extent))
    if fits_one_part(flat) and easy in (0, count):
        return [flat], None
    with np.errstate(divide="ignore", invalid="ignore"):  # the spread of equal draws is zero
        order = xp.argsort(extent / narrowest, stable=True)
    starts = [*range(0, easy, size), *range(easy, count, size)]
    return [flat[index_like(order[i:j], centre)] for i, j in zip(starts, [*starts[1:], count], strict=True)], order


def fits_one_part(flat: EnsemblePrediction) -> bool:
    """True if all points together are few."""
    return flat.n_points <= _points_per_part(flat)


def _points_per_part(flat: EnsemblePrediction) -> int:
    centre = flat.members.centre
    elements = ELEMENTS * (ON_DEVICE if is_torch(centre) and centre.device.type != "cpu" else 1)
    mixed = flat.members.components  # of which each member may have several
    each = 1 if mixed is None else mixed.batch_shape[0]
    pairs = each * each if each * each <= PAIRS else each
    nodes = 1024 if flat.members.spans_decades else 256
    # A point holds all pairs of members, or the members on a grid of some such nodes.
    return max(1, elements // (flat.n_members * max(flat.n_members * pairs, nodes * each)))


def index_like(order: Array, like: Array) -> Array:
    """Positions as an index array for `like`."""
    if is_torch(order) or isinstance(like, np.ndarray):
        return order
    return namespace(like).asarray(order, device=array_api_compat.device(like))


def put(values: Array, at: Array, new: Array) -> Array:
    """`values` with those at some positions replaced."""
    if is_torch(values) and (values.requires_grad or new.requires_grad):
        return values.index_copy(0, at, new)  # a new tensor: gradients flow through both
    values[at] = new
    return values
