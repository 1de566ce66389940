"""A small ensemble that everybody understands: five models predict how many minutes a delivery takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.evaluation import evaluate
from uqprism.measures import catalogue
from uqprism.rules import PAPER

TRIPS = ("a road driven daily", "the same in a storm", "a district never visited", "that district in a storm")
MEAN = np.array(
    [
        [21.0, 34.0, 22.0, 31.0],
        [21.3, 35.1, 35.5, 52.0],
        [20.8, 33.2, 28.0, 40.5],
        [21.1, 34.6, 41.0, 61.0],
        [20.9, 34.3, 30.5, 44.0],
    ]
)
SCALE = np.array(
    [
        [1.9, 9.5, 2.5, 10.0],
        [2.1, 10.5, 3.2, 12.5],
        [2.0, 9.8, 2.0, 9.0],
        [1.8, 10.1, 3.8, 13.0],
        [2.2, 10.0, 2.7, 11.0],
    ]
)


@dataclass(frozen=True)
class Finding:
    """What one rule says of one trip."""

    rule: str
    trip: str
    total: float
    bayes: float
    excess: float


def ensemble() -> EnsemblePrediction:
    """Five Gaussian members, four trips."""
    return EnsemblePrediction.gaussian(mean=MEAN, scale=SCALE)


def findings() -> list[Finding]:
    """The decomposition of every trip under the paper's four rules, members in both roles."""
    wanted = [m for m in catalogue() if m.truth == "members" and m.prediction in ("members", None)]
    table = evaluate(ensemble(), wanted)
    found = []
    for rule in PAPER:
        total, bayes = table[f"{rule}.total.members.members"], table[f"{rule}.bayes.members"]
        excess = table[f"{rule}.excess.members.members"]
        for i, trip in enumerate(TRIPS):
            found.append(Finding(rule, trip, float(total[i]), float(bayes[i]), float(excess[i])))
    return found


def meaning() -> str:
    """The table in two sentences, with the numbers."""
    by_trip = {f.trip: f for f in findings() if f.rule == "crps"}
    storm, unknown = by_trip[TRIPS[1]], by_trip[TRIPS[2]]
    return (
        f"In the storm {storm.bayes / storm.total:.1%} of the expected CRPS is noise: the models agree, and more data would not "
        f"help. In the unvisited district {unknown.excess / unknown.total:.1%} is disagreement between the models, which a few "
        "deliveries there would remove."
    )
