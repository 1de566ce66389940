"""The mixture against a surrogate as the difference of two closed forms, where that keeps eleven digits.

Vector instructions run along the points; what is left is for `integrals`.
"""

from __future__ import annotations

from uqprism.backends.numba.base import (
    LANES,
    NEAR_MATCHED,
    NEAR_POOLED,
    SUMMARY,
    TERM,
    TERM_BLOCK,
    Floats,
    inlined,
    kernel,
    rows,
)
from uqprism.backends.numba.series import CRPS_POOLED, QUADRATIC_POOLED

KEEPS_DIGITS = 1e-5  # a difference this large a part of its terms loses at most five of sixteen digits

CRPS_PAIRS, QUADRATIC_PAIRS = TERM["crps.excess.members.members"], TERM["quadratic.excess.members.members"]


@kernel
def differences(summaries: Floats, terms: Floats, wanted: tuple[bool, bool], pairs_known: bool, left: Floats) -> None:
    """Fill what follows from closed forms without loss of digits; `left`, (points,), is one where something is left to integrate.

    `wanted` says whether CRPS and quadratic terms are.
    """
    for block in range(len(terms) // TERM_BLOCK):
        summary, term = rows(summaries, block, SUMMARY), rows(terms, block, TERM_BLOCK)
        ours = rows(left, block, LANES)
        for p in range(LANES):
            ours[p] = 0.0
        if wanted[0]:
            _differences(summary, term[CRPS_PAIRS : CRPS_POOLED + LANES], pairs_known, ours)
        if wanted[1]:
            _differences(summary, term[QUADRATIC_PAIRS : QUADRATIC_POOLED + LANES], pairs_known, ours)


@inlined
def _differences(summary: Floats, excess: Floats, pairs_known: bool, left: Floats) -> None:
    """For one rule, whose excesses lie in the order of `program.TERMS`."""
    for p in range(LANES):
        near_matched, near_pooled = summary[NEAR_MATCHED + p] > 0.0, summary[NEAR_POOLED + p] > 0.0
        of_matched, of_pooled = excess[LANES + p], excess[2 * LANES + p]
        # E(A,m) = E(x,m) + E(A,x) and E(m,m) = 2 E(x,m), see docs/theory.md, "Identities".
        pairs = excess[p] if pairs_known else 2.0 * (of_matched - excess[4 * LANES + p])
        excess[p] = pairs
        matched = excess[4 * LANES + p] if near_matched else of_matched - 0.5 * pairs
        pooled = excess[5 * LANES + p] if near_pooled else of_pooled - 0.5 * pairs
        excess[4 * LANES + p], excess[5 * LANES + p] = matched, pooled
        # Without the series and without pairs there is nothing to subtract.
        lost = (not near_matched) and (not pairs_known or matched <= KEEPS_DIGITS * of_matched)
        lost |= (not near_pooled) and pooled <= KEEPS_DIGITS * of_pooled
        left[p] = 1.0 if lost else left[p]
