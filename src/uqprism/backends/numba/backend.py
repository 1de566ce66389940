"""Fused kernels on the processor: slices of points over threads, each slice through the stages it needs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from queue import SimpleQueue
from typing import Any, cast

import numpy as np

from uqprism.arrays import from_numpy, to_numpy
from uqprism.backends.fits import FITS
from uqprism.backends.numba.base import LANES, MEMBER, NEAR_MATCHED, SUMMARY, TERM_BLOCK
from uqprism.backends.numba.closed_forms import (
    both_pairs,
    crps_pairs,
    crps_surrogates,
    log_surrogates,
    member_entropies,
    quadratic_surrogates,
    squared_error_surrogates,
)
from uqprism.backends.numba.differences import differences
from uqprism.backends.numba.integrals import DONE, NEEDS_PAIRS, integrals
from uqprism.backends.numba.panels import RULE
from uqprism.backends.numba.points import prepare, write
from uqprism.backends.numba.series import DENSITY, DISTRIBUTION, ENTROPY, ROOTS, series
from uqprism.backends.program import Program, covers
from uqprism.backends.reference import Computed
from uqprism.ensemble import EnsemblePrediction
from uqprism.families.gaussian import Gaussian
from uqprism.measures import Measure
from uqprism.support.parallel import threads

Floats = np.ndarray[Any, Any]

SLICE_BYTES = 2**22  # of working memory for one slice: what stays in a cache
TOTAL_BYTES = 2**25 + 2**24  # for all threads together
PAGE = 2**21  # bytes
WORTH = 2**13  # members of all points for which a thread is worth its start
MANY = 300  # members above which an integral over nodes is shorter than all pairs; see benchmarks/RESULTS.md


@dataclass(frozen=True)
class Members:
    """Gaussian members as the kernels take them: arrays (members, points), and weights of which the positive count."""

    mean: Floats
    given: Floats
    by_variance: bool
    weights: Floats

    @cached_property
    def counting(self) -> np.ndarray[Any, Any]:
        """Which members have weight."""
        return self.weights > 0.0

    def at(self, points: Any) -> Members:
        """At some of the points, in double precision, without the members that do not count."""
        mean, given = (x[:, points] for x in (self.mean, self.given))
        if not self.counting.all():
            mean, given = mean[self.counting], given[self.counting]
        mean, given = (x.astype(np.float64, copy=False) for x in (mean, given))
        return Members(mean, given, self.by_variance, self.weights[self.counting])


class NumbaBackend:
    """All measures of the paper on a processor, in one pass over the members."""

    def covers(self, measure: Measure) -> bool:
        """True for the paper's rules and approximations."""
        return covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        gaussian = cast("Gaussian", ensemble.members)
        by_variance = gaussian.given_variance is not None
        mean, given = to_numpy(gaussian.mean), to_numpy(gaussian.given_variance if by_variance else gaussian.scale)
        count, points = mean.shape
        if ensemble.weights is None:
            weights = np.full(count, 1.0 / count)
        else:
            weights = to_numpy(ensemble.weights).astype(np.float64)
            weights = weights / weights.sum()
        members = Members(mean, given, by_variance, weights)
        program = Program.of(measures, many=int(members.counting.sum()) > MANY)
        dtype = np.float32 if mean.dtype == np.float32 else np.float64
        out = [_fresh(points, dtype) for _ in measures]
        declined = run(members, program, out)
        names = [measure.name for measure in measures]
        with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
            values = [from_numpy(x, gaussian.mean) for x in out]
        exactness = dict(zip(names, program.exactness("float64", gaussian.mean.dtype), strict=True))
        return Computed(dict(zip(names, values, strict=True)), exactness, [(declined, names)] if len(declined) else [])


def _fresh(points: int, dtype: Any) -> Floats:
    """An array to be filled; large ones begin where a large page of memory does, so that the system hands out few pages."""
    size = points * np.dtype(dtype).itemsize
    if size < 2 * PAGE:
        return np.empty(points, dtype)
    room = np.empty(size + PAGE, np.uint8)
    first = -room.ctypes.data % PAGE
    return room[first : first + size].view(dtype)


