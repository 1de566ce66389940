"""Distances between two Gaussians, and their means over all pairs of members.

The forms are those of `families.gaussian`: two terms that are never negative, formed from exact differences.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uqprism.backends.fits import FAR, Fits
from uqprism.backends.layout import GIVEN, LANES, MEMBER, OFFSET, SCALE, TERM, TERM_BLOCK
from uqprism.backends.numba.compiler import inlined, kernel, rows
from uqprism.backends.numba.special import SQRT_2_PI, exp_parts, mean_gap

Floats = np.ndarray[Any, np.dtype[np.float64]]

SQRT_2, INVERSE_SQRT_PI = math.sqrt(2.0), 1.0 / math.sqrt(math.pi)
OVERLAP = 2.0 / math.sqrt(2.0 * math.pi)  # twice the height of a standard normal density

CRPS_PAIRS = TERM["crps.excess.members.members"]
QUADRATIC_PAIRS, QUADRATIC_TOTAL = TERM["quadratic.excess.members.members"], TERM["quadratic.total.members.members"]


@inlined
def crps_distance(shift: float, p: float, q: float, gap: float, by_variance: float, fits: Fits) -> float:
    """The integrated squared difference of the distribution functions of scales p and q; gap is of scales or variances.

    The two fractions share one division: divisions are what this costs.
    """
    square, both = p * p + q * q, p + q
    joint = math.sqrt(square)
    t2 = shift * shift / square
    above, below = mean_gap(t2, fits)
    above = joint * above if t2 < FAR else abs(shift) - SQRT_2_PI * joint
    below = below if t2 < FAR else 1.0
    root = (1.0 - by_variance) + by_variance * both * both  # (p - q)**2 = (variance gap)**2 / both**2
    widths = (SQRT_2 * joint + both) * root
    return (above * widths + gap * gap * INVERSE_SQRT_PI * below) / (below * widths)


@inlined
def quadratic_distance(shift: float, p: float, q: float, gap: float, by_variance: float, fits: Fits) -> tuple[float, float]:
    """The integrated squared difference of the densities, and twice the integral of their product."""
    square, both, product = p * p + q * q, p + q, p * q
    joint = math.sqrt(square)
    power, rest = exp_parts(-0.5 * (shift * shift / square), fits)
    root = (1.0 - by_variance) + by_variance * both * both
    widths = product * (both * joint + 2.0 * SQRT_2 * product) * root
    inverse = 1.0 / (widths * joint)
    scales = gap * gap * (square + 4.0 * product) * (0.5 * INVERSE_SQRT_PI)
    minus_expm1 = (1.0 - power) - power * rest
    return (scales + SQRT_2_PI * minus_expm1 * widths) * inverse, OVERLAP * (power + power * rest) * widths * inverse


@kernel
def crps_pairs(members: Floats, terms: Floats, weights: Floats, by_variance: float, fits: Fits) -> None:
    """Every unordered pair of different members once, for the CRPS."""
    count = len(weights)
    for block in range(len(terms) // TERM_BLOCK):
        term = rows(terms, block, TERM_BLOCK)
        for p in range(LANES):
            term[CRPS_PAIRS + p] = 0.0
        for i in range(1, count):
            one = rows(members, block * count + i, MEMBER)
            for j in range(i):
                two, weight = rows(members, block * count + j, MEMBER), 2.0 * weights[i] * weights[j]
                for p in range(LANES):
                    term[CRPS_PAIRS + p] += weight * crps_distance(
                        one[OFFSET + p] - two[OFFSET + p],
                        one[SCALE + p],
                        two[SCALE + p],
                        one[GIVEN + p] - two[GIVEN + p],
                        by_variance,
                        fits,
                    )


@kernel
def both_pairs(members: Floats, terms: Floats, weights: Floats, by_variance: float, fits: Fits) -> None:
    """Every unordered pair of different members once, for the CRPS and the quadratic rule together."""
    count = len(weights)
    for block in range(len(terms) // TERM_BLOCK):
        term = rows(terms, block, TERM_BLOCK)
        for p in range(LANES):
            term[CRPS_PAIRS + p] = term[QUADRATIC_PAIRS + p] = term[QUADRATIC_TOTAL + p] = 0.0
        for i in range(1, count):
            one = rows(members, block * count + i, MEMBER)
            for j in range(i):
                two, weight = rows(members, block * count + j, MEMBER), 2.0 * weights[i] * weights[j]
                for p in range(LANES):
                    shift = one[OFFSET + p] - two[OFFSET + p]
                    a, b = one[SCALE + p], two[SCALE + p]
                    gap = one[GIVEN + p] - two[GIVEN + p]
                    distance, overlap = quadratic_distance(shift, a, b, gap, by_variance, fits)
                    term[CRPS_PAIRS + p] += weight * crps_distance(shift, a, b, gap, by_variance, fits)
                    term[QUADRATIC_PAIRS + p] += weight * distance
                    term[QUADRATIC_TOTAL + p] -= weight * overlap
        for i in range(count):
            one, own = rows(members, block * count + i, MEMBER), weights[i] * (0.5 - weights[i]) * INVERSE_SQRT_PI
            for p in range(LANES):
                term[QUADRATIC_TOTAL + p] += own / one[SCALE + p]
