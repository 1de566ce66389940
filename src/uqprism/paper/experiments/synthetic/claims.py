"""What the paper says of the synthetic set, as numbers: medians over trials of what `judgement` finds.

| statement | holds if |
|---|---|
| excess increases outside the support | log, 1,1: AUROC of outside against inside is at least 0.9 |
| Bayes is largest where the mapping is least determined | log, 1: Spearman correlation with the true variance, inside, is at least 0.5 |
| that is where both curves are likely | log, 1: AUROC of inputs where they are against the others inside is no more than 0.1 below that of the true variance (0.74), and in most trials the peak lies there |
| the total is high whenever a component is | log, 1,1: at 95 % of the inputs where one is in its top tenth the total is above its median |
| other rules behave the same | each of these holds under every rule |
| results support the log score | its AUROC outside (excess 1,1) and its correlation with the true variance (Bayes 1) are within 0.02 of the best rule's |
| patterns are consistent across rules | the lowest Spearman correlation between two rules, of Bayes 1 and of excess 1,1, is at least 0.8 |
| magnitudes vary slightly | the medians inside, of Bayes 1 and of excess 1,1, differ by less than a factor of 2 between rules |
"""  # noqa: E501  a table

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uqprism.paper.artefacts import Findings
from uqprism.paper.base import Claim
from uqprism.paper.data.synthetic import two_curves_truth
from uqprism.paper.experiments.synthetic.judgement import MIXED, best_mixing

OUTSIDE, NOISE, SHORT_OF_TRUTH, FOLLOWS, AS_GOOD, CONSISTENT, SLIGHTLY = 0.9, 0.5, 0.1, 0.95, 0.02, 0.8, 2.0
RULES = ("log", "crps", "squared_error", "quadratic")
TOTAL, BAYES, EXCESS = "total.members.members", "bayes.members", "excess.members.members"


@dataclass(frozen=True)
class Trials:
    """What several trials found: for each kind of number an array (trials, measures)."""

    measures: tuple[str, ...]
    numbers: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, findings: Sequence[Findings]) -> Trials:
        """All of the same measures."""
        numbers = {kind: np.stack([each.arrays[kind] for each in findings]) for kind in findings[0].arrays}
        return cls(tuple(findings[0].data["measures"]), numbers)

    def each(self, kind: str, measure: str) -> np.ndarray:
        """One number per trial."""
        return self.numbers[kind][:, self.measures.index(measure)]

    def median(self, kind: str, measure: str) -> float:
        """Over trials."""
        return float(np.median(self.each(kind, measure)))

    def peaks_in_the_mixture(self, measure: str) -> float:
        """The share of trials where the measure is largest at an input where both curves are likely."""
        weight = two_curves_truth(self.each("peak", measure))[0]
        return float((np.minimum(weight, 1.0 - weight) >= MIXED).mean())

    def __len__(self) -> int:
        return len(self.numbers["outside"])


def all_claims(trials: Trials) -> tuple[Claim, ...]:
    """The sentences of the section and of the appendix."""
    return (
        excess_outside(trials),
        bayes_of_noise(trials),
        bayes_where_curves_mix(trials),
        total_of_both(trials),
        other_rules(trials),
        log_supported(trials),
        consistent(trials),
        magnitudes(trials),
    )


def excess_outside(trials: Trials) -> Claim:
    """Ignorance shows where there were no data."""
    name = f"log.{EXCESS}"
    found = {kind: trials.median(kind, name) for kind in ("outside", "left", "right", "ratio")}
    worst = float(trials.each("outside", name).min())
    return Claim(
        "excess outside the support",
        "“the excess risk estimate, a proxy for epistemic uncertainty, increases for inputs outside the training data support”",
        found["outside"] >= OUTSIDE,
        f"AUROC of outside against inside {found['outside']:.3f} (left {found['left']:.3f}, right {found['right']:.3f}; worst of "
        f"{len(trials)} trials {worst:.3f}); the median outside is {found['ratio']:.0f} times that inside",
        {**found, "worst": worst},
    )


def bayes_of_noise(trials: Trials) -> Claim:
    """Noise shows where the truth is noisy."""
    correlation = trials.median("noise", f"log.{BAYES}")
    return Claim(
        "Bayes where least determined",
        "“The Bayes risk estimate, capturing aleatoric uncertainty, is largest where the mapping from x to y is least "
        "determined.”",
        correlation >= NOISE,
        f"inside, its Spearman correlation with the variance of the true distribution is {correlation:.2f}",
        {"spearman": correlation},
    )


