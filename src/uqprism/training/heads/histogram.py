"""Bars: a probability for each of many intervals of the target, as in TabPFN; any form of noise, within the training targets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

from uqprism.errors import ArgumentError
from uqprism.families import Family, Histogram
from uqprism.families.histogram import OUTER
from uqprism.support.optional import require
from uqprism.training.heads import Head, Tensor, heads
from uqprism.training.heads.lists import check_rule, constant, first
from uqprism.training.options import positive_integer

torch = require("torch", extra="deep")

FEWEST, ROWS = 4, 10  # bars at least, and training rows per bar
TAIL = OUTER["half_normal"]


@heads.register("histogram")
@dataclass(frozen=True)
class HistogramHead(Head):
    """Probabilities of bars, softmax(f); the two outermost bars are half-normal tails without end.

    The edges lie at quantiles of the training targets, so that each bar holds as many of them, and between targets where these
    have few different values.

    Attributes:
        bars: their number at most; there is at most one for every ten training rows.
        rule: the proper scoring rule that is minimised, "log", "crps" or "quadratic".
        edges: of the bars in standardised units, (bars + 1,); by default from the training targets.
    """

    name: ClassVar[str] = "histogram"
    family: ClassVar[str] = "histogram"
    bars: int = 50
    rule: str = "log"
    edges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bars", positive_integer("bars", self.bars))
        check_rule(self.rule)
        if self.edges is None:
            return
        edges = tuple(map(float, self.edges))
        if len(edges) < 3 or not all(map(math.isfinite, edges)) or any(b <= a for a, b in pairwise(edges)):
            raise ArgumentError(f"edges must be at least three increasing numbers, got {edges}")
        object.__setattr__(self, "edges", edges)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One for each bar."""
        return len(self._edges) - 1

    @property
    def _edges(self) -> tuple[float, ...]:
        if self.edges is None:
            raise ArgumentError(
                "the histogram head takes its bars from the training targets; several training sets at once need the same bars: "
                "give HistogramHead(edges=...), in standardised units"
            )
        return self.edges

    def fitted(self, targets: Tensor) -> Self:
        """The same with edges between these standardised targets."""
        if self.edges is not None:
            return self
        values, count = targets.double().cpu(), min(self.bars, max(len(targets) // ROWS, FEWEST))
        distinct = values.unique()
        if len(distinct) <= count:
            inner = 0.5 * (distinct[1:] + distinct[:-1])
        else:
            levels = torch.linspace(0.0, 1.0, count + 1, dtype=torch.float64)[1:-1]
            inner = values.sort().values[(levels * (len(values) - 1)).round().long()].unique()
        if len(inner) < 2:  # two values or one, or nearly so
            inner = values.mean() + torch.tensor([-0.5, 0.0, 0.5], dtype=torch.float64)
        # Half of the probability of an outermost bar lies within its width: as far as half of the targets beyond its inner edge.
        beyond = (inner[0] - values[values < inner[0]], values[values > inner[-1]] - inner[-1])
        usual = float((inner[1:] - inner[:-1]).median())
        low, high = (max(float(x.median()) if len(x) else 0.0, usual) for x in beyond)
        edges = [float(inner[0]) - low, *inner.tolist(), float(inner[-1]) + high]
        return replace(self, edges=tuple(edges))

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """Probabilities (..., bars), and the edges (bars + 1,)."""
        return {"probabilities": raw.softmax(-1), "edges": constant(self._edges, raw)}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The score of the bars."""
        edges = constant(self._edges, raw)
        bar = torch.bucketize(target.detach().contiguous(), edges[1:-1])  # that of each target
        if self.rule == "crps":
            return _crps(raw.softmax(-1), edges, bar, target)
        height = _log_height(edges, bar, target) + _of(raw.log_softmax(-1), bar)
        if self.rule == "log":
            return -height
        squares = 1.0 / (edges[1:] - edges[:-1])
        tail = TAIL.squared_density * TAIL.half
        squares = torch.cat([tail * squares[:1], squares[1:-1], tail * squares[-1:]])
        return (raw.softmax(-1) ** 2 * squares).sum(-1) - 2.0 * height.exp()

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """Edges in the units of mean + scale * Y, in double precision."""
        probabilities = parameters["probabilities"].double()
        edges = constant(self._edges, probabilities)  # not those that single precision rounded
        return {"probabilities": probabilities / probabilities.sum(-1, keepdim=True), "edges": mean + scale * edges}

    def distribution(self, parameters: dict[str, Tensor], *, check: bool = False) -> Family:
        """The histograms, with a batch of (...)."""
        return Histogram(parameters["edges"], first(parameters["probabilities"]), outer="half_normal", check=check)


def _of(values: Tensor, bar: Tensor) -> Tensor:
    """The value of each target's bar, from values (..., bars)."""
    return values.gather(-1, bar[..., None])[..., 0]


def _tails(edges: Tensor, bar: Tensor, target: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For both tails: which targets are there, their distances from where it begins, in scales, and the scale."""
    low, high = (edges[1] - edges[0]) / TAIL.half, (edges[-1] - edges[-2]) / TAIL.half
    nothing = torch.zeros_like(target)
    inside = [bar == 0, bar == len(edges) - 2]
    distances = [(edges[1] - target) / low, (target - edges[-2]) / high]
    # No distance elsewhere, where its square might overflow.
    return [(there, torch.where(there, x, nothing), s) for there, x, s in zip(inside, distances, (low, high), strict=True)]


def _log_height(edges: Tensor, bar: Tensor, target: Tensor) -> Tensor:
    """The log density at each target of a bar with probability one."""
    height = -(edges[1:] - edges[:-1]).log()[bar]
    for there, distance, scale in _tails(edges, bar, target):
        height = torch.where(there, TAIL.log_density(distance) - scale.log(), height)
    return height


def _crps(mass: Tensor, edges: Tensor, bar: Tensor, target: Tensor) -> Tensor:
    """E|X - y| - E|X - X'| / 2, from the distances between bars, which do not overlap, and within them."""
    widths = edges[1:] - edges[:-1]
    middles, within = 0.5 * (edges[1:] + edges[:-1]), widths / 3.0
    spread = 2.0 * (TAIL.mean - TAIL.squared_survival) / TAIL.half
    ends = torch.stack([edges[1] - widths[0] * TAIL.mean / TAIL.half, edges[-2] + widths[-1] * TAIL.mean / TAIL.half])
    middles = torch.cat([ends[:1], middles[1:-1], ends[1:]])
    within = torch.cat([spread * widths[:1], within[1:-1], spread * widths[-1:]])
    gaps = (middles[:, None] - middles).abs() + torch.diag(within)
    low, high = edges[:-1][bar], edges[1:][bar]
    own = ((target - low) ** 2 + (high - target) ** 2) / (2.0 * (high - low))
    for there, distance, scale in _tails(edges, bar, target):
        own = torch.where(there, scale * (distance - TAIL.mean + 2.0 * TAIL.excess(distance)), own)
    far = (mass * (target[..., None] - middles).abs()).sum(-1)
    return far + _of(mass, bar) * (own - (target - middles[bar]).abs()) - 0.5 * ((mass @ gaps) * mass).sum(-1)
