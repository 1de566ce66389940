"""The public tables that `tabular.py` and `defaults.py` measure on, as numbers, with splits that every model shares.

All models get the same matrix: categories of at most 12 values as one column each, others by how often they occur, missing
numbers as the median with a column that says so. Rows that are exact copies of others are dropped where that is stated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
FEW = 12  # categories that get a column each


@dataclass(frozen=True)
class Source:
    """Where a table is, and how it is read.

    Attributes:
        file: below the folder of the data.
        target: its column; by default the last.
        drop: columns that give the target away, or are dates.
        log: whether the logarithm of the target is predicted, as is usual for this table.
        distinct: whether copies of rows are dropped.
    """

    file: str
    target: str | None = None
    drop: tuple[str, ...] = ()
    log: bool = False
    distinct: bool = False


FILES = {
    "airfoil": Source("tables/airfoil.parquet"),
    "insurance": Source("tables/insurance.parquet"),
    "ames": Source("tables/ames.parquet"),
    "abalone": Source("tables/abalone.parquet"),
    "wine_white": Source("tables/wine_white.parquet", distinct=True),
    "taxis": Source("tables/taxis.parquet", drop=("pickup",)),
    "ymsd": Source("ymsd.parquet", target="year"),
    "ccpp": Source("ccpp.parquet", target="PE"),
    "online_news": Source("online_news.parquet", target="shares", log=True),
    "bike": Source("tables/bike.parquet"),
    "california": Source("california_housing.parquet"),
    "pm25": Source("tables/pm25.parquet"),
    "casp": Source("casp.parquet", target="RMSD"),
    "diamonds": Source("tables/diamonds.parquet"),
    "sgemm": Source(
        "sgemm.parquet",
        target="run_mean_ms",
        drop=("Run1 (ms)", "Run2 (ms)", "Run3 (ms)", "Run4 (ms)"),
        log=True,
    ),
}
SMALL = {"mpg": Source("tables/mpg.parquet")}


def folder() -> Path:
    """The folder of the data, from UQPRISM_DATA."""
    if "UQPRISM_DATA" not in os.environ:
        raise SystemExit("set UQPRISM_DATA to the folder of the public tables")
    return Path(os.environ["UQPRISM_DATA"])


def read(source: Source) -> tuple[Array, Array]:
    """Inputs and targets as numbers."""
    import pandas as pd

    frame = pd.read_parquet(folder() / source.file)
    frame = frame.drop_duplicates() if source.distinct else frame
    target = source.target or frame.columns[-1]
    y = frame.pop(target).to_numpy(np.float64)
    columns: list[Array] = []
    for name in frame.columns.difference(source.drop, sort=False):
        columns += _numbers(frame[name])
    return np.column_stack(columns), np.log(y) if source.log else y


def _numbers(column: Any) -> list[Array]:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(np.float64)
        missing = np.isnan(values)
        filled = np.where(missing, np.nanmedian(values), values)
        return [filled, missing.astype(float)] if missing.any() else [filled]
    text = column.astype("string").fillna("missing")
    counts = text.value_counts()
    if len(counts) <= FEW:
        return [(text == value).to_numpy(float) for value in sorted(counts.index)]
    return [text.map(counts).to_numpy(float)]


def friedman(rows: int, noise: Callable[[Array], Array], seed: int, columns: int = 10) -> tuple[Array, Array]:
    """Friedman's first function of ten columns or more, five of which matter, with noise of this scale."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(rows, columns))
    mean = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, mean + noise(x) * rng.normal(size=rows)


def steps(rows: int, seed: int) -> tuple[Array, Array]:
    """A function with jumps, of columns with long tails, and noise that depends on one of them."""
    rng = np.random.default_rng(seed)
    x = rng.lognormal(size=(rows, 8))
    mean = np.floor(2 * np.log(x[:, 0])) + np.where(x[:, 1] > x[:, 2], 2.0, 0.0) + np.log(x[:, 3])
    return x, mean + 0.1 * (1 + x[:, 4]) * rng.normal(size=rows)


def diabetes() -> tuple[Array, Array]:
    """scikit-learn's table of 442 patients."""
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    return x, y


MADE: dict[str, Callable[[], tuple[Array, Array]]] = {
    "diabetes": diabetes,
    "friedman": partial(friedman, 1000, lambda x: np.ones(len(x)), 0),
    "friedman, unequal noise": partial(friedman, 5000, lambda x: 0.3 + 3 * x[:, 5], 1),
    "friedman, 20 columns": partial(friedman, 11_111, lambda x: np.ones(len(x)), 3, 20),  # 10,000 rows to train on
    "steps": partial(steps, 3000, 2),
}


def load(name: str) -> tuple[Array, Array]:
    """A table by its name; its arrays where `save` has written them, on a machine without pandas."""
    if name in MADE:
        return MADE[name]()
    if (folder() / f"{name}.npz").exists():
        with np.load(folder() / f"{name}.npz") as arrays:
            return arrays["x"], arrays["y"]
    return read((FILES | SMALL)[name])


def save(names: Iterable[str], to: Path) -> None:
    """Write the arrays of tables."""
    for name in names:
        x, y = load(name)
        np.savez_compressed(to / f"{name}.npz", x=x, y=y)


def split(y: Array, number: int, most_training: int, most_test: int) -> tuple[Array, Array]:
    """Row numbers of a random 90/10 split, of which at most so many are used."""
    order = np.random.default_rng(number).permutation(len(y))
    test, training = np.split(order, [len(y) // 10])
    return training[:most_training], test[:most_test]
