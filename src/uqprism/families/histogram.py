"""Distributions given by bars: a distribution function that is linear between edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from uqprism.arrays import Array, coerce, expand, is_torch, is_traced, merged, namespace, to_numpy
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError
from uqprism.families.base import Family, check_values, families
from uqprism.families.panels import Landmarks
from uqprism.families.searching import search, take_along
from uqprism.families.stored import require
from uqprism.families.tails import Tail, or_one
from uqprism.registry import unknown

Outer = Literal["half_normal", "exponential"]
OUTER = {"half_normal": Tail("gaussian"), "exponential": Tail("exponential")}


@families.register("histogram")
class Histogram(Family):
    """Bars between edges, each with a probability that is spread evenly over it.

    The first axis of both arrays runs over edges and bars, the rest is the batch. With `outer`, the two outermost bars are tails
    without end that begin at their inner edges, half-normal or exponential, with half of their probability within the bar's
    width. Half-normal outer bars are those of TabPFN's `FullSupportBarDistribution`.

    Args:
        edges: increasing, (bars + 1, *batch), or (bars + 1,) if all have the same.
        probabilities: (bars, *batch), some perhaps zero; they sum to one, and what rounding left of one is divided out.
        outer: "half_normal", "exponential" or None.
    """

    name = "histogram"
    in_lists: ClassVar[tuple[str, ...]] = ("edges", "probabilities")
    _edge_words: ClassVar[str] = "edges"
    parameters: ClassVar[dict[str, str]] = {"edges": "location", "probabilities": "shape"}
    constants: ClassVar[tuple[str, ...]] = ("outer",)
    edges: Array  # (bars + 1, *batch)
    probabilities: Array  # (bars, *batch), as given
    outer: tuple[Tail, Tail] | None  # below and above

    def __init__(self, edges: Array, probabilities: Array, *, outer: Outer | None = None, check: bool = True) -> None:
        arrays = coerce(probabilities=probabilities, edges=edges)
        edges, probabilities = arrays["edges"], arrays["probabilities"]
        if probabilities.ndim == 0 or edges.ndim == 0 or edges.shape[0] != probabilities.shape[0] + 1:
            got = f"got edges {tuple(edges.shape)} and probabilities {tuple(probabilities.shape)}"
            raise ShapeError(f"edges must be one more than bars along the first axis, {got}")
        if probabilities.shape[0] < (1 if outer is None else 2):
            raise ShapeError(f"probabilities must be of at least {'one bar' if outer is None else 'two bars'}, got none or one")
        if outer is not None and outer not in OUTER:
            raise unknown("outer", outer, OUTER)
        if check:
            check_edges(edges)
            check_probabilities(probabilities)
        self.outer = None if outer is None else (OUTER[outer], OUTER[outer])
        self.edges, self.probabilities = wide(edges, probabilities.shape[1:]), probabilities

    @classmethod
    def _of(cls, edges: Array, probabilities: Array, outer: tuple[Tail, Tail] | None) -> Histogram:
        # The arrays were checked.
        clone = object.__new__(Histogram)
        clone.edges, clone.probabilities, clone.outer = edges, probabilities, outer
        return clone

    @property
    def bends(self) -> bool:  # type: ignore[override]
        """True with tails, which the leading member takes from another; bars change at their edges only."""
        return self.outer is not None

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch, without the axis of the bars."""
        return tuple(self.probabilities.shape[1:])

    def stored(self) -> dict[str, Array]:
        """The edges, with one entry along axes on which they do not depend, and the probabilities."""
        return {"edges": narrow(self.edges), "probabilities": self.probabilities}

    def options(self) -> dict[str, Any]:
        """The form of the outer bars."""
        return {"outer": next((name for name, tail in OUTER.items() if self.outer == (tail, tail)), None)}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], options: Mapping[str, Any], *, check: bool = False) -> Self:
        """What these arrays and options define."""
        require(cls.name, arrays, cls.parameters)
        return cls(**arrays, **options, check=check)

    @classmethod
    def joined(cls, parts: Sequence[Self], axis: int) -> Self:
        """One batch of all parts; edges that all share stay shared."""
        first, whole = parts[0], {}
        if any(part.options() != first.options() or len(part.mass) != len(first.mass) for part in parts):
            raise ArgumentError("predictions must have as many bars, and outer bars of one form")
        edges = [narrow(part.edges) for part in parts]
        apart = any(part.shape[1 + axis] > 1 for part in edges) or any((part != edges[0]).any() for part in edges)
        xp = namespace(first.probabilities)
        whole["edges"] = xp.concat([part.edges for part in parts], axis=1 + axis) if apart else edges[0]
        whole["probabilities"] = xp.concat([part.probabilities for part in parts], axis=1 + axis)
        return cls.restored(whole, first.options())

    def recalibrated(self, weights: Array, *, noise: float, disagreement: float) -> Self:
        """The bars about the members' centres; edges that members shared become their own."""
        return self._about_centres(weights, noise, disagreement)

    # What each bar is --------------------------------------------------------------------------------------------------

    @cached_property
    def mass(self) -> Array:
        """The probability of each bar, (bars, *batch), summing to one."""
        return self.probabilities / namespace(self.probabilities).sum(self.probabilities, axis=0)

    @cached_property
    def widths(self) -> Array:
        """(bars, *batch)."""
        return self.edges[1:] - self.edges[:-1]

    @cached_property
    def ends(self) -> Array:
        """The edges at which the distribution function is known, all but the outermost two of tails."""
        return self.edges if self.outer is None else self.edges[1:-1]

    @cached_property
    def scales(self) -> tuple[Array, Array]:
        """The scales of the two tails, (*batch); zero without tails."""
        low, high = self.edges[1] - self.edges[0], self.edges[-1] - self.edges[-2]
        return (0.0 * low, 0.0 * high) if self.outer is None else (low / self.outer[0].half, high / self.outer[1].half)

    @cached_property
    def below(self) -> Array:
        """The probability below each edge, (bars + 1, *batch)."""
        xp = namespace(self.mass)
        return xp.concat([xp.zeros_like(self.mass[:1]), xp.cumulative_sum(self.mass, axis=0)], axis=0)

    @cached_property
    def above(self) -> Array:
        """The probability above each edge, (bars + 1, *batch), summed from above so that small ones keep their digits."""
        xp = namespace(self.mass)
        summed = xp.flip(xp.cumulative_sum(xp.flip(self.mass, axis=0), axis=0), axis=0)
        return xp.concat([summed, xp.zeros_like(self.mass[:1])], axis=0)

    @cached_property
    def area_below(self) -> Array:
        """The integral of the distribution function up to each of the `ends`."""
        first = self.mass[0] * self.scales[0] * self.outer[0].mean if self.outer else 0.0 * self.mass[0]
        return self._areas(self._inner(self.below), first, up=True)

    @cached_property
    def area_above(self) -> Array:
        """The integral of the probability above, from each of the `ends` on."""
        first = self.mass[-1] * self.scales[1] * self.outer[1].mean if self.outer else 0.0 * self.mass[-1]
        return self._areas(self._inner(self.above), first, up=False)

    def _inner(self, at_edges: Array) -> Array:
        return at_edges if self.outer is None else at_edges[1:-1]

    def _areas(self, probability: Array, first: Array, *, up: bool) -> Array:
        xp = namespace(probability)
        steps = 0.5 * (self.ends[1:] - self.ends[:-1]) * (probability[1:] + probability[:-1])
        if up:
            return xp.cumulative_sum(xp.concat([first[None], steps], axis=0), axis=0)
        return xp.flip(xp.cumulative_sum(xp.flip(xp.concat([steps, first[None]], axis=0), axis=0), axis=0), axis=0)

    # Moments -----------------------------------------------------------------------------------------------------------

    @cached_property
    def centres(self) -> Array:
        """The mean of each bar, (bars, *batch)."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        if self.outer is None:
            return middle
        (low, high), (below, above) = self.scales, self.outer
        first, last = self.edges[1] - below.mean * low, self.edges[-2] + above.mean * high
        return namespace(middle).concat([first[None], middle[1:-1], last[None]], axis=0)

    @cached_property
    def mean(self) -> Array:
        """The mean, (*batch)."""
        # Relative to an edge, so that a large common offset costs no digits.
        first = self.edges[self.edges.shape[0] // 2]
        return first + self.average(self.centres - first)

    @cached_property
    def variance(self) -> Array:
        """The variance, (*batch)."""
        deviation = self.centres - self.mean
        deviation = deviation - self.average(deviation)  # what the rounded mean has left
        within = self.widths * self.widths / 12.0
        if self.outer is not None:
            tails = [s * s * (t.square - t.mean**2) for s, t in zip(self.scales, self.outer, strict=True)]
            within = namespace(within).concat([tails[0][None], within[1:-1], tails[1][None]], axis=0)
        return self.average(deviation * deviation + within)

    def average(self, values: Array) -> Array:
        """The mean over the bars of values (bars, *batch)."""
        return namespace(values).sum(self.mass * values, axis=0)

    def require_density(self) -> None:
        """Refuse bars without a width that have a probability: it lies at a single value.

        Raises:
            UnsupportedError: some distributions have no density.
        """
        count = self._without_density
        if count:
            total = int(np.prod(self.batch_shape, dtype=np.int64))
            raise UnsupportedError(
                f"{count:,} of {total:,} predictions have probability at a single value, where {self._edge_words} coincide, and "
                "so no density, which this rule needs (as log and quadratic do); use rules that do without, as in "
                "evaluate(ens, catalogue(['crps', 'squared_error']))"
            )

    @property
    def has_density(self) -> bool:
        """False if some distributions have probability at a single value."""
        return not self._without_density

    def without_density(self) -> Array:
        """Which distributions have probability at a single value, (*batch)."""
        xp = namespace(self.probabilities)
        inner = slice(None) if self.outer is None else slice(1, -1)
        return xp.any((self.widths[inner] <= 0.0) & (self.probabilities[inner] > 0.0), axis=0)

    @cached_property
    def _without_density(self) -> int:
        if is_traced(self.edges) or is_traced(self.probabilities):
            return 0
        xp = namespace(self.probabilities)
        edges = narrow(self.edges)
        inner = slice(None) if self.outer is None else slice(1, -1)
        if not bool(xp.any((edges[1:] - edges[:-1])[inner] <= 0.0)):
            return 0
        return int(xp.count_nonzero(self.without_density()))

    # At values of y ----------------------------------------------------------------------------------------------------

    def _at(self, y: Array) -> _Place:
        return _Place(self, y)

    def log_density(self, y: Array) -> Array:
        """The log density at y; minus infinity in bars of probability zero and outside."""
        self.require_density()
        return self._at(y).log_density()

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        return self._at(y).probability(above=False)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        return self._at(y).probability(above=True)

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        at = self._at(y)
        return at.area(above=False) + at.area(above=True)

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        xp = namespace(self.edges)
        level = level + 0.0 * self.mass[0]
        flat = merged(level, len(self.batch_shape))
        bar = xp.clip(search(self.below[1:], flat, below=True), 0, self.mass.shape[0] - 1)
        low, width, mass = (take_along(x, bar) for x in (self.edges[:-1], self.widths, self.mass))
        value = low + width * xp.clip((flat - take_along(self.below, bar)) / or_one(mass), 0.0, 1.0)
        if self.outer is not None:
            for tail, scale, end, sign, share in self._tails():
                outside = bar == (0 if sign < 0 else self.mass.shape[0] - 1)
                above = (flat if sign < 0 else 1.0 - flat) / or_one(share)
                distance = tail.quantile(xp.where(outside, above, xp.full_like(above, 0.5)))
                value = xp.where(outside, end + sign * scale * distance, value)
        return xp.reshape(value, level.shape)

    def _tails(self) -> list[tuple[Tail, Array, Array, float, Array]]:
        """Both tails: form, scale, where it begins, direction and probability."""
        if self.outer is None:
            return []
        (below, above), (low, high) = self.outer, self.scales
        return [(below, low, self.edges[1], -1.0, self.mass[0]), (above, high, self.edges[-2], 1.0, self.mass[-1])]

    # For quadrature ----------------------------------------------------------------------------------------------------

    @property
    def has_bounds(self) -> bool:
        """True: a bar may have probability zero, and without tails there is nothing outside."""
        return True

    def landmarks(self) -> Landmarks:
        """Every edge is a corner, with places along the tails."""
        xp = namespace(self.edges)
        nothing = xp.zeros_like(self.ends)
        rows = [(end, width + np.inf, width) for end, width in zip(self.ends, nothing, strict=True)]
        for tail, scale, end, sign, _ in self._tails():
            for distance, smooth in tail.places:
                rows.append((end + sign * distance * scale, smooth * or_one(scale), max(tail.reach - distance, 0.0) * scale))
        location, width, reach = (xp.stack(x) for x in zip(*rows, strict=True))
        return Landmarks(location, width, reach, (True,) * len(nothing) + (False,) * (len(rows) - len(nothing)))


class _Place:
    """Values of y among the bars of a histogram."""

    def __init__(self, bars: Histogram, y: Array) -> None:
        xp = namespace(bars.edges)
        self.bars, self.y = bars, y + 0.0 * bars.mass[0]
        self.shape, self.count = self.y.shape, bars.mass.shape[0]
        self.y = merged(self.y, len(bars.batch_shape))
        passed = search(bars.ends, self.y)
        # Without tails, what lies outside belongs to the outermost bars.
        self.bar = passed if bars.outer is not None else xp.clip(passed - 1, 0, self.count - 1)

    def _take(self, x: Array, shift: int = 0) -> Array:
        return take_along(x, self.bar + shift)

    @cached_property
    def fraction(self) -> Array:
        """The share of the bar below y."""
        xp = namespace(self.y)
        low, width = self._take(self.bars.edges), self._take(self.bars.widths)
        within = xp.clip((self.y - low) / or_one(width), 0.0, 1.0)
        return xp.where(width > 0.0, within, xp.astype(self.y >= low, within.dtype))

    def _in_tails(self, value: Array, inside: Callable[[Tail, Array, Array, Array, float], Array]) -> Array:
        """Put together the value in bars, and what a function gives in tails, at distances (in scales) from where they begin."""
        xp = namespace(value)
        for tail, scale, end, sign, share in self.bars._tails():
            there = self.bar == (0 if sign < 0 else self.count - 1)
            distance = xp.where(there, sign * (self.y - end), xp.zeros_like(self.y)) / or_one(scale)
            value = xp.where(there, inside(tail, distance, scale, share, sign), value)
        return xp.reshape(value, self.shape)

    def log_density(self) -> Array:
        """The log density."""
        bars, y = self.bars, self.y
        xp = namespace(y)
        mass, width = self._take(bars.mass), self._take(bars.widths)
        there = (mass > 0.0) & (width > 0.0)
        if bars.outer is None:
            there = there & (y >= bars.edges[0]) & (y <= bars.edges[-1])
        nothing = xp.full_like(mass, -math.inf)
        value = xp.where(there, xp.log(or_one(mass)) - xp.log(or_one(width)), nothing)

        def tail(form: Tail, x: Array, scale: Array, share: Array, _: float) -> Array:
            found = form.log_density(x) - xp.log(or_one(scale)) + xp.log(or_one(share))
            return xp.where((share > 0.0) & (scale > 0.0), found, nothing)

        return self._in_tails(value, tail)

    def probability(self, *, above: bool) -> Array:
        """The probability of values up to y, or above."""
        bars = self.bars
        xp = namespace(self.y)
        start = self._take(bars.above, 1) if above else self._take(bars.below)
        value = start + self._take(bars.mass) * (1.0 - self.fraction if above else self.fraction)

        def tail(form: Tail, x: Array, scale: Array, share: Array, sign: float) -> Array:
            outside = share * xp.where(scale > 0.0, form.survival(x), xp.zeros_like(x))
            return outside if above == (sign > 0) else 1.0 - outside

        return self._in_tails(value, tail)

    def area(self, *, above: bool) -> Array:
        """The integral of the distribution function up to y, or of the probability above from y on."""
        bars, y = self.bars, self.y
        xp = namespace(y)
        shift = 0 if bars.outer is None else -1  # edges are counted from the first of the ends
        last = bars.ends.shape[0] - 1

        def at(x: Array, offset: int) -> Array:
            return take_along(x, xp.clip(self.bar + shift + offset, 0, last))

        low, high = at(bars.ends, 0), at(bars.ends, 1)
        here = self.probability(above=above)
        here = xp.reshape(here, y.shape)
        inside = xp.minimum(xp.maximum(y, low), high)  # what lies outside adds below
        if above:
            value = at(bars.area_above, 1) + 0.5 * (high - inside) * (here + at(bars._inner(bars.above), 1))
            value = value + (xp.maximum(low - y, 0.0 * y) if bars.outer is None else 0.0)
        else:
            value = at(bars.area_below, 0) + 0.5 * (inside - low) * (here + at(bars._inner(bars.below), 0))
            value = value + (xp.maximum(y - high, 0.0 * y) if bars.outer is None else 0.0)

        def tail(form: Tail, x: Array, scale: Array, share: Array, sign: float) -> Array:
            outside = share * scale * form.excess(x)
            if above == (sign > 0):
                return outside
            start = bars.area_above[0] if above else bars.area_below[-1]
            return start + scale * x - (share * scale * form.mean - outside)

        return self._in_tails(value, tail)


def wide(x: Array, batch: tuple[int, ...]) -> Array:
    """`x` (n, *batch) with one entry or none along axes on which it does not depend, as (n, *batch); no element is copied."""
    x = expand(x, 1, len(batch)) if x.ndim == 1 else x
    if x.ndim != len(batch) + 1 or any(n not in (1, m) for n, m in zip(x.shape[1:], batch, strict=True)):
        raise ShapeError(f"edges must be ({x.shape[0]},) or {(x.shape[0], *batch)}, got {tuple(x.shape)}")
    return namespace(x).broadcast_to(x, (x.shape[0], *batch))


def narrow(x: Array) -> Array:
    """The opposite of `wide`: one entry along axes on which no element depends, where the array library tells."""
    if isinstance(x, np.ndarray):
        steps: Sequence[int] = x.strides
    elif is_torch(x):
        steps = x.stride()
    else:
        return x
    return x[tuple(slice(0, 1) if step == 0 and n > 1 else slice(None) for step, n in zip(steps, x.shape, strict=True))]


def check_edges(edges: Array, *, strict: bool = True) -> None:
    """Refuse edges that are not finite, or do not increase along the first axis."""
    check_values("edges", edges, "location")
    if is_traced(edges):
        return
    xp = namespace(edges)
    steps = edges[1:] - edges[:-1]
    if bool(xp.any(steps <= 0.0 if strict else steps < 0.0)):
        place = tuple(int(i) for i in np.argwhere(to_numpy(steps) <= 0.0)[0])
        raise InvalidValueError(f"edges must increase along the axis of the bars, and do not after index {place}; sort them")


def check_probabilities(probabilities: Array) -> None:
    """Refuse probabilities that are negative or not finite, or do not sum to one over the bars."""
    if is_traced(probabilities) or 0 in probabilities.shape:
        return
    xp = namespace(probabilities)
    total = xp.sum(probabilities, axis=0)  # NaN and infinity show in the sums
    if not bool(xp.min(probabilities) >= 0.0) or not bool(xp.all(xp.isfinite(total))):
        values = to_numpy(probabilities)
        place = tuple(int(i) for i in np.argwhere(~(np.isfinite(values) & (values >= 0.0)))[0])
        raise InvalidValueError(
            f"probabilities must be finite and not negative, got {float(values[place])} at index {place}; "
            "give probabilities of the bars, neither log probabilities nor densities"
        )
    slack = {"64": 1e-6, "32": 1e-4}.get(str(probabilities.dtype)[-2:], 5e-3)  # rounding in this precision
    error = xp.abs(total - 1.0)
    if not bool(xp.all(error <= slack)):
        worst = float(xp.reshape(total, (-1,))[int(xp.argmax(xp.reshape(error, (-1,))))])
        raise InvalidValueError(f"probabilities must sum to one over the bars, got {worst:g}; divide them by their sum")
