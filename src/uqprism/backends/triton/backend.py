"""Fused kernels on NVIDIA devices, with Triton: one point per thread, members read from the cache again and again.

All closed forms come from one kernel, in the precision of the input, and a second one puts the measures together. Distances of
the mixture from a surrogate are differences of closed forms here; where that would lose digits, and where the geometry is
extreme, points are declined and left to the reference; single precision is first repeated in double. Gradients are
those of the reference, in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch

from uqprism.backends.program import TERMS, Program, covers, terms_of
from uqprism.backends.reference import Computed, compute_part, split
from uqprism.backends.triton.kernels import LOSSY, UNIT, UNUSABLE, combine, fill_terms
from uqprism.ensemble import EnsemblePrediction
from uqprism.families.gaussian import Gaussian
from uqprism.measures import Measure

TERM_BYTES = 2**28  # of terms between the two kernels, for as many points as that holds
BLOCK, WARPS = 64, 1  # small blocks, so that the members of all points on a multiprocessor stay in its cache
COMBINED, COMBINING_WARPS = 256, 4
KEEPS_SINGLE, KEEPS_DOUBLE, KEEPS_FOR_SINGLE = 1e-2, 1e-6, 1e-10  # a difference as a part of its terms that keeps the digits


class TritonBackend:
    """The closed forms of the measures on an NVIDIA device.

    Distances of the mixture from a surrogate are included where a difference of closed forms keeps enough digits.
    """

    def covers(self, measure: Measure) -> bool:
        """True for what needs no integral."""
        return covers(measure) and not any(term.startswith("log.") and "mixture" in term for term, _ in terms_of(measure))

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        ensemble = ensemble.counted()
        gaussian = cast("Gaussian", ensemble.members)
        by_variance = gaussian.given_variance is not None
        given: torch.Tensor = gaussian.given_variance if by_variance else gaussian.scale
        program, names = Program.of(measures), [measure.name for measure in measures]
        with_mixture = [k for k, tolerance in enumerate(program.tolerances) if tolerance > 0.0]
        single = gaussian.mean.dtype == torch.float32
        with torch.no_grad(), torch.cuda.device(gaussian.mean.device):
            inputs = gaussian.mean.detach(), given.detach(), by_variance, ensemble.weights
            out, flags = _run(*inputs, program, KEEPS_SINGLE if single else KEEPS_DOUBLE)
            if single and with_mixture:
                _repeat_in_double(*inputs, Program.of([measures[k] for k in with_mixture]), out, with_mixture, flags)
        if gaussian.mean.requires_grad or given.requires_grad:
            build = _Rebuild(by_variance, ensemble.weights, measures)
            out = list(_Differentiable.apply(gaussian.mean, given, build, *out))

        def declined() -> Iterator[tuple[torch.Tensor, Sequence[str]]]:
            if not len(flags) or not bool(flags.any()):  # waits for the device, so it is asked last
                return
            for flag, affected in ((UNUSABLE, names), (LOSSY, [names[k] for k in with_mixture])):
                at = torch.nonzero(flags & flag)[:, 0]
                if len(at) and affected:
                    yield at, affected

        exactness = dict(zip(names, program.exactness(gaussian.mean.dtype, gaussian.mean.dtype), strict=True))
        return Computed(dict(zip(names, out, strict=True)), exactness, declined())


def _run(
    mean: torch.Tensor, given: torch.Tensor, by_variance: bool, weights: torch.Tensor | None, program: Program, keeps: float
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Every measure of the program, and flags for the points that need the reference."""
    (count, points), like = mean.shape, {"dtype": mean.dtype, "device": mean.device}
    # Neighbouring threads read neighbouring points, so these must lie side by side.
    mean, given = (x if x.stride(1) == 1 or points < 2 else x.contiguous() for x in (mean, given))
    weighted = weights is not None
    weights = _equal(count, mean.dtype, mean.device) if weights is None else (weights / weights.sum()).to(**like)
    flags = torch.empty(points, dtype=torch.int8, device=mean.device)
    slots, table, factors = _tables(program, mean.device)
    rows = len(program.terms) + 1
    step = max(BLOCK, min(points, TERM_BYTES // (rows * mean.element_size())))
    terms = torch.empty((rows, step), **like)
    switches = _switches(program)
    out = [torch.empty(0, **like) for _ in program.excess] if points == 0 else []
    for first in range(0, points, step):
        some = min(step, points - first)
        fill_terms[(-(-some // BLOCK),)](
            mean[:, first:],
            given[:, first:],
            weights,
            terms,
            slots,
            flags[first:],
            some,
            mean.stride(0),
            given.stride(0),
            terms.stride(0),
            count,
            WEIGHTED=weighted,
            BY_VARIANCE=by_variance,
            **switches,
            SINGLE=mean.dtype == torch.float32,
            KEEPS=keeps,
            BLOCK=BLOCK,
            num_warps=WARPS,
            enable_fp_fusion=True,
        )
        if first == 0:  # while the device is busy
            out = [torch.empty(points, **like) for _ in program.excess]
            addresses = torch.tensor([x.data_ptr() for x in out], dtype=torch.int64, device=mean.device)
        combine[(-(-some // COMBINED),)](
            terms,
            table,
            factors,
            addresses,
            len(out),
            len(factors),
            first,
            some,
            terms.stride(0),
            BLOCK=COMBINED,
            num_warps=COMBINING_WARPS,
            enable_fp_fusion=True,
        )
    return out, flags


@lru_cache(maxsize=64)
def _equal(count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Equal weights, cached, because the first kernel waits for everything before it."""
    return torch.full((count,), 1.0 / count, dtype=dtype, device=device)


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


@lru_cache(maxsize=64)
def _tables(program: Program, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Where each term lies, the table that `combine` reads, and the entries' factors: kept, since a transfer takes its time."""
    slots = np.full(len(TERMS) + 1, -1, dtype=np.int64)
    used = [UNIT, *sorted(TERMS.index(term) for term in program.terms)]
    slots[used] = np.arange(len(used))
    parts = [slots, [0], program.start, slots[program.row], program.degree, program.excess]
    whole = torch.as_tensor(np.concatenate(parts).astype(np.int64), device=device)
    return whole[: len(slots)], whole[len(slots) :], torch.as_tensor(program.factor, device=device)


def _repeat_in_double(
    mean: torch.Tensor,
    given: torch.Tensor,
    by_variance: bool,
    weights: torch.Tensor | None,
    program: Program,
    out: list[torch.Tensor],
    which: Sequence[int],
    flags: torch.Tensor,
) -> None:
    """Recompute in double precision what was lossy in single, in place, and clear the flags of what no longer is."""
    at = torch.nonzero(flags & LOSSY)[:, 0]
    if not len(at):
        return
    wide = mean[:, at].double(), given[:, at].double(), by_variance, None if weights is None else weights.double()
    # Laxer than for double results, since these are rounded to single.
    values, left = _run(*wide, program, KEEPS_FOR_SINGLE)
    for k, value in zip(which, values, strict=True):
        out[k][at] = value.to(mean.dtype)
    flags[at] = (flags[at] & ~LOSSY) | left


class _Rebuild:
    """What the reference needs to compute the same measures again, with gradients."""

    def __init__(self, by_variance: bool, weights: torch.Tensor | None, measures: Sequence[Measure]) -> None:
        self.name = "variance" if by_variance else "scale"
        self.weights, self.measures = weights, measures

    def chunks(self, mean: torch.Tensor, given: torch.Tensor) -> list[torch.Tensor]:
        """Positions of points, in chunks that the reference takes whole."""
        with torch.no_grad():
            parts, order = split(self.ensemble(mean, given))
        sizes = [part.n_points for part in parts]
        everything = torch.arange(mean.shape[1]) if order is None else torch.as_tensor(order)
        return list(torch.split(everything.to(mean.device), sizes))

    def ensemble(self, mean: torch.Tensor, given: torch.Tensor) -> EnsemblePrediction:
        """The ensemble with these parameters."""
        return EnsemblePrediction.gaussian(mean=mean, weights=self.weights, member_axis=0, check=False, **{self.name: given})

    def values(self, mean: torch.Tensor, given: torch.Tensor) -> list[torch.Tensor]:
        """The measures of one chunk by the reference."""
        values = compute_part(self.ensemble(mean, given), self.measures).values
        return [values[measure.name] for measure in self.measures]


class _Differentiable(torch.autograd.Function):
    """Values from the fused kernel, gradients from the reference: one chunk of points at a time."""

    @staticmethod
    def forward(ctx: Any, mean: torch.Tensor, given: torch.Tensor, build: _Rebuild, *values: torch.Tensor) -> Any:
        """Pass the values on."""
        ctx.build = build
        ctx.save_for_backward(mean, given)
        return tuple(value.clone() for value in values)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The gradients with respect to mean and given; they can be differentiated again."""
        again = torch.is_grad_enabled()
        parameters = ctx.saved_tensors if again else [x.detach() for x in ctx.saved_tensors]
        chunks, found = ctx.build.chunks(*parameters), []
        for at in chunks:
            with torch.enable_grad():
                # Unless a second derivative is asked for, each chunk has its own graph, freed before the next is built.
                ours = [x[:, at] if again else x[:, at].requires_grad_() for x in parameters]
                values = ctx.build.values(*ours)
                weighted = sum((value * g[at]).sum() for value, g in zip(values, gradients, strict=True))
                parts = torch.autograd.grad(weighted, ours, create_graph=again, allow_unused=True, materialize_grads=True)
            found.append(parts)
        back = torch.argsort(torch.cat(chunks))
        mean, given = (torch.cat(parts, dim=1)[:, back] for parts in zip(*found, strict=True))
        return mean, given, None, *(None for _ in gradients)
