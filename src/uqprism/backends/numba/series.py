"""Distances of the mixture from a surrogate that all members are near to, by the Hermite series of `families.near_gaussian`.

Gauss-Hermite nodes are symmetric and the polynomials even or odd, so half the nodes are enough: with e and o the even and odd
parts of the series at a node, its values at both signs are e + o and e - o.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from uqprism.backends.fits import Fits
from uqprism.backends.numba.base import (
    DEVIATION,
    LANES,
    MATCHED_SCALE,
    MATCHED_VARIANCE,
    MEMBER,
    NEAR_MATCHED,
    NEAR_POOLED,
    OFFSET,
    POOLED_SCALE,
    SPREAD,
    SUMMARY,
    TERM,
    TERM_BLOCK,
    VARIANCE,
    Floats,
    inlined,
    kernel,
    rows,
)
from uqprism.backends.numba.special import log_gap
from uqprism.families.near_gaussian import TERMS as ORDERS
from uqprism.families.near_gaussian import hermite


class Basis(NamedTuple):
    """Hermite polynomials (order, node) at the non-negative nodes of a Gauss-Hermite rule, and the nodes' weights."""

    values: Floats
    weights: Floats


def _bases() -> tuple[Basis, Basis, Basis]:
    """For the integrals of the squared series, of its squared antiderivative, and for relative entropies."""
    nodes, weights = (x[ORDERS // 2 :] for x in np.polynomial.hermite.hermgauss(ORDERS))  # exact for squares of the series
    squares = hermite(nodes)
    integrals = np.concatenate([0.0 * squares[:1], squares[:-1] / np.sqrt(np.arange(1, ORDERS))[:, None]])
    many, many_weights = (x[32:] for x in np.polynomial.hermite.hermgauss(64))  # the logs are no polynomials
    return (
        Basis(squares, weights / (2.0 * math.pi)),
        Basis(integrals, weights / (2.0 * math.pi)),
        Basis(hermite(math.sqrt(2.0) * many), many_weights / math.sqrt(math.pi)),
    )


DENSITY, DISTRIBUTION, ENTROPY = _bases()
ROOTS = np.sqrt(np.arange(ORDERS + 1.0))

CRPS_MATCHED, CRPS_POOLED = TERM["crps.excess.matched.mixture"], TERM["crps.excess.pooled.mixture"]
QUADRATIC_MATCHED, QUADRATIC_POOLED = TERM["quadratic.excess.matched.mixture"], TERM["quadratic.excess.pooled.mixture"]
LOG_FORWARD, LOG_MATCHED, LOG_POOLED = (
    TERM[f"log.excess.{name}"] for name in ("matched.mixture", "mixture.matched", "mixture.pooled")
)


@kernel
def series(
    members: Floats,
    summaries: Floats,
    terms: Floats,
    weights: Floats,
    roots: Floats,
    distribution: Basis | None,
    density: Basis | None,
    entropy: Basis | None,
    fits: Fits,
) -> None:
    """Fill the terms of the mixture against matched and pooled at points near to them; other lanes get numbers without meaning.

    CRPS terms come from the basis of the distribution function, quadratic ones from that of the density, and log terms from that
    of entropies. Terms whose basis is None are left out, and not compiled.
    """
    count = len(weights)
    coefficients, sums = np.empty(ORDERS * LANES), np.empty(4 * LANES)
    for block in range(len(terms) // TERM_BLOCK):
        ours, summary, term = (
            rows(members, block, count * MEMBER),
            rows(summaries, block, SUMMARY),
            rows(terms, block, TERM_BLOCK),
        )
        for matched in (True, False):
            if not _any(summary[NEAR_MATCHED : NEAR_MATCHED + LANES] if matched else summary[NEAR_POOLED : NEAR_POOLED + LANES]):
                continue
            scale = summary[MATCHED_SCALE : MATCHED_SCALE + LANES] if matched else summary[POOLED_SCALE : POOLED_SCALE + LANES]
            _coefficients(ours, summary, weights, roots, matched, coefficients, sums)
            if distribution is not None:
                _squares(coefficients, distribution.values, distribution.weights, sums)
                into = term[CRPS_MATCHED : CRPS_MATCHED + LANES] if matched else term[CRPS_POOLED : CRPS_POOLED + LANES]
                for p in range(LANES):
                    into[p] = sums[2 * LANES + p] * scale[p]
            if density is not None:
                _squares(coefficients, density.values, density.weights, sums)
                into = (
                    term[QUADRATIC_MATCHED : QUADRATIC_MATCHED + LANES]
                    if matched
                    else term[QUADRATIC_POOLED : QUADRATIC_POOLED + LANES]
                )
                for p in range(LANES):
                    into[p] = sums[2 * LANES + p] / scale[p]
            if entropy is not None:
                _entropies(coefficients, entropy.values, entropy.weights, sums, fits)
                for p in range(LANES):
                    if matched:
                        term[LOG_FORWARD + p] = sums[2 * LANES + p]
                        term[LOG_MATCHED + p] = sums[3 * LANES + p]
                    else:
                        term[LOG_POOLED + p] = sums[3 * LANES + p]


@inlined
def _any(flags: Floats) -> bool:
    found = 0.0
    for flag in flags:
        found += flag
    return found > 0.0


@inlined
def _coefficients(
    members: Floats, summary: Floats, weights: Floats, roots: Floats, matched: bool, coefficients: Floats, state: Floats
) -> None:
    """The coefficients of He_n / sqrt(n!) in p / q - 1; the first three are known exactly."""
    coefficients[:] = 0.0
    own = 1.0 if matched else 0.0
    for i in range(len(weights)):
        member, weight = rows(members, i, MEMBER), weights[i]
        for p in range(LANES):  # state: offset, ratio, and the polynomials of the last two orders
            scale = summary[MATCHED_SCALE + p] if matched else summary[POOLED_SCALE + p]
            variance = summary[MATCHED_VARIANCE + p] if matched else summary[VARIANCE + p]
            inside = summary[NEAR_MATCHED + p] if matched else summary[NEAR_POOLED + p]  # far members would overflow for nothing
            state[p] = inside * member[OFFSET + p] / scale
            state[LANES + p] = inside * (member[DEVIATION + p] - own * summary[SPREAD + p]) / variance
            state[2 * LANES + p] = 1.0
            state[3 * LANES + p] = state[p]
        for n in range(1, ORDERS - 1):
            root, inverse = roots[n], 1.0 / roots[n + 1]
            into, counted = rows(coefficients, n + 1, LANES), weight if n >= 2 else 0.0
            for p in range(LANES):
                before, now = state[2 * LANES + p], state[3 * LANES + p]
                following = (state[p] * now + root * state[LANES + p] * before) * inverse
                state[2 * LANES + p], state[3 * LANES + p] = now, following
                into[p] += counted * following
    if not matched:
        for p in range(LANES):
            coefficients[2 * LANES + p] = summary[SPREAD + p] / summary[VARIANCE + p] * math.sqrt(0.5)


@inlined
def _parts(coefficients: Floats, values: Floats, node: int, sums: Floats) -> None:
    """The even and the odd part of the series at one node."""
    for p in range(LANES):
        sums[p] = sums[LANES + p] = 0.0
    # Six orders, of which ORDERS is a multiple, in one turn: the sums are loaded and stored once for all six.
    for n in range(0, ORDERS, 6):
        a, b, c, d, e, f = (
            values[n, node],
            values[n + 1, node],
            values[n + 2, node],
            values[n + 3, node],
            values[n + 4, node],
            values[n + 5, node],
        )
        at = rows(coefficients, n // 6, 6 * LANES)
        for p in range(LANES):
            sums[p] += a * at[p] + c * at[2 * LANES + p] + e * at[4 * LANES + p]
            sums[LANES + p] += b * at[LANES + p] + d * at[3 * LANES + p] + f * at[5 * LANES + p]


@inlined
def _squares(coefficients: Floats, values: Floats, weights: Floats, sums: Floats) -> None:
    """The weighted sum of the squared series over all nodes, in the third row of `sums`."""
    for p in range(LANES):
        sums[2 * LANES + p] = 0.0
    for node in range(len(weights)):
        _parts(coefficients, values, node, sums)
        weight = 2.0 * weights[node]  # (e + o)**2 + (e - o)**2 = 2 (e**2 + o**2)
        for p in range(LANES):
            sums[2 * LANES + p] += weight * (sums[p] * sums[p] + sums[LANES + p] * sums[LANES + p])


@inlined
def _entropies(coefficients: Floats, values: Floats, weights: Floats, sums: Floats, fits: Fits) -> None:
    """Both relative entropies: of the mixture from the surrogate in the third row of `sums`, the reverse in the fourth."""
    for p in range(LANES):
        sums[2 * LANES + p] = sums[3 * LANES + p] = 0.0
    for node in range(len(weights)):
        _parts(coefficients, values, node, sums)
        weight = weights[node]
        for p in range(LANES):
            plus, minus = sums[p] + sums[LANES + p], sums[p] - sums[LANES + p]
            # Far out, where the weight is negligible, the truncated series may fall below -1.
            plus, minus = max(plus, -0.999), max(minus, -0.999)
            plus_gap, minus_gap = log_gap(plus, 1.0 + plus, fits), log_gap(minus, 1.0 + minus, fits)
            # (1 + u) log(1 + u) - u = u**2 - (1 + u) g for g = u - log(1 + u)
            forward = plus * (plus - plus_gap) - plus_gap + minus * (minus - minus_gap) - minus_gap
            sums[2 * LANES + p] += weight * forward
            sums[3 * LANES + p] += weight * (plus_gap + minus_gap)
