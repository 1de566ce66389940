"""Cost against points and members, and where integrals over nodes overtake pairs of members; draws benchmarks/cost.svg."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from speed import seconds

import uqprism as up
from uqprism.backends.numba import backend as cpu

FIGURE = Path(__file__).parent / "cost.svg"
CLOSED = ["crps.excess.members.members", "quadratic.excess.members.members"]
MEMBERS = [2, 5, 10, 20, 50, 100, 200, 300, 400, 600, 1000, 2000, 5000, 10_000]
POINTS = [100, 1000, 10_000, 100_000, 1_000_000]
NEVER = 10**9


def ensemble(members: int, points: int) -> up.EnsemblePrediction:
    """Means that differ by about a scale, scales by about a third."""
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=(members, points)), np.exp(0.3 * rng.normal(size=(members, points)))
    return up.EnsemblePrediction.gaussian(mean=mean, scale=scale)


def microseconds(ens: up.EnsemblePrediction, measures: list[str] | None, many: int) -> float:
    """The time for each point, with the crossover moved."""
    usual, cpu.MANY = cpu.MANY, many
    try:
        return seconds(lambda: up.evaluate(ens, measures, backend="fused"), 2) / ens.n_points * 1e6
    finally:
        cpu.MANY = usual


def report() -> list[str]:
    """The section on members and points, and the figure."""
    by_members: dict[str, dict[int, float]] = {"pairs": {}, "nodes": {}, "all 144": {}}
    for members in MEMBERS:
        ens = ensemble(members, max(64, min(20_000, 10**7 // members**2)))
        if members <= 2000:
            by_members["pairs"][members] = microseconds(ens, CLOSED, NEVER)
        if members >= 50:
            by_members["nodes"][members] = microseconds(ens, CLOSED, 0)
        by_members["all 144"][members] = microseconds(ens, None, cpu.MANY)
    by_points = {points: microseconds(ensemble(10, points), None, cpu.MANY) for points in POINTS}
    _draw(by_members, by_points)
    lines = [
        "## Members and points",
        "",
        "![cost for each point against members and points](cost.svg)",
        "",
        f"Microseconds for each point. Above {cpu.MANY} members the mean over pairs is taken as an integral over nodes.",
        "",
        "| members | CRPS and quadratic excess, pairs | the same, nodes | all 144 measures |",
        "|---|---|---|---|",
    ]
    for members in MEMBERS:
        cells = [by_members[kind].get(members) for kind in by_members]
        lines.append(f"| {members:,} | " + " | ".join("" if cell is None else f"{cell:.3g}" for cell in cells) + " |")
    return lines


def _draw(by_members: dict[str, dict[int, float]], by_points: dict[int, float]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "uqprism"
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=False)
    names = {"pairs": "2 closed forms, over pairs", "nodes": "2 closed forms, over nodes", "all 144": "all 144 measures"}
    for kind, style in (("pairs", "o-"), ("nodes", "s-"), ("all 144", "^-")):
        left.loglog(list(by_members[kind]), list(by_members[kind].values()), style, markersize=4, label=names[kind])
    left.axvline(cpu.MANY, color="0.6", linestyle=":", linewidth=1)
    left.text(cpu.MANY, left.get_ylim()[0] * 1.3, " crossover", color="0.4", fontsize=8)
    left.set(xlabel="members", ylabel="microseconds per point", title="Cost against members")
    left.legend(frameon=False, fontsize=8)
    right.loglog(list(by_points), list(by_points.values()), "^-", color="C2", markersize=4)
    right.set(xlabel="points", ylabel="microseconds per point", title="Cost against points")
    right.text(0.97, 0.9, "10 members, all 144 measures", transform=right.transAxes, ha="right", fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, metadata={"Date": None})
