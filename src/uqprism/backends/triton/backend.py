"""Fused kernels on NVIDIA devices, with Triton: one point per thread, members read from the cache again and again.

All measures come from one kernel, in the precision of the input, with the relative entropies of the mixture from `nodes`.
Distances of the mixture from a surrogate are differences of closed forms here; where that would lose digits, and where the
geometry is extreme, points are declined and left to the reference; single precision is first repeated in double.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import torch

from uqprism.backends.program import RULES, Program, covers, terms_of
from uqprism.backends.reference import Computed
from uqprism.backends.rows import ROW, Wanted
from uqprism.backends.triton.gradients import differentiable
from uqprism.backends.triton.kernels import LOSSY, MEASURES, UNUSABLE, fill
from uqprism.backends.triton.pointwise import one_pass, parts
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.families.gaussian import Gaussian
from uqprism.measures import Measure

BLOCK, WARPS = 128, 4  # a point for each thread: with two there are too few registers for double precision
NO_INTEGRAL = 4  # a flag beside UNUSABLE and LOSSY
KEEPS_SINGLE, KEEPS_DOUBLE, KEEPS_FOR_SINGLE = 1e-2, 1e-6, 1e-10  # a difference as a part of its terms that keeps the digits


LOG_INTEGRALS = ("log.excess.matched.mixture", "log.excess.mixture.matched", "log.excess.mixture.pooled")
"""The terms that have no closed form, by their names here and in `backends.rows`."""


def _key(measure: Measure) -> tuple[str, str, str | None, str]:
    """What a measure is, whatever its rule is called."""
    return RULES[type(measure.resolved())], measure.risk, measure.prediction, measure.truth


PLACE = {_key(measure): place for place, measure in enumerate(MEASURES)}


class TritonBackend:
    """All measures of Gaussian members on an NVIDIA device.

    Distances of the mixture from a surrogate are differences of closed forms where these keep enough digits, else integrals.
    """

    def covers(self, measure: Measure) -> bool:
        """True for the paper's rules and approximations."""
        return covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        ensemble = ensemble.counted()
        gaussian = cast("Gaussian", ensemble.members)
        by_variance = gaussian.given_variance is not None
        given: torch.Tensor = gaussian.given_variance if by_variance else gaussian.scale
        program, names = Program.of(measures), [measure.name for measure in measures]
        _, with_mixture, with_log = _layout(program)
        single = gaussian.mean.dtype == torch.float32
        with torch.no_grad(), torch.cuda.device(gaussian.mean.device):
            inputs = gaussian.mean.detach(), given.detach(), by_variance, ensemble.weights
            rows, undone = _log_integrals(ensemble) if with_log else (None, None)
            out, flags = _run(*inputs, program, KEEPS_SINGLE if single else KEEPS_DOUBLE, rows)
            if single and with_mixture:
                _repeat_in_double(*inputs, Program.of([measures[k] for k in with_mixture]), out, with_mixture, flags, rows)
            if undone is not None:
                flags |= undone * NO_INTEGRAL
        out = differentiable(ensemble, measures, out)

        def declined() -> Iterator[tuple[torch.Tensor, Sequence[str]]]:
            if not len(flags) or not bool(flags.any()):  # waits for the device, so it is asked last
                return
            affected_by = {UNUSABLE: names, LOSSY: [names[k] for k in with_mixture], NO_INTEGRAL: [names[k] for k in with_log]}
            for flag, affected in affected_by.items():
                at = torch.nonzero(flags & flag)[:, 0]
                if len(at) and affected:
                    yield at, affected

        exactness = dict(zip(names, program.exactness(gaussian.mean.dtype, gaussian.mean.dtype), strict=True))
        return Computed(dict(zip(names, out, strict=True)), exactness, declined())


