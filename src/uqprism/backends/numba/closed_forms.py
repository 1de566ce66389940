"""Closed forms: distances between two Gaussians, over pairs of members and against the surrogates, and entropies.

The forms are those of `families.gaussian`: two terms that are never negative, formed from exact differences.
"""

from __future__ import annotations

import math

from uqprism.backends.fits import FAR, Fits
from uqprism.backends.numba.base import (
    DEVIATION,
    GIVEN,
    LANES,
    MATCHED_SCALE,
    MATCHED_VARIANCE,
    MEMBER,
    OFFSET,
    POOLED_SCALE,
    SCALE,
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
from uqprism.backends.numba.special import SQRT_2_PI, exp_parts, log, log_gap, mean_gap

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
    above = joint * above if t2 < FAR else abs(shift) - SQRT_2_PI * joint  # beyond FAR, E|Z + t| is |t| to the last digit
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
    # For a small exponent the power of two is 1, and nothing cancels.
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
            # Each member's own gap, with the net weight it has in `measures.risks`: zero for two equal members.
            one, own = rows(members, block * count + i, MEMBER), weights[i] * (0.5 - weights[i]) * INVERSE_SQRT_PI
            for p in range(LANES):
                term[QUADRATIC_TOTAL + p] += own / one[SCALE + p]


HALF_LOG_2PI_E = 0.5 * (math.log(2.0 * math.pi) + 1.0)

C_BAYES, C_MATCHED, C_POOLED, C_BETWEEN = (
    TERM[f"crps.{name}"] for name in ("bayes.members", "excess.matched.members", "excess.pooled.members", "excess.matched.pooled")
)
C_BAYES_MATCHED, C_BAYES_POOLED = TERM["crps.bayes.matched"], TERM["crps.bayes.pooled"]

Q_BAYES, Q_MATCHED, Q_POOLED, Q_BETWEEN = (
    TERM[f"quadratic.{name}"]
    for name in ("bayes.members", "excess.matched.members", "excess.pooled.members", "excess.matched.pooled")
)
Q_BAYES_MATCHED, Q_BAYES_POOLED = TERM["quadratic.bayes.matched"], TERM["quadratic.bayes.pooled"]
Q_TOTAL_MEMBERS_MATCHED, Q_TOTAL_MEMBERS_POOLED, Q_TOTAL_MATCHED_MEMBERS, Q_TOTAL_POOLED_MEMBERS = (
    TERM[f"quadratic.total.{name}"] for name in ("members.matched", "members.pooled", "matched.members", "pooled.members")
)
Q_TOTAL_MATCHED_POOLED, Q_TOTAL_POOLED_MATCHED = (
    TERM[f"quadratic.total.{name}"] for name in ("matched.pooled", "pooled.matched")
)

L_BAYES, L_BAYES_MATCHED, L_BAYES_POOLED = (TERM[f"log.bayes.{name}"] for name in ("members", "matched", "pooled"))
L_PAIRS, L_MATCHED_MEMBERS, L_POOLED_MEMBERS, L_MEMBERS_MATCHED, L_MEMBERS_POOLED, L_MATCHED_POOLED, L_POOLED_MATCHED = (
    TERM[f"log.excess.{name}"]
    for name in (
        "members.members",
        "matched.members",
        "pooled.members",
        "members.matched",
        "members.pooled",
        "matched.pooled",
        "pooled.matched",
    )
)
S_BAYES, S_BAYES_MATCHED, S_EXCESS = (
    TERM[f"squared_error.{name}"] for name in ("bayes.members", "bayes.matched", "excess.members.matched")
)


@kernel
def squared_error_surrogates(summaries: Floats, terms: Floats) -> None:
    """The squared error sees only the moments."""
    for block in range(len(terms) // TERM_BLOCK):
        summary, term = rows(summaries, block, SUMMARY), rows(terms, block, TERM_BLOCK)
        for p in range(LANES):
            term[S_BAYES + p] = summary[VARIANCE + p]
            term[S_BAYES_MATCHED + p] = summary[MATCHED_VARIANCE + p]
            term[S_EXCESS + p] = summary[SPREAD + p]


@kernel
def member_entropies(members: Floats, terms: Floats, weights: Floats) -> None:
    """The members' mean Bayes risks under the CRPS and the quadratic rule."""
    count = len(weights)
    for block in range(len(terms) // TERM_BLOCK):
        term = rows(terms, block, TERM_BLOCK)
        for p in range(LANES):
            term[C_BAYES + p] = term[Q_BAYES + p] = 0.0
        for i in range(count):
            member, weight = rows(members, block * count + i, MEMBER), weights[i] * INVERSE_SQRT_PI
            for p in range(LANES):
                term[C_BAYES + p] += weight * member[SCALE + p]
                term[Q_BAYES + p] -= 0.5 * weight / member[SCALE + p]


@kernel
def crps_surrogates(members: Floats, summaries: Floats, terms: Floats, weights: Floats, fits: Fits) -> None:
    """The CRPS terms with matched or pooled on either side, but not the mixture."""
    count = len(weights)
    for block in range(len(terms) // TERM_BLOCK):
        summary, term = rows(summaries, block, SUMMARY), rows(terms, block, TERM_BLOCK)
        for p in range(LANES):
            matched, pooled = summary[MATCHED_SCALE + p], summary[POOLED_SCALE + p]
            term[C_BAYES_MATCHED + p] = matched * INVERSE_SQRT_PI
            term[C_BAYES_POOLED + p] = pooled * INVERSE_SQRT_PI
            # The gap of their variances is exactly the variance of the means.
            term[C_BETWEEN + p] = crps_distance(0.0, matched, pooled, summary[SPREAD + p], 1.0, fits)
            term[C_MATCHED + p] = term[C_POOLED + p] = 0.0
        for i in range(count):
            member, weight = rows(members, block * count + i, MEMBER), weights[i]
            for p in range(LANES):
                offset, scale, deviation = member[OFFSET + p], member[SCALE + p], member[DEVIATION + p]
                matched, pooled = summary[MATCHED_SCALE + p], summary[POOLED_SCALE + p]
                term[C_MATCHED + p] += weight * crps_distance(offset, scale, matched, deviation - summary[SPREAD + p], 1.0, fits)
                term[C_POOLED + p] += weight * crps_distance(offset, scale, pooled, deviation, 1.0, fits)


@kernel
def quadratic_surrogates(members: Floats, summaries: Floats, terms: Floats, weights: Floats, fits: Fits) -> None:
    """The quadratic terms with matched or pooled on either side, but not the mixture; the members' entropies are there."""
    count = len(weights)
    for block in range(len(terms) // TERM_BLOCK):
        summary, term = rows(summaries, block, SUMMARY), rows(terms, block, TERM_BLOCK)
        for p in range(LANES):
            term[Q_MATCHED + p] = term[Q_POOLED + p] = 0.0
            term[Q_TOTAL_MATCHED_MEMBERS + p] = term[Q_TOTAL_POOLED_MEMBERS + p] = 0.0
        for i in range(count):
            member, weight = rows(members, block * count + i, MEMBER), weights[i]
            for p in range(LANES):
                offset, scale, deviation = member[OFFSET + p], member[SCALE + p], member[DEVIATION + p]
                matched, pooled = summary[MATCHED_SCALE + p], summary[POOLED_SCALE + p]
                far = deviation - summary[SPREAD + p]
                distance, overlap = quadratic_distance(offset, scale, matched, far, 1.0, fits)
                term[Q_MATCHED + p] += weight * distance
                term[Q_TOTAL_MATCHED_MEMBERS + p] -= weight * overlap
                distance, overlap = quadratic_distance(offset, scale, pooled, deviation, 1.0, fits)
                term[Q_POOLED + p] += weight * distance
                term[Q_TOTAL_POOLED_MEMBERS + p] -= weight * overlap
        for p in range(LANES):  # a total is the mean gap less half the prediction's own, which is its Bayes risk
            matched, pooled = summary[MATCHED_SCALE + p], summary[POOLED_SCALE + p]
            between, overlap = quadratic_distance(0.0, matched, pooled, summary[SPREAD + p], 1.0, fits)
            term[Q_BETWEEN + p] = between
            members_bayes = term[Q_BAYES + p]
            matched_bayes, pooled_bayes = -0.5 * INVERSE_SQRT_PI / matched, -0.5 * INVERSE_SQRT_PI / pooled
            term[Q_BAYES_MATCHED + p], term[Q_BAYES_POOLED + p] = matched_bayes, pooled_bayes
            matched_gap, pooled_gap = term[Q_TOTAL_MATCHED_MEMBERS + p], term[Q_TOTAL_POOLED_MEMBERS + p]
            term[Q_TOTAL_MATCHED_MEMBERS + p] = matched_gap - matched_bayes
            term[Q_TOTAL_POOLED_MEMBERS + p] = pooled_gap - pooled_bayes
            term[Q_TOTAL_MEMBERS_MATCHED + p] = matched_gap - members_bayes
            term[Q_TOTAL_MEMBERS_POOLED + p] = pooled_gap - members_bayes
            term[Q_TOTAL_MATCHED_POOLED + p] = -overlap - matched_bayes
            term[Q_TOTAL_POOLED_MATCHED + p] = -overlap - pooled_bayes


@kernel
def log_surrogates(members: Floats, summaries: Floats, terms: Floats, weights: Floats, fits: Fits) -> None:
    """All log terms with a closed form; the mean over pairs of members needs only their moments."""
    count = len(weights)
    for block in range(len(terms) // TERM_BLOCK):
        summary, term = rows(summaries, block, SUMMARY), rows(terms, block, TERM_BLOCK)
        for p in range(LANES):
            spread, pooled, matched = (
                summary[SPREAD + p],
                summary[VARIANCE + p],
                summary[MATCHED_VARIANCE + p],
            )
            term[L_BAYES_MATCHED + p] = HALF_LOG_2PI_E + 0.5 * log(matched, fits)
            term[L_BAYES_POOLED + p] = HALF_LOG_2PI_E + 0.5 * log(pooled, fits)
            term[L_POOLED_MATCHED + p] = 0.5 * log_gap(spread / pooled, matched / pooled, fits)
            term[L_MATCHED_POOLED + p] = 0.5 * log_gap(-spread / matched, pooled / matched, fits)
            term[L_BAYES + p] = term[L_PAIRS + p] = 0.0
            term[L_MATCHED_MEMBERS + p] = term[L_POOLED_MEMBERS + p] = 0.0
            term[L_MEMBERS_MATCHED + p] = term[L_MEMBERS_POOLED + p] = 0.0
        for i in range(count):
            member, weight = rows(members, block * count + i, MEMBER), 0.5 * weights[i]
            for p in range(LANES):
                offset, scale, deviation = member[OFFSET + p], member[SCALE + p], member[DEVIATION + p]
                spread, pooled, matched = (
                    summary[SPREAD + p],
                    summary[VARIANCE + p],
                    summary[MATCHED_VARIANCE + p],
                )
                variance, square, far = scale * scale, offset * offset, deviation - spread
                # Divisions are slow, so each divisor is inverted once.
                inverse, to_matched, to_pooled = 1.0 / variance, 1.0 / matched, 1.0 / pooled
                ours = log_gap(far * to_matched, variance * to_matched, fits) + square * to_matched
                term[L_MATCHED_MEMBERS + p] += weight * ours
                ours = log_gap(deviation * to_pooled, variance * to_pooled, fits) + square * to_pooled
                term[L_POOLED_MEMBERS + p] += weight * ours
                theirs = log_gap(-far * inverse, matched * inverse, fits) + square * inverse
                term[L_MEMBERS_MATCHED + p] += weight * theirs
                theirs = log_gap(-deviation * inverse, pooled * inverse, fits) + square * inverse
                term[L_MEMBERS_POOLED + p] += weight * theirs
                # The mean over pairs: the cross terms vanish, since offsets and deviations are centred.
                term[L_PAIRS + p] += weight * (deviation * deviation * to_pooled + spread + square) * inverse
                term[L_BAYES + p] += weight * log(variance, fits)
        for p in range(LANES):
            term[L_BAYES + p] += HALF_LOG_2PI_E
