"""Members given by bars or quantiles, on NVIDIA devices: finite sums over cells and nodes in tails, in parts of points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import torch

from uqprism.arrays import SQRT_PI, log_gap
from uqprism.backends.bars import AGREE, FAR, LARGEST, SMALLEST, SUM, BarRisks, TailNumbers, numbers_of
from uqprism.backends.program import covers
from uqprism.backends.reference import Computed, exactness_of
from uqprism.backends.rows import SURROGATES, Wanted
from uqprism.backends.triton.bars_cells import sum_cells, summarise
from uqprism.backends.triton.bars_nodes import NODES, SHARES_OF_NODES
from uqprism.backends.triton.bars_tails import outside, sum_tails
from uqprism.backends.triton.gradients import differentiable
from uqprism.ensemble import EnsemblePrediction
from uqprism.families.histogram import Histogram, narrow
from uqprism.families.quadrature import TOLERANCE
from uqprism.families.tails import Tail
from uqprism.measures import Measure

BLOCK, WARPS = 64, 2  # a point for each thread
NARROW_BLOCK = 32  # where threads wait for each other more often
ROOM = 0.2  # of the free memory, for what is known of each member at each end
MOST = 2**30  # entries of one array, so that positions fit into 32 bits


class TritonBarsBackend:
    """All measures of the paper of members given by bars or quantiles, on a device."""

    def covers(self, measure: Measure) -> bool:
        """True for the paper's rules and approximations."""
        return covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        ensemble = ensemble.counted()
        members = cast("Histogram", ensemble.members)
        wanted = Wanted.by(measures, Histogram)
        if wanted.quadratic or wanted.log:
            members.require_density()
        dtype, names, done = members.probabilities.dtype, [measure.name for measure in measures], []
        with torch.no_grad(), torch.cuda.device(members.probabilities.device):
            for part in _parts(ensemble):
                sums, declined = sums_of(part, wanted)
                risks = BarRisks(sums)
                found = [risks.measure(measure) for measure in measures]
                done.append(([value.to(dtype) for value, _ in found], [closed for _, closed in found], declined))
        values = [torch.cat(parts) for parts in zip(*(values for values, _, _ in done), strict=True)]
        values = differentiable(ensemble, measures, values)
        exactness = [exactness_of([] if closed else [TOLERANCE], torch.float64, dtype) for closed in done[0][1]]

        def declined_points() -> Any:
            at = torch.nonzero(torch.cat([declined for _, _, declined in done]))[:, 0]  # waits for the device
            if len(at):
                yield at, names

        return Computed(dict(zip(names, values, strict=True)), dict(zip(names, exactness, strict=True)), declined_points())


