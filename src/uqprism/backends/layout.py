"""What lies where in the kernels' working arrays.

Points are taken LANES at a time, and every quantity of such a block is a row of LANES numbers: the inner loops run along rows,
where LLVM turns them into vector instructions. Rows of one block lie at fixed distances in one flat array, so that the compiler
can see that they do not overlap.

    members   (blocks, members, 4, LANES)    MEMBER numbers each
    summaries (blocks, 11, LANES)            SUMMARY numbers each
    terms     (blocks, len(TERMS), LANES)    TERM_BLOCK numbers each

All values are in the ensemble's centred coordinates (see `uqprism.families.centring`).
"""

from __future__ import annotations

LANES = 64

# A member: centred mean, scale, variance minus the mean variance, and what was given (scale or variance).
OFFSET, SCALE, DEVIATION, GIVEN = (row * LANES for row in range(4))
MEMBER = 4 * LANES

# A summary of a point: powers of the unit (by scale degree + 1), moments, and whether all members are near matched and pooled.
UNIT = 0
SPREAD, VARIANCE, MATCHED_VARIANCE, MATCHED_SCALE, POOLED_SCALE, NEAR_MATCHED, NEAR_POOLED = (row * LANES for row in range(4, 11))
SUMMARY = 11 * LANES

TERMS = (
    "crps.bayes.members",
    "crps.bayes.matched",
    "crps.bayes.pooled",
    "crps.excess.members.members",
    "crps.excess.matched.members",
    "crps.excess.pooled.members",
    "crps.excess.matched.pooled",
    "crps.excess.matched.mixture",
    "crps.excess.pooled.mixture",
    "quadratic.bayes.members",
    "quadratic.bayes.matched",
    "quadratic.bayes.pooled",
    "quadratic.excess.members.members",
    "quadratic.excess.matched.members",
    "quadratic.excess.pooled.members",
    "quadratic.excess.matched.pooled",
    "quadratic.excess.matched.mixture",
    "quadratic.excess.pooled.mixture",
    "quadratic.total.members.members",
    "quadratic.total.members.matched",
    "quadratic.total.members.pooled",
    "quadratic.total.matched.members",
    "quadratic.total.pooled.members",
    "quadratic.total.matched.pooled",
    "quadratic.total.pooled.matched",
    "log.bayes.members",
    "log.bayes.matched",
    "log.bayes.pooled",
    "log.excess.members.members",
    "log.excess.matched.members",
    "log.excess.pooled.members",
    "log.excess.members.matched",
    "log.excess.members.pooled",
    "log.excess.matched.pooled",
    "log.excess.pooled.matched",
    "log.excess.matched.mixture",
    "log.excess.mixture.matched",
    "log.excess.mixture.pooled",
    "squared_error.bayes.members",
    "squared_error.bayes.matched",
    "squared_error.excess.members.matched",
    "log.unit",
)
"""The risks that a kernel computes; every measure is a weighted sum of a few of them."""

TERM = {name: row * LANES for row, name in enumerate(TERMS)}
TERM_BLOCK = len(TERMS) * LANES
