"""Members of any family that states a `PointwiseForm`, on NVIDIA devices: one pass over the nodes, in parts of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch

from uqprism.backends.program import covers
from uqprism.backends.reference import Computed, compute_part
from uqprism.backends.rows import ROWS, Rows, Wanted, near_agreement, seen_from_bound
from uqprism.backends.triton.forms import compiled
from uqprism.backends.triton.gradients import differentiable
from uqprism.backends.triton.nodes import CLOSE, NODES, integrate_densities, integrate_probabilities
from uqprism.backends.triton.planning import MAX_KINKS, MAX_PANELS, plan
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.families.base import Family
from uqprism.families.elementwise import PointwiseForm
from uqprism.families.functionals import SLOW
from uqprism.families.gaussian import Gaussian
from uqprism.families.mixture import Mixture
from uqprism.families.panels import Places
from uqprism.families.quadrature import MASS, gauss_legendre
from uqprism.measures import Measure

PART = 2**25  # members of all points at once
ROOM = 0.25  # of the free memory, for what is planned
BLOCK, WARPS = 64, 2  # of points that wait for each other
NUMBERS = (1, 8)  # that a log density may have
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
    per_point = 8 * (MAX_PANELS + 2 * MAX_KINKS + 40 * ensemble.n_members + 2 * results)
    step = max(1, min(PART // ensemble.n_members, int(ROOM * free) // per_point))
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
    form = cast("PointwiseForm", centred.members.form)
    members, surrogates, origin = seen_from_bound(centred, surrogates=wanted.surrogates)
    places = Places.join([Mixture._of(members, centred.weights).places(), *[s.places() for s in surrogates]])
    shape = members.batch_shape
    numbers = torch.stack([x.expand(shape) for x in form.numbers(members)]).contiguous()
    points, like = shape[1], {"dtype": torch.float64, "device": numbers.device}
    tails = torch.empty(1, **like)
    if places.heavy:
        ends = [members.centre, *(torch.full(shape, torch.inf, **like) if tail is None else tail for tail in members.tails)]
        tails = torch.stack([x.expand(shape) for x in ends]).contiguous()
    scales = torch.stack([s.scale for s in surrogates]).contiguous() if surrogates else torch.empty(1, **like)
    flag = {"dtype": torch.int8, "device": numbers.device}
    edges = torch.empty((MAX_PANELS + 1, points), **like)
    kinks = torch.empty((2, MAX_KINKS, points), **like)
    panels = torch.empty(points, dtype=torch.int32, device=numbers.device)
    weights = centred.weights[:, 0].contiguous()
    log_density, count = compiled(form.log_density), shape[0]
    plan[(-(-points // BLOCK),)](
        places.location.contiguous(),
        places.width.contiguous(),
        places.low.contiguous(),
        places.high.contiguous(),
        torch.tensor(places.sharp, **flag),
        numbers,
        weights,
        edges,
        panels,
        kinks[0],
        kinks[1],
        len(places.sharp),
        count,
        points,
        numbers.stride(0),
        points,
        HEAVY=places.heavy,
        SHARP=any(places.sharp),
        BENDS=wanted.log and members.bends,
        LOG=log_density,
        COUNT=len(numbers),
        BLOCK=BLOCK,
        num_warps=WARPS,
    )
    # Threads of a block wait for each other, so points with as many panels go together.
    order = torch.argsort(panels)
    tables = [edges[: max(int(panels.max()), 0) + 2], panels, numbers, tails, scales, -origin]
    tables = [x[..., order].contiguous() if x.shape[-1] == points else x for x in tables]
    rows, own = torch.zeros((len(ROWS), points), **like), torch.zeros(points, **flag)
    _integrate(rows, own, tables, weights, members, places.heavy, wanted)
    close = torch.nonzero(own == CLOSE)[:, 0]
    if len(close):
        some = [x[..., close].contiguous() if x.shape[-1] == points else x for x in tables]
        again, found = rows[:, close].contiguous(), torch.zeros(len(close), **flag)
        only = replace(wanted, crps=False, quadratic=False)
        _integrate(again, found, some, weights, members, places.heavy, only, exact=True)
        rows[:, close], own[close] = again, found
    back = torch.argsort(order)
    out, own = rows[:, back], own[back]
    own = own | torch.any(places.narrow, dim=0)
    if members.square_power is not None:  # a square without an integral, or with one that doubles do not reach
        own = own | torch.any(members.square_power < SLOW, dim=0)
    if isinstance(members, Gaussian) and surrogates:
        # Other families are never as close to a Gaussian; here the reference has a series.
        own = own | torch.any(out[wanted.against_mixture()] < FAINTEST, dim=0)
    if at is None:
        status |= own
    else:
        status[at] |= own
    return out


def _integrate(
    out: torch.Tensor,
    status: torch.Tensor,
    tables: list[torch.Tensor],
    weights: torch.Tensor,
    members: Family,
    heavy: bool,
    wanted: Wanted,
    *,
    exact: bool = False,
) -> None:
    """Fill the rows of planned points, and add to their status."""
    edges, panels, numbers, tails, scales, centres = tables
    count, points = numbers.shape[1:]
    given = out, status, edges, panels, numbers, tails, weights, scales, centres
    sizes = count, points, numbers.stride(0), points, max(members.tolerance / 10.0, MASS)
    switches = {
        "SURROGATES": wanted.surrogates,
        "HEAVY": heavy,
        "LOG": compiled(cast("PointwiseForm", members.form).log_density),
        "COUNT": len(numbers),
    }
    if wanted.quadratic or wanted.log:
        what = {"QUADRATIC": wanted.quadratic, "LOGS": wanted.log, "EXACT": exact, "MEMBERS": wanted.members}
        block = {"BLOCK": BLOCK, "num_warps": WARPS}
        integrate_densities[(-(-points // BLOCK),)](*given, *_rule(out.device), *sizes, **what, **switches, **block)
    if wanted.crps:
        reached = torch.empty((2, count, points), dtype=torch.float64, device=out.device)
        block = {"BLOCK": BLOCK, "num_warps": WARPS}
        integrate_probabilities[(-(-points // BLOCK),)](*given, reached, *sizes, **switches, **block)


@lru_cache(maxsize=8)
def _rule(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes and weights."""
    nodes, weights = (torch.as_tensor(np.ascontiguousarray(x), device=device) for x in gauss_legendre(NODES))
    return nodes, weights
