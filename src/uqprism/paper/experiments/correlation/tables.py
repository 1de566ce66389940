"""The correlations in numbers, and what explains them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.cells import RULES, column, of_risk
from uqprism.paper.experiments.correlation.claims import taus
from uqprism.tasks.rank_correlation import RankCorrelation


def tables(mean: RankCorrelation, by_data: Mapping[str, RankCorrelation]) -> dict[str, list[dict[str, Any]]]:
    """Both rows of the figure, and the first by data set."""
    found: dict[str, list[dict[str, Any]]] = {
        "Between approximations, by rule and risk": [
            _summary(mean, by_data, rule, risk) for rule in RULES for risk in ("total", "bayes", "excess")
        ],
        "Between rules, by approximation": [_between(mean, measure.name) for measure in published.measures(("crps",))],
    }
    for rule in RULES:
        names = [measure.name for measure in published.measures((rule,))]
        found[f"Between approximations, {rule}"] = [
            {"": published.label(one), **{published.label(other): _shown(mean[one, other]) for other in names}} for one in names
        ]
    return found


def _summary(mean: RankCorrelation, by_data: Mapping[str, RankCorrelation], rule: str, risk: str) -> dict[str, Any]:
    names = of_risk(risk, [rule], filled=False)
    found = taus(mean, names)
    row = {"rule": rule, "risk": risk, "mean": float(found.mean()), "lowest": float(found.min())}
    return row | {name: float(taus(each, names).mean()) for name, each in by_data.items()}


def _between(mean: RankCorrelation, measure: str) -> dict[str, Any]:
    names = {rule: measure.replace("crps", rule, 1) for rule in RULES}
    pairs = {f"{a}, {b}": _shown(mean[names[a], names[b]]) for a, b in combinations(RULES, 2)}
    return {"approximation": published.label(measure), **pairs}


def _shown(tau: float) -> float | None:
    return None if np.isnan(tau) else tau


def notes(mean: RankCorrelation) -> tuple[str, ...]:
    """The paper's slip, and why some correlations are exact."""
    slip = mean[column("log", "excess 1,1"), column("log", "excess 2,1")]
    return (
        "R_exc^{2,1} is half of R_exc^{1,1} under CRPS, squared error and the quadratic score, so they are equivalent there. "
        "Under the log score R_exc^{1,1} is the mean divergence between members and R_exc^{2,1} that of the mixture from the "
        f"members: other measures, tau {slip:.3f} here. The paper calls them equivalent for all rules, and its tables print one "
        "for the other.",
        "R_Bayes^{3a} and R_Bayes^{3b} are entropies of one Gaussian: increasing functions of its variance under every rule. So "
        "they rank alike, whatever the data. R_tot^{3a,2} is the score of the mixture against a Gaussian of its mean and "
        "variance: it depends on the shape of the mixture too, and is perfectly correlated only as far as mixtures are nearly "
        "Gaussian.",
        "R_exc^{3a,2} and R_exc^{3b,2} under the squared error are zero for every input and have no order: blank.",
    )
