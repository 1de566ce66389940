"""Deep ensembles beside what else predicts distributions for tables, each as its documentation starts it.

    UQPRISM_DATA=... python benchmarks/tabular.py run --rows 2000 --splits 3      # one line of JSON per finished cell; goes on
    UQPRISM_DATA=... python benchmarks/tabular.py prepare FOLDER                  # the rows of the splits, for other machines
    python benchmarks/tabular.py run --prepared FOLDER --jobs 15 --cells OTHER    # there; then append the lines to tabular.jsonl
    python benchmarks/tabular.py write                                            # RESULTS-tabular.md from these lines

A cell is a model on a split of a table; of two lines for one cell the later counts. Fits of a model that took longer than the
limit are not tried on larger tables. A line names the machine it was measured on: seconds are compared on one machine only.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import multiprocessing
import os
import platform
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import peers
import public
import tabular_report

import uqprism as up
from uqprism.errors import UnsupportedError

Array = Any
Cell = dict[str, Any]
CELLS = Path(__file__).parent / "tabular.jsonl"
KEY = ("table", "split", "rows", "model")
LIMIT = 600.0  # seconds of one fit


@dataclass(frozen=True)
class Sizes:
    """How many rows of a split are used at most, and where they are prepared."""

    training: int = 2000
    test: int = 2000
    prepared: Path | None = None

    @cache  # noqa: B019 - a few megabytes for each table
    def rows(self, table: str, number: int) -> tuple[Array, Array, Array, Array]:
        """Inputs and targets of the training and of the test rows."""
        if self.prepared is not None:
            with np.load(self.prepared / f"{table}-{number}.npz") as stored:
                own, given = slice(self.training), slice(self.test)
                return stored["x"][own], stored["y"][own], stored["x_test"][given], stored["y_test"][given]
        x, y = public.load(table)
        training, test = public.split(y, number, self.training, self.test)
        return x[training], y[training], x[test], y[test]


def scores(ens: Any, y: Array) -> dict[str, float]:
    """Errors and scores of one prediction."""
    # One member is its own mixture, and may have probability at single values, of which no mixture is made.
    mixture, at = (ens.members, y[None]) if ens.n_members == 1 else (ens.mixture, y)
    matched = ens.matched
    lower, upper = (np.reshape(mixture.quantile(level), y.shape) for level in (0.05, 0.95))
    found = {"rmse": np.sqrt(np.mean((matched.mean - y) ** 2)), "nll_gaussian": np.mean(up.rules.Log().score(matched, y))}
    with contextlib.suppress(UnsupportedError):  # quantiles that coincide have no density
        found["nll"] = np.mean(up.rules.Log().score(mixture, at))
    found |= {
        "crps": np.mean(up.rules.CRPS().score(mixture, at)),
        "coverage": np.mean((lower <= y) & (y <= upper)),
        "width": np.mean(upper - lower),
    }
    if ens.n_members > 1:
        split = up.decompose(ens, rule="squared_error", prediction="mixture", truth="members")
        found |= {"noise": np.mean(np.sqrt(split.aleatoric)), "disagreement": np.mean(np.sqrt(np.clip(split.epistemic, 0, None)))}
    return {name: float(value) for name, value in found.items()}


def machine() -> str:
    """The processor, and how many of it there are."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()}, {os.cpu_count()} cores"
    return f"{platform.machine()}, {os.cpu_count()} cores"


def version(model: str) -> str:
    """Which release of its package a model is of, of PyTorch for ours."""
    package = _packages()[peers.IMPORTED[model]][0]
    return f"{package} {metadata.version(package)}"


@cache
def _packages() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def used(model: str, rows: int) -> int:
    """The training rows that a model gets."""
    return min(rows, peers.LARGEST.get(model, rows))


def measure(table: str, number: int, name: str, sizes: Sizes) -> Cell:
    """One cell; an error of the model is a result, too."""
    x, y, x_test, y_test = sizes.rows(table, number)
    own = used(name, len(y))
    cell: Cell = dict(zip(KEY, (table, number, len(y), name), strict=True))
    cell |= {"columns": x.shape[1], "test_rows": len(y_test), "used_rows": own, "machine": machine(), "threads": peers.CORES}
    cell |= {"device": peers.DEVICE} if name in peers.ON_DEVICE else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(peers.IMPORTED[name])  # not timed
            cell["version"] = version(name)
            start, before = time.perf_counter(), time.process_time()
            predict = peers.MODELS[name](x[:own], y[:own], number)
            cell |= {"fit": time.perf_counter() - start, "fit_processor": time.process_time() - before}
            start = time.perf_counter()
            ens = predict(x_test)
            cell["predict"] = time.perf_counter() - start
            cell |= scores(ens, y_test)
    except Exception as error:
        traceback.print_exc()
        cell["error"] = f"{type(error).__name__}: {error}"[:200]
    return cell


