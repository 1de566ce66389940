"""What the paper says of rank correlations, as Kendall's tau-b, averaged over data sets.

The words that it gives no number for:

| word | holds if |
|---|---|
| very strongly correlated | tau is 0.9 or more under every rule |
| equivalent | tau is 1 up to rounding, 0.9999 or more, under every rule |
| perfectly correlated | tau prints as 1.00 in the figure, 0.995 or more, for every pair of rules |
| overall very high | tau is 0.9 or more for total and Bayes risks, both on average between approximations under one rule and at least between rules for one approximation |
| substantially vary | between rules, tau falls below 0.8 for some approximation of the excess risk |

The sentence says "among approximations", in a paragraph that is about rules; so it holds only if it holds in both readings.
"""  # noqa: E501  a table

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from uqprism.measures import RISKS, published
from uqprism.paper.base import Claim
from uqprism.paper.cells import RULES, column, of_risk
from uqprism.tasks.rank_correlation import RankCorrelation

STRONG, SAME, PERFECT, VARIED = 0.9, 0.9999, 0.995, 0.8
FILLED = published.table("ood_detection_mean")  # all tables leave the same cells blank


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
    """Between approximations under each rule, on average, and between rules for each approximation."""
    between: dict[str, list[float]] = {risk: [] for risk in RISKS}
    for each in published.measures(("crps",)):
        names = [name for rule in RULES if (name := each.name.replace("crps", rule, 1)) in FILLED]
        between[each.risk] += list(taus(mean, names))
    lowest = {risk: float(min(found)) for risk, found in between.items()}
    within = {risk: float(np.mean([taus(mean, of_risk(risk, [rule])).mean() for rule in RULES])) for risk in RISKS}
    return Claim(
        name="only excess risks vary",
        paper=(
            "rank correlations are overall very high among approximations of total and Bayes risks and only substantially vary "
            "across excess risks"
        ),
        holds=min(each[risk] for each in (lowest, within) for risk in ("total", "bayes")) >= STRONG and lowest["excess"] < VARIED,
        measured=(
            f"of the cells that the paper fills, between approximations under one rule: mean tau {_listed(within)}; "
            f"between rules: lowest tau {_listed(lowest)}"
        ),
        numbers={f"lowest_between_rules_{risk}": tau for risk, tau in lowest.items()}
        | {f"mean_between_approximations_{risk}": tau for risk, tau in within.items()},
    )


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{tau:.3f} ({risk})" for risk, tau in values.items())
