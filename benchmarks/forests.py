"""What random forests make of noise, and of ways to pick points: the numbers in docs/models.md and docs/active_learning.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import uqprism as up
from uqprism.paper import data

TABLES = ("california", "ccpp", "casp")
ROWS = 4_000  # of each table to learn from
LEAVES = (2, 5, 10, 20, 50)  # min_samples of `from_model`
ACQUISITIONS = ("crps.excess.members.members", "log.excess.members.members")
WAYS: dict[str, dict[str, Any]] = {
    "softmax, raw": {"scores": "raw"},
    "softmax, standardised": {"scores": "standardised"},
    "softmax, rank": {"scores": "rank"},
    "top": {"selection": "top"},
    "diverse": {"selection": "diverse"},
}
SEEDS = 4


def report(root: str | None) -> list[str]:
    """A section of RESULTS.md; the tables are left out where there is no folder of data."""
    return ["## Forests", "", *(noise(root) if root else []), *picks()]


def noise(root: str) -> list[str]:
    """Log score, estimated noise and total uncertainty of a forest, on three tables."""
    lines = [
        f"200 trees, {ROWS:,} rows; the log score of the mixture, and noise and total (squared error) over the squared error.",
        "",
        "| table | rows in a leaf at least | rows in a node at least | log score | noise | total |",
        "|---|---|---|---|---|---|",
    ]
    for name in TABLES:
        table = data.load(name, root=root, seed=0)
        learn, test = (table.train.inputs[:ROWS], table.train.targets[:ROWS]), table.test
        for leaf, least in [*((1, each) for each in LEAVES), (5, 5)]:
            forest = RandomForestRegressor(200, min_samples_leaf=leaf, random_state=0, n_jobs=-1).fit(*learn)
            ens = up.from_model(forest, test.inputs, min_samples=least)
            split = up.decompose(ens, "squared_error", prediction="mixture", truth="members")
            error = up.prediction_error(ens, test.targets).mean()
            log = -ens.mixture.log_density(test.targets).mean()
            shares = f"{split.bayes.mean() / error:.2f} | {ens.matched.variance.mean() / error:.2f}"
            lines.append(f"| {name} | {leaf} | {least} | {log:.3f} | {shares} |")
    return [*lines, ""]


def picks() -> list[str]:
    """The mean test NLL over the rounds, for each way to pick, on the example of docs/active_learning.md."""
    lines = [
        f"Mean test NLL over five rounds of 20 picks, {SEEDS} seeds, and its standard deviation between them.",
        "",
        f"| acquisition | {' | '.join(WAYS)} |",
        "|---" * (len(WAYS) + 1) + "|",
        f"| random | {_told(_losses('random'))} |" + " |" * (len(WAYS) - 1),
    ]
    return lines + [
        f"| {acquisition} | {' | '.join(_told(_losses(acquisition, **how)) for how in WAYS.values())} |"
        for acquisition in ACQUISITIONS
    ]


def _losses(acquisition: str, **how: Any) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(3000, 2))
    y = np.where(x[:, 0] > 0.0, np.sin(4.0 * x[:, 0]), 0.0) + 0.1 * rng.normal(size=3000)
    forest = RandomForestRegressor(n_estimators=50, min_samples_leaf=3)
    settings: dict[str, Any] = {"initial": 50, "batch_size": 20, "rounds": 5, "test": (x[2000:], y[2000:])}

    def loop(seed: int) -> float:
        learner = up.ActiveLearner(forest, x[:2000], y[:2000], acquisition=acquisition, random_state=seed, **settings, **how)
        return float(np.mean([state.metrics["nll"] for state in learner]))

    return np.array([loop(seed) for seed in range(SEEDS)])


def _told(losses: np.ndarray) -> str:
    return f"{losses.mean():.3f} ± {losses.std(ddof=1):.3f}"
