"""Time the library against the printed formulas in one process and write RESULTS.md as ratios.

Absolute times depend on the machine and its load; ratios of one run do not, much.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import erf

import uqprism as up

MEMBERS, POINTS, REPEATS = 10, 20_000, 3
RESULTS = Path(__file__).parent / "RESULTS.md"


def seconds(call: Callable[[], object]) -> float:
    """The best of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def printed_crps_excess(mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The paper's formula for one measure, broadcast over all pairs; loses its digits where members nearly agree."""
    gap, joint = mean[:, None] - mean[None, :], np.sqrt(scale[:, None] ** 2 + scale[None, :] ** 2)
    z = gap / joint
    distance = joint * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z) + gap * erf(z / np.sqrt(2))
    return (distance - (scale[:, None] + scale[None, :]) / np.sqrt(np.pi)).mean(axis=(0, 1))


def main() -> None:
    """Measure and write."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=POINTS) + 0.5 * rng.normal(size=(MEMBERS, POINTS))
    scale = np.exp(0.3 * rng.normal(size=(MEMBERS, POINTS)))
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    everything = up.evaluate(ens[:1]).exactness
    closed = [name for name, exactness in everything.items() if exactness.method == "closed form"]
    runs = {
        "the paper's formula for one CRPS excess, broadcast NumPy": lambda: printed_crps_excess(mean, scale),
        "the same measure": lambda: up.evaluate(ens, ["crps.excess.members.members"]),
        f"all {len(closed)} closed-form measures": lambda: up.evaluate(ens, closed),
        "all 144 measures": lambda: up.evaluate(ens),
    }
    times = {name: seconds(call) for name, call in runs.items()}
    unit = next(iter(times.values()))
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, uqprism {up.__version__}"
    lines = [
        "# Results",
        "",
        f"{POINTS:,} points x {MEMBERS} Gaussian members, float64, best of {REPEATS}, on {os.cpu_count()} cores.",
        f"{versions}, {platform.machine()}.",
        "Written by `make bench`; times relative to the first row.",
        "",
        "| what | relative time | points per second |",
        "|---|---|---|",
        *(f"| {name} | {value / unit:.1f} | {POINTS / value:,.0f} |" for name, value in times.items()),
        "",
    ]
    RESULTS.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
