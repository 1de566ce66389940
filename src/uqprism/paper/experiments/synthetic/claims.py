"""The paper's sentences on the synthetic set, compared with medians over trials; then tables and notes.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from uqprism.measures import Measure, catalogue, published
from uqprism.paper.data.synthetic import TWO_CURVES_REGION, two_curves_truth
from uqprism.paper.experiment import Claim
from uqprism.paper.store import Bundle
from uqprism.tasks.ood_detection import ood_detection

OUTSIDE, NOISE, SHORT_OF_TRUTH, FOLLOWS, AS_GOOD, CONSISTENT, SLIGHTLY = 0.9, 0.5, 0.1, 0.95, 0.02, 0.8, 2.0
RULES = ("log", "crps", "squared_error", "quadratic")
TOTAL, BAYES, EXCESS = "total.members.members", "bayes.members", "excess.members.members"


@dataclass(frozen=True)
class Trials:
    """The summaries of several trials: for each kind of number an array (trials, measures)."""

    measures: tuple[str, ...]
    numbers: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, findings: Sequence[Bundle]) -> Trials:
        """Stack the artefacts of trials with the same measures."""
        numbers = {kind: np.stack([each.arrays[kind] for each in findings]) for kind in findings[0].arrays}
        return cls(tuple(findings[0].data["measures"]), numbers)

    def each(self, kind: str, measure: str) -> np.ndarray:
        """A kind of number of a measure, (trials,)."""
        return self.numbers[kind][:, self.measures.index(measure)]

    def median(self, kind: str, measure: str) -> float:
        """The median over trials."""
        return float(np.median(self.each(kind, measure)))

    def peaks_in_the_mixture(self, measure: str) -> float:
        """The share of trials where the measure is largest at an input where both curves are likely."""
        weight = two_curves_truth(self.each("peak", measure))[0]
        return float((np.minimum(weight, 1.0 - weight) >= MIXED).mean())

    def __len__(self) -> int:
        return len(self.numbers["outside"])


def all_claims(trials: Trials) -> tuple[Claim, ...]:
    """All claims, of the section and of the appendix."""
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
    """The excess risk is higher where there were no training data."""
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
    """The Bayes risk is higher where the true distribution has more variance."""
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
    """The Bayes risk is higher where both curves are probable."""
    name = f"log.{BAYES}"
    mixed, peaks, peak = trials.median("mixed", name), trials.peaks_in_the_mixture(name), trials.median("peak", name)
    return Claim(
        "Bayes where both curves are likely",
        "“In our synthetic example, this occurs in the region where the probabilities of sampling from the two generating curves "
        "are similar.”",
        # Relative to the true variance, which would fail a fixed 0.75 itself.
        mixed >= best_mixing() - SHORT_OF_TRUTH and peaks > 0.5,
        f"AUROC of inputs where either curve has a probability of at least {MIXED:g}, against the others inside: {mixed:.3f} "
        f"(the true variance has {best_mixing():.3f}); "
        f"the largest Bayes risk lies among them in {peaks:.0%} of the trials, at x = {peak:.2f} in the median",
        {"auroc": mixed, "peaks_there": peaks, "peak": peak},
    )


def total_of_both(trials: Trials) -> Claim:
    """The total risk is high where the Bayes or the excess risk is."""
    share = trials.median("follows", f"log.{TOTAL}")
    return Claim(
        "total where either is high",
        "“Consequently, the total risk is high whenever either component is high.”",
        share >= FOLLOWS,
        f"of the inputs where the Bayes or the excess risk is in its top tenth, the total is above its median at {share:.0%}",
        {"share": share},
    )


def other_rules(trials: Trials) -> Claim:
    """The other three rules behave like the log score."""
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
    """The log score is about as good as the best rule."""
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
    """All rules order the test inputs alike."""
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
    """Magnitudes differ little between rules."""
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


MIXED = 0.25  # a curve counts where it is at least this probable
HIGH = 0.9  # the quantile above which a risk is high


def summarised(table: Mapping[str, Any], x: np.ndarray) -> Bundle:
    """How the measures of one ensemble depend on where a test input lies: one number of each kind per measure, or NaN.

    | kind | is |
    |---|---|
    | `outside` | AUROC of inputs outside the training region against those inside, mean of both sides; `left`, `right` for each |
    | `mixed` | inside: AUROC of inputs where either curve has a probability of at least a quarter against the others |
    | `noise` | inside: Spearman correlation with the variance of the true distribution |
    | `peak` | inside: the input where the measure is largest |
    | `ratio` | median outside over median inside |
    | `follows` | totals: where the Bayes or the excess risk is in its top tenth, how often the total is above its median |
    | `agreement` | the lowest Spearman correlation with the same measure under another rule, over all test inputs |
    | `size` | median inside |
    """
    values = {name: np.asarray(table[name]) for name in table}
    inside = (x >= TWO_CURVES_REGION[0]) & (x <= TWO_CURVES_REGION[1])
    mixed, variance = _truth(x)
    mixed &= inside
    sides = {"left": x < TWO_CURVES_REGION[0], "right": x > TWO_CURVES_REGION[1]}
    outside = ood_detection(_part(values, inside), {side: _part(values, at) for side, at in sides.items()}, resamples=0)
    mixing = ood_detection(_part(values, inside & ~mixed), _part(values, mixed), resamples=0)
    found = {
        "outside": outside.measured,
        **{side: outside.parts[side].measured for side in sides},
        "mixed": mixing.measured,
        "noise": {name: _spearman(each[inside], variance[inside]) for name, each in values.items()},
        "peak": {name: float(x[inside][each[inside].argmax()]) for name, each in values.items()},
        "ratio": {name: _ratio(np.median(each[~inside]), np.median(each[inside])) for name, each in values.items()},
        "follows": {measure.name: _follows(values, measure) for measure in catalogue()},
        "agreement": _agreement(values),
    }
    arrays = {kind: np.array([numbers[name] for name in values]) for kind, numbers in found.items()}
    arrays["size"] = np.array([np.median(each[inside]) for each in values.values()])
    return Bundle({"measures": list(values)}, arrays)


@cache
def best_mixing() -> float:
    """`mixed` of the true variance, on a grid: the value of networks that have learned the noise exactly."""
    x = np.linspace(*TWO_CURVES_REGION, 4001)
    mixed, variance = _truth(x)
    return ood_detection({"variance": variance[~mixed]}, {"variance": variance[mixed]}, resamples=0)["variance"]


def _truth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where both curves are probable, and the variance of the true distribution."""
    weight, means, scale = two_curves_truth(x)
    return np.minimum(weight, 1.0 - weight) >= MIXED, scale**2 + weight * (1.0 - weight) * (means[0] - means[1]) ** 2


