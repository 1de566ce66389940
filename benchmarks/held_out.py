"""Predictions of deep ensembles and random forests for held-out rows of real tables, trained once and kept in a folder."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import uqprism as up
from uqprism.support.storage import atomic

TRAINING, POOL = 3_000, 4_000  # rows at most: to learn from, and held out
MEMBERS, TREES = 5, 50
TARGETS = {"ccpp": "PE", "casp": "RMSD", "online_news": "shares", "ymsd": "year", "california_housing": "medianHouseValue"}
LOGARITHMS = ("sgemm", "online_news", "blogfeedback")  # whose targets span decades
SERIES = ("Run1 (ms)", "Run2 (ms)", "Run3 (ms)", "Run4 (ms)")  # of sgemm: their mean is the target
MODELS = ("deep ensemble", "random forest")


@dataclass(frozen=True)
class HeldOut:
    """Predictions for rows that the model has not seen.

    Attributes:
        table: which.
        model: one of `MODELS`.
        ensemble: the predictions.
        inputs: of the rows, (rows, features).
        target: of the rows, (rows,).
    """

    table: str
    model: str
    ensemble: up.EnsemblePrediction
    inputs: np.ndarray
    target: np.ndarray


def names(root: Path) -> list[str]:
    """All tables of the folder and of `tables` in it."""
    return sorted(path.stem for path in [*root.glob("*.parquet"), *(root / "tables").glob("*.parquet")])


def read(root: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and target of a table: categories as columns of zeros and ones, or codes if there are many; gaps as medians."""
    import pandas as pd  # here, because reading what was kept needs none

    path = root / f"{name}.parquet" if (root / f"{name}.parquet").exists() else root / "tables" / f"{name}.parquet"
    frame = pd.read_parquet(path).drop(columns=list(SERIES), errors="ignore").drop_duplicates()
    target = TARGETS.get(name, frame.columns[-1])
    frame = frame[frame[target].notna()]
    y = frame.pop(target).to_numpy(np.float64)
    columns = []
    for column in frame:
        values = frame[column]
        if str(values.dtype).startswith("datetime"):
            columns.append(values.astype("int64").to_numpy(np.float64))
        elif not pd.api.types.is_numeric_dtype(values):
            codes = pd.Categorical(values).codes
            few = codes.max() < 12
            columns += [(codes == code).astype(np.float64) for code in range(codes.max() + 1)] if few else [codes.astype(float)]
        else:
            columns.append(values.fillna(values.median()).to_numpy(np.float64))
    inputs = np.column_stack(columns)
    return inputs[:, inputs.std(axis=0) > 0.0], np.log1p(y) if name in LOGARITHMS else y


def train(root: Path, folder: Path, name: str, model: str) -> None:
    """Train, predict and keep, unless it is there."""
    path = folder / f"{name}-{model.replace(' ', '_')}.npz"
    if path.exists():
        return
    started, (inputs, y) = time.perf_counter(), read(root, name)
    order = np.random.default_rng(0).permutation(len(y))
    pool, training = np.split(order[: TRAINING + POOL], [min(POOL, len(y) // 2)])
    training = training[:TRAINING]
    if model == "deep ensemble":
        # Inputs far out, as constant columns with single exceptions have, are standardised inside.
        fitted = up.DeepEnsembleRegressor(MEMBERS, random_state=0, progress=False).fit(inputs[training], y[training])
        ensemble = fitted.predict_ensemble(inputs[pool])
    else:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(TREES, random_state=0).fit(inputs[training], y[training])
        ensemble = up.from_model(forest, inputs[pool])
    ensemble.save(folder / f"{path.stem}.members.npz")
    with atomic(path) as file:
        np.savez(file, inputs=inputs[pool], target=y[pool])
    print(f"{name}, {model}: {len(training)} rows, {len(pool)} held out, {time.perf_counter() - started:.0f} s", flush=True)


def held_out(folder: Path) -> Iterator[HeldOut]:
    """What has been kept, in the order of the tables."""
    for path in sorted(folder.glob("*.npz")):
        if path.name.endswith(".members.npz"):
            continue
        name, _, model = path.stem.rpartition("-")
        with np.load(path) as arrays:
            ensemble = up.EnsemblePrediction.load(folder / f"{path.stem}.members.npz")
            yield HeldOut(name, model.replace("_", " "), ensemble, arrays["inputs"], arrays["target"])


def kept_splits(folder: Path, name: str, one_split: Callable[[HeldOut, int], dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """So many splits of all tables and models; those that an earlier run has kept, in the subfolder of this name, as they are."""
    found, kept = [], folder / name
    kept.mkdir(exist_ok=True)
    for given in held_out(folder):
        path = kept / f"{given.table}-{given.model}.json"
        if not path.exists():
            started = time.perf_counter()
            splits = [one_split(given, seed) for seed in range(count)]
            path.write_text(json.dumps({"table": given.table, "model": given.model, "splits": splits}))
            print(f"{given.table}, {given.model}: {time.perf_counter() - started:.0f} s", flush=True)
        found.append(json.loads(path.read_text()))
    return found


def main() -> None:
    """Train all that is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where predictions are kept")
    parser.add_argument(
        "--data", default=os.environ.get("UQPRISM_DATA"), help="folder of the real tables; by default UQPRISM_DATA"
    )
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in names(Path(given.data)):
        for model in MODELS:
            train(Path(given.data), given.folder, name, model)


if __name__ == "__main__":
    main()
