"""The paper's sentences on the two parameterisations, compared with our networks; then tables and notes.

| statement | measured, as medians over networks | holds if |
|---|---|---|
| natural needs more gradient steps | steps to within 0.05 nats of a network's own best validation loss; steps to within 0.1 of the loss of the true distribution | natural needs more by both |
| its losses are much more stable | mean absolute change of a loss from one epoch to the next, after the first fifth; largest rise of the validation loss there; networks that diverged | standard changes at least twice as much in both losses, and natural has the smaller rise and no more divergences |
| the standard's variance collapses, the natural's does not | predicted scale far away over that at the edge of the data, geometric mean of both sides | standard's is below 1/4, natural's between 1/4 and 4 |
| the standard's mean goes on in a line, the natural's is constant | how much the mean changes over the outer half of the way from edge to far, in standard deviations of the targets, mean of both sides; R^2 of a straight line there | standard's is above 1/4 and straight (R^2 at least 0.99), natural's below 1/4 |
"""  # noqa: E501  a table

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.paper.experiment import Claim

Array = Any

# Fixed after looking at single training sets, and not changed after the recorded run.
OWN, TRUE = 0.05, 0.1  # nats above a network's own best loss, and above the loss of the true distribution
SETTLED = 0.2  # the part of the epochs after which losses should have become calm
MUCH = 2.0
FACTOR = 4.0  # a scale that shrinks by more has collapsed
MOVED = 0.25  # standard deviations of the targets
STRAIGHT = 0.99


@dataclass(frozen=True)
class Networks:
    """Networks of one parameterisation, trained on the same data: curves are (epochs, networks), predictions (networks, grid).

    Attributes:
        training, validation: losses in nats per row.
        restarts: number of times that a network diverged and was restarted.
        grid: inputs, from far on the left to far on the right.
        mean, scale: predictions at these inputs, with the weights of the best epoch.
    """

    training: Array
    validation: Array
    restarts: int
    grid: Array
    mean: Array
    scale: Array


@dataclass(frozen=True)
class Baseline:
    """What the networks are compared with.

    Attributes:
        steps_per_epoch: gradient steps per epoch.
        true_loss: validation loss of the distribution that the data come from.
        edge: the inputs lie between -edge and edge.
        far: the grid between -far and far.
        spread: standard deviation of the targets.
    """

    steps_per_epoch: int
    true_loss: float
    edge: float
    far: float
    spread: float

    @property
    def halfway(self) -> float:
        """The middle between edge and far."""
        return 0.5 * (self.edge + self.far)


def all_claims(standard: Networks, natural: Networks, baseline: Baseline) -> tuple[Claim, ...]:
    """All claims, in the paper's order."""
    return (
        more_steps(standard, natural, baseline),
        more_stable(standard, natural),
        variance_collapses(standard, natural, baseline),
        mean_goes_on(standard, natural, baseline),
    )


# Measurements: one number per network, or one per network and side


def steps_to(validation: Array, level: Array | float, steps_per_epoch: int) -> Array:
    """Steps until the loss is first at or below the level; all steps where it never is."""
    reached = validation <= level
    first = np.where(reached.any(0), reached.argmax(0), len(validation) - 1)
    return (first + 1) * steps_per_epoch


def own_steps(networks: Networks, baseline: Baseline) -> Array:
    """Steps to within `OWN` of each network's own best loss."""
    return steps_to(networks.validation, networks.validation.min(0) + OWN, baseline.steps_per_epoch)


def true_steps(networks: Networks, baseline: Baseline) -> Array:
    """Steps to within `TRUE` of the loss of the true distribution."""
    return steps_to(networks.validation, baseline.true_loss + TRUE, baseline.steps_per_epoch)


def changes(curves: Array) -> Array:
    """Changes from one epoch to the next, after the first fifth, (epochs, networks)."""
    return np.diff(curves, axis=0)[int(SETTLED * len(curves)) :]


def roughness(curves: Array) -> Array:
    """Mean absolute change from one epoch to the next."""
    return np.abs(changes(curves)).mean(0)


def largest_rise(curves: Array) -> Array:
    """The largest rise from one epoch to the next."""
    return changes(curves).max(0)


