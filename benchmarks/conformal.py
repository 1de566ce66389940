"""Coverage of conformal intervals in 200 repeated splits of real tables, in groups too: a section of RESULTS-recalibration.md.

Run `held_out.py FOLDER` first, then this with the same folder. Finished tables are kept there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import results
from held_out import HeldOut, held_out
from scipy.stats import binom

import uqprism as up

REPEATS, KNOWN = 200, 299  # splits, and rows to calibrate on: 300 times each share is whole, and so is a third
COVERAGES = (0.8, 0.9, 0.95)
METHODS = ("quantiles", "measure", "constant")
MODEL = "deep ensemble"
GROUPS = 3  # by the terciles of the predicted mean


def count(given: HeldOut) -> dict[tuple[str, float, str], tuple[int, int]]:
    """How many of the outcomes lie inside, one new row (of each group) for each split, by method, share and group."""
    mean = np.asarray(given.ensemble.mixture.mean)
    group = np.searchsorted(np.quantile(mean, [1 / 3, 2 / 3]), mean)
    found: dict[tuple[str, float, str], list[bool]] = {}
    ens, y = given.ensemble, given.target
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        for kind, (known, new) in {"all rows": _split(rng, len(y)), "in groups": _split_by(rng, group)}.items():
            labels: dict[str, Any] = {} if kind == "all rows" else {"groups_calibration": group[known], "groups": group[new]}
            for method in METHODS:
                for coverage in COVERAGES:
                    one = up.conformal_intervals(ens[known], y[known], ens[new], coverage, method=method, **labels)  # type: ignore[arg-type]
                    found.setdefault((method, coverage, kind), []).extend(one.contains(y[new]).tolist())
    return {key: (sum(inside), len(inside)) for key, inside in found.items()}


def _split(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to calibrate on, and one other."""
    order = rng.permutation(rows)
    return order[:KNOWN], order[KNOWN : KNOWN + 1]


def _split_by(rng: np.random.Generator, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many rows of each group to calibrate on, and one other of each group."""
    each = (KNOWN + 1) // GROUPS - 1
    known, new = zip(*[_parts(rng.permutation(np.flatnonzero(group == label)), each) for label in range(GROUPS)], strict=True)
    return np.concatenate(known), np.concatenate(new)


def _parts(rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    return rows[:count], rows[count : count + 1]


def report(folder: Path) -> list[str]:
    """The section."""
    totals: dict[tuple[str, float, str], np.ndarray] = {}
    within: dict[tuple[str, float, str], list[bool]] = {}
    tables = 0
    for given in held_out(folder):
        if given.model != MODEL or len(given.target) < 4 * KNOWN:
            continue
        tables += 1
        path = folder / "conformal" / f"{given.table}.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps([[*key, *counts] for key, counts in count(given).items()]))
            print(given.table, flush=True)
        for method, coverage, kind, inside, rows in json.loads(path.read_text()):
            key = (method, coverage, kind)
            totals[key] = totals.get(key, np.zeros(2, int)) + np.array([inside, rows])
            low, high = binom.ppf([0.025, 0.975], rows, key[1])
            within.setdefault(key, []).append(low <= inside <= high)
    lines = [
        "## Coverage in repeated splits",
        "",
        f"{tables} tables, {MODEL}s, {REPEATS} random splits each: {KNOWN} rows to calibrate on and one new row; in groups, "
        f"{(KNOWN + 1) // GROUPS - 1} and one of each. Groups: terciles of the predicted mean. With these numbers the guarantee "
        "is exact. Within: tables whose count of outcomes inside lies in the binomial 95 % interval of the share asked for.",
        "",
        "| method | share | rows | coverage | binomial 95 % interval | tables within |",
        "|---|---|---|---|---|---|",
    ]
    for (method, coverage, kind), (inside, rows) in totals.items():
        low, high = binom.ppf([0.025, 0.975], rows, coverage) / rows
        lines.append(
            f"| {method} | {coverage} | {kind} | {inside / rows:.4f} | {low:.4f} to {high:.4f} | "
            f"{sum(within[method, coverage, kind])} of {tables} |"
        )
    return lines


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the predictions that held_out.py keeps")
    lines = report(parser.parse_args().folder)
    results.write(results.RECALIBRATION, lines, results.processor(), ("uqprism", "numpy", "scipy"))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
