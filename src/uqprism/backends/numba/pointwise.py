"""Members of any family that states a `PointwiseForm`: slices of points over threads, for each one pass over the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import numpy as np

from uqprism.arrays import SQRT_PI, from_numpy, to_numpy
from uqprism.backends.fits import FITS
from uqprism.backends.numba.forms import addresses_of, mixed_numbers
from uqprism.backends.numba.nodes import Rule, integrate
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
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.families.base import Family
from uqprism.families.elementwise import PointwiseForm
from uqprism.families.functionals import SLOW, overlap, relative_entropy
from uqprism.families.gaussian import Surrogate
from uqprism.families.mixture import Mixture
from uqprism.families.panels import Places
from uqprism.families.quadrature import MASS
from uqprism.measures import Measure
from uqprism.support.parallel import threads

Floats = np.ndarray[Any, Any]

WINDOW = 1.5  # reaches: beyond, densities are below 1e-39 of their largest
SLICE = 2**16  # members of all points in a slice
RULE = Rule.make()


class PointwiseBackend:
    """Integrals by one pass over the nodes on a processor; all else by the reference."""

    def covers(self, measure: Measure) -> bool:
        """True for the paper's rules and approximations."""
        return covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        like = ensemble.members.centre
        weights = None if ensemble.weights is None else to_numpy(ensemble.weights)
        host = EnsemblePrediction(ensemble.members.map(to_numpy), weights, check=False).counted()
        count, points = host.n_members, host.n_points
        inner = host.members.components
        most = max(1, SLICE // (count * (1 if inner is None else inner.batch_shape[0])))
        slices = threads() * -(-points // (most * threads()))  # as many for each thread
        step = max(1, -(-points // max(1, slices)))
        starts = range(0, max(points, 1), step)

        def one(first: int) -> tuple[Computed, Floats]:
            return _slice(host[slice(first, first + step)], measures)

        if len(starts) == 1:
            done = [one(0)]
        else:
            with ThreadPoolExecutor(threads()) as pool:
                done = list(pool.map(one, starts))
        values = {name: from_numpy(np.concatenate([part.values[name] for part, _ in done]), like) for name in done[0][0].values}
        declined = np.concatenate([first + np.flatnonzero(status) for first, (_, status) in zip(starts, done, strict=True)])
        names = [measure.name for measure in measures]
        return Computed(values, done[0][0].exactness, [(declined, names)] if len(declined) else [])


def _slice(part: EnsemblePrediction, measures: Sequence[Measure]) -> tuple[Computed, Floats]:
    """The measures of some points, and which of these are declined."""
    wanted = Wanted.by(measures, type(part.members))
    status = np.zeros(part.n_points, dtype=np.int8)

    def rows_of(centred: CentredEnsemble) -> Rows:
        with np.errstate(all="ignore"):
            values = one_pass(centred, wanted, status)
            again = replace(wanted, surrogates=False)
            return Rows(near_agreement(centred, values, lambda other, at: one_pass(other, again, status, at)), centred.members)

    with np.errstate(all="ignore"):  # at points that are declined
        return compute_part(part, measures, rows_of), status


def one_pass(centred: CentredEnsemble, wanted: Wanted, status: Floats, at: Floats | None = None) -> Floats:
    """The rows of a centred ensemble of NumPy arrays, (rows, points); `status` becomes one where they mean nothing.

    Args:
        centred: an ensemble of some points.
        wanted: which rows.
        status: (points,), of all of them or of more, among which those of the ensemble are `at`.
        at: positions.
    """
    members, points = centred.members, centred.members.batch_shape[1]
    out, mass, own = np.zeros((len(ROWS), points)), np.zeros(points), np.zeros(points, dtype=np.int8)
    seen = seen_from_bound(centred, surrogates=wanted.surrogates)
    everywhere = np.full(points, -np.inf), np.full(points, np.inf)
    if members.lattice is not None:
        first, step = (x[0] for x in members.lattice)
        counts = members.relative_to(first, step), [s.relative_to(first, step) for s in seen[1]], first / step
        _integrate(out, mass, own, centred, wanted, counts, everywhere)
        for name, row in ROW.items():
            out[row] *= step if name.startswith("crps") else 1.0 / step if name.startswith("quadratic") else 1.0
        out[ROW["log.bayes.members"]] += np.log(step)
        if wanted.log and _has_windows(members):
            entropies_by_pairs(out, centred)
    elif not has_two_ends(members):
        _integrate(out, mass, own, centred, wanted, seen, everywhere)
    else:
        # Each half as seen from its own bound.
        other = seen_from_bound(centred, surrogates=wanted.surrogates, upper=True)
        bounds = [cast("Floats", common_bound(members, upper=side)) for side in (False, True)]
        halved = np.isfinite(bounds[0]) & np.isfinite(bounds[1])
        middle = [np.where(halved, -origin, nothing) for origin, nothing in ((seen[2], -np.inf), (other[2], np.inf))]
        _integrate(out, mass, own, centred, wanted, seen, (everywhere[0], middle[0]))
        _integrate(out, mass, own, centred, wanted, other, (middle[1], everywhere[1]))
        if not halved.all():
            _integrate_between_bounds(out, mass, own, centred, wanted, np.flatnonzero(~halved))
    for surrogate, name in zip(seen[1], SURROGATES, strict=False):
        out[ROW[f"quadratic.bayes.{name}"]] = -0.5 / (SQRT_PI * surrogate.scale)
    if members.square_power is not None and wanted.quadratic:
        own |= _squares_at_poles(out, centred)
    if members.atoms is not None:
        add_atoms(out, mass, centred)
    own |= ~(np.abs(mass - 1.0) <= max(members.tolerance / 10.0, MASS))  # so that NaN is caught, too
    if at is None:
        status |= own
    else:
        status[at] |= own
    return out


def _squares_at_poles(out: Floats, centred: CentredEnsemble) -> np.ndarray[Any, Any]:
    """Set the rows of squares that have no integral, or one that doubles do not reach; returns the points where that fails."""
    members = centred.members
    power = np.min(cast("Floats", members.square_power), axis=0)
    infinite = power <= 0.0
    out[ROW["quadratic.bayes.members"], infinite] = -np.inf
    for name in ("mixture.members", *(f"{name}.mixture" for name in SURROGATES)):
        out[ROW[f"quadratic.excess.{name}"], infinite] = np.inf
    slow = (power < SLOW) & ~infinite
    if not slow.any() or not overlap.is_closed(type(members), type(members)):
        return slow
    at = np.flatnonzero(slow)
    squares_by_pairs(out, at, centred.at(at))
    return np.zeros_like(slow)


def _integrate_between_bounds(
    out: Floats, mass: Floats, own: Floats, centred: CentredEnsemble, wanted: Wanted, at: Floats
) -> None:
    """Add what lies around each bound of any member, as seen from there, at points whose members have different bounds."""
    part = centred.at(at)
    members, surrogates = part.members, [part.matched, part.pooled] if wanted.surrogates else []
    each = members.components or members
    found = [np.reshape(np.broadcast_to(bound, each.batch_shape), (-1, len(at))) for bound in each.support]
    bounds = np.sort(np.concatenate(found), axis=0)
    ends = np.concatenate([np.full((1, len(at)), -np.inf), 0.5 * (bounds[1:] + bounds[:-1]), np.full((1, len(at)), np.inf)])
    rows, held, declined = np.zeros((len(ROWS), len(at))), np.zeros(len(at)), np.zeros(len(at), dtype=np.int8)
    unit = np.ones(len(at))
    for k, origin in enumerate(bounds):
        seen = members.relative_to(origin, unit), [s.relative_to(origin, unit) for s in surrogates], origin
        low = 0.5 * (bounds[k - 1] - origin) if k else ends[0]
        high = 0.5 * (bounds[k + 1] - origin) if k + 1 < len(bounds) else ends[-1]
        outside = members.cdf(ends[k]), members.survival(ends[k + 1])
        _integrate(rows, held, declined, part, wanted, seen, (low, high), outside)
    out[:, at] += rows
    mass[at] += held
    own[at] |= declined


def _atoms(members: Family) -> Floats:
    """Bounds and the probabilities at them, (points, members, 4); without members if there are none."""
    if members.atoms is None:
        return np.empty((1, 0, 4))
    found = [x for place, log_p in members.atoms for x in (place, np.exp(log_p))]
    return np.ascontiguousarray(np.stack(found, axis=-1).swapaxes(0, 1))


def _windows(members: Family) -> Floats:
    """Of counts, between which values each member has all of its mass, (points, members, 2); without members for others."""
    if not _has_windows(members):
        return np.empty((1, 0, 2))
    marks = members.landmarks()
    middle, reach = marks.location[0], WINDOW * marks.reach[0]  # of the upper tail, which is the heavier one
    return np.ascontiguousarray(np.stack([middle - reach, middle + reach], axis=-1).swapaxes(0, 1))


def _has_windows(members: Family) -> bool:
    """Whether relative entropies, which alone need densities outside the windows, have closed forms."""
    return members.lattice is not None and relative_entropy.is_closed(type(members), type(members))


def entropies_by_pairs(out: Floats, centred: CentredEnsemble) -> None:
    """Set the row of relative entropies of the mixture to its members from the closed forms of pairs."""
    members, weights = centred.members, centred.weights
    between = relative_entropy(members.map(lambda x: x[:, None]), members.map(lambda x: x[None]))
    both = np.sum(weights[:, None] * weights[None] * between, axis=(0, 1))
    # Of two numbers of like size, as members nearly agree; else the first is larger.
    out[ROW["log.excess.members.mixture"]] = both - out[ROW["log.excess.mixture.members"]]


def _integrate(
    out: Floats,
    mass: Floats,
    own: Floats,
    centred: CentredEnsemble,
    wanted: Wanted,
    seen: tuple[Family, Sequence[Surrogate], Floats],
    ends: tuple[Floats, Floats],
    outside: tuple[Floats, Floats] | None = None,
) -> None:
    """Add what lies between two ends, of members and surrogates as seen from an origin.

    `outside` are the probabilities of the members, (members, points), below and above the ends.
    """
    members, surrogates, origin = seen
    places = Places.join([Mixture._of(members, centred.weights).places(graded=False), *[s.places() for s in surrogates]])
    own |= np.any(places.narrow & (places.location >= ends[0]) & (places.location <= ends[1]), axis=0)
    form, numbers, parts = numbers_of(members)
    points = len(own)
    alike = [] if form.shared is None else list(form.shared.alike)
    sharing = form.shared is not None and bool((numbers[..., alike] == numbers[:, :1, alike]).all())
    tails = np.empty((1, 0, 3))
    if places.heavy:
        each = members.components or members
        found = [each.centre, *(np.inf if tail is None else tail for tail in each.tails)]
        found = [np.broadcast_to(x, each.batch_shape) for x in found]
        # Components of one member side by side.
        tails = np.stack([np.moveaxis(x, -1, 0).swapaxes(1, -1).reshape(points, -1) for x in found], axis=-1)
    integrate(
        out,
        mass,
        own,
        (
            _by_point(places.location),
            _by_point(places.width),
            _by_point(places.low),
            _by_point(places.high),
            _powers(places, members),
        ),
        np.array(places.sharp),
        addresses_of(form, (numbers.shape[-1] - 1) // parts - 1 if form.mixed else numbers.shape[-1], sharing=sharing),
        numbers,
        parts,
        np.ascontiguousarray(tails),
        _atoms(members),
        _windows(members),
        np.ascontiguousarray(centred.weights[:, 0]) if points else np.empty(members.batch_shape[0]),
        np.stack([s.scale for s in surrogates], axis=-1) if surrogates else np.empty((points, 0)),
        np.ascontiguousarray(-origin),
        ends,
        (np.empty((points, 0)),) * 2 if outside is None else (_by_point(outside[0]), _by_point(outside[1])),
        wanted.crps or None,
        wanted.quadratic or None,
        wanted.log or None,
        members.bends,
        RULE,
        None if members.lattice is None else sums(),
        FITS,
    )


def numbers_of(members: Family) -> tuple[PointwiseForm, Floats, int]:
    """The form of members, their numbers (points, members, numbers), and how many components each has."""
    form = cast("PointwiseForm", members.form)  # the backend was chosen by it
    shape = (members.components or members).batch_shape
    numbers = np.moveaxis(np.stack([np.broadcast_to(x, shape) for x in form.numbers(members)], axis=-1), -2, 0)
    if not isinstance(members, Mixture):
        return form, np.ascontiguousarray(numbers), 1
    with np.errstate(divide="ignore"):
        log_weights = np.moveaxis(np.log(members.weights), -1, 0)
    return form, mixed_numbers(log_weights.swapaxes(1, 2), numbers.swapaxes(1, 2)), len(members.weights)


def _powers(places: Places, members: Family) -> Floats:
    """Those of the places, (points, places), where members begin or end at zero; (points, 0) if there are none."""
    points = places.location.shape[1]
    each = members.components or members
    if places.power is None or not np.any([np.any(bound == 0.0) for bound in each.support if bound is not None]):
        return np.empty((points, 0))
    return _by_point(places.power)


def _by_point(x: Floats) -> Floats:
    """(rows, points) as (points, rows), each point's numbers side by side."""
    return np.ascontiguousarray(x.T)