def scale_ratios(networks: Networks, baseline: Baseline) -> Array:
    """Scale far away over scale at the edge, left and right, (networks, 2)."""
    far, edge = (_at(networks, networks.scale, where) for where in (baseline.far, baseline.edge))
    return far / edge


def mean_changes(networks: Networks, baseline: Baseline) -> Array:
    """How far the mean moves over the outer half of the way out, in spreads of the targets: (networks, 2)."""
    far, half = (_at(networks, networks.mean, where) for where in (baseline.far, baseline.halfway))
    return np.abs(far - half) / baseline.spread


def straightness(networks: Networks, baseline: Baseline) -> Array:
    """R^2 of a straight line through the mean over the outer half of the way out: (networks, 2)."""
    sides = (networks.grid <= -baseline.halfway, networks.grid >= baseline.halfway)
    return np.stack([_r_squared(networks.grid[side], networks.mean[:, side]) for side in sides], axis=1)


def _at(networks: Networks, values: Array, distance: float) -> Array:
    places = [int(np.abs(networks.grid - where).argmin()) for where in (-distance, distance)]
    return values[:, places]


def _r_squared(x: Array, values: Array) -> Array:
    x = x - x.mean()
    centred = values - values.mean(1, keepdims=True)
    whole = (centred**2).sum(1)
    explained = (centred @ x) ** 2 / (x @ x)
    return np.where(whole > 0.0, explained / np.where(whole > 0.0, whole, 1.0), 1.0)  # a constant is a straight line


# Claims


def more_steps(standard: Networks, natural: Networks, baseline: Baseline) -> Claim:
    """The natural parameterisation learns more slowly."""
    own = [own_steps(each, baseline) for each in (standard, natural)]
    true = [true_steps(each, baseline) for each in (standard, natural)]
    never = [int((each.validation.min(0) > baseline.true_loss + TRUE).sum()) for each in (standard, natural)]
    more = int((own[1] > own[0]).sum())
    numbers = {
        **_both("steps_to_own_best", map(_median, own)),
        **_both("steps_to_true_loss", map(_median, true)),
        **_both("never_at_true_loss", never),
        "pairs_where_natural_needs_more": float(more),
    }
    never_there = f" (never there, and counted with all their steps: {never[0]} and {never[1]} networks)" if any(never) else ""
    measured = (
        f"steps to within {OWN:g} nats of a network's own best validation loss: standard {_median(own[0]):,.0f}, "
        f"natural {_median(own[1]):,.0f} (more in {more} of {len(own[0])} pairs); to within {TRUE:g} of the true distribution's "
        f"loss: standard {_median(true[0]):,.0f}, natural {_median(true[1]):,.0f}{never_there}"
    )
    holds = _median(own[1]) > _median(own[0]) and _median(true[1]) > _median(true[0])
    paper = "“using [the natural parameterization] needs more gradient steps than optimization with [the standard one]”"
    return Claim("more gradient steps", paper, holds, measured, numbers)


def more_stable(standard: Networks, natural: Networks) -> Claim:
    """Its losses change less from epoch to epoch."""
    validation = [_median(roughness(each.validation)) for each in (standard, natural)]
    training = [_median(roughness(each.training)) for each in (standard, natural)]
    rises = [_median(largest_rise(each.validation)) for each in (standard, natural)]
    restarts = standard.restarts, natural.restarts
    ratios = validation[0] / validation[1], training[0] / training[1]
    numbers = {
        **_both("validation_roughness", validation),
        **_both("training_roughness", training),
        **_both("largest_rise", rises),
        **_both("diverged", restarts),
        "validation_roughness_ratio": ratios[0],
        "training_roughness_ratio": ratios[1],
    }
    measured = (
        f"change of the validation loss from epoch to epoch: standard {validation[0]:.4f} nats, natural {validation[1]:.4f}, "
        f"a ratio of {ratios[0]:.1f} (of the training loss {ratios[1]:.1f}; at least {MUCH:g} counts as much); largest rise: "
        f"standard {rises[0]:.2f}, natural {rises[1]:.2f}; diverged: standard {restarts[0]}, natural {restarts[1]}"
    )
    holds = min(ratios) >= MUCH and rises[1] < rises[0] and restarts[1] <= restarts[0]
    paper = "“training and validation losses are much more stable”"
    return Claim("much more stable losses", paper, holds, measured, numbers)


