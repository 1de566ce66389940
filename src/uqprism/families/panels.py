"""The plan of a quadrature: which panels of the real line resolve some distributions, point by point.

A distribution declares what its integrals need: *landmarks* (where it sits, over which length it is smooth there, how far its
tails matter, whether it has a corner), its *support* (bounds where it begins and ends) and its *tails* (exponents of power laws).
`plan` turns these into rows of panels, each for twelve Gauss-Legendre nodes. Four rules control the error:

- Near a place a panel is at most two widths long, further away at most half its distance from the place: on such a panel a
  density that is smooth over `width` is a polynomial to the last digits, whether scales differ by two or by a million.
- Corners and bounds are edges of panels, so no panel contains one. Where the leading component of a mixture changes, its log
  density all but has a corner: panels are shortened there.
- The row ends where what lies beyond is negligible. A power law is followed until it is one to the last digits (at least ten
  decades), with panels that triple; what then remains beyond the row has a closed form (`Family.beyond`), which integrals add.
- Nodes are doubles, so at a place far from zero a feature narrower than 1e-7 of the distance would lose its digits to rounding.
  Such points are planned in zones, one around each place, with nodes that are offsets from it (`zones`).

The plan depends on the data but carries no gradient, so it is NumPy's. Every row of `Places` enters alike, so that a compiled
backend can repeat the plan from the same declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from uqprism.arrays import Array

if TYPE_CHECKING:
    from uqprism.families.base import Family
    from uqprism.families.mixture import Mixture

Floats = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

KINK = 2.5  # half the panel length, in widths of a kink, at which 12 nodes reach 1e-11
FAR = 100.0  # widths beyond which a power law is all that is left of a distribution, so that panels may triple
GRADE = 3e-7  # widths from a bound at which panels that shrink towards it end: densities start with roots and logarithms there
NARROW = 1e-7  # of the extent: narrower places need nodes that are offsets from them


@dataclass(frozen=True)
class Landmarks:
    """Places that the panels must resolve; arrays (places, *batch).

    Attributes:
        location: the place.
        width: the density is smooth over this length around it; infinite if only the corner matters.
        reach: beyond this distance the distribution no longer counts.
        sharp: one flag per place: the density has a corner exactly there.
        reach_below: the same for values below the place, if it is another distance.
    """

    location: Array
    width: Array
    reach: Array
    sharp: tuple[bool, ...]
    reach_below: Array = None


@dataclass(frozen=True)
class Places:
    """All that a plan must know of some distributions, on NumPy: landmarks and bounds (places, points).

    Attributes:
        location: the place.
        width: the length over which it is smooth around the place.
        low: where what sits here begins to count; infinite for bounds.
        high: where it no longer counts; minus infinite for bounds.
        sharp: (places,), whether an edge must lie exactly there.
        heavy: whether any tail is a power law.
    """

    location: Floats
    width: Floats
    low: Floats
    high: Floats
    sharp: Flags
    heavy: bool = False

    @staticmethod
    def of(landmarks: Landmarks, support: tuple[Array, Array], *, heavy: bool) -> Places:
        """Landmarks, with the range that counts cut off at the bounds, and the bounds, each an edge; None for no bound."""
        below = landmarks.reach if landmarks.reach_below is None else landmarks.reach_below
        low, high = landmarks.location - below, landmarks.location + landmarks.reach
        lower, upper = support
        low = low if lower is None else np.maximum(low, lower)
        high = high if upper is None else np.minimum(high, upper)
        inner = Places(landmarks.location, landmarks.width, low, high, np.array(landmarks.sharp, dtype=bool), heavy)
        grade = GRADE * np.max(np.where(np.isfinite(landmarks.width), landmarks.width, 0.0), axis=0)
        bounds = [Places.bound(b + 0.0 * grade, grade) for b in support if b is not None]
        return Places.join([inner, *bounds])

    @staticmethod
    def bound(location: Floats, grade: Floats) -> Places:
        """A place where something begins or ends."""
        infinite = np.full((1, *location.shape), np.inf)
        return Places(location[None], grade[None], infinite, -infinite, np.ones(1, dtype=bool))

    @staticmethod
    def join(parts: list[Places]) -> Places:
        """All places of all parts."""

        def rows(name: str) -> Floats:
            return np.concatenate([getattr(p, name) for p in parts])

        sharp = np.concatenate([p.sharp for p in parts])
        heavy = any(p.heavy for p in parts)
        return Places(rows("location"), rows("width"), rows("low"), rows("high"), sharp, heavy)

    @property
    def narrow(self) -> Flags:
        """Which places (places, points) are too narrow for nodes that are rounded to doubles."""
        return (self.width > 0.0) & (self.width < NARROW * np.abs(self.location)) & np.isfinite(self.low)


def plan(distributions: list[Family], places: Places, low: Floats | None = None, high: Floats | None = None) -> Floats:
    """Panel edges (panels + 1, points) from low to high, by default all that counts, for flat distributions on NumPy."""
    low = places.low.min(axis=0) if low is None else low
    high = np.maximum(low, places.high.max(axis=0)) if high is None else high
    edges = _march(places, low, high)
    for d in distributions:
        edges = _resolve_kinks(d, edges, places)
    return edges


def zones(places: Places) -> list[tuple[Floats, Floats | None, Floats | None]]:
    """The line in zones around narrow places, from left to right: (origin, low, high), relative to the origin."""
    low, high = places.low.min(axis=0), places.high.max(axis=0)
    origins = np.sort(np.clip(places.location[places.narrow.any(axis=1)], low, high), axis=0)
    half = 0.5 * np.diff(origins, axis=0)
    # The outer ends are those of what is seen from the origin, where no bound is rounded.
    return list(zip(origins, [None, *-half], [*half, None], strict=True))


def _march(places: Places, low: Floats, high: Floats) -> Floats:
    """Panel edges from low to high: no panel longer than two widths near a place, nor half the distance from it."""
    location, width, sharp = places.location, places.width, places.sharp
    edges = [low]
    y = low
    while bool((y < high).any()):
        gap = location - y
        # A third of the way ahead leaves twice the panel's length to the place; behind, the panel starts at its distance from it.
        away = np.where(gap > 0, gap / 3.0, gap / -2.0)
        if places.heavy:
            away = np.where(np.abs(gap) > FAR * width, np.where(gap > 0, gap / 1.5, -2.0 * gap), away)
        step = np.maximum(2.0 * width, away).min(axis=0)
        stop = np.minimum(y + step, high)
        if sharp.any():
            stop = np.minimum(stop, np.where(gap > 0, location, np.inf)[sharp].min(axis=0))
        # `nextafter`: a step below the spacing of doubles must still move forward, or the loop never ends.
        y = np.where(y < high, np.maximum(stop, np.nextafter(y, np.inf)), high)
        edges.append(y)
    return np.stack(edges) if len(edges) > 1 else np.stack([low, high])


def _resolve_kinks(d: Family, edges: Floats, places: Places) -> Floats:
    """Shorter panels where the leading component of a mixture changes: its log density all but has a corner there."""
    for _ in range(4):  # a panel may hide more than one: each round finds those that the last one uncovered
        kinks = _kinks(d, edges)
        if kinks is None:
            break
        nowhere = np.full_like(kinks[0], np.inf)
        found = Places(kinks[0], KINK * kinks[1], nowhere, -nowhere, np.zeros(len(kinks[0]), dtype=bool))
        places = Places.join([places, found])
        edges = _march(places, edges[0], edges[-1])
    return edges


def _kinks(d: Family, edges: Floats) -> tuple[Floats, Floats] | None:
    """Places and widths (kinks, points) where the lead changes within less than a panel resolves; None if nowhere."""
    if d.components is None:
        return None
    mixture = cast("Mixture", d)
    values = mixture.component_log_densities(edges)
    lead = values.argmax(axis=-2)
    panel, point = np.nonzero((lead[1:] != lead[:-1]) & (edges[1:] > edges[:-1]))
    first, second = lead[panel, point], lead[panel + 1, point]
    length = edges[panel + 1, point] - edges[panel, point]
    ends = (
        values[panel, first, point],
        values[panel, second, point],
        values[panel + 1, second, point],
        values[panel + 1, first, point],
    )
    # A component that is zero at an end begins or stops at a bound there, which is an edge, and bends nothing.
    there = np.isfinite(np.stack(ends)).all(axis=0)
    panel, point, first, second, length = (x[there] for x in (panel, point, first, second, length))
    ahead, behind, won, lost = (x[there] for x in ends)
    sharp = (ahead - behind) + (
        won - lost
    ) > KINK / 2.0  # the change of log ratio over the panel; slower ones are resolved already
    if not sharp.any():
        return None
    panel, point, length = panel[sharp], point[sharp], length[sharp]
    pair = np.stack([first[sharp], second[sharp]])
    location, width = _cross(mixture.map(lambda x: x[..., point]), pair, edges[panel, point], edges[panel + 1, point])
    fine = 2.0 * KINK * width < 0.99 * length
    return _pad(point[fine], location[fine], width[fine], edges.shape[1]) if fine.any() else None


def _cross(mixture: Mixture, pair: np.ndarray[Any, Any], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Where the second of a pair of components overtakes the first, and over which length the log density bends there.

    Only the pair counts: a near twin of the first that leads in between bends nothing.
    """
    step, each = 1e-3 * (high - low), np.arange(len(low))

    def lead(y: Floats) -> Floats:
        values = mixture.component_log_densities(y)
        return values[pair[0], each] - values[pair[1], each]

    for _ in range(40):
        middle = 0.5 * (low + high)
        ahead = lead(middle) > 0.0
        low, high = np.where(ahead, middle, low), np.where(ahead, high, middle)
    slope = (lead(high + step) - lead(high - step)) / (2.0 * step)
    return high, 1.0 / np.maximum(np.abs(slope), 1e-300)


def _pad(point: np.ndarray[Any, Any], location: Floats, width: Floats, size: int) -> tuple[Floats, Floats]:
    """Places of which each point has its own number, as two arrays (kinks, points) padded with places that have no effect."""
    order = np.argsort(point, kind="stable")
    point = point[order]
    first = np.searchsorted(point, point)
    rank = np.arange(len(point)) - first
    places = np.zeros((int(rank.max()) + 1, size))
    widths = np.full_like(places, np.inf)
    places[rank, point], widths[rank, point] = location[order], width[order]
    return places, widths