def _part(values: Mapping[str, np.ndarray], at: np.ndarray) -> dict[str, np.ndarray]:
    return {name: each[at] for name, each in values.items()}


def _follows(values: Mapping[str, np.ndarray], measure: Measure) -> float:
    if measure.risk != "total":
        return float("nan")
    total = values[measure.name]
    parts = values[f"{measure.rule}.bayes.{measure.truth}"], values[measure.name.replace(".total.", ".excess.")]
    high = np.logical_or(*(part > np.quantile(part, HIGH) for part in parts))
    return float((total[high] > np.median(total)).mean())


def _agreement(values: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The lowest rank correlation with another rule; NaN for a measure that is always zero."""
    found = {}
    for name, each in values.items():
        rule, rest = name.split(".", 1)
        others = [value for other, value in values.items() if other.split(".", 1)[1] == rest and not other.startswith(f"{rule}.")]
        found[name] = _lowest(_spearman(each, other) for other in others)
    return found


def _lowest(numbers: Iterable[float]) -> float:
    return min((number for number in numbers if not np.isnan(number)), default=float("nan"))


def _spearman(first: np.ndarray, second: np.ndarray) -> float:
    from scipy.stats import spearmanr

    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:  # SciPy would warn
        return float("nan")
    return float(spearmanr(first, second).statistic)


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below > 0.0 else float("nan")  # risks of the log and the quadratic score may be negative


Runs = Mapping[float, Trials]  # by learning rate, the main one first
Claims = Mapping[float, tuple[Claim, ...]]


def tables(runs: Runs, claims: Claims) -> dict[str, list[dict[str, Any]]]:
    """Claims and numbers by learning rate, and every measure at the main one."""
    main = next(iter(runs.values()))
    by_rate = [{"learning rate": rate, **{claim.name: claim.holds for claim in found}} for rate, found in claims.items()]
    numbers = [{"learning rate": rate, **_numbers(trials)} for rate, trials in runs.items()]
    return {
        "What holds at which learning rate": by_rate,
        "Log score, members, by learning rate": numbers,
        "Every measure, medians over trials": [_row(main, name) for name in main.measures],
    }


def _numbers(trials: Trials) -> dict[str, Any]:
    return {
        "excess, AUROC outside": trials.median("outside", f"log.{EXCESS}"),
        "excess, outside over inside": trials.median("ratio", f"log.{EXCESS}"),
        "Bayes, AUROC where both curves are likely": trials.median("mixed", f"log.{BAYES}"),
        "Bayes, correlation with true variance": trials.median("noise", f"log.{BAYES}"),
        "Bayes, x of the peak": trials.median("peak", f"log.{BAYES}"),
    }


def _row(trials: Trials, name: str) -> dict[str, Any]:
    kinds = {"AUROC outside": "outside", "AUROC both curves likely": "mixed", "correlation with true variance": "noise"}
    found = {title: trials.median(kind, name) for title, kind in kinds.items()}
    shown = {title: None if np.isnan(number) else round(number, 4) for title, number in found.items()}
    return {"measure": name, "label": published.label(name), **shown}


def notes(runs: Runs, claims: Claims) -> tuple[str, ...]:
    """Notes that explain the numbers."""
    main = next(iter(runs.values()))
    found = [MIXTURE, UNITS, _best(main)]
    found += [
        f"At learning rate {rate:g} these do not hold: {', '.join(claim.name for claim in each if not claim.holds)}."
        for rate, each in claims.items()
        if not all(claim.holds for claim in each)
    ]
    if len(runs) > 1:
        found.append(_by_rate(runs))
    return tuple(found)


MIXTURE = (
    "The curves are equally likely at x = 0, but they cross at x = -0.98: left of 0 they mix without adding much noise. The "
    "variance of the true distribution is largest at x = 0.71, where the first curve has a probability of 0.30; it finds the "
    "inputs where both curves have at least 0.25 with an AUROC of no more than 0.74. So “where the probabilities are similar” is "
    "not quite where the mapping is least determined, and the Bayes risk follows the latter."
)
UNITS = (
    "Where members nearly agree, at noise of scale s and with means that differ by d, excess 1,1 is proportional to d² under "
    "squared error, d²/s under CRPS, d²/s² under the log score and d²/s³ under the quadratic score. So magnitudes are in "
    "different units, and where the noise varies the rules order inputs differently, squared error and quadratic the most."
)


def _by_rate(runs: Runs) -> str:
    """How much of the noise is learned at each learning rate."""
    shown = [f"{trials.median('noise', f'log.{BAYES}'):.2f} at {rate:g}" for rate, trials in runs.items()]
    return (
        f"Inside, the Bayes risk's correlation with the true variance is, by learning rate, {', '.join(shown)}: with too few or "
        "too small steps so small a network has not learned the shape of the noise, and the excess risk finds the outside all "
        "the same. The paper does not say which learning rate it used."
    )


def _best(trials: Trials) -> str:
    """How many excess risks are higher outside."""
    names = [name for name in trials.measures if ".excess." in name and np.any(trials.each("size", name))]
    lowest = min(names, key=lambda name: trials.median("outside", name))
    good = sum(trials.median("outside", name) >= 0.9 for name in names)
    return (
        f"Of all {len(names)} excess risks that are not always zero, {good} find the outside with an AUROC of at least 0.9; the "
        f"lowest is {lowest} with {trials.median('outside', lowest):.3f}."
    )
