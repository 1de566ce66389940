"""Members of any family that states a `PointwiseForm`, on NVIDIA devices: one pass over the nodes, in parts of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch

from uqprism.arrays import SQRT_PI
from uqprism.backends.program import covers
from uqprism.backends.reference import Computed, compute_part
from uqprism.backends.rows import (
    ROW,
    ROWS,
    SURROGATES,
    Rows,
    Wanted,
    add_atoms,
    common_bound,
    has_two_ends,
    near_agreement,
    seen_from_bound,
    squares_by_pairs,
)
from uqprism.backends.sums import sums
from uqprism.backends.triton.counts import sum_probabilities
from uqprism.backends.triton.forms import compiled
from uqprism.backends.triton.gradients import differentiable
from uqprism.backends.triton.nodes import BAD, CLOSE, NODES, integrate_densities, integrate_probabilities
from uqprism.backends.triton.planning import MAX_KINKS, MAX_PANELS, MORE, plan
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.families.base import Family
from uqprism.families.elementwise import PointwiseForm
from uqprism.families.functionals import SLOW, overlap
from uqprism.families.gaussian import Gaussian, Surrogate
from uqprism.families.lattice import PER_PANEL
from uqprism.families.mixture import Mixture
from uqprism.families.panels import Places
from uqprism.families.quadrature import MASS, gauss_legendre
from uqprism.measures import Measure

PART = 2**25  # members of all points at once
ROOM = 0.25  # of the free memory, for what is planned
BLOCK, WARPS = 64, 2  # of points that wait for each other
FAINTEST = 1e-13  # a risk of a Gaussian mixture against a surrogate below which an integral has lost digits


class TritonPointwiseBackend:
    """Integrals by one pass over the nodes on a device; all else by the reference there."""

    def covers(self, measure: Measure) -> bool:
        """True for the paper's rules and approximations."""
        return covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        ensemble = ensemble.counted()
        names = [measure.name for measure in measures]
        with torch.no_grad(), torch.cuda.device(ensemble.members.centre.device):
            done = [part_of(part, measures, ensemble.members.centre.dtype) for part in parts(ensemble, len(measures))]
        values = [torch.cat([part.values[name] for part, _ in done]) for name in names]
        values = differentiable(ensemble, measures, values)

        def declined() -> Any:
            at = torch.nonzero(torch.cat([status for _, status in done]))[:, 0]  # waits for the device, so it is asked last
            if len(at):
                yield at, names

        return Computed(dict(zip(names, values, strict=True)), done[0][0].exactness, declined())


