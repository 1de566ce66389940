"""How far promises of "removable" are kept, for networks, forests, boosting, Gaussian processes, MC dropout and evidence.

    python benchmarks/audit.py known [MODEL...]       # sets of known truth: factors fitted up to n rows, judged at 2n and 4n
    python benchmarks/audit.py tables DIR [MODEL...]  # real tables (Parquet files) in a folder, on subsamples
    python benchmarks/audit.py merge FILE...          # take over what was measured elsewhere, with AUDIT_STORE=FILE
    python benchmarks/audit.py write                  # the page of results, from what has been measured

Each audit is kept in benchmarks/audit.json when it is done; the same command goes on from there. Networks of all audits of sets
with as many inputs are trained in one stack, which a GPU trains as fast as those of one audit; AUDIT_SETS=sine,waves takes some.
Networks on resampled rows, on known and fresh sets, were measured by benchmarks/audit_jobs.py, where each audit has test rows of
its own; a few audits of the sets in view, and the mixture's log score, are from `known`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import audit_page
import audit_store
import numpy as np
from truths import KNOWN, Draw

import uqprism as up
from uqprism.support.storage import write_text
from uqprism.tasks.audit import Audit, audit
from uqprism.training import MLP, StackedFit

STORE = Path(os.environ.get("AUDIT_STORE", audit_store.STORE))
RULES = ("crps", "log", "quadratic", "squared_error")
MEASURES = [f"{rule}.excess.{roles}" for rule in RULES for roles in ("members.members", "mixture.members")]
TEST = 2000  # rows to judge by on a set of known truth
CLOSELY = audit_store.CLOSELY  # audited often enough to see how often its intervals hold
COUNTS = (1, 4), (6, 4)  # audits and other sets on each set of known truth: of networks on resampled rows, of others
MOST, SLOW_MOST = 1600, 800  # rows of a table, of which a quarter is held out

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


class Boosted:
    """Five boosted models; the mean squared error of each on a fifth of the rows, which none of them saw, is its noise."""

    def __init__(self, X: Any, y: Any, seed: int) -> None:
        from sklearn.ensemble import GradientBoostingRegressor

        held = np.random.default_rng(seed).permutation(len(y)) < len(y) // 5
        self.validation = X[held], y[held]
        self.models = [
            GradientBoostingRegressor(subsample=0.5, random_state=seed + number).fit(X[~held], y[~held]) for number in range(5)
        ]

    def predict_ensemble(self, X: Any) -> Any:
        """One Gaussian per model."""
        return up.from_model(self.models, X, validation=self.validation)


def boosting(X: Any, y: Any, seed: int = 0) -> Boosted:
    return Boosted(X, y, seed)


def process(X: Any, y: Any, seed: int = 0) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel(1.0) * RBF(np.ones(np.shape(X)[1])) + WhiteKernel(0.1)
    fitted = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    return make_pipeline(StandardScaler(), fitted).fit(X, y)


def ensemble_of(model: Any, X: Any, **settings: Any) -> Any:
    """The prediction of networks, on the device that they were trained on."""
    import torch

    given = torch.as_tensor(X, dtype=torch.float32, device=model.stack.rows.device)
    return model.predict_ensemble(given if given.is_cuda else X, **settings)


def ten_of(model: Any, X: Any) -> Any:
    return up.from_model(model, X, n_members=10)


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {  # what fits, and what predicts
    "networks, resampled rows": (lambda: networks(bootstrap=True), ensemble_of),
    "networks, seeds only": (networks, ensemble_of),
    "forest": (lambda: forest, None),
    "forest, leaves of 5": (lambda: partial(forest, min_samples_leaf=5), None),
    "boosting": (lambda: boosting, None),
    "Gaussian process": (lambda: process, ten_of),
    "MC dropout": (Passes, partial(ensemble_of, passes=30)),
    "evidential": (lambda: networks(n_members=1, head="evidential"), ensemble_of),
}

# Runs ------------------------------------------------------------------------------------------------------------------


def stored() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def short(values: Any, digits: int = 6) -> list[float]:
    """In few digits, which the file has room for."""
    return [float(f"{value:.{digits}g}") for value in np.ravel(values)]


def numbers(found: Audit, *, known: bool) -> dict[str, Any]:
    """What is kept of an audit, by measure."""
    names = ("excess", "noise", "penalty") if known else ("excess", "noise", "penalty", "procedural", "data")
    about = {name: {each: short(getattr(found[name], each)) for each in names} for name in found}
    for name in found:
        drawn = found[name].replicates
        if drawn is not None:  # how excess and penalty vary together, of which the intervals are made
            covariance = np.cov(np.concatenate([drawn[0], drawn[2]], axis=1).T)
            about[name]["covariance"] = short(covariance[np.triu_indices(len(covariance))], 4)
    return about


def keep(key: str, found: Audit, seconds: float) -> None:
    """Keep what an audit found, by measure."""
    about = numbers(found, known=key.startswith("known"))
    write_text(STORE, json.dumps(stored() | {key: {"sizes": found.sizes, "measures": about}}))
    print(f"{key}: {seconds:.0f} s. {found}", flush=True)


def merge(found: list[dict[str, Any]]) -> None:
    """Take over audits; measures that they lack stay as they were."""
    every = stored()
    for key, value in [item for each in found for item in each.items()]:
        every[key] = value | {"measures": every.get(key, {}).get("measures", {}) | value["measures"]}
    write_text(STORE, json.dumps(every))


def run(key: str, given: tuple[Any, Any], settings: dict[str, Any], fit: Any) -> None:
    if key in stored():
        return
    started = time.perf_counter()
    keep(key, audit(fit, *given, measures=MEASURES, progress=False, **settings), time.perf_counter() - started)


class Together:
    """Audits of the same plan, of sets with as many inputs, whose networks of one size are trained in one stack.

    Each audit runs in a thread of its own. They wait for each other where networks are trained, and go on one after the other.
    """

    def __init__(self, fit: Any, jobs: int) -> None:
        self.fit, self.jobs = fit, jobs
        self.given: dict[int, tuple[Any, ...]] = {}
        self.models: dict[int, list[Any]] = {}
        self.all_here = threading.Barrier(jobs, self._train)
        self.turn = threading.Lock()

    def run(self, jobs: Sequence[Callable[[Any], None]]) -> None:
        """Run each job with a `fit` for `up.audit`."""
        with ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(self._one, number, job) for number, job in enumerate(jobs)]:
                done.result()

    def _one(self, number: int, job: Callable[[Any], None]) -> None:
        with self.turn:
            try:
                job(Part(self, number))
            except BaseException:
                self.all_here.abort()
                raise

    def many(self, number: int, *given: Any) -> list[Any]:
        """The models of one audit, once all audits have said what they want."""
        self.given[number] = given
        self.turn.release()
        try:
            self.all_here.wait()
        finally:
            self.turn.acquire()
        return self.models.pop(number)

    def _train(self) -> None:
        inputs, targets, rows, seeds = zip(*(self.given[number] for number in range(self.jobs)), strict=True)
        starts = np.cumsum([0, *map(len, targets)])
        moved = [each + start for each, start in zip(rows, starts[:-1], strict=True)]
        every = self.fit.many(
            np.concatenate(inputs), np.concatenate(targets), np.concatenate(moved), [seed for each in seeds for seed in each]
        )
        ends = np.cumsum([0, *map(len, rows)])
        self.models = {number: every[ends[number] : ends[number + 1]] for number in range(self.jobs)}
        print(f"{len(every)} ensembles of {rows[0].shape[1]} rows trained, {time.perf_counter():.0f} s", flush=True)


class Part:
    """What one audit calls to train its networks."""

    def __init__(self, all_of_them: Together, number: int) -> None:
        self.all_of_them, self.number = all_of_them, number

    def __call__(self, X: Any, y: Any, seed: int = 0) -> Any:
        """One training set alone."""
        return self.all_of_them.fit(X, y, seed)

    def many(self, *given: Any) -> list[Any]:
        """Several."""
        return self.all_of_them.many(self.number, *given)


def known(names: list[str]) -> None:
    """Audits of n rows, and what happens with other sets of 4n rows."""
    wanted = os.environ.get("AUDIT_SETS")
    sets = {name: make for name, make in KNOWN.items() if wanted is None or name in wanted.split(",")}
    for model in names:
        for inputs in sorted({make(1, 0)[0].shape[1] for make in sets.values()}):
            alike = {name: make for name, make in sets.items() if make(1, 0)[0].shape[1] == inputs}
            for what in ("audit", "other"):
                _known(model, alike, what)


def _known(model: str, sets: dict[str, Draw], what: str) -> None:
    make_fit, predict = MODELS[model]
    count = COUNTS[model == CLOSELY][what == "other"]
    about: dict[str, Any] = {"repeats": 4 if model == CLOSELY else 2, "resamples": 500 if model == CLOSELY else 0}
    if what == "other":
        about = {"parts": 4, "repeats": 1, "resamples": 0}
    jobs, n = [], audit_store.rows_of(model)
    for name, make in sets.items():
        first, rows = (0, n) if what == "audit" else (1000, 4 * n)
        for number in range(count):
            key = f"known/{name}/{model}/{what} {number}"
            if key not in stored():
                how = {"test": make(TEST, 10**6), "predict": predict, "seed": first + number, **about}
                jobs.append(partial(run, key, make(rows, first + number), how))
    if not hasattr(make_fit(), "many"):
        for job in jobs:
            job(make_fit())
    elif jobs:
        Together(make_fit(), len(jobs)).run(jobs)


def tables(folder: str, names: list[str]) -> None:
    """Audits of real tables, on a subsample of the rows; each repeat holds out other rows."""
    for path in sorted([*Path(folder).glob("*.parquet"), *Path(folder).glob("tables/*.parquet")]):
        for model in [] if path.stem in LEFT_OUT else names:
            make_fit, predict = MODELS[model]
            data = table(path, SLOW_MOST if model == "Gaussian process" else MOST)
            run(f"tables/{path.stem}/{model}", data, {"repeats": 2, "predict": predict}, make_fit())


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
    elif what == "merge":
        merge([json.loads(Path(path).read_text()) for path in rest])
    elif what == "write":
        audit_page.write()
