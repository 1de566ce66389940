"""How the measures of one ensemble answer to where a test input lies: numbers per measure.

| name | what it is |
|---|---|
| `outside` | AUROC of inputs outside the training region against those inside, mean of both sides; `left` and `right` for each |
| `mixed` | inside: AUROC of inputs where either curve has a probability of at least a quarter against the others |
| `noise` | inside: Spearman correlation with the variance of the true distribution |
| `peak` | inside: the input where the measure is largest |
| `ratio` | median outside over median inside |
| `follows` | of a total: where the Bayes or the excess risk is in its top tenth, how often the total is above its median |
| `agreement` | the lowest Spearman correlation with the same measure under another rule, over all test inputs |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from uqprism.measures import Measure, catalogue
from uqprism.paper.artefacts import Findings
from uqprism.paper.data.synthetic import TWO_CURVES_REGION, two_curves_truth
from uqprism.tasks.ood_detection import ood_detection

MIXED = 0.25  # a curve that is at least so likely has a say
HIGH = 0.9  # the quantile from which on a risk is high


def judged(table: Mapping[str, Any], x: np.ndarray) -> Findings:
    """One number of each kind for each measure; nan where it has no meaning."""
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
    return Findings({"measures": list(values)}, arrays)


@cache
def best_mixing() -> float:
    """`mixed` of the true variance, on a grid: what a network that has learned the noise exactly would have."""
    x = np.linspace(*TWO_CURVES_REGION, 4001)
    mixed, variance = _truth(x)
    return ood_detection({"variance": variance[~mixed]}, {"variance": variance[mixed]}, resamples=0)["variance"]


def _truth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where both curves are likely, and the variance of the true distribution."""
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
    """With the other rules; a measure that is always zero agrees with nothing."""
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

    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return float("nan")
    return float(spearmanr(first, second).statistic)


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below > 0.0 else float("nan")
