"""What audits have measured: benchmarks/audit.json, by model, measure and data set."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from truths import KNOWN

from uqprism.tasks.audit import Promise

STORE = Path(__file__).with_name("audit.json")
N, FEW_N, SLOW_N = 1024, 512, 256  # rows of an audit on a set of known truth; of forests; of Gaussian processes
CLOSELY = "networks, resampled rows"  # audited often enough to see how often its intervals hold
FOUR = [f"{rule}.excess.members.members" for rule in ("crps", "log", "quadratic", "squared_error")]
MAIN, LOG = FOUR[:2]
DRAWN = 400  # resamples that are drawn anew from their covariance
NEAR = 0.2
GROWTHS = (2, 4)


def rows_of(model: str) -> int:
    """The rows of an audit on a set of known truth."""
    return {"forest": FEW_N, "Gaussian process": SLOW_N}.get(model, N)


@cache
def stored() -> dict[str, Any]:
    """All audits, by key."""
    return dict(json.loads(STORE.read_text()))


def of(kind: str, model: str, measure: str) -> dict[str, list[Promise]]:
    """What was measured, by data set: `known audit`, `known other` or `tables`."""
    first, _, what = kind.partition(" ")
    found: dict[str, list[Promise]] = {}
    for key, value in stored().items():
        where, name, of_model, *number = key.split("/")
        if (where, of_model) == (first, model) and measure in value["measures"] and (not number or number[0].startswith(what)):
            found.setdefault(name, []).append(promise(measure, value))
    return found


def promise(measure: str, value: dict[str, Any]) -> Promise:
    """One measure of an audit; its resamples are drawn from their covariance."""
    about = {name: np.array(each) for name, each in value["measures"][measure].items()}
    nothing = np.full(len(value["sizes"]), np.nan)
    return Promise(
        measure=measure,
        sizes=tuple(value["sizes"]),
        excess=about["excess"],
        noise=about["noise"],
        penalty=about["penalty"],
        procedural=about.get("procedural", nothing),
        data=about.get("data", nothing),
        replicates=resampled(about) if "covariance" in about else None,
    )


def resampled(about: dict[str, np.ndarray]) -> np.ndarray:
    """Excess, noise and penalty in resamples, (3, resamples, sizes), with the covariance that was stored; noise is not known."""
    means = np.concatenate([about["excess"], about["penalty"]])
    upper = np.zeros((len(means), len(means)))
    upper[np.triu_indices(len(means))] = about["covariance"]
    values, vectors = np.linalg.eigh(upper + np.triu(upper, 1).T)
    drawn = np.random.default_rng(0).standard_normal((DRAWN, len(means))) * np.sqrt(np.maximum(values, 0.0))  # they are rounded
    excess, penalty = np.split(means + drawn @ vectors.T, 2, axis=1)
    excess = np.maximum(excess, 0.05 * about["excess"])  # a Gaussian has no end at zero
    return np.stack([excess, np.full_like(excess, np.nan), penalty])


def happened(others: list[Promise]) -> np.ndarray:
    """What twice and four times the rows removed on other sets, as shares of the excess there."""
    excess, penalty = (np.mean([getattr(each, name) for each in others], axis=0) for name in ("excess", "penalty"))
    return np.asarray((penalty[0] - penalty[1:3]) / excess[0])


def last(found: Promise, doublings: int) -> float:
    """What the last doublings removed, as a share of the excess before: measured, not expected."""
    return float(found.went(2**doublings)[-1 - doublings])


Judged = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, list[Promise]]]


def judged(model: str, measure: str, sets: Iterable[str] = KNOWN) -> Judged:
    """By set of known truth: factors with the ends of their intervals, what happened, the same on each other set, the audits.

    Factors are (audits, growths, 3).
    """
    audits, others = of("known audit", model, measure), of("known other", model, measure)
    found = {}
    for name in sorted(set(audits) & set(others) & set(sets)):
        factors = np.array([[each.after(growth) for growth in GROWTHS] for each in audits[name]])
        single = np.array([happened([each]) for each in others[name]])
        found[name] = factors, happened(others[name]), single, audits[name]
    return found
