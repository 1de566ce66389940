"""How fast the tasks are: detection at ten million points, all measures at once, rank correlations beside SciPy's."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score, roc_auc_score

import uqprism as up

POINTS = 10_000_000
MEASURES = 144


def report() -> list[str]:
    """A section of RESULTS.md."""
    rng = np.random.default_rng(0)
    rows = [*_detection(rng), *_all_measures(rng), *_correlation(rng)]
    lines = ["## Tasks", "", "| what | here | alternative | ratio |", "|---|---|---|---|"]
    lines += [f"| {what} | {ours:.2f} s | {theirs} | {ratio} |" for what, ours, theirs, ratio in rows]
    return [*lines, "", "\\* AUROC and both average precisions. \\*\\* From 40 pairs."]


Row = tuple[str, float, str, str]


def _detection(rng: np.random.Generator) -> list[Row]:
    known, ood = rng.normal(size=POINTS // 2), rng.normal(size=POINTS // 2) + 1.0
    labels, scores = np.repeat([0, 1], POINTS // 2), np.concatenate([known, ood])
    ours = _seconds(lambda: up.ood_detection(known, ood, resamples=0))

    def theirs() -> None:
        roc_auc_score(labels, scores)
        average_precision_score(labels, scores)
        average_precision_score(1 - labels, -scores)

    other = _seconds(theirs)
    error = rng.exponential(size=POINTS)
    spread = _seconds(lambda: up.ood_detection(known, ood))
    selective = _seconds(lambda: up.selective_prediction(scores, error=error))
    return [
        (
            "detection, 10 million points: AUROC, both AUPR, both FPR95, ROC",
            ours,
            f"scikit-learn {other:.2f} s*",
            f"{other / ours:.1f}",
        ),
        ("the same with 500 resamples", spread, "", ""),
        ("selective prediction, 10 million points, all metrics, 500 resamples", selective, "", ""),
    ]


def _all_measures(rng: np.random.Generator) -> list[Row]:
    found: list[Row] = []
    for n in (2_000, 20_000):
        table = {f"m{i}": rng.normal(size=n) for i in range(MEASURES)}
        error = rng.exponential(size=n)
        seconds = _seconds(lambda table=table, error=error: up.selective_prediction(table, error=error))
        found.append((f"selective prediction, {n:,} points, 144 measures, 500 resamples", seconds, "", ""))
    return found


def _correlation(rng: np.random.Generator) -> list[Row]:
    found: list[Row] = []
    for n in (2_000, 5_000):
        table = {f"m{i}": rng.normal(size=n) for i in range(MEASURES)}
        ours = _seconds(lambda table=table: up.rank_correlation(table))
        columns = list(table.values())
        pairs = [(columns[i], columns[i + 1]) for i in range(40)]
        other = _seconds(lambda pairs=pairs: [kendalltau(*pair) for pair in pairs]) / len(pairs) * MEASURES * (MEASURES - 1) / 2
        found.append(
            (f"Kendall tau-b of 144 measures, {n:,} points", ours, f"SciPy, pair by pair {other:.1f} s**", f"{other / ours:.1f}")
        )
    return found


def _seconds(run: Callable[[], object]) -> float:
    """The time of the faster of two runs."""
    times = []
    for _ in range(2):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)
