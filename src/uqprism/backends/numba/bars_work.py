"""What the kernels for bars share: where sums lie, and the room for one point's cells and nodes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from uqprism.arrays import LOG_2PI
from uqprism.backends.bars import COUNTS, SUM, TailNumbers
from uqprism.backends.fits import Fits
from uqprism.backends.numba.base import Floats, inlined
from uqprism.families.quadrature import gauss_legendre

SUM_COUNT = len(SUM)
CRPS_BAYES, CRPS_EXCESS = SUM["crps.bayes.members"], SUM["crps.excess.mixture.members"]
QUADRATIC_BAYES, QUADRATIC_EXCESS = SUM["quadratic.bayes.members"], SUM["quadratic.excess.mixture.members"]
LOG_BAYES, ENTROPY = SUM["log.bayes.members"], SUM["log.bayes.mixture"]
LOG_INTO, LOG_FROM = SUM["log.excess.mixture.members"], SUM["log.excess.members.mixture"]
# Of matched; those of pooled follow.
CRPS_SURROGATE, QUADRATIC_SURROGATE = SUM["crps.excess.matched.mixture"], SUM["quadratic.excess.matched.mixture"]
QUADRATIC_GAUSSIAN, OVERLAP = SUM["quadratic.bayes.matched"], SUM["quadratic.overlap.matched"]
LOG_FORWARD, LOG_BACK = SUM["log.excess.matched.mixture"], SUM["log.excess.mixture.matched"]
LOG_BEYOND = SUM["log.excess.members.matched"]  # until `finish`, what it has more than the mixture's

VARIANCE, SPREAD = SUM["variance"], SUM["spread"]

CHUNK = 256  # cells at a time
NODES = 240
RULES = tuple(x for count in COUNTS for x in gauss_legendre(count))
HALF_LOG_2PI, INVERSE_SQRT_2PI = 0.5 * LOG_2PI, 1.0 / math.sqrt(2.0 * math.pi)


class How(NamedTuple):
    """What is computed, with what.

    Attributes:
        crps: whether its sums are wanted.
        quadratic: the same for the quadratic rule.
        logs: the same for the log rule.
        surrogates: whether the mixture against matched and pooled is wanted.
        tailed: whether members have tails.
        tails: below and above.
        weights: of the members, all positive.
        rules: nodes and weights of three Gauss-Legendre rules on (0, 1).
        fits: coefficients.
    """

    crps: bool
    quadratic: bool
    logs: bool
    surrogates: bool
    tailed: bool
    tails: tuple[TailNumbers, TailNumbers]
    weights: Floats
    rules: tuple[Floats, Floats, Floats, Floats, Floats, Floats]
    fits: Fits


class Given(NamedTuple):
    """One point: ends (members or 1, ends), probabilities (members, bars) and the scales of tails (members, 2)."""

    edges: Any
    mass: Any
    scales: Any


class Nodes(NamedTuple):
    """Nodes with the mixture there, and for stretches with tails of members, rows of NODES for each member."""

    y: Floats
    weight: Floats
    density: Floats
    log_density: Floats
    below: Floats
    above: Floats
    gap: Floats
    work: Floats
    densities: Floats
    log_densities: Floats
    belows: Floats
    aboves: Floats


class Cells(NamedTuple):
    """CHUNK cells, with the mixture in each, and rows of CHUNK for each member.

    Attributes:
        left: relative to the point's origin.
        width: of the cell.
        inverse: one over the width.
        density: of the mixture.
        log_density: of the mixture.
        below: the mixture's probability below the cell.
        above: the same above its left end.
        gap: the mean of log(mixture's density / member's density).
        p: densities of the members.
        d: densities less the first member's.
        f: probabilities below the cell.
        s: probabilities above its left end.
        x: probabilities below the cell less the first member's.
    """

    left: Floats
    width: Floats
    inverse: Floats
    density: Floats
    log_density: Floats
    below: Floats
    above: Floats
    gap: Floats
    p: Floats
    d: Floats
    f: Floats
    s: Floats
    x: Floats


class Point(NamedTuple):
    """What is known of each member of a point.

    Attributes:
        total: of its given probabilities.
        change: what makes a normalised difference of the first member's probability, see `_normalise`.
        mean: relative to the origin.
        off: mean less the mean of the mixture.
        low: of scanning from below: the probability below, its rounding error, and the difference from the first member's.
        place: how many ends are passed.
    """

    total: Floats
    change: Floats
    mean: Floats
    off: Floats
    low: Floats
    error: Floats
    difference: Floats
    whole: Floats
    whole_error: Floats
    place: Any


class Work(NamedTuple):
    """What is computed, and room for one point.

    Attributes:
        how: what is computed.
        cells: CHUNK of them.
        nodes: NODES of them.
        point: what is known of each member.
        sums: (len(SUM),).
        gaussian: the mean of the mixture, and the scales of matched and pooled.
        below: the probability below each end, (members, ends).
        above: the probability above each end.
    """

    how: How
    cells: Cells
    nodes: Nodes
    point: Point
    sums: Floats
    gaussian: Floats
    below: Any
    above: Any


@inlined
def new_work(how: How, ends: int) -> Work:
    """Room for members with so many ends."""
    count = len(how.weights)
    return Work(
        how,
        _cells(count),
        _nodes(count),
        _point(count),
        np.empty(SUM_COUNT),
        np.empty(3),
        np.empty((count, ends)),
        np.empty((count, ends)),
    )


@inlined
def _nodes(members: int) -> Nodes:
    return Nodes(
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES * members),
        np.empty(NODES * members),
        np.empty(NODES * members),
        np.empty(NODES * members),
    )


@inlined
def _cells(members: int) -> Cells:
    return Cells(
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
    )


@inlined
def _point(members: int) -> Point:
    return Point(
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members, np.int64),
    )