def variance_collapses(standard: Networks, natural: Networks, baseline: Baseline) -> Claim:
    """Away from data only the standard parameterisation grows certain."""
    sides = [scale_ratios(each, baseline) for each in (standard, natural)]
    ratios = [_median(np.exp(np.log(each).mean(1))) for each in sides]  # as factors: half and double cancel
    collapsed = [float((each < 1.0 / FACTOR).mean()) for each in sides]
    numbers = {
        **_both("scale_ratio", ratios),
        **_by_side("scale_ratio", sides),
        **_both("sides_collapsed", collapsed),
        **_both("sides_grown", [(each > FACTOR).mean() for each in sides]),
    }
    shown = [
        f"{ratio:.2g} (left {_median(each[:, 0]):.2g}, right {_median(each[:, 1]):.2g})"
        for ratio, each in zip(ratios, sides, strict=True)
    ]
    measured = (
        f"predicted standard deviation at |x| = {baseline.far:g} over that at {baseline.edge:g}: standard {shown[0]}, natural "
        f"{shown[1]}; below 1/{FACTOR:g}, which counts as collapsed, on {collapsed[0]:.0%} of standard's sides and "
        f"{collapsed[1]:.0%} of natural's"
    )
    holds = ratios[0] < 1.0 / FACTOR <= ratios[1] <= FACTOR
    paper = (
        "“For the standard parameterization, the predicted variance collapses away from data, while it stays at least relatively "
        "constant for the natural parameterization.”"
    )
    return Claim("variance away from data", paper, holds, measured, numbers)


def mean_goes_on(standard: Networks, natural: Networks, baseline: Baseline) -> Claim:
    """Away from data only the standard parameterisation's mean keeps moving."""
    sides = [mean_changes(each, baseline) for each in (standard, natural)]
    moves = [_median(each.mean(1)) for each in sides]
    straight = _median(straightness(standard, baseline))
    numbers = {**_both("mean_change", moves), **_by_side("mean_change", sides), "standard_straightness": straight}
    shown = [f"{_median(each[:, 0]):.2f} left and {_median(each[:, 1]):.2f} right" for each in sides]
    measured = (
        f"change of the mean from |x| = {baseline.halfway:g} to {baseline.far:g}, in standard deviations of the targets: "
        f"standard {moves[0]:.3f} ({shown[0]}; R² of a straight line {straight:.3f}), natural {moves[1]:.3f} ({shown[1]}; "
        f"less than {MOVED:g} counts as constant)"
    )
    holds = moves[0] > MOVED > moves[1] and straight >= STRAIGHT
    paper = (
        "“for the standard parameterization the predicted mean follows a linear trend, while for the natural parameterization it "
        "resorts to a constant value”"
    )
    return Claim("mean away from data", paper, holds, measured, numbers)


def _median(values: Array) -> float:
    return float(np.median(values))


def _both(name: str, values: Iterable[Any]) -> dict[str, float]:
    return {f"{which}_{name}": float(value) for which, value in zip(("standard", "natural"), values, strict=True)}


def _by_side(name: str, sides: Iterable[Array]) -> dict[str, float]:
    left, right = zip(*((_median(each[:, 0]), _median(each[:, 1])) for each in sides), strict=True)
    return {**_both(f"{name}_left", left), **_both(f"{name}_right", right)}


Runs = Mapping[float, Mapping[str, Networks]]  # by learning rate and parameterisation, the paper's rate first
Claims = Mapping[float, tuple[Claim, ...]]


def tables(runs: Runs, claims: Claims, baseline: Baseline) -> dict[str, list[dict[str, Any]]]:
    """Measurements of every run, and which claims hold at which learning rate."""
    measured = [
        {"learning rate": rate, "parameterisation": name, **_measurements(networks, baseline)}
        for rate, pair in runs.items()
        for name, networks in pair.items()
    ]
    held = [{"learning rate": rate, **{claim.name: claim.holds for claim in found}} for rate, found in claims.items()]
    return {"Measurements, medians over networks": measured, "What holds at which learning rate": held}


