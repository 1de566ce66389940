"""The logarithmic score."""

from __future__ import annotations

from uqprism.arrays import Array, namespace
from uqprism.families.base import Family
from uqprism.families.functionals import cross_entropy, relative_entropy
from uqprism.families.gaussian import Gaussian
from uqprism.families.mixture import Mixture
from uqprism.rules.base import Identity, Pair, Rule, rules


@rules.register("log")
class Log(Rule):
    """Minus the log density at the outcome, in nats: entropy, cross entropy and Kullback-Leibler divergence."""

    name = "log"
    degree = 0
    additive = True
    strictly_proper = True
    may_be_negative = True
    plain_name = "log score"
    cost = (
        "minus the logarithm of the predicted density at what happens, so the higher, the more improbable the prediction made it"
    )

    def score(self, distribution: Family, y: Array) -> Array:
        """Minus the log density at y."""
        return -distribution.log_density(y)

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """The cross entropy."""
        return cross_entropy(truth, prediction)

    def entropy(self, truth: Family) -> Array:
        """The differential entropy; negative for narrow distributions."""
        return cross_entropy(truth, truth)

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """KL(truth || prediction)."""
        return relative_entropy(truth, prediction)

    def mixture_entropy_bounds(self, mixture: Mixture) -> tuple[Array, Array]:
        """A lower and an upper bound on the entropy of a mixture, (*batch) each, without any integral.

        The entropy is concave, so the mean entropy of the components lies below (Jensen); a Gaussian has the largest entropy of
        all distributions with its variance, so that of the matched Gaussian lies above. The lower bound is off by the mutual
        information, at most log(components). `log.bayes.members` and `log.bayes.matched` are the same numbers.
        """
        entropies = mixture.weights * self.entropy(mixture.components)
        matched = Gaussian(mean=mixture.mean, variance=mixture.variance, check=False)
        return namespace(entropies).sum(entropies, axis=0), self.entropy(matched)

    def identities(self, members: type[Family]) -> dict[Pair, Identity]:
        """A Gaussian surrogate with the mixture's mean and variance turns integrals over the mixture into closed forms."""
        pairs, matched, pooled = ("members", "members"), ("matched", "mixture"), ("pooled", "mixture")
        # A Gaussian's log density is quadratic in y, so only the first two moments of the other distribution count, and matched
        # # has those of the mixture. See docs/theory.md, "Identities".
        if issubclass(members, Gaussian):
            return {
                ("mixture", "members"): ((1.0, ("matched", "members")), (-1.0, matched)),
                ("members", "mixture"): ((1.0, matched), (1.0, ("members", "matched"))),
                pooled: ((1.0, matched), (1.0, ("pooled", "matched"))),
            }
        found: dict[Pair, Identity] = {pooled: ((1.0, matched), (1.0, ("pooled", "matched")))}
        # Without a closed form, M integrals against the mixture replace M**2 over pairs.
        if not relative_entropy.is_closed(members, members):
            found[pairs] = ((1.0, ("mixture", "members")), (1.0, ("members", "mixture")))
        return found
