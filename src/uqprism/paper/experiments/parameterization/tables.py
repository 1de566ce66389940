"""What depends on the learning rate, in tables, and what explains the numbers, in notes that are written from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqprism.paper.base import Claim
from uqprism.paper.experiments.parameterization.claims import (
    FACTOR,
    Networks,
    Setting,
    largest_rise,
    mean_changes,
    own_steps,
    roughness,
    scale_ratios,
    true_steps,
)

Runs = Mapping[float, Mapping[str, Networks]]  # by learning rate and parameterisation, the paper's rate first
Claims = Mapping[float, tuple[Claim, ...]]


def tables(runs: Runs, claims: Claims, setting: Setting) -> dict[str, list[dict[str, Any]]]:
    """Every run's measurements, and which statements hold at which learning rate."""
    measured = [
        {"learning rate": rate, "parameterisation": name, **_measurements(networks, setting)}
        for rate, pair in runs.items()
        for name, networks in pair.items()
    ]
    held = [{"learning rate": rate, **{claim.name: claim.holds for claim in found}} for rate, found in claims.items()]
    return {"Measurements, medians over networks": measured, "What holds at which learning rate": held}


def _measurements(networks: Networks, setting: Setting) -> dict[str, Any]:
    scales, means = scale_ratios(networks, setting), mean_changes(networks, setting)
    return {
        "best validation loss": round(float(np.median(networks.validation.min(0))), 3),
        "steps to own best": int(np.median(own_steps(networks, setting))),
        "steps to true loss": int(np.median(true_steps(networks, setting))),
        "roughness, validation": float(np.median(roughness(networks.validation))),
        "roughness, training": float(np.median(roughness(networks.training))),
        "largest rise": float(np.median(largest_rise(networks.validation))),
        "diverged": networks.restarts,
        "scale ratio, left": float(np.median(scales[:, 0])),
        "scale ratio, right": float(np.median(scales[:, 1])),
        "mean change, left": float(np.median(means[:, 0])),
        "mean change, right": float(np.median(means[:, 1])),
    }


def notes(runs: Runs, claims: Claims, setting: Setting) -> tuple[str, ...]:
    """Why it comes out as it does, with the counts of this run."""
    pair = next(iter(runs.values()))
    found = [MECHANISM, _sides(pair, setting), *_failures(claims)]
    if len(runs) > 1:
        found.append(_at_equal_speed(runs, setting))
    return tuple(found)


MECHANISM = (
    "Far from its data a ReLU network is linear. Standard: the mean is that line; the variance is softplus of a line, which "
    "falls exponentially where the line falls and grows where it rises. Natural: where the line of the precision rises, the "
    "mean is a ratio of two lines and tends to a constant, and the standard deviation falls only like one over the square "
    "root of the distance; where it falls, both grow exponentially. No row of data says which way a line goes: it differs "
    "between training sets and between networks on the same set, and neither parameterisation warns by itself that the data "
    "have ended."
)


def _sides(pair: Mapping[str, Networks], setting: Setting) -> str:
    """How often a scale collapses or grows, by side."""
    parts = []
    for name, networks in pair.items():
        ratios = scale_ratios(networks, setting)
        counts = [
            f"{side} {(ratios[:, i] < 1.0 / FACTOR).mean():.0%} and {(ratios[:, i] > 1.0).mean():.0%}"
            for i, side in enumerate(("left", "right"))
        ]
        furthest = float(np.abs(networks.mean[:, [0, -1]]).max())
        parts.append(f"{name} {', '.join(counts)}, largest mean {furthest:,.0f} in absolute value")
    return (
        f"Standard deviations at |x| = {setting.far:g} that are below 1/{FACTOR:g} of that at the edge, and that are above it: "
        f"{'; '.join(parts)}. The data are quiet on the left and noisy on the right."
    )


# What a statement is about: two numbers to compare, and why it may fail.
BEHIND = {
    "more gradient steps": (
        "natural_steps_to_own_best",
        "standard_steps_to_own_best",
        "natural steps over standard steps",
        "Too few epochs hide how slow natural is.",
    ),
    "much more stable losses": (
        "standard_validation_roughness",
        "natural_validation_roughness",
        "standard roughness over natural roughness",
        "Above 1 natural is the calmer; from where on that is much is our choice.",
    ),
    "variance away from data": (
        "natural_scale_ratio",
        "standard_scale_ratio",
        "natural scale ratio over standard scale ratio",
        "Where the line of standard's variance is flat or rises at the edge, nothing collapses.",
    ),
    "mean away from data": (
        "standard_mean_change",
        "natural_mean_change",
        "standard change over natural change",
        "A natural mean comes to its constant like one over the distance, and only where its precision rises; where that "
        "falls, the mean grows, and it is counted here.",
    ),
}


def _failures(claims: Claims) -> list[str]:
    """The statements that do not hold at some learning rate, how near they come, and why."""
    lines = []
    for statement in zip(*claims.values(), strict=True):
        failing = [f"{rate:g}" for rate, claim in zip(claims, statement, strict=True) if not claim.holds]
        if not failing:
            continue
        above, below, words, why = BEHIND[statement[0].name]
        ratios = [
            f"{claim.numbers[above] / claim.numbers[below]:.2g} at {rate:g}"
            for rate, claim in zip(claims, statement, strict=True)
        ]
        lines.append(
            f"'{statement[0].name}' does not hold, as measured here, at learning rate {', '.join(failing)} ({words}: "
            f"{', '.join(ratios)}). {why}"
        )
    return lines


def _at_equal_speed(runs: Runs, setting: Setting) -> str:
    """Is natural calmer, or only slower? Compare it at the learning rate where it is about as fast."""
    first, pair = next(iter(runs.items()))
    goal = np.median(true_steps(pair["standard"], setting))
    pace = {rate: np.median(true_steps(each["natural"], setting)) for rate, each in runs.items()}
    rate = min(pace, key=lambda each: abs(np.log(pace[each] / goal)))
    rough = [float(np.median(roughness(each.validation))) for each in (pair["standard"], runs[rate]["natural"])]
    verdict = "at equal speed it is not the calmer one" if rough[1] >= rough[0] else "so it is calmer also at equal speed"
    return (
        f"Of the learning rates tried, natural comes nearest to standard's speed at {first:g} with {rate:g}: "
        f"{pace[rate]:,.0f} steps to the true distribution's loss against {goal:,.0f}. There its validation loss changes by "
        f"{rough[1]:.4f} nats from epoch to epoch, standard's by {rough[0]:.4f}: {verdict}."
    )
