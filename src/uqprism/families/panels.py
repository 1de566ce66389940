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

The plan depends on the data but carries no gradient. It is made in double precision, by NumPy or, for what lies on a device,
there (`arrays.plain`), for all points in step. Every row of `Places` enters alike, so that a compiled backend can repeat the plan
from the same declarations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from uqprism.arrays import Array, counting, namespace

if TYPE_CHECKING:
    from uqprism.families.base import Family
    from uqprism.families.mixture import Mixture

Floats = Array  # of doubles, where the plan is made
Flags = Array

KINK = 2.5  # half the panel length, in widths of a kink, at which 12 nodes reach 1e-11
FAR = 100.0  # widths beyond which a power law is all that is left of a distribution, so that panels may triple
GRADE = 3e-7  # widths from a bound at which panels that shrink towards it end: densities start with roots and logarithms there
AT_BOUND = 1e-9  # the power at a bound from which others say how densities grow
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
        power: for places next to a bound between which and the next place probability grows like this power of the distance from
            the bound; zero for others, None if there are none.
    """

    location: Array
    width: Array
    reach: Array
    sharp: tuple[bool, ...]
    reach_below: Array = None
    power: Array = None


@dataclass(frozen=True)
class Places:
    """All that a plan must know of some distributions: landmarks and bounds (places, points) in double precision.

    Attributes:
        location: the place.
        width: the length over which it is smooth around the place.
        low: where what sits here begins to count; infinite for bounds.
        high: where it no longer counts; minus infinite for bounds.
        sharp: for each place, whether an edge must lie exactly there.
        heavy: whether any tail is a power law.
        power: as of landmarks, and tiny for the bounds themselves; None if there are none.
    """

    location: Floats
    width: Floats
    low: Floats
    high: Floats
    sharp: tuple[bool, ...]
    heavy: bool = False
    power: Floats | None = None

    @staticmethod
    def of(landmarks: Landmarks, support: tuple[Array, Array], *, heavy: bool, graded: bool = True) -> Places:
        """Landmarks, with the range that counts cut off at the bounds, and the bounds, each an edge; None for no bound.

        With `graded`, panels shrink towards the bounds.
        """
        below = landmarks.reach if landmarks.reach_below is None else landmarks.reach_below
        xp = namespace(landmarks.location)
        low, high = landmarks.location - below, landmarks.location + landmarks.reach
        lower, upper = (None if bound is None else bound + xp.zeros_like(low[0]) for bound in support)
        low = low if lower is None else xp.maximum(low, lower)
        high = high if upper is None else xp.minimum(high, upper)
        inner = Places(landmarks.location, landmarks.width, low, high, landmarks.sharp, heavy, landmarks.power)
        width = landmarks.width
        grade = GRADE * xp.max(xp.where(xp.isfinite(width), width, xp.zeros_like(width)), axis=0)
        grade = grade if graded else xp.full_like(grade, math.inf)
        power = None if landmarks.power is None else xp.full_like(low[:1], AT_BOUND)
        return Places.join([inner, *[Places.bound(b, grade, power) for b in (lower, upper) if b is not None]])

    @staticmethod
    def bound(location: Floats, grade: Floats, power: Floats | None = None) -> Places:
        """A place where something begins or ends."""
        infinite = namespace(location).full_like(location, math.inf)[None]
        return Places(location[None], grade[None], infinite, -infinite, (True,), power=power)

    @staticmethod
    def join(parts: list[Places]) -> Places:
        """All places of all parts."""

        def rows(name: str) -> Floats:
            return namespace(parts[0].location).concat([getattr(p, name) for p in parts], axis=0)

        sharp = tuple(flag for p in parts for flag in p.sharp)
        heavy = any(p.heavy for p in parts)
        power = None
        if any(p.power is not None for p in parts):
            xp = namespace(parts[0].location)
            power = xp.concat([xp.zeros_like(p.location) if p.power is None else p.power for p in parts], axis=0)
        return Places(rows("location"), rows("width"), rows("low"), rows("high"), sharp, heavy, power)

    @property
    def narrow(self) -> Flags:
        """Which places (places, points) are too narrow for nodes that are rounded to doubles."""
        return self.narrow_within(namespace(self.location).abs(self.location))

    def narrow_within(self, distance: Floats) -> Flags:
        """Which places are too narrow for nodes that are rounded as numbers of this size are."""
        return (self.width > 0.0) & (self.width < NARROW * distance) & namespace(self.width).isfinite(self.low)


def plan(distributions: list[Family], places: Places, low: Floats | None = None, high: Floats | None = None) -> Floats:
    """Panel edges (panels + 1, points) from low to high, by default all that counts, for flat distributions."""
    xp = namespace(places.location)
    low = xp.min(places.low, axis=0) if low is None else low
    high = xp.maximum(low, xp.max(places.high, axis=0)) if high is None else high
    edges = _march(places, low, high)
    for d in distributions:
        edges, places = _resolve_kinks(d, edges, places)
    return edges


def zones(places: Places) -> list[tuple[Floats, Floats | None, Floats | None]]:
    """The line in zones around narrow places, from left to right: (origin, low, high), relative to the origin."""
    xp = namespace(places.location)
    low, high = xp.min(places.low, axis=0), xp.max(places.high, axis=0)
    # Also a narrow place near zero is far from the origin of another zone.
    flags = places.narrow_within(high - low)
    rows = [i for i, found in enumerate(xp.any(flags, axis=1)) if bool(found)]
    rows.sort(key=lambda i: float(xp.min(places.width[i])))
    kept: list[int] = []
    for i in rows:
        # What is not narrow as seen from the origin of another zone needs none of its own.
        seen = [xp.abs(places.location[i] - places.location[k]) for k in kept]
        distance = xp.min(xp.stack(seen), axis=0) if seen else high - low
        if bool(xp.any(flags[i] & (places.width[i] < NARROW * distance))):
            kept.append(i)
    narrow = places.location[kept]
    origins = xp.sort(xp.minimum(xp.maximum(narrow, low), high), axis=0)
    half = 0.5 * (origins[1:] - origins[:-1])
    # The outer ends are those of what is seen from the origin, where no bound is rounded.
    return list(zip(origins, [None, *-half], [*half, None], strict=True))


def _march(places: Places, low: Floats, high: Floats) -> Floats:
    """Panel edges from low to high: no panel longer than two widths near a place, nor half the distance from it."""
    location, width = places.location, places.width
    xp = namespace(location)
    corners = [i for i, sharp in enumerate(places.sharp) if sharp]
    corner = location if len(corners) == len(places.sharp) else location[corners]
    infinite = xp.full_like(low, math.inf)
    edges = [low]
    y = low
    while bool(xp.any(y < high)):
        gap = location - y
        # A third of the way ahead leaves twice the panel's length to the place; behind, the panel starts at its distance from it.
        away = xp.where(gap > 0, gap / 3.0, gap / -2.0)
        if places.heavy:
            away = xp.where(xp.abs(gap) > FAR * width, xp.where(gap > 0, gap / 1.5, -2.0 * gap), away)
        step = xp.min(xp.maximum(2.0 * width, away), axis=0)
        stop = xp.minimum(y + step, high)
        if corners:
            stop = xp.minimum(stop, xp.min(xp.where(corner > y, corner, infinite), axis=0))
        # `nextafter`: a step below the spacing of doubles must still move forward, or the loop never ends.
        y = xp.where(y < high, xp.maximum(stop, xp.nextafter(y, infinite)), high)
        edges.append(y)
    return xp.stack(edges, axis=0) if len(edges) > 1 else xp.stack([low, high], axis=0)


def _resolve_kinks(d: Family, edges: Floats, places: Places) -> tuple[Floats, Places]:
    """Shorter panels where the leading component of a mixture changes: its log density all but has a corner there.

    The corners are among the places that are returned, so that the next distribution's panels keep them.
    """
    for _ in range(4):  # a panel may hide more than one: each round finds those that the last one uncovered
        kinks = _kinks(d, edges)
        if kinks is None:
            break
        nowhere = namespace(edges).full_like(kinks[0], math.inf)
        found = Places(kinks[0], KINK * kinks[1], nowhere, -nowhere, (False,) * len(kinks[0]))
        places = Places.join([places, found])
        edges = _march(places, edges[0], edges[-1])
    return edges, places


def _kinks(d: Family, edges: Floats) -> tuple[Floats, Floats] | None:
    """Places and widths (kinks, points) where the lead changes within less than a panel resolves; None if nowhere."""
    if d.components is None or not (d.components.bends and d.has_density):
        return None
    mixture = cast("Mixture", d)
    values = mixture.component_log_densities(edges)
    xp = namespace(values)
    lead = xp.argmax(values, axis=-2)
    panel, point = xp.nonzero((lead[1:] != lead[:-1]) & (edges[1:] > edges[:-1]))
    first, second = lead[panel, point], lead[panel + 1, point]
    low, high = edges[panel, point], edges[panel + 1, point]
    ends = xp.stack(
        [
            values[panel, first, point],
            values[panel, second, point],
            values[panel + 1, second, point],
            values[panel + 1, first, point],
        ],
        axis=0,
    )
    # A component that is zero at an end begins or stops at a bound there, which is an edge, and bends nothing.
    bends = xp.all(xp.isfinite(ends), axis=0)
    ahead, behind, won, lost = xp.where(bends, ends, xp.zeros_like(ends))
    # The change of the log ratio over the panel; slower ones are resolved already.
    sharp = (ahead - behind) + (won - lost) > KINK / 2.0
    if not bool(xp.any(sharp)):
        return None
    point, low, high = point[sharp], low[sharp], high[sharp]
    pair = xp.stack([first[sharp], second[sharp]], axis=0)
    location, width = _cross(mixture.map(lambda x: x[..., point]), pair, low, high)
    fine = 2.0 * KINK * width < 0.99 * (high - low)
    return _pad(point[fine], location[fine], width[fine], edges[0]) if bool(xp.any(fine)) else None


def _cross(mixture: Mixture, pair: Array, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Where the second of a pair of components overtakes the first, and over which length the log density bends there.

    Only the pair counts: a near twin of the first that leads in between bends nothing.
    """
    xp = namespace(low)
    step, each = 1e-3 * (high - low), counting(low)

    def lead(y: Floats) -> Floats:
        values = mixture.component_log_densities(y)
        return values[pair[0], each] - values[pair[1], each]

    for _ in range(40):
        middle = 0.5 * (low + high)
        ahead = lead(middle) > 0.0
        low, high = xp.where(ahead, middle, low), xp.where(ahead, high, middle)
    slope = (lead(high + step) - lead(high - step)) / (2.0 * step)
    return high, 1.0 / xp.clip(xp.abs(slope), 1e-300, None)


def _pad(point: Array, location: Floats, width: Floats, like: Floats) -> tuple[Floats, Floats]:
    """Places of which each point has its own number, as two arrays (kinks, points) padded with places that have no effect."""
    xp = namespace(location)
    order = xp.argsort(point, stable=True)
    point = point[order]
    rank = counting(point) - xp.searchsorted(point, point)
    nothing = xp.stack([xp.zeros_like(like)] * (int(xp.max(rank)) + 1), axis=0)
    places, widths = nothing, nothing + math.inf
    places[rank, point], widths[rank, point] = location[order], width[order]
    return places, widths
