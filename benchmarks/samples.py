"""Members known by draws: all measures of CRPS and squared error against one score of scoringrules; draws cost_samples.svg."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import scoringrules
from speed import seconds

import uqprism as up
from uqprism.measures import select_measures

FIGURE = Path(__file__).parent / "cost_samples.svg"
MEASURES = ["crps.*", "squared_error.*"]
SHAPES = [(10, 50), (5, 20), (50, 20), (200, 50), (20, 1000), (4, 5000)]  # members, draws of each
POINTS = [100, 1000, 10_000, 100_000]
LARGE = (20, 1000, 10_000)
DRAWS = 2**20  # of all points of one run
REPEATS = 20

MEMORY = """
import json, sys, time
import numpy as np, uqprism as up

def mebibytes(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field)) / 1024

shape, dtype = tuple(map(int, sys.argv[1:4])), sys.argv[4]
draws = np.random.default_rng(0).standard_normal(shape, dtype=dtype)
start = time.perf_counter()
up.evaluate(up.EnsemblePrediction.samples(draws), ["crps.*", "squared_error.*"])
print(json.dumps([draws.nbytes / 2**20, mebibytes("VmHWM"), time.perf_counter() - start]))
"""


def draws(members: int, each: int, points: int) -> np.ndarray:
    """Members that disagree as much as each of them is uncertain."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(members, each, points)) + rng.normal(size=(members, 1, points))


def microseconds(ens: up.EnsemblePrediction, repeats: int = REPEATS, **options: str) -> float:
    """The time for each point of all measures of both rules."""
    return seconds(lambda: up.evaluate(ens, MEASURES, **options), repeats) / ens.n_points * 1e6


def one_score(members: np.ndarray) -> float:
    """The time for each point of the CRPS of all draws together, by scoringrules with its defaults."""
    points = members.shape[2]
    pooled, outcome = np.ascontiguousarray(members.reshape(-1, points).T), np.zeros(points)  # as scoringrules wants them
    return seconds(lambda: scoringrules.crps_ensemble(outcome, pooled), REPEATS) / points * 1e6


def report() -> list[str]:
    """The section on samples, and the figure."""
    count = len(select_measures(MEASURES))
    lines = [
        "## Samples",
        "",
        "![cost for each point against draws and points](cost_samples.svg)",
        "",
        f"Microseconds for each point, best of {REPEATS} (of one without Numba): one `scoringrules.crps_ensemble` of the pooled",
        f"draws, all {count} measures of CRPS and squared error, and how many times that score they take.",
        "",
        "| members x draws | points | one score | all measures | times | with weights | unbiased | without Numba |",
        "|---|---|---|---|---|---|---|---|",
    ]
    by_draws: dict[str, dict[int, float]] = {"one score": {}, "all measures": {}}
    for members, each in SHAPES:
        points = min(2000, max(50, DRAWS // (members * each)))
        x = draws(members, each, points)
        ens = up.EnsemblePrediction.samples(x, member_axis=0)
        weights = np.random.default_rng(1).dirichlet(np.ones(members))
        score, every = one_score(x), microseconds(ens, backend="fused")
        weighed = microseconds(up.EnsemblePrediction.samples(x, weights=weights, member_axis=0), backend="fused")
        others = [weighed, microseconds(ens, backend="fused", estimator="unbiased"), microseconds(ens, 1, backend="reference")]
        by_draws["one score"][members * each], by_draws["all measures"][members * each] = score, every
        cells = [f"{score:.3g}", f"{every:.3g}", f"{every / score:.2g}", *(f"{x:.3g}" for x in others)]
        lines.append(f"| {members} x {each:,} | {points:,} | " + " | ".join(cells) + " |")
    by_points = {points: microseconds(up.EnsemblePrediction.samples(draws(10, 50, points))) for points in POINTS}
    _draw(by_draws, by_points)
    members, each, points = LARGE
    lines += [
        "",
        f"{members} x {each:,} draws of {points:,} points in a process of its own, with the time to check them and load Numba.",
        "",
        "| draws | MiB of the draws | MiB of the process at most | seconds |",
        "|---|---|---|---|",
    ]
    for dtype in ("float32", "float64"):
        size, peak, took = _apart(dtype)
        lines.append(f"| {dtype} | {size:,.0f} | {peak:,.0f} | {took:.3g} |")
    return lines


def _apart(dtype: str) -> list[float]:
    command = [sys.executable, "-c", MEMORY, *map(str, LARGE), dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (this interpreter)
    return json.loads(done.stdout)


def _draw(by_draws: dict[str, dict[int, float]], by_points: dict[int, float]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "uqprism"
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (name, times), style in zip(by_draws.items(), ("s-", "o-"), strict=True):
        left.loglog(sorted(times), [times[n] for n in sorted(times)], style, markersize=4, label=name)
    left.set(xlabel="draws of all members", ylabel="microseconds per point", title="Cost against draws")
    left.legend(frameon=False, fontsize=8)
    right.loglog(list(by_points), list(by_points.values()), "o-", color="C1", markersize=4)
    right.set(xlabel="points", ylabel="microseconds per point", title="Cost against points")
    right.text(0.97, 0.9, "10 members x 50 draws, all measures", transform=right.transAxes, ha="right", fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, metadata={"Date": None})