class Scratch:
    """Working arrays for slices of some points, reused, because allocating memory costs more than the work done in it."""

    def __init__(self, count: int, points: int) -> None:
        self.blocks, self.count = -(-points // LANES), count
        self._arrays = [np.empty(self.blocks * size) for size in (count * MEMBER, SUMMARY, TERM_BLOCK)]

    def for_points(self, points: int) -> tuple[Floats, Floats, Floats]:
        """Members, summaries and terms for so many points."""
        blocks = -(-points // LANES)
        members, summaries, terms = (x[: len(x) // self.blocks * blocks] for x in self._arrays)
        return members, summaries, terms


def run(members: Members, program: Program, out: Sequence[Floats]) -> np.ndarray[Any, Any]:
    """Fill `out`, an array (points,) for each measure, and return the points that were declined, where it means nothing."""
    count, points = int(members.counting.sum()), members.mean.shape[1]
    block = 8 * (count * MEMBER + SUMMARY + TERM_BLOCK)
    workers = max(1, min(threads(), TOTAL_BYTES // max(SLICE_BYTES, block), points * count // WORTH))
    step = max(1, min(LANES * max(1, SLICE_BYTES // block), -(-points // workers)))
    idle: SimpleQueue[Scratch] = SimpleQueue()
    for _ in range(workers):
        idle.put(Scratch(count, step))

    def one(first: int) -> np.ndarray[Any, Any]:
        scratch, at = idle.get(), slice(first, min(points, first + step))
        try:
            status = _slice(members.at(at), program, [x[at] for x in out], scratch, pairs_known=count <= MANY)
            retry = first + np.flatnonzero(status == NEEDS_PAIRS)
            if len(retry):
                again = [np.empty(len(retry), x.dtype) for x in out]
                status[retry - first] = _slice(members.at(retry), program, again, scratch, pairs_known=True)
                for x, values in zip(out, again, strict=True):
                    x[retry] = values
        finally:
            idle.put(scratch)  # also after an error, or the other threads would wait for it
        return first + np.flatnonzero(status != DONE)

    starts = range(0, max(points, 1), step)
    if len(starts) == 1:
        return one(0)
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(one, starts)))


def _slice(
    part: Members, program: Program, out: Sequence[Floats], scratch: Scratch, *, pairs_known: bool
) -> np.ndarray[Any, Any]:
    """All stages for a few points; returns each point's status."""
    points, weights, by_variance = part.mean.shape[1], part.weights, float(part.by_variance)
    members, summaries, terms = scratch.for_points(points)
    declined = np.empty(points, dtype=np.bool_)
    prepare(part.mean, part.given, weights, part.by_variance, members, summaries, terms, declined)
    status = declined.astype(np.int8)

    crps_mixture, quadratic_mixture, log_mixture = (program.needs(r, mixture=True) for r in ("crps", "quadratic", "log"))
    crps_over_pairs = crps_mixture or program.needs("crps", pairs=True)
    quadratic_over_pairs = quadratic_mixture or program.needs("quadratic", pairs=True)
    if program.needs("squared_error"):
        squared_error_surrogates(summaries, terms)
    if program.needs("crps") or program.needs("quadratic"):
        member_entropies(members, terms, weights)
    if program.needs("crps", surrogates=True) or (crps_over_pairs and not pairs_known):
        crps_surrogates(members, summaries, terms, weights, FITS)
    if program.needs("quadratic", surrogates=True) or (quadratic_over_pairs and not pairs_known):
        quadratic_surrogates(members, summaries, terms, weights, FITS)
    if program.needs("log"):
        log_surrogates(members, summaries, terms, weights, FITS)
    wanted = crps_mixture, quadratic_mixture
    if not pairs_known:
        wanted = crps_over_pairs, quadratic_over_pairs
    elif quadratic_over_pairs:
        both_pairs(members, terms, weights, by_variance, FITS)
    elif crps_over_pairs:
        crps_pairs(members, terms, weights, by_variance, FITS)
    if any(wanted) or log_mixture:
        if _any_near(summaries, declined):
            distribution, density = DISTRIBUTION if wanted[0] else None, DENSITY if wanted[1] else None
            entropy = ENTROPY if log_mixture else None
            series(members, summaries, terms, weights, ROOTS, distribution, density, entropy, FITS)
        left = None
        if any(wanted):
            left = np.empty(len(summaries) // SUMMARY * LANES)
            differences(summaries, terms, wanted, pairs_known, left)
        # Called only where there is work, since a kernel is compiled when it is called first.
        if log_mixture or not pairs_known or (left is not None and left.any()):
            integrals(members, summaries, terms, weights, RULE, left, log_mixture or None, wanted, pairs_known, status, FITS)

    addresses = np.array([x.ctypes.data for x in out], dtype=np.int64)
    single = out[0].dtype == np.float32
    write(terms, summaries, program.start, program.row, program.factor, program.degree, program.excess, addresses, single, points)
    return status


def _any_near(summaries: Floats, declined: np.ndarray[Any, Any]) -> bool:
    """Whether all members are near a surrogate at any point that counts."""
    near = summaries.reshape(-1, SUMMARY // LANES, LANES)[:, NEAR_MATCHED // LANES :] > 0.0  # the last two rows
    return bool((near.any(axis=1).ravel()[: len(declined)] & ~declined).any())
