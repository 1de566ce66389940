"""What the paper says of rank correlations, as Kendall's tau-b, averaged over data sets.

The words that it gives no number for:

| word | holds if |
|---|---|
| very strongly correlated | tau is 0.9 or more under every rule |
| equivalent | tau is 1 up to rounding, 0.9999 or more, under every rule |
| perfectly correlated | tau prints as 1.00 in the figure, 0.995 or more, for every pair of rules |
| overall very high | the mean over pairs of approximations is 0.8 or more, for total and for Bayes risks, under every rule |
| substantially vary | from the highest to the lowest tau it is farther for excess risks than for total and for Bayes risks, under every rule but the squared error, whose excess risks are all one |
"""  # noqa: E501  a table

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from uqprism.experiments.base import Claim
from uqprism.experiments.cells import RULES, column, of_risk
from uqprism.tasks.rank_correlation import RankCorrelation

STRONG, SAME, PERFECT, HIGH = 0.9, 0.9999, 0.995, 0.8


def all_claims(mean: RankCorrelation) -> tuple[Claim, ...]:
    """In the paper's order."""
    return (
        _pair(mean, "R_Bayes^{1} and R_Bayes^{3b}", "is very strongly correlated to", ("bayes 1", "bayes 3b"), STRONG),
        _pair(mean, "R_Bayes^{2} and R_Bayes^{3a}", "is very strongly correlated to", ("bayes 2", "bayes 3a"), STRONG),
        _pair(mean, "R_tot^{1,1} and R_tot^{2,1}", "is equivalent to", ("total 1,1", "total 2,1"), SAME),
        _pair(mean, "R_exc^{1,1} and R_exc^{2,1}", "is equivalent to", ("excess 1,1", "excess 2,1"), SAME),
        _rules(mean, "R_Bayes^{3a} and R_Bayes^{3b}", ("bayes 3a", "bayes 3b"), blank=True),
        _rules(mean, "R_tot^{3a,2}", ("total 3a,2",), blank=False),
        overall(mean),
    )


def taus(correlation: RankCorrelation, names: Sequence[str]) -> np.ndarray:
    """Of all pairs of these measures, without those that have no order."""
    found = np.array([correlation[pair] for pair in combinations(names, 2)])
    return found[~np.isnan(found)]


def _pair(mean: RankCorrelation, name: str, words: str, pair: tuple[str, str], least: float) -> Claim:
    """Two approximations, under every rule."""
    found = {rule: mean[column(rule, pair[0]), column(rule, pair[1])] for rule in RULES}
    one, other = name.split(" and ")
    return Claim(
        name=name,
        paper=f"{one} {words} {other}",
        holds=min(found.values()) >= least,
        measured=", ".join(f"{tau:.4f} ({rule})" for rule, tau in found.items()),
        numbers=found,
    )


def _rules(mean: RankCorrelation, name: str, columns: Iterable[str], *, blank: bool) -> Claim:
    """All rules, for one approximation or several; without the log score where its cell is blank in the paper."""
    found: dict[str, float] = {}
    for each in columns:
        names = {rule: column(rule, each) for rule in RULES if blank or rule != "log"}
        found |= {f"{each}, {a} and {b}": mean[names[a], names[b]] for a, b in combinations(names, 2)}
    lowest = min(found, key=lambda key: found[key])
    with_log = "" if blank else f"; with the log score, too, by our integrals: {_with_log(mean, next(iter(columns))):.4f}"
    return Claim(
        name=f"{name}, all rules alike",
        paper=f"for {name}, all scoring rules are perfectly correlated"
        + ("" if blank else " (for those scoring rules it is computable for)"),
        holds=found[lowest] >= PERFECT,
        measured=f"the lowest of {len(found)} is {found[lowest]:.4f} ({lowest}){with_log}",
        numbers=found,
    )


def _with_log(mean: RankCorrelation, name: str) -> float:
    """The lowest with the log score."""
    return min(mean[column("log", name), column(rule, name)] for rule in RULES if rule != "log")


def overall(mean: RankCorrelation) -> Claim:
    """Approximations of total and Bayes risks against those of excess risks."""
    means, ranges = {}, {}
    for rule in RULES:
        for risk in ("total", "bayes", "excess"):
            found = taus(mean, of_risk(risk, [rule], filled=True))
            means[rule, risk], ranges[rule, risk] = float(found.mean()), float(np.ptp(found))
    high = min(means[rule, risk] for rule in RULES for risk in ("total", "bayes"))
    # Under the squared error all excess risks that the paper shows are one and the same, and cannot vary.
    varied = [rule for rule in RULES if rule != "squared_error"]
    vary = all(ranges[rule, "excess"] > max(ranges[rule, "total"], ranges[rule, "bayes"]) for rule in varied)
    told = "; ".join(
        f"{risk}: {np.mean([means[rule, risk] for rule in RULES]):.3f}, range {max(ranges[rule, risk] for rule in RULES):.3f}"
        for risk in ("total", "bayes", "excess")
    )
    return Claim(
        name="only excess risks vary",
        paper=(
            "rank correlations are overall very high among approximations of total and Bayes risks and only substantially vary "
            "across excess risks"
        ),
        holds=high >= HIGH and vary,
        measured=f"mean tau, and widest range from highest to lowest: {told}; lowest mean of total and Bayes risks {high:.3f}",
        numbers={f"{rule}_{risk}": value for (rule, risk), value in means.items()}
        | {f"range_{rule}_{risk}": value for (rule, risk), value in ranges.items()},
    )