def finished(path: Path = CELLS) -> list[Cell]:
    """The cells of earlier runs, the latest of each."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return list({tuple(cell[name] for name in KEY): cell for cell in lines}.values())


def run(tasks: Iterable[tuple[str, int, str]], sizes: Sizes, *, jobs: int, path: Path) -> None:
    """Measure the cells that are missing, in this order, and write each as soon as it is known."""
    cells = finished(path)
    done = {(cell["table"], cell["split"], cell["model"]): cell["rows"] for cell in cells}
    slow = {cell["model"]: cell["used_rows"] * cell["columns"] for cell in cells if cell.get("fit", 0.0) > LIMIT}

    def wanted() -> Iterator[tuple[str, int, str]]:
        for task in tasks:
            x, name = sizes.rows(task[0], task[1])[0], task[2]
            if done.get(task) != len(x) and used(name, len(x)) * x.shape[1] < 1.2 * slow.get(name, np.inf):
                yield task

    with path.open("a") as file:
        for cell in _all(wanted(), sizes, jobs):
            file.write(json.dumps(cell) + "\n")
            file.flush()
            if cell.get("fit", 0.0) > LIMIT:
                size = cell["used_rows"] * cell["columns"]
                slow[cell["model"]] = min(size, slow.get(cell["model"], size))
            print(time.strftime("%T"), {k: round(v, 3) if isinstance(v, float) else v for k, v in cell.items()}, flush=True)


def _all(tasks: Iterator[tuple[str, int, str]], sizes: Sizes, jobs: int) -> Iterator[Cell]:
    if jobs == 1:
        yield from (measure(*task, sizes) for task in tasks)
        return
    spawn = multiprocessing.get_context("spawn")
    cores = spawn.SimpleQueue()
    for core in sorted(os.sched_getaffinity(0))[:jobs]:
        cores.put(core)
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_pin, initargs=(cores,)) as pool:
        running: set[Future[Cell]] = set()
        for task in tasks:
            running.add(pool.submit(measure, *task, sizes))
            if len(running) == jobs:
                ready, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in ready)
        while running:
            ready, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (one.result() for one in ready)


def _pin(cores: Any) -> None:
    """Keep a process on a core of its own, whatever pools of threads its libraries make."""
    if not cores.empty():
        os.sched_setaffinity(0, {cores.get()})


def prepare(tables: Iterable[str], splits: int, sizes: Sizes, folder: Path) -> None:
    """Store the rows of the splits."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for number in range(splits):
            x, y, x_test, y_test = sizes.rows(table, number)
            np.savez_compressed(folder / f"{table}-{number}.npz", x=x, y=y, x_test=x_test, y_test=y_test)


def main() -> None:
    """Run, prepare or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "prepare", "write"])
    parser.add_argument("folder", type=Path, nargs="?", help="where to prepare the rows")
    parser.add_argument("--tables", nargs="*", default=list(public.FILES))
    parser.add_argument("--models", nargs="*", default=list(peers.MODELS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000, help="training rows at most")
    parser.add_argument("--test-rows", type=int, default=2000)
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--prepared", type=Path, help="folder of prepared rows")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each; set OMP_NUM_THREADS=1 too")
    parser.add_argument("--by-model", action="store_true", help="all cells of a model before the next model's")
    given = parser.parse_args()
    sizes = Sizes(given.rows, given.test_rows, given.prepared)
    if given.what == "write":
        tabular_report.write(finished(given.cells))
    elif given.what == "prepare":
        prepare(given.tables, given.splits, sizes, given.folder)
    else:
        splits = range(given.splits)
        if given.by_model:
            tasks = [(table, number, name) for name in given.models for number in splits for table in given.tables]
        else:
            tasks = [(table, number, name) for number in splits for table in given.tables for name in given.models]
        run(tasks, sizes, jobs=given.jobs, path=given.cells)


if __name__ == "__main__":
    main()
