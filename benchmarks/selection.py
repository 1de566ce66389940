"""Does `select_measure` choose well? Chosen on one half of held-out rows and judged on the other: RESULTS-selection.md.

Run `held_out.py FOLDER` first, then this with the same folder. Finished tables are kept there.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import results
from held_out import held_out

import uqprism as up
from uqprism.tasks.task import recommend

SPLITS, FEW, MOST, TREES = 2, 100, 1_500, 10
WAYS = {
    "select_measure": "`select_measure`",
    "winner": "the measure with the best value (plain winner)",
    "recommended": "`recommend`, without any data",
}


def one_split(table: up.MeasureTable, error: np.ndarray, seed: int) -> dict[str, Any]:
    """The regret of each way to choose, by how many rows it had: how much worse it is on the other half than the best there."""
    rows = np.random.default_rng(seed).permutation(len(error))
    half, other = np.array_split(rows, 2)
    judge = up.selective_prediction({name: table[name][other] for name in table}, error=error[other], resamples=0)
    sign = 1.0 if judge.higher_is_better else -1.0
    found: dict[str, Any] = {"metric": judge.metric, "spread": abs(judge[judge.best()] - np.median([judge[n] for n in judge]))}
    for size, known in (("half", half), ("few", half[:FEW])):
        choice = up.select_measure({name: table[name][known] for name in table}, error=error[known], seed=seed)
        names = {
            "select_measure": choice.measure,
            "winner": choice.result.best(),
            "recommended": recommend("selective_prediction").measure,
        }
        found[size] = {way: sign * (judge[judge.best()] - judge[name]) for way, name in names.items()}
        found[f"{size} chosen"] = names
    return found


def measure(folder: Path) -> list[dict[str, Any]]:
    """All tables and models, those that are kept from an earlier run as they are."""
    found = []
    kept = folder / "selection"
    kept.mkdir(exist_ok=True)
    for given in held_out(folder):
        path = kept / f"{given.table}-{given.model}.json"
        if not path.exists():
            started = time.perf_counter()
            ens, y = _first(given.ensemble[:MOST]), given.target[:MOST]
            table, error = up.evaluate(ens), up.prediction_error(ens, y)
            splits = [one_split(table, error, seed) for seed in range(SPLITS)]
            path.write_text(json.dumps({"table": given.table, "model": given.model, "rows": len(error) // 2, "splits": splits}))
            print(f"{given.table}, {given.model}: {time.perf_counter() - started:.0f} s", flush=True)
        found.append(json.loads(path.read_text()))
    return found


def _first(ensemble: up.EnsemblePrediction) -> up.EnsemblePrediction:
    """The first members: 144 measures of 50 trees, each nearly certain of itself, take minutes."""
    return up.EnsemblePrediction(ensemble.members.map(lambda x: x[:TREES]), check=False)


def report(found: list[dict[str, Any]]) -> list[str]:
    """The summary, and the regrets of each table."""
    metric = found[0]["splits"][0]["metric"]
    choices = [one[f"{size} chosen"] for each in found for one in each["splits"] for size in ("half", "few")]
    same = sum(one["select_measure"] == one["recommended"] for one in choices)
    lines = [
        "## Regret",
        "",
        f"{len({each['table'] for each in found})} tables, deep ensembles of 5 and forests of {TREES} trees, "
        f"{SPLITS} random splits into halves of up to {MOST // 2:,} rows that the models have not seen. One of the 144 measures "
        f"is chosen on one half, or on {FEW} rows of it, for selective prediction by squared errors, and judged on the other. "
        f"Regret: how much its `{metric}` is worse there than that of the best there; the mean over tables, models and halves, "
        f"with the standard error between tables. `select_measure` took the recommended one in {same} of {len(choices)} choices.",
        "",
        *summary(found),
        "",
        "By table, mean over the halves; the median measure's distance from the best for comparison.",
        "",
        "| table | model | rows | "
        + " | ".join(f"{way}, {size}" for size in ("half", "few") for way in WAYS)
        + " | median measure |",
        "|---" * (2 * len(WAYS) + 4) + "|",
    ]
    for each in found:
        cells = [f"{_regret(each, size, way):.4f}" for size in ("half", "few") for way in WAYS]
        spread = np.mean([one["spread"] for one in each["splits"]])
        lines.append(f"| {each['table']} | {each['model']} | {each['rows']:,} | {' | '.join(cells)} | {spread:.4f} |")
    return lines


def summary(found: list[dict[str, Any]]) -> list[str]:
    """The table of docs/choose.md."""
    lines = [f"| chosen by | regret, chosen on half of the rows | regret, chosen on {FEW} rows |", "|---|---|---|"]
    for way, told in WAYS.items():
        cells = []
        for size in ("half", "few"):
            tables = sorted({each["table"] for each in found})
            means = [np.mean([_regret(each, size, way) for each in found if each["table"] == name]) for name in tables]
            cells.append(f"{np.mean(means):.4f} ± {np.std(means, ddof=1) / len(means) ** 0.5:.4f}")
        lines.append(f"| {told} | {cells[0]} | {cells[1]} |")
    return lines


def _regret(each: dict[str, Any], size: str, way: str) -> float:
    return float(np.mean([one[size][way] for one in each["splits"]]))


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the predictions that held_out.py keeps")
    lines = report(measure(parser.parse_args().folder))
    results.write(results.SELECTION, lines, results.processor(), ("uqprism", "numpy", "scikit-learn", "torch"))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