def bayes_where_curves_mix(trials: Trials) -> Claim:
    """And the truth is noisy where two curves mix."""
    name = f"log.{BAYES}"
    mixed, peaks, peak = trials.median("mixed", name), trials.peaks_in_the_mixture(name), trials.median("peak", name)
    return Claim(
        "Bayes where both curves are likely",
        "“In our synthetic example, this occurs in the region where the probabilities of sampling from the two generating curves "
        "are similar.”",
        mixed >= best_mixing() - SHORT_OF_TRUTH and peaks > 0.5,
        f"AUROC of inputs where either curve has a probability of at least {MIXED:g}, against the others inside: {mixed:.3f} "
        f"(the true variance has {best_mixing():.3f}); "
        f"the largest Bayes risk lies among them in {peaks:.0%} of the trials, at x = {peak:.2f} in the median",
        {"auroc": mixed, "peaks_there": peaks, "peak": peak},
    )


def total_of_both(trials: Trials) -> Claim:
    """The total is the sum."""
    share = trials.median("follows", f"log.{TOTAL}")
    return Claim(
        "total where either is high",
        "“Consequently, the total risk is high whenever either component is high.”",
        share >= FOLLOWS,
        f"of the inputs where the Bayes or the excess risk is in its top tenth, the total is above its median at {share:.0%}",
        {"share": share},
    )


def other_rules(trials: Trials) -> Claim:
    """CRPS, squared error and the quadratic score."""
    rules = [rule for rule in RULES if rule != "log"]
    outside = {rule: trials.median("outside", f"{rule}.{EXCESS}") for rule in rules}
    mixed = {rule: trials.median("mixed", f"{rule}.{BAYES}") for rule in rules}
    noise = {rule: trials.median("noise", f"{rule}.{BAYES}") for rule in rules}
    peaks = {rule: trials.peaks_in_the_mixture(f"{rule}.{BAYES}") for rule in rules}
    lowest = [min(each.values()) for each in (outside, mixed, noise, peaks)]
    return Claim(
        "other rules alike",
        "“We also observe the same qualitative behavior for other instantiations”; “Across all rules, Bayes risk is highest in "
        "regions where the mapping is least determined [...], while excess risk rises for inputs outside the training data "
        "support”",
        lowest[0] >= OUTSIDE and lowest[1] >= best_mixing() - SHORT_OF_TRUTH and lowest[2] >= NOISE and lowest[3] > 0.5,
        f"AUROC of excess outside {_listed(outside)}; of Bayes where both curves are likely {_listed(mixed)}; Spearman "
        f"correlation of Bayes with the true variance {_listed(noise)}",
        dict(zip(("outside", "mixed", "noise", "peaks_there"), lowest, strict=True)),
    )


def log_supported(trials: Trials) -> Claim:
    """The usual choice is as good as any."""
    outside = {rule: trials.median("outside", f"{rule}.{EXCESS}") for rule in RULES}
    noise = {rule: trials.median("noise", f"{rule}.{BAYES}") for rule in RULES}
    behind = max(max(each.values()) - each["log"] for each in (outside, noise))
    return Claim(
        "results support the log score",
        "“Log-score-based uncertainty measures are widely used in practice [...], and our empirical results support this common "
        "choice.”",
        behind <= AS_GOOD,
        f"AUROC of excess outside {_listed(outside)}; correlation of Bayes with the true variance {_listed(noise)}",
        {"behind": behind},
    )


def consistent(trials: Trials) -> Claim:
    """The same places are uncertain under every rule."""
    found = {risk: {rule: trials.median("agreement", f"{rule}.{risk}") for rule in RULES} for risk in (BAYES, EXCESS)}
    lowest = {risk: min(each.values()) for risk, each in found.items()}
    return Claim(
        "patterns alike across rules",
        "“the spatial patterns are consistent”",
        min(lowest.values()) >= CONSISTENT,
        f"lowest Spearman correlation with another rule over the test inputs: Bayes {_listed(found[BAYES])}; excess "
        f"{_listed(found[EXCESS])}",
        {"bayes": lowest[BAYES], "excess": lowest[EXCESS]},
    )


def magnitudes(trials: Trials) -> Claim:
    """Rules have units of their own."""
    sizes = {risk: {rule: abs(trials.median("size", f"{rule}.{risk}")) for rule in RULES} for risk in (BAYES, EXCESS)}
    factors = {risk: max(each.values()) / min(each.values()) for risk, each in sizes.items()}
    return Claim(
        "magnitudes vary slightly",
        "“absolute magnitudes vary slightly across rules (a score-specific effect)”",
        max(factors.values()) < SLIGHTLY,
        f"medians inside: Bayes {_listed(sizes[BAYES])}; excess {_listed(sizes[EXCESS])}: they differ by factors of up to "
        f"{factors[BAYES]:.1f} and {factors[EXCESS]:.1f}",
        {"bayes_factor": factors[BAYES], "excess_factor": factors[EXCESS]},
    )


def _listed(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{rule} {number:.3g}" for rule, number in numbers.items())
