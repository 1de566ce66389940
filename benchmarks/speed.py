"""Time the measures against scoringrules, broadcast NumPy and broadcast PyTorch, side by side in one process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import scoringrules
import torch
from scipy.special import erf

import uqprism as up

MEMBERS, POINTS, CHUNK = 10, 1_000_000, 10_000
CATALOGUE = [measure.name for measure in up.catalogue()]
CRPS = [name for name in CATALOGUE if name.startswith("crps.")]
CLOSED = [name for name in CATALOGUE if not (name.startswith("log.") and "mixture" in name)]
BOTH = [f"{rule}.{rest}" for rule in ("crps", "quadratic") for rest in ("bayes.mixture", "bayes.members")]


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The best of a few runs, after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def in_chunks(outcome: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
    """scoringrules at its best: a few points at a time, so that its temporaries stay in a cache."""
    slices = [slice(start, start + CHUNK) for start in range(0, len(outcome), CHUNK)]
    return [scoringrules.crps_mixnorm(outcome[part], mean[part], scale[part]) for part in slices]


def numpy_broadcast(mean: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
    """Bayes risks of mixture and members under CRPS and quadratic rule by the printed formulas, in chunks that fit a cache."""
    parts = []
    for start in range(0, mean.shape[1], CHUNK):
        m, s = mean[:, start : start + CHUNK], scale[:, start : start + CHUNK]
        gap, joint = m[:, None] - m[None], np.hypot(s[:, None], s[None])
        z = gap / joint
        bell = np.exp(-0.5 * z * z)
        distance = joint * math.sqrt(2 / math.pi) * bell + gap * erf(z / math.sqrt(2))
        overlap = bell / (math.sqrt(2 * math.pi) * joint)
        parts.append([0.5 * distance.mean((0, 1)), s.mean(0) / math.sqrt(math.pi), -overlap.mean((0, 1)), -(0.5 / s).mean(0)])
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def torch_broadcast(mean: torch.Tensor, scale: torch.Tensor) -> list[torch.Tensor]:
    """The same with PyTorch."""
    parts = []
    for m, s in zip(mean.split(CHUNK, 1), scale.split(CHUNK, 1), strict=True):
        gap, joint = m[:, None] - m[None], torch.hypot(s[:, None], s[None])
        z = gap / joint
        bell = torch.exp(-0.5 * z * z)
        distance = joint * math.sqrt(2 / math.pi) * bell + gap * torch.erf(z / math.sqrt(2))
        overlap = bell / (math.sqrt(2 * math.pi) * joint)
        parts.append([0.5 * distance.mean((0, 1)), s.mean(0) / math.sqrt(math.pi), -overlap.mean((0, 1)), -(0.5 / s).mean(0)])
    return [torch.cat(part) for part in zip(*parts, strict=True)]


def report() -> list[str]:
    """The section on speed."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=POINTS) + rng.normal(size=(MEMBERS, POINTS))
    scale, outcome = np.exp(0.3 * rng.normal(size=(MEMBERS, POINTS))), rng.normal(size=POINTS)
    rows_mean, rows_scale = np.ascontiguousarray(mean.T), np.ascontiguousarray(scale.T)  # as scoringrules wants them
    tensors = torch.from_numpy(mean), torch.from_numpy(scale)
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    single = up.EnsemblePrediction.gaussian(mean=mean.astype(np.float32), scale=scale.astype(np.float32))
    runs: dict[str, Callable[[], object]] = {
        "scoringrules `crps_mixnorm`: one score": lambda: scoringrules.crps_mixnorm(outcome, rows_mean, rows_scale),
        "the same in chunks": lambda: in_chunks(outcome, rows_mean, rows_scale),
        "NumPy, broadcast: 4 Bayes risks": lambda: numpy_broadcast(mean, scale),
        "PyTorch eager, broadcast: the same 4": lambda: torch_broadcast(*tensors),
        "uqprism: the same 4": lambda: up.evaluate(ensemble, BOTH),
        f"uqprism: all {len(CRPS)} of CRPS": lambda: up.evaluate(ensemble, CRPS),
        f"uqprism: all {len(CLOSED)} but log with a mixture": lambda: up.evaluate(ensemble, CLOSED),
        f"the same {len(CLOSED)} in float32": lambda: up.evaluate(single, CLOSED),
        "uqprism: all 144": lambda: up.evaluate(ensemble),
    }
    times = {name: seconds(call) for name, call in runs.items()}
    part = ensemble[: POINTS // 50]
    times["uqprism without Numba: all 144"] = 50 * seconds(lambda: up.evaluate(part, backend="reference"), 1)
    whole, chunked = list(times.values())[:2]
    return [
        "## Speed",
        "",
        f"{POINTS:,} points x {MEMBERS} Gaussian members, float64 unless said, best of 3 after one run to warm up.",
        "",
        "| what | seconds | times faster than the first | than the second | points per second |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {value:.3g} | {whole / value:.3g} | {chunked / value:.3g} | {POINTS / value:,.0f} |"
            for name, value in times.items()
        ),
    ]
