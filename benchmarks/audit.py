"""How far promises of "removable" are kept: deep ensembles, forests, boosting, a Gaussian process, MC dropout, evidential networks.

    python benchmarks/audit.py known        # sets of known truth: factors fitted up to n rows, judged at 2n and 4n on other sets
    python benchmarks/audit.py tables DIR   # real tables (Parquet files) in a folder, on subsamples
    python benchmarks/audit.py write        # the page of results, from what has been measured

Each audit is kept in benchmarks/audit.json when it is done; the same command goes on from there.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import uqprism as up
from uqprism.paper.data.synthetic import sine, two_curves
from uqprism.support.storage import write_text
from uqprism.tasks.audit import Audit, audit
from uqprism.training import MLP, StackedFit

STORE = Path(__file__).with_suffix(".json")
RULES = ("crps", "log", "quadratic", "squared_error")
MEASURES = [f"{rule}.excess.{roles}" for rule in RULES for roles in ("members.members", "mixture.members")]
N = 1024  # rows of an audit on a set of known truth; sizes n/8 ... n
AUDITS, OTHERS, TEST = 4, 4, 2000  # audits of a set and a model, other sets of 4n rows, rows to judge by
MOST = 2400  # rows of a table

# Sets of known truth ---------------------------------------------------------------------------------------------------


def friedman(n: int, seed: int) -> tuple[Any, Any]:
    """Five inputs (Friedman 1991), with noise that grows from 0.5 to 2.5 along the first."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 5))
    mean = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3] + 5.0 * x[:, 4]
    return x, mean + (0.5 + 2.0 * x[:, 0]) * rng.standard_normal(n)


def plane(n: int, seed: int) -> tuple[Any, Any]:
    """Eight inputs, of which three bend the target, with noise of 0.5."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size=(n, 8))
    mean = x @ np.linspace(1.0, 0.0, 8) + np.tanh(2.0 * x[:, 0] * x[:, 1]) + np.abs(x[:, 2])
    return x, mean + 0.5 * rng.standard_normal(n)


KNOWN: dict[str, Callable[[int, int], tuple[Any, Any]]] = {
    "friedman": friedman,
    "plane": plane,
    "sine": sine,
    "two_curves": two_curves,
}

# Models ----------------------------------------------------------------------------------------------------------------


def networks(**settings: Any) -> Any:
    """Five networks of two layers of 50."""
    usual = {"n_members": 5, "network": MLP((50, 50)), "max_epochs": 300, "batch_size": 32, "progress": False}
    return StackedFit(**usual | settings)


class Passes:
    """MC dropout: one network, thirty passes."""

    def __init__(self) -> None:
        self.inner = networks(n_members=1, network=MLP((50, 50), dropout=0.1))

    def __call__(self, X: Any, y: Any, seed: int = 0) -> Any:
        return self.inner(X, y, seed)

    def many(self, *given: Any) -> Any:
        return self.inner.many(*given)


def forest(X: Any, y: Any, seed: int = 0, **settings: Any) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(50, random_state=seed, **settings).fit(X, y)


def boosting(X: Any, y: Any, seed: int = 0) -> Any:
    """Five NGBoost models of half of the rows for each step, on all rows."""
    from ngboost import NGBRegressor

    return [
        NGBRegressor(n_estimators=100, learning_rate=0.05, minibatch_frac=0.5, random_state=seed + i, verbose=False).fit(X, y)
        for i in range(5)
    ]


def process(X: Any, y: Any, seed: int = 0) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel(1.0) * RBF(np.ones(np.shape(X)[1])) + WhiteKernel(0.1)
    fitted = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    return make_pipeline(StandardScaler(), fitted).fit(X, y)


def passes_of(model: Any, X: Any) -> Any:
    return model.predict_ensemble(X, passes=30)


def ten_of(model: Any, X: Any) -> Any:
    return up.from_model(model, X, n_members=10)


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {  # what fits, and what predicts
    "networks, resampled rows": (lambda: networks(bootstrap=True), None),
    "networks, seeds only": (networks, None),
    "forest": (lambda: forest, None),
    "forest, leaves of 5": (lambda: partial(forest, min_samples_leaf=5), None),
    "boosting": (lambda: boosting, None),
    "Gaussian process": (lambda: process, ten_of),
    "MC dropout": (Passes, passes_of),
    "evidential": (lambda: networks(n_members=1, head="evidential"), None),
}
LONG = {"boosting", "Gaussian process"}  # fewer and smaller audits

# Runs ------------------------------------------------------------------------------------------------------------------


def stored() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def keep(key: str, found: Audit, seconds: float) -> None:
    """Keep what an audit found, by measure."""
    about = {
        name: {
            "excess": found[name].excess.tolist(),
            "noise": found[name].noise.tolist(),
            "penalty": found[name].penalty.tolist(),
            "procedural": found[name].procedural.tolist(),
            "data": found[name].data.tolist(),
            "after": {str(growth): found[name].after(growth) for growth in (2, 4)},
        }
        for name in found
    }
    write_text(STORE, json.dumps(stored() | {key: {"sizes": found.sizes, "measures": about}}))
    print(f"{key}: {seconds:.0f} s. {found}", flush=True)


def run(key: str, fit: Any, *given: Any, **settings: Any) -> None:
    if key in stored():
        return
    started = time.perf_counter()
    keep(key, audit(fit, *given, measures=MEASURES, progress=False, **settings), time.perf_counter() - started)


def known(names: list[str]) -> None:
    """Audits of n rows, and what happens with other sets of 4n rows."""
    for model in names:
        make_fit, predict = MODELS[model]
        few = model in LONG
        n = N // 4 if few else N
        for name, make in KNOWN.items():
            test = make(TEST, 10**6)
            for number in range(1 if few else AUDITS):
                data, settings = make(n, number), {"test": test, "predict": predict}
                run(f"known/{name}/{model}/audit {number}", make_fit(), *data, repeats=2 if few else 4, seed=number, **settings)
            for number in range(2 if few else OTHERS):
                data, settings = make(4 * n, 1000 + number), {"test": test, "predict": predict, "parts": 4, "repeats": 1}
                run(f"known/{name}/{model}/other {number}", make_fit(), *data, seed=1000 + number, resamples=0, **settings)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "known":
        known(rest or list(MODELS))
