"""All measures in a table, and what depends on the learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.base import Claim
from uqprism.paper.experiments.synthetic.claims import BAYES, EXCESS, Trials

Runs = Mapping[float, Trials]  # by learning rate, the main one first
Claims = Mapping[float, tuple[Claim, ...]]


def tables(runs: Runs, claims: Claims) -> dict[str, list[dict[str, Any]]]:
    """By learning rate, and every measure at the first."""
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
    """What explains the numbers."""
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
    """How much of the noise is learned in the same number of steps."""
    shown = [f"{trials.median('noise', f'log.{BAYES}'):.2f} at {rate:g}" for rate, trials in runs.items()]
    return (
        f"Inside, the Bayes risk's correlation with the true variance is, by learning rate, {', '.join(shown)}: with too few or "
        "too small steps so small a network has not learned the shape of the noise, and the excess risk finds the outside all "
        "the same. The paper does not say which learning rate it used."
    )


def _best(trials: Trials) -> str:
    """Which excess risks find the outside, over all 16 of each rule."""
    names = [name for name in trials.measures if ".excess." in name and np.any(trials.each("size", name))]
    lowest = min(names, key=lambda name: trials.median("outside", name))
    good = sum(trials.median("outside", name) >= 0.9 for name in names)
    return (
        f"Of all {len(names)} excess risks that are not always zero, {good} find the outside with an AUROC of at least 0.9; the "
        f"lowest is {lowest} with {trials.median('outside', lowest):.3f}."
    )