def _run(
    mean: torch.Tensor,
    given: torch.Tensor,
    by_variance: bool,
    weights: torch.Tensor | None,
    program: Program,
    keeps: float,
    integrals: torch.Tensor | None = None,
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Every measure, and flags for points that need the reference; `integrals` (3, points) are `LOG_INTEGRALS`."""
    (count, points), like = mean.shape, {"dtype": mean.dtype, "device": mean.device}
    # Neighbouring threads read neighbouring points, so these must lie side by side.
    mean, given = (x if x.stride(1) == 1 or points < 2 else x.contiguous() for x in (mean, given))
    weighted = weights is not None
    weights = _equal(count, mean.dtype, mean.device) if weights is None else (weights / weights.sum()).to(**like)
    flags = torch.empty(points, dtype=torch.int8, device=mean.device)
    places, _, _ = _layout(program)
    made = {place: torch.empty(points, **like) for place in places}
    addresses = np.zeros(len(MEASURES), dtype=np.int64)
    addresses[list(made)] = [x.data_ptr() for x in made.values()]
    if points:
        fill[(-(-points // BLOCK),)](
            mean,
            given,
            weights,
            flags if integrals is None else integrals,
            torch.from_numpy(addresses).to(mean.device),
            flags,
            points,
            mean.stride(0),
            given.stride(0),
            count,
            WEIGHTED=weighted,
            BY_VARIANCE=by_variance,
            **_switches(program),
            INTEGRALS=integrals is not None,
            SINGLE=mean.dtype == torch.float32,
            KEEPS=keeps,
            BLOCK=BLOCK,
            num_warps=WARPS,
            enable_fp_fusion=True,
        )
    return [made[place] for place in places], flags


def _log_integrals(ensemble: EnsemblePrediction) -> tuple[torch.Tensor, torch.Tensor]:
    """LOG_INTEGRALS (3, points), which have no unit, and a one for each point at which they mean nothing."""
    wanted, found, undone = Wanted(log=True, surrogates=True, members=False), [], []
    for part in parts(ensemble):
        undone.append(torch.zeros(part.n_points, dtype=torch.int8, device=part.members.centre.device))
        centred = CentredEnsemble(part.members, part.member_weights())
        found.append(one_pass(centred, wanted, undone[-1])[[ROW[name] for name in LOG_INTEGRALS]])
    return torch.cat(found, dim=1), torch.cat(undone)


@lru_cache(maxsize=64)
def _equal(count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Equal weights, cached, because the first kernel waits for everything before it."""
    return torch.full((count,), 1.0 / count, dtype=dtype, device=device)


@lru_cache(maxsize=64)
def _layout(program: Program) -> tuple[list[int], list[int], list[int]]:
    """The places of the measures, and which need a distance from the mixture, and which LOG_INTEGRALS."""
    parts = [[term for term, _ in terms_of(measure)] for measure in program.measures]
    with_mixture = [k for k, terms in enumerate(parts) if any("mixture" in term and term not in LOG_INTEGRALS for term in terms)]
    with_log = [k for k, terms in enumerate(parts) if any(term in LOG_INTEGRALS for term in terms)]
    return [PLACE[_key(measure)] for measure in program.measures], with_mixture, with_log


@lru_cache(maxsize=64)
def _switches(program: Program) -> dict[str, bool]:
    """Which parts of `fill_terms` are needed."""
    found = {}
    for rule in ("crps", "quadratic"):
        mixture = program.needs(rule, mixture=True)
        found[rule.upper()] = program.needs(rule)
        found[f"{rule.upper()}_PAIRS"] = mixture or program.needs(rule, pairs=True)
        found[f"{rule.upper()}_SURROGATES"] = program.needs(rule, surrogates=True)
        found[f"{rule.upper()}_MIXTURE"] = mixture
    return {**found, "LOG": program.needs("log"), "SQUARED": program.needs("squared_error")}


def _repeat_in_double(
    mean: torch.Tensor,
    given: torch.Tensor,
    by_variance: bool,
    weights: torch.Tensor | None,
    program: Program,
    out: list[torch.Tensor],
    which: Sequence[int],
    flags: torch.Tensor,
    integrals: torch.Tensor | None,
) -> None:
    """Recompute in double precision what was lossy in single, in place, and clear the flags of what no longer is."""
    at = torch.nonzero(flags & LOSSY)[:, 0]
    if not len(at):
        return
    wide = mean[:, at].double(), given[:, at].double(), by_variance, None if weights is None else weights.double()
    # Laxer than for double results, since these are rounded to single.
    values, left = _run(*wide, program, KEEPS_FOR_SINGLE, None if integrals is None else integrals[:, at])
    for k, value in zip(which, values, strict=True):
        out[k][at] = value.to(mean.dtype)
    flags[at] = (flags[at] & ~LOSSY) | left