def parts(ensemble: EnsemblePrediction, results: int = 0) -> list[EnsemblePrediction]:
    """Parts of points, in double precision, whose plans fit into the memory that is free."""
    free, _ = torch.cuda.mem_get_info(ensemble.members.centre.device)
    count, room = ensemble.n_members * parts_of(ensemble.members), room_of(ensemble.members)
    per_point = 8 * (room * (MAX_PANELS + 2 * MAX_KINKS) + 40 * count + 2 * results)
    step = max(1, min(PART // count, int(ROOM * free) // per_point))
    starts = range(0, max(ensemble.n_points, 1), step)
    return [in_double(ensemble[first : first + step] if len(starts) > 1 else ensemble) for first in starts]


def in_double(ensemble: EnsemblePrediction) -> EnsemblePrediction:
    """The same in double precision: sums over hundreds of nodes would lose the digits of single."""
    members = ensemble.members
    wide = members.restored({name: x.detach().double() for name, x in members.stored().items()}, members.options())
    return EnsemblePrediction(wide, ensemble.weights, check=False)


def part_of(part: EnsemblePrediction, measures: Sequence[Measure], dtype: torch.dtype) -> tuple[Computed, torch.Tensor]:
    """The measures of some points in this precision, and a one for each point that is declined."""
    wanted = Wanted.by(measures, type(part.members))
    status = torch.zeros(part.n_points, dtype=torch.int8, device=part.members.centre.device)

    def rows_of(centred: CentredEnsemble) -> Rows:
        values = one_pass(centred, wanted, status)
        again = replace(wanted, surrogates=False)
        return Rows(near_agreement(centred, values, lambda other, at: one_pass(other, again, status, at)), centred.members)

    return compute_part(part, measures, rows_of, dtype), status


def one_pass(centred: CentredEnsemble, wanted: Wanted, status: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
    """The rows of a centred ensemble on a device, (rows, points); `status` becomes one where they mean nothing."""
    members, points = centred.members, centred.members.batch_shape[1]
    like: dict[str, Any] = {"dtype": torch.float64, "device": members.centre.device}
    nowhere = torch.full((points,), torch.inf, **like)
    seen = seen_from_bound(centred, surrogates=wanted.surrogates)
    if has_two_ends(members):
        # Each half as seen from its own bound; where members have other bounds, all from one.
        other = seen_from_bound(centred, surrogates=wanted.surrogates, upper=True)
        bounds = [cast("torch.Tensor", common_bound(members, upper=side)) for side in (False, True)]
        halved = torch.isfinite(bounds[0]) & torch.isfinite(bounds[1])
        below, above = torch.where(halved, -seen[2], nowhere), torch.where(halved, -other[2], nowhere)
        views = [(seen, torch.stack([-nowhere, below])), (other, torch.stack([above, nowhere]))]
    elif members.lattice is not None:
        first, step = (x[0] for x in members.lattice)
        counted = members.relative_to(first, step), [s.relative_to(first, step) for s in seen[1]], first / step
        views = [(counted, torch.stack([torch.zeros_like(nowhere), nowhere]))]
    else:
        views = [(seen, torch.stack([-nowhere, nowhere]))]
    plans = [_plan(centred, view, ends, wanted) for view, ends in views]
    out, masses, own = _sum(plans, wanted)
    close = torch.nonzero(own == CLOSE)[:, 0]
    if len(close):
        only = replace(wanted, crps=False, quadratic=False)
        again, _, found = _sum([plan.at(close) for plan in plans], only, exact=True)
        logs = [row for name, row in ROW.items() if name.startswith("log.")]
        out[torch.tensor(logs, device=own.device)[:, None], close] = again[logs]
        own[close] = found
    if members.lattice is not None:
        for name, row in ROW.items():
            out[row] *= step if name.startswith("crps") else 1.0 / step if name.startswith("quadratic") else 1.0
        out[ROW["log.bayes.members"]] += step.log()
    for surrogate, name in zip(seen[1], SURROGATES, strict=False):
        out[ROW[f"quadratic.bayes.{name}"]] = -0.5 / (SQRT_PI * surrogate.scale)
    held = torch.zeros(points, **like)
    if members.atoms is not None:
        add_atoms(out, held, centred)
    for mass in masses:
        own = own | ~((mass + held - 1.0).abs() <= max(members.tolerance / 10.0, MASS))  # so that NaN is caught, too
    if members.square_power is not None and wanted.quadratic:
        # A square without an integral, or with one that doubles do not reach.
        slow = torch.nonzero(torch.any(members.square_power < SLOW, dim=0))[:, 0]
        if len(slow) and overlap.is_closed(type(members), type(members)):
            squares_by_pairs(out, slow, centred.at(slow))
        else:
            own[slow] = BAD
    if isinstance(members, Gaussian) and wanted.surrogates:
        # Other families are never as close to a Gaussian; here the reference has a series.
        own = own | torch.any(out[wanted.against_mixture()] < FAINTEST, dim=0)
    if at is None:
        status |= own
    else:
        status[at] |= own
    return out


@dataclass(frozen=True)
class _Plan:
    """Planned panels of some points, with points of as many panels side by side: threads of a block wait for each other.

    Attributes:
        members: as seen from an origin.
        heavy: whether any tail is a power law.
        weights: of the members.
        tables: edges, panels, numbers, tails, scales, the mixture's mean, and atoms, each with the points along its last axis.
        order: the positions of the points.
        narrow: points with places too narrow for nodes that are rounded to doubles, in the order in which they were given.
        points: how many.
    """

    members: Family
    heavy: bool
    weights: torch.Tensor
    tables: list[torch.Tensor]
    order: torch.Tensor
    narrow: torch.Tensor
    points: int

    def at(self, some: torch.Tensor) -> _Plan:
        """The same for some of the points, in the order in which they are given."""
        back = torch.argsort(self.order)[some]
        tables = [x[..., back].contiguous() if x.shape[-1] == self.points else x for x in self.tables]
        order = torch.arange(len(some), device=some.device)
        return replace(self, tables=tables, order=order, narrow=self.narrow[some], points=len(some))

    @property
    def parts(self) -> int:
        """Components of each member."""
        return parts_of(self.members)


def parts_of(members: Family) -> int:
    """How many components each member has."""
    return int(members.components.batch_shape[0]) if members.components is not None else 1


def numbers_of(members: Family) -> torch.Tensor:
    """The numbers of the members' form (numbers, components of all members, points), and of mixtures then the log weights."""
    shape, form = (members.components or members).batch_shape, cast("PointwiseForm", members.form)
    numbers = [x.expand(shape) for x in form.numbers(members)]
    if isinstance(members, Mixture):
        numbers.append(members.weights.expand(shape).log().clamp_min(-1e200))
    return torch.stack([_side_by_side(x) for x in numbers]).contiguous()


def _side_by_side(x: torch.Tensor) -> torch.Tensor:
    """(members, points) as it is, or (components, members, points) with the components of a member side by side."""
    return x if x.ndim == 2 else x.transpose(0, 1).reshape(-1, x.shape[-1])


def _plan(
    centred: CentredEnsemble, view: tuple[Family, list[Surrogate], torch.Tensor], ends: torch.Tensor, wanted: Wanted
) -> _Plan:
    """The panels between two ends, of members and surrogates as seen from an origin."""
    members, surrogates, origin = view
    form, room = cast("PointwiseForm", members.form), room_of(members)
    places = Places.join([Mixture._of(members, centred.weights).places(), *[s.places() for s in surrogates]])
    numbers, (count, points) = numbers_of(members), members.batch_shape
    lattice = None if members.lattice is None else _sums(numbers.device)
    like: dict[str, Any] = {"dtype": torch.float64, "device": numbers.device}
    tails, atoms = torch.empty(1, **like), torch.empty(1, **like)
    if places.heavy:
        each = members.components or members
        found = [each.centre, *(torch.full(each.batch_shape, torch.inf, **like) if tail is None else tail for tail in each.tails)]
        tails = torch.stack([_side_by_side(x.expand(each.batch_shape)) for x in found]).contiguous()
    if members.atoms is not None:
        held = [x for place, log_p in members.atoms for x in (place, log_p.exp())]
        atoms = torch.stack([x.expand(members.batch_shape) for x in held]).contiguous()
    scales = torch.stack([s.scale for s in surrogates]).contiguous() if surrogates else torch.empty(1, **like)
    edges = torch.empty((room * MAX_PANELS + 1, points), **like)
    kinks = torch.empty((2, room * MAX_KINKS, points), **like)
    panels = torch.empty(points, dtype=torch.int32, device=numbers.device)
    weights = centred.weights[:, 0].contiguous()
    plan[(-(-points // BLOCK),)](
        places.location.contiguous(),
        places.width.contiguous(),
        places.low.contiguous(),
        places.high.contiguous(),
        torch.tensor(places.sharp, dtype=torch.int8, device=numbers.device) if lattice is None else lattice[0],
        numbers,
        weights,
        edges,
        panels,
        kinks[0],
        kinks[1],
        ends.contiguous(),
        len(places.sharp),
        count,
        points,
        numbers.stride(0),
        points,
        HEAVY=places.heavy,
        SHARP=any(places.sharp),
        BENDS=wanted.log and members.bends,
        LOG=compiled(form.log_density),
        COUNT=len(numbers) - (parts_of(members) > 1),
        PARTS=parts_of(members),
        LATTICE=0 if lattice is None else len(lattice[0]),
        ROOM=room,
        BLOCK=BLOCK,
        num_warps=WARPS,
    )
    order = torch.argsort(panels)
    tables = [edges[: max(int(panels.max()), 0) + 2], panels, numbers, tails, scales, -origin, atoms]
    tables = [x[..., order].contiguous() if x.shape[-1] == points else x for x in tables]
    narrow = torch.any(places.narrow & (places.location >= ends[0]) & (places.location <= ends[1]), dim=0)
    return _Plan(members, places.heavy, weights, tables, order, narrow, points)


def room_of(members: Family) -> int:
    """How many times the usual number of panels there is room for."""
    return MORE if members.components is not None or has_two_ends(members) else 1


def _sum(plans: list[_Plan], wanted: Wanted, *, exact: bool = False) -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor]:
    """The rows (rows, points) over all plans, the masses that their integrals found, and flags."""
    points, device = plans[0].points, plans[0].order.device
    out = torch.zeros((len(ROWS), points), dtype=torch.float64, device=device)
    masses, flags = [torch.zeros_like(out[0]) for _ in range(2)], torch.zeros(points, dtype=torch.int8, device=device)
    for plan_of in plans:
        back = torch.argsort(plan_of.order)
        rows, found = torch.zeros_like(out), torch.zeros_like(flags)
        each = _integrate(rows, found, plan_of, wanted, exact=exact)
        out += rows[:, back]
        flags |= found[back] | plan_of.narrow  # which is BAD
        masses = [mass if new is None else mass + new[back] for mass, new in zip(masses, each, strict=True)]
    used = [wanted.quadratic or wanted.log, wanted.crps]
    return out, [mass for mass, taken in zip(masses, used, strict=True) if taken], flags


def _integrate(
    out: torch.Tensor, status: torch.Tensor, planned: _Plan, wanted: Wanted, *, exact: bool
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Fill the rows of planned points, and add to their status; returns the masses of the densities and of their integrals."""
    edges, panels, numbers, tails, scales, centres, atoms = planned.tables
    parts = planned.parts
    count, points = numbers.shape[1] // parts, planned.points
    sizes = count, points, numbers.stride(0), points
    switches = {
        "SURROGATES": wanted.surrogates,
        "HEAVY": planned.heavy,
        "LOG": compiled(cast("PointwiseForm", planned.members.form).log_density),
        "COUNT": len(numbers) - (parts > 1),
        "PARTS": parts,
        "BLOCK": BLOCK,
        "num_warps": WARPS,
    }
    by_density = by_integral = None
    if not points:
        return by_density, by_integral
    given = edges, panels, numbers, tails, planned.weights, scales, centres
    grid = (-(-points // BLOCK),)
    if planned.members.lattice is not None:
        return _integrate_counts(out, status, planned, wanted, switches, sizes, exact=exact)
    if wanted.quadratic or wanted.log:
        by_density = torch.empty_like(centres)
        what = {"QUADRATIC": wanted.quadratic, "LOGS": wanted.log, "EXACT": exact, "MEMBERS": wanted.members}
        integrate_densities[grid](out, status, by_density, *given, *_rule(out.device), *sizes, LATTICE=0, **what, **switches)
    if wanted.crps:
        by_integral = torch.empty_like(centres)
        reached, held = torch.empty((2, count, points), dtype=torch.float64, device=out.device), planned.members.atoms is not None
        integrate_probabilities[grid](out, status, by_integral, *given, reached, atoms, *sizes, ATOMS=held, **switches)
    return by_density, by_integral


def _integrate_counts(
    out: torch.Tensor,
    status: torch.Tensor,
    planned: _Plan,
    wanted: Wanted,
    switches: dict[str, Any],
    sizes: tuple[int, ...],
    *,
    exact: bool,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The same for sums over counts; only CRPS compares counts with surrogates."""
    edges, panels, numbers, _, scales, centres, _ = planned.tables
    table, grid = _sums(out.device), (-(-planned.points // BLOCK),)
    by_density = by_integral = None
    if wanted.quadratic or wanted.log:
        by_density = torch.empty_like(centres)
        what: dict[str, Any] = {"QUADRATIC": wanted.quadratic, "LOGS": wanted.log, "EXACT": exact, "MEMBERS": wanted.members}
        what |= {**switches, "SURROGATES": False, "LATTICE": len(table[0])}
        given = edges, panels, numbers, table[0], planned.weights, scales, centres
        integrate_densities[grid](out, status, by_density, *given, *table[1:3], *sizes, **what)
    if wanted.crps:
        by_integral = torch.empty_like(centres)
        like: dict[str, Any] = {"dtype": torch.float64, "device": out.device}
        room = torch.empty((2, *sizes[:2]), **like), torch.empty((4 * PER_PANEL, planned.points), **like)
        known = edges, panels, numbers, planned.weights, scales, centres
        del switches["HEAVY"]
        sum_probabilities[grid](
            out, status, by_integral, *known, *room, *table, *_rule(out.device, PER_PANEL), len(table[0]), *sizes, **switches
        )
    return by_density, by_integral


@lru_cache(maxsize=8)
def _sums(device: torch.device) -> tuple[torch.Tensor, ...]:
    """Sizes of panels, nodes, weights, and the matrices that take values at the nodes to sums from both ends."""
    table = sums()
    # A row for the sum over the panel and for that up to each node, without those that fill up registers of processors.
    from_left, from_right = (x[..., : 1 + PER_PANEL].swapaxes(1, 2).copy() for x in (table.from_left, table.from_right))
    # The counts of the shortest panels are summed one by one.
    for matrix in (from_left, from_right):
        matrix[0] = matrix[0].round()
    found = table.sizes, table.nodes, table.weights, from_left, from_right
    return tuple(torch.tensor(x, dtype=torch.float64, device=device) for x in found)


@lru_cache(maxsize=8)
def _rule(device: torch.device, count: int = NODES) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes and weights."""
    nodes, weights = (torch.as_tensor(np.ascontiguousarray(x), device=device) for x in gauss_legendre(count))
    return nodes, weights
