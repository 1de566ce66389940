"""What one pass over the nodes gives for an ensemble of any family: the integrals that every risk follows from.

With p_i, F_i the members' densities and distribution functions, p and F those of the mixture, g and G those of a surrogate, and a
bar for the weighted mean over the members, in centred coordinates:

    crps.bayes.members                  mean of the integrals of F_i (1 - F_i)
    crps.excess.mixture.members         integral of mean (F_i - F)^2
    crps.excess.matched.mixture         integral of (G - F)^2; pooled likewise
    quadratic.bayes.members             minus the mean of the integrals of p_i^2
    quadratic.excess.mixture.members    integral of mean (p_i - p)^2
    quadratic.excess.matched.mixture    integral of (g - p)^2; pooled likewise
    quadratic.overlap.matched.mixture   integral of g p; pooled likewise
    log.bayes.members                   minus the mean of the integrals of p_i log p_i
    log.excess.mixture.members          mean of the integrals of p_i log(p_i / p) - p_i + p
    log.excess.members.mixture          mean of the integrals of p log(p / p_i) - p + p_i
    log.excess.members.matched          mean of the integrals of g log(g / p_i) - g + p_i; pooled likewise
    log.excess.matched.mixture          integral of p log(p / g) - p + g
    log.excess.mixture.matched          integral of g log(g / p) - g + p; pooled likewise

The means over pairs of members are variances between members, so the work is members x nodes. Integrands of excesses are nowhere
negative, so nothing cancels.
"""

from __future__ import annotations

ROWS = (
    "crps.bayes.members",
    "crps.excess.mixture.members",
    "crps.excess.matched.mixture",
    "crps.excess.pooled.mixture",
    "quadratic.bayes.members",
    "quadratic.excess.mixture.members",
    "quadratic.excess.matched.mixture",
    "quadratic.excess.pooled.mixture",
    "quadratic.overlap.matched.mixture",
    "quadratic.overlap.pooled.mixture",
    "log.bayes.members",
    "log.excess.mixture.members",
    "log.excess.members.mixture",
    "log.excess.members.matched",
    "log.excess.members.pooled",
    "log.excess.matched.mixture",
    "log.excess.mixture.matched",
    "log.excess.mixture.pooled",
)
