"""How far promises of "removable" are kept, for networks, forests, boosting, Gaussian processes, MC dropout and evidence.

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
N, TEST = 1024, 2000  # rows of an audit on a set of known truth, whose sizes are n/8 ... n; rows to judge by
SLOW_N = 256  # the same for models that are slow to train
CLOSELY = "networks, resampled rows"  # audited four times on four sets; the others once on two of them
MOST, SLOW_MOST = 1600, 800  # rows of a table, of which a quarter is held out

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
        """A trained network."""
        return self.inner(X, y, seed)

    def many(self, *given: Any) -> Any:
        """A trained network for each training set."""
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
SLOW = {"boosting", "Gaussian process"}

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
        n = SLOW_N if model in SLOW else N
        audits, others, repeats = (4, 4, 4) if model == CLOSELY else (1, 2, 2)
        for name, make in list(KNOWN.items())[: 4 if model == CLOSELY else 2]:
            how = {"test": make(TEST, 10**6), "predict": predict}
            for number in range(audits):
                run(f"known/{name}/{model}/audit {number}", make_fit(), *make(n, number), repeats=repeats, seed=number, **how)
            for number in range(others):
                seed = 1000 + number
                about = {"seed": seed, "parts": 4, "repeats": 1, "resamples": 0}
                run(f"known/{name}/{model}/other {number}", make_fit(), *make(4 * n, seed), **about, **how)


def tables(folder: str, names: list[str]) -> None:
    """Audits of real tables, on a subsample of the rows; each repeat holds out other rows."""
    for model in names:
        make_fit, predict = MODELS[model]
        for path in sorted([*Path(folder).glob("*.parquet"), *Path(folder).glob("tables/*.parquet")]):
            if path.stem not in LEFT_OUT:
                data = table(path, SLOW_MOST if model in SLOW else MOST)
                run(f"tables/{path.stem}/{model}", make_fit(), *data, repeats=2, predict=predict)


LEFT_OUT = {"blogfeedback", "ymsd"}  # 280 and 90 inputs for 1,200 rows
TARGETS = {
    "ccpp": "PE",
    "casp": "RMSD",
    "sgemm": "run_mean_ms",
    "online_news": "shares",
    "california_housing": "medianHouseValue",
}
LOGARITHM = {"sgemm", "online_news", "california_housing", "diamonds", "ames", "insurance", "pm25", "taxis"}
CATEGORIES = 6  # of a text column: others have the last code


def table(path: Path, most: int) -> tuple[Any, Any]:
    """Inputs in standard units and the target, with text as codes and rows with missing numbers left out."""
    import pandas as pd

    frame = pd.read_parquet(path).drop_duplicates()
    target = TARGETS.get(path.stem, frame.columns[-1])
    y = pd.to_numeric(frame.pop(target))
    parts = []
    for name, column in frame.items():
        if column.dtype.kind in "fiub":
            parts.append(column.astype(float).rename(name))
        elif column.nunique() <= 60:
            usual = column.value_counts().index[: CATEGORIES - 1]
            parts += [(column == value).astype(float).rename(f"{name}={value}") for value in usual]
    inputs = pd.concat(parts, axis=1)
    inputs = inputs.loc[:, inputs.notna().mean() > 0.95]
    good = (inputs.notna().all(axis=1) & y.notna()).to_numpy()
    rows = np.random.default_rng(0).permutation(np.flatnonzero(good))[:most]
    x = inputs.to_numpy()[rows]
    x = x[:, x.std(axis=0) > 0.0]
    values = y.to_numpy(dtype=float)[rows]
    return (x - x.mean(axis=0)) / x.std(axis=0), np.log1p(values) if path.stem in LOGARITHM else values


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "known":
        known(rest or list(MODELS))
    elif what == "tables":
        tables(rest[0], rest[1:] or list(MODELS))