def _measurements(networks: Networks, baseline: Baseline) -> dict[str, Any]:
    scales, means = scale_ratios(networks, baseline), mean_changes(networks, baseline)
    return {
        "best validation loss": round(float(np.median(networks.validation.min(0))), 3),
        "steps to own best": int(np.median(own_steps(networks, baseline))),
        "steps to true loss": int(np.median(true_steps(networks, baseline))),
        "roughness, validation": float(np.median(roughness(networks.validation))),
        "roughness, training": float(np.median(roughness(networks.training))),
        "largest rise": float(np.median(largest_rise(networks.validation))),
        "diverged": networks.restarts,
        "scale ratio, left": float(np.median(scales[:, 0])),
        "scale ratio, right": float(np.median(scales[:, 1])),
        "mean change, left": float(np.median(means[:, 0])),
        "mean change, right": float(np.median(means[:, 1])),
    }


def notes(runs: Runs, claims: Claims, baseline: Baseline) -> tuple[str, ...]:
    """Notes that explain the numbers."""
    pair = next(iter(runs.values()))
    found = [MECHANISM, _sides(pair, baseline), *_failures(claims)]
    if len(runs) > 1:
        found.append(_at_equal_speed(runs, baseline))
    return tuple(found)


MECHANISM = (
    "Far from its data a ReLU network is linear. Standard: the mean is that line; the variance is softplus of a line, which "
    "falls exponentially where the line falls and grows where it rises. Natural: where the line of the precision rises, the "
    "mean is a ratio of two lines and tends to a constant, and the standard deviation falls only like one over the square "
    "root of the distance; where it falls, both grow exponentially. No row of data says which way a line goes: it differs "
    "between training sets and between networks on the same set, and neither parameterisation warns by itself that the data "
    "have ended."
)


def _sides(pair: Mapping[str, Networks], baseline: Baseline) -> str:
    """How often a scale collapses or grows, on each side."""
    parts = []
    for name, networks in pair.items():
        ratios = scale_ratios(networks, baseline)
        counts = [
            f"{side} {(ratios[:, i] < 1.0 / FACTOR).mean():.0%} and {(ratios[:, i] > 1.0).mean():.0%}"
            for i, side in enumerate(("left", "right"))
        ]
        furthest = float(np.abs(networks.mean[:, [0, -1]]).max())
        parts.append(f"{name} {', '.join(counts)}, largest mean {furthest:,.0f} in absolute value")
    return (
        f"Standard deviations at |x| = {baseline.far:g} that are below 1/{FACTOR:g} of that at the edge, and that are above it: "
        f"{'; '.join(parts)}. The data are quiet on the left and noisy on the right."
    )


# For each claim: the names of two numbers, what their ratio is, and why the claim may fail.
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
    """A note on each claim that fails at some learning rate: how close it comes, and why."""
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


def _at_equal_speed(runs: Runs, baseline: Baseline) -> str:
    """A note on whether natural is still calmer at the learning rate where it is as fast as standard."""
    first, pair = next(iter(runs.items()))
    goal = np.median(true_steps(pair["standard"], baseline))
    pace = {rate: np.median(true_steps(each["natural"], baseline)) for rate, each in runs.items()}
    rate = min(pace, key=lambda each: abs(np.log(pace[each] / goal)))
    rough = [float(np.median(roughness(each.validation))) for each in (pair["standard"], runs[rate]["natural"])]
    verdict = "at equal speed it is not the calmer one" if rough[1] >= rough[0] else "so it is calmer also at equal speed"
    return (
        f"Of the learning rates tried, natural comes nearest to standard's speed at {first:g} with {rate:g}: "
        f"{pace[rate]:,.0f} steps to the true distribution's loss against {goal:,.0f}. There its validation loss changes by "
        f"{rough[1]:.4f} nats from epoch to epoch, standard's by {rough[0]:.4f}: {verdict}."
    )
