"""Attack the package, count what comes of it, and write RESULTS-attack.md.

    python benchmarks/attack [--seed N] [--rounds N] [NAME ...]

Each module of this folder with a function `run(seed, rounds)` is a set of attacks; NAME picks some. A try may end in a clean
error (one message, nothing half-written) or in the right answer. A wrong answer without a word, a traceback, and more than 5 s or
500 MB beyond what the same work takes undisturbed must not be: the exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import multiprocessing
import platform
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.results import processor

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "RESULTS-attack.md"
PACKAGES = ("uqprism", "numpy", "pyarrow", "numba")
HEAD = ("attack", "tries", "clean errors", "right answers", "silently wrong", "tracebacks", "over 5 s", "over 500 MB")
BAD = slice(4, 8)  # columns that must be 0


def main() -> int:
    """Run the attacks; 1 if any of them succeeded."""
    found = modules()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"Of {', '.join(found)}; by default all.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20, help="How often each attack is tried, where that is not fixed.")
    given = parser.parse_args()
    if unknown := set(given.names) - set(found):
        parser.error(f"no attacks named {', '.join(sorted(unknown))}; choose from {', '.join(found)}")
    started, rows = time.perf_counter(), []
    print(line(HEAD))
    for row in outcomes(given.names or found, given.seed, given.rounds):
        rows.append(row)
        print(line(row), flush=True)
    if not given.names:
        RESULTS.write_text(page(rows, given.seed, given.rounds, time.perf_counter() - started))
    return int(any(sum(row[BAD]) for row in rows))


def modules() -> list[str]:
    """The modules of this folder that attack."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run" and "\ndef run(" in path.read_text())


def outcomes(names: list[str], seed: int, rounds: int) -> Iterator[tuple[Any, ...]]:
    """The rows of all attacks, each module in a process of its own, so that neither settings nor memory of one reach another."""
    for name in names:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            yield from alone.submit(attack, name, seed, rounds).result()


def attack(name: str, seed: int, rounds: int) -> list[tuple[Any, ...]]:
    """The rows of one module."""
    rows = importlib.import_module(f"benchmarks.attack.{name}").run(seed, rounds)
    return [tuple(row.values()) if isinstance(row, Mapping) else tuple(row) for row in rows]


def line(row: tuple[Any, ...]) -> str:
    """A line of the table."""
    return f"{row[0]:<48}" + "".join(f"{value:>16}" for value in row[1:])


def page(rows: list[tuple[Any, ...]], seed: int, rounds: int, seconds: float) -> str:
    """The results as Markdown."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    total = ("all", *(sum(row[i] for row in rows) for i in range(1, len(HEAD))))
    return "\n".join(
        [
            "# What attacks found",
            "",
            "`python benchmarks/attack`. Each try should end in a clean error or the right answer: the four columns on the right",
            "must be 0. Time and memory count beyond what the same work takes undisturbed.",
            "",
            f"Seed {seed}, {rounds} rounds, {seconds / 60:.0f} minutes, {datetime.date.today().isoformat()}, {processor()}, "
            f"Python {platform.python_version()}, {versions}.",
            "",
            f"| {' | '.join(HEAD)} |",
            f"|---|{'--:|' * (len(HEAD) - 1)}",
            *(f"| {' | '.join(map(str, row))} |" for row in [*rows, total]),
            "",
        ]
    )
