"""Time the measures of members of each family with a kernel against those of Gaussians, side by side in one process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scoringrules
from speed import seconds

import uqprism as up

MEMBERS, POINTS = 10, 20_000
RISKS = ["crps.bayes.members", "crps.excess.members.members", "crps.total.members.members"]
INFORMATION = "log.excess.mixture.members"
BY_MEMBERS, BY_POINTS = (2, 5, 10, 20, 50, 100), (1_000, 10_000, 100_000)


def ensemble(family: str, members: int, points: int) -> up.EnsemblePrediction:
    """Members that disagree by about a scale."""
    rng = np.random.default_rng(0)
    location, scale = rng.normal(size=(members, points)), np.exp(0.3 * rng.normal(size=(members, points)))
    if family == "gaussian":
        return up.EnsemblePrediction.gaussian(mean=location, scale=scale)
    shape = {"df": np.exp(rng.uniform(1.0, 4.0, size=(members, points)))} if family == "student_t" else {}
    return getattr(up.EnsemblePrediction, family)(location=location, scale=scale, **shape)


def others() -> list[str]:
    """The families beside Gaussians that kernels are compiled for and an ensemble is built from by location and scale."""
    return ["laplace", "logistic", "student_t"]


def report() -> list[str]:
    """The section on families."""
    gaussian = ensemble("gaussian", MEMBERS, POINTS)
    mean, scale = (np.ascontiguousarray(x.T) for x in (gaussian.members.mean, gaussian.members.scale))
    score = seconds(lambda: scoringrules.crps_mixnorm(mean[:, 0], mean, scale))
    all_of_gaussians = seconds(lambda: up.evaluate(gaussian))
    lines = [
        "## Families",
        "",
        f"{POINTS:,} points x {MEMBERS} members, best of 3 after one to warm up. One score of scoringrules is its",
        f"`crps_mixnorm` of Gaussians of the same shape: {1e6 * score / POINTS:.3g} us a point.",
        "",
        "| members | three CRPS risks, us a point | times one score | mutual information, us | all 144, us | times Gaussians |",
        "|---|---|---|---|---|---|",
    ]
    for family in ("gaussian", *others()):
        ours = ensemble(family, MEMBERS, POINTS)
        risks, information = seconds(lambda e=ours: up.evaluate(e, RISKS)), seconds(lambda e=ours: up.evaluate(e, INFORMATION))
        everything = all_of_gaussians if family == "gaussian" else seconds(lambda e=ours: up.evaluate(e))
        times = (1e6 * x / POINTS for x in (risks, information, everything))
        a, b, c = (f"{x:.3g}" for x in times)
        lines.append(f"| {family} | {a} | {risks / score:.2g} | {b} | {c} | {everything / all_of_gaussians:.3g} |")
    lines += ["", "All 144 measures, microseconds a point, by members (5,000 points) and by points (10 members).", ""]
    lines += ["| members | " + " | ".join([*map(str, BY_MEMBERS), *(f"{n:,} points" for n in BY_POINTS)]) + " |"]
    lines += ["|---" * (1 + len(BY_MEMBERS) + len(BY_POINTS)) + "|"]
    for family in ("gaussian", *others()):
        shapes = [(m, 5_000) for m in BY_MEMBERS] + [(MEMBERS, n) for n in BY_POINTS]
        found = [1e6 * _everything(family, m, n) / n for m, n in shapes]
        lines.append(f"| {family} | " + " | ".join(f"{x:.3g}" for x in found) + " |")
    return lines


def _everything(family: str, members: int, points: int) -> float:
    ours = ensemble(family, members, points)
    call: Callable[[], object] = lambda: up.evaluate(ours)  # noqa: E731 (its type is named)
    return seconds(call, 2)