def _parts(ensemble: EnsemblePrediction) -> list[EnsemblePrediction]:
    """Parts of points whose working memory is free."""
    members = cast("Histogram", ensemble.members)
    free, _ = torch.cuda.mem_get_info(members.probabilities.device)
    per_point = (len(members.probabilities) + 1) * ensemble.n_members
    step = max(1, min(MOST // per_point, int(ROOM * free) // (64 * per_point)))
    starts = range(0, max(ensemble.n_points, 1), step)
    return [ensemble[first : first + step] if len(starts) > 1 else ensemble for first in starts]


class _Part:
    """The bars of some points in double precision, and what is known of them.

    Attributes:
        edges: ends relative to an origin, with one entry along axes on which they do not depend.
        mass: the given probabilities, likewise.
        scales: of the tails, (2, members, points).
        shared: whether all members have the same edges.
        about: (5, members, points), see `summarise`.
        below: (ends, members, points), and above and apart likewise.
        sums: (len(SUM), points).
        gaussian: (3, points), the mean of the mixture and the scales of matched and pooled.
    """

    def __init__(self, ensemble: EnsemblePrediction, wanted: Wanted) -> None:
        members = cast("Histogram", ensemble.members)
        self.wanted, (count, points) = wanted, members.batch_shape
        self.count, self.points, self.device = count, points, members.probabilities.device
        self.like = {"dtype": torch.float64, "device": self.device}
        weights = torch.full((count,), 1.0 / count, **self.like)
        if ensemble.weights is not None:
            weights = ensemble.weights.to(**self.like)
        self.weights = (weights / weights.sum()).contiguous()
        ends = narrow(members.ends).double()
        # Relative to an edge, so that a large common offset costs no digits.
        self.edges = (ends - ends[ends.shape[0] // 2, :1]).contiguous()
        self.mass = narrow(members.probabilities).double().contiguous()
        self.scales = torch.stack([x.double().expand(count, points) for x in members.scales]).contiguous()
        self.ends, self.tailed = len(self.edges), members.outer is not None
        self.tails = [numbers_of(tail, logs=wanted.log) for tail in members.outer or (Tail("exponential"),) * 2]
        self.shared = self.edges.shape[1] == 1 or bool((self.edges == self.edges[:, :1]).all())
        self.sums = torch.zeros((len(SUM), points), **self.like)
        self.about = torch.empty((5, count, points), **self.like)
        self.below, self.above, self.apart = (torch.empty((self.ends, count, points), **self.like) for _ in range(3))
        self._summarise()

    def _summarise(self) -> None:
        moments = torch.tensor([[t.mean, t.square - t.mean**2] for t in self.tails], **self.like)
        summarise[self.grid[0], self.count](
            self.about, self.below, self.above, self.apart, *self.given, self.scales, moments,
            *self.sizes, TAILED=self.tailed, **self.block,
        )  # fmt: skip
        weights = self.weights[:, None]
        mean, off, square = self.about[2:]
        if not self.shared:  # the means themselves differ
            off = mean - mean[:1]
        off = off - (weights * off).sum(0)
        variance, spread = (weights * square).sum(0), (weights * off * off).sum(0)
        self.sums[SUM["variance"]], self.sums[SUM["spread"]] = variance, spread
        self.usable = (variance > SMALLEST**2) & (variance + spread < LARGEST**2)
        # Where sizes are out of range, stretches of length one take the place of scales.
        safe = [torch.where(self.usable, x, torch.ones_like(x)).sqrt() for x in (variance + spread, variance)]
        self.gaussian = torch.stack([torch.where(self.usable, (weights * mean).sum(0), 0.0), *safe])

    @property
    def grid(self) -> tuple[int]:
        """Of programs."""
        return (max(1, -(-self.points // BLOCK)),)

    @property
    def block(self) -> dict[str, int]:
        """Of threads."""
        return {"BLOCK": BLOCK, "num_warps": WARPS}

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Ends, members, points."""
        return self.ends, self.count, self.points

    @property
    def given(self) -> list[Any]:
        """Edges and probabilities with their strides."""
        return [
            y
            for x in (self.edges, self.mass)
            for y in (x, *(0 if n == 1 else s for n, s in zip(x.shape, x.stride(), strict=True)))
        ]

    @property
    def rules(self) -> dict[str, bool]:
        """Which sums are wanted."""
        return {"CRPS": self.wanted.crps, "QUADRATIC": self.wanted.quadratic, "LOGS": self.wanted.log}

    @property
    def tail_table(self) -> torch.Tensor:
        """What kernels know of the tails."""
        return torch.tensor([[t.start, t.above, t.log_above, t.reach, t.step] for t in self.tails], **self.like)


def sums_of(ensemble: EnsemblePrediction, wanted: Wanted) -> tuple[torch.Tensor, torch.Tensor]:
    """The sums of all points, (len(SUM), points), and which points are declined."""
    part = _Part(ensemble, wanted)
    if part.points:
        if part.shared:
            _shared(part)
        else:
            _merged(part)
    sums = part.sums
    sums[SUM["log.bayes.members"]] = sums[SUM["log.bayes.mixture"]] - sums[SUM["log.excess.mixture.members"]]
    for which, name in enumerate(SURROGATES):
        sums[SUM[f"log.excess.members.{name}"]] += sums[SUM[f"log.excess.mixture.{name}"]]
        sums[SUM[f"quadratic.bayes.{name}"]] = -0.5 / (SQRT_PI * part.gaussian[1 + which])
    declined = ~part.usable
    return sums, declined if part.shared else declined | _agree(sums)


def _agree(sums: torch.Tensor) -> torch.Tensor:
    """Where members nearly agree: merged edges do not give their differences all digits."""
    crps, quadratic, log = (sums[SUM[f"{rule}.excess.mixture.members"]] for rule in ("crps", "quadratic", "log"))
    near = ((crps > 0.0) & (crps < AGREE * sums[SUM["crps.bayes.members"]])) | ((log > 0.0) & (log < AGREE))
    return near | ((quadratic > 0.0) & (quadratic < -AGREE * sums[SUM["quadratic.bayes.members"]]))


def _cells(part: _Part, merged: torch.Tensor, origins: torch.Tensor, place: torch.Tensor) -> None:
    sum_cells[part.grid](
        part.sums, *part.given, part.below, part.above, part.apart, part.about, part.weights, part.gaussian,
        *_rules(part.device), merged, origins, place, *part.sizes,
        SHARED=part.shared, TAILED=part.tailed, SURROGATES=part.wanted.surrogates, **part.rules, **part.block,
    )  # fmt: skip


def _outside(part: _Part, limits: torch.Tensor, whole: torch.Tensor, gap: torch.Tensor) -> None:
    outside[part.grid](
        part.sums, limits.contiguous(), whole.contiguous(), gap.contiguous(), part.scales[:, 0].contiguous(), part.tail_table,
        part.gaussian, *_rules(part.device), part.points,
        TAILED=part.tailed, BENT=part.tails[0].gaussian, **part.rules, **part.block,
    )  # fmt: skip


def _shared(part: _Part) -> None:
    """Members with the same edges: their cells are their bars."""
    nothing = torch.empty(1, dtype=torch.int32, device=part.device)
    _cells(part, part.edges, nothing, nothing)
    whole, gap = torch.zeros((2, part.points), **part.like), torch.zeros((2, part.points), **part.like)
    if part.tailed:
        for side, tail in enumerate(part.tails):
            whole[side], gap[side] = _shared_tail(part, side, tail)
    if part.wanted.surrogates:
        limits = torch.stack([part.edges[0, 0], part.edges[-1, 0]]).expand(2, part.points)
        _outside(part, limits, whole, gap)


def _shared_tail(part: _Part, side: int, tail: TailNumbers) -> tuple[torch.Tensor, torch.Tensor]:
    """Add what a tail of one form and scale gains, in which members differ by a factor only.

    Returns the mixture's probability there, and the mean of the log ratios.
    """
    scale, weights, sums = part.scales[side, 0], part.weights[:, None], part.sums
    given, (total, change) = part.mass[-side].expand(part.count, part.points), part.about[:2]
    own, apart = given / total, (given - given[:1]) / total - given[:1] * change
    middle = (weights * apart).sum(0)
    whole, difference = own[0] + middle, apart - middle
    if part.wanted.crps:
        sums[SUM["crps.bayes.members"]] += (weights * scale * own * (tail.mean - own * tail.squared_survival)).sum(0)
        sums[SUM["crps.excess.mixture.members"]] += (weights * scale * difference**2).sum(0) * tail.squared_survival
    there = (whole > 0.0) & (scale > 0.0)
    length, held = torch.where(there, scale, 1.0), torch.where(there, whole, 1.0)
    if part.wanted.quadratic:
        factor = torch.where(there, tail.squared_density / length, 0.0)
        sums[SUM["quadratic.bayes.members"]] -= (weights * own**2).sum(0) * factor
        sums[SUM["quadratic.excess.mixture.members"]] += (weights * difference**2).sum(0) * factor
    gap = torch.zeros_like(whole)
    if part.wanted.log:
        excess, ratio = difference / held, own / held
        positive = ratio > 0.0
        above = log_gap(torch.where(positive, excess, 0.0), torch.where(positive, ratio, 1.0))
        term = torch.where(excess.abs() < 0.5, excess**2 - ratio * above, ratio * (excess - above) - excess)
        into = (weights * torch.where(positive, term, 1.0)).sum(0)
        gap = torch.where(there, (weights * torch.where(positive, above, torch.inf)).sum(0), 0.0)
        entropy = held * (tail.entropy + length.log() - held.log())
        for name, value in (
            ("excess.mixture.members", held * into),
            ("excess.members.mixture", held * gap),
            ("bayes.mixture", entropy),
        ):
            sums[SUM[f"log.{name}"]] += torch.where(there, value, 0.0)
    return whole, gap


def _merged(part: _Part) -> None:
    """Members with edges of their own: cells between the merged ends, and nodes where some members have tails."""
    edges = part.edges.expand(part.ends, part.count, part.points)
    merged, order = edges.transpose(0, 1).reshape(-1, part.points).sort(dim=0)
    origins = (order // part.ends).to(torch.int16)
    place = torch.empty((part.count, part.points), dtype=torch.int32, device=part.device)
    _cells(part, merged, origins, place)
    first, last = edges[0], edges[-1]
    if part.tailed:
        low = (first - part.tails[0].reach * part.scales[0]).amin(0)
        high = (last + part.tails[1].reach * part.scales[1]).amax(0)
        if part.wanted.surrogates:
            mean, matched, _ = part.gaussian
            low, high = torch.minimum(low, mean - FAR * matched), torch.maximum(high, mean + FAR * matched)
        inner = first.amax(0)
        limits = torch.stack([low, inner, torch.maximum(inner, last.amin(0)), high])
        heights, per_scale = _heights(part, edges)
        seen = torch.empty_like(part.scales)
        sum_tails[(-(-part.points // NARROW_BLOCK),)](
            part.sums, *part.given[:4], heights, heights.log(), part.below, part.above, part.scales, per_scale, part.weights,
            part.gaussian, part.tail_table, limits, *_rules(part.device), merged, origins, place, seen, *part.sizes,
            BENT=part.tails[0].gaussian, SURROGATES=part.wanted.surrogates, **part.rules, BLOCK=NARROW_BLOCK, num_warps=1,
        )  # fmt: skip
    elif part.wanted.surrogates:
        nothing = torch.zeros((2, part.points), **part.like)
        _outside(part, torch.stack([first.amin(0), last.amax(0)]), nothing, nothing)


def _heights(part: _Part, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Densities (ends + 1, members, points) of bars and, where these begin, of tails, and one over the scales of the latter."""
    wide = part.scales > 0.0
    per_scale = torch.where(wide, 1.0 / torch.where(wide, part.scales, 1.0), 0.0)
    widths = edges.diff(dim=0)
    per_width = torch.where(widths > 0.0, 1.0 / torch.where(widths > 0.0, widths, 1.0), 0.0)
    return part.mass / part.about[0] * torch.cat([per_scale[:1], per_width, per_scale[1:]]), per_scale


@lru_cache(maxsize=8)
def _rules(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes and weights of all rules."""
    nodes, weights = (torch.tensor(x, dtype=torch.float64, device=device) for x in (NODES, SHARES_OF_NODES))
    return nodes, weights
