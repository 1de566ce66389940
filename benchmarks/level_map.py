"""Is a map of levels worth adding to the two factors of `up.recalibrate`? A section of RESULTS-recalibration.md.

Run `held_out.py FOLDER` first. `level_map.py FOLDER --measure [--device cuda] [--part i/n]` measures what is missing in
`FOLDER/level_map`, perhaps a part of it beside others; `level_map.py FOLDER` writes the section.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import results
from held_out import HeldOut, held_out

import uqprism as up
from uqprism.measures import resolve_rule
from uqprism.tasks.level_map import LevelMap
from uqprism.tasks.recalibration import Test, mean_scores

SPLITS, KNOWN = 5, 1_000  # as in recalibration.py
RULES = {"deep ensemble": ("crps", "log"), "random forest": ("crps",)}  # trees of one leaf value have log scores of any size
LEVEL, COVERAGE = 0.95, 0.9


def on(ensemble: up.EnsemblePrediction, device: str) -> up.EnsemblePrediction:
    """The same arrays on a device."""
    if device == "cpu":
        return ensemble
    import torch

    return up.EnsemblePrediction(ensemble.members.map(lambda x: torch.as_tensor(x, device=device).double()), ensemble.weights)


def one_split(given: HeldOut, ensemble: up.EnsemblePrediction, rule: str, seed: int) -> dict[str, Any]:
    """Scores of new rows without recalibration, with the factors, and with the map on top, kept or not."""
    order = np.random.default_rng(seed).permutation(len(given.target))
    count = min(KNOWN, len(order) // 2)
    known, new = order[:count], order[count:]
    found = up.recalibrate(ensemble[known], given.target[known], rule=rule, level_map=True, progress=False)
    level_map: LevelMap = found.level_map  # type: ignore[assignment]
    alone, both = replace(found, level_map=None), replace(found, level_map=replace(level_map, kept=True))
    predicted = {"raw": ensemble[new], "factors": alone.apply(ensemble[new]), "map": both.apply(ensemble[new])}
    y = given.target[new]
    scores = {name: mean_scores(each, y, resolve_rule(rule)) for name, each in predicted.items()}
    inside = {name: _inside(each, y) for name, each in predicted.items()}
    return {
        "factors kept": found.kept,
        "map kept": level_map.kept,
        "scores": {name: float(each.mean()) for name, each in scores.items()},
        "test": vars(Test.of(scores["factors"], scores["map"], LEVEL)),
        "coverage": inside,
        "new": len(new),
    }


def _inside(ensemble: up.EnsemblePrediction, y: np.ndarray) -> float:
    """The share of outcomes in the central 90 % of the mixture."""
    tail = (1.0 - COVERAGE) / 2.0
    pit = up.calibration(ensemble, y).pit
    return float(np.mean((pit >= tail) & (pit <= 1.0 - tail)))


def measure(folder: Path, device: str, part: str) -> None:
    """Measure what is missing, or a part of it."""
    kept = folder / "level_map"
    kept.mkdir(exist_ok=True)
    turn, of = map(int, part.split("/"))
    for i, given in enumerate(held_out(folder)):
        for rule in RULES[given.model] if i % of == turn else ():
            path = kept / f"{given.table}-{given.model.replace(' ', '_')}-{rule}.json"
            if not path.exists():
                started, ensemble = time.perf_counter(), on(given.ensemble, device)
                splits = [one_split(given, ensemble, rule, seed) for seed in range(SPLITS)]
                about = {"table": given.table, "model": given.model, "rule": rule, "device": device, "splits": splits}
                path.write_text(json.dumps(about))
                print(f"{given.table}, {given.model}, {rule}: {time.perf_counter() - started:.0f} s", flush=True)


def report(folder: Path) -> list[str]:
    """The section."""
    found = [json.loads(path.read_text()) for path in sorted((folder / "level_map").glob("*.json"))]
    tables = len({each["table"] for each in found})
    lines = [
        "## A map of levels",
        "",
        f"{tables} tables, up to {SPLITS} splits each: up to {KNOWN:,} rows for factors and map, the others to judge. There "
        "the map, kept or not, is compared with the factors alone, or with nothing where these were not kept. Kept: by the "
        "cross-fitted test on the first rows. Better and worse: on the others, significantly (paired, one-sided 5 %). Medians "
        "over the splits; coverage of the central 90 % without and with the map.",
        "",
        *_summary(found),
        "",
        "| table | model | rule | factors kept | map kept | change by the map | better | worse | kept and worse | coverage "
        "| with map |",
        "|---" * 11 + "|",
    ]
    return lines + [_row(each) for each in found]


def _summary(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| model | rule | splits | map kept | of these better on new rows | and worse | if always used: better | worse |",
        "|---" * 8 + "|",
    ]
    for model, rules in RULES.items():
        for rule in rules:
            splits = [one for each in found if (each["model"], each["rule"]) == (model, rule) for one in each["splits"]]
            kept = [one for one in splits if one["map kept"]]
            cells = [len(splits), len(kept), *map(_better, (kept,)), *map(_worse, (kept,)), _better(splits), _worse(splits)]
            lines.append(f"| {model} | {rule} | {' | '.join(map(str, cells))} |")
    return lines


def _better(splits: list[dict[str, Any]]) -> int:
    return sum(one["test"]["better"] for one in splits)


def _worse(splits: list[dict[str, Any]]) -> int:
    return sum(one["test"]["change"] > 1.645 * one["test"]["error"] for one in splits)


def _row(each: dict[str, Any]) -> str:
    splits = each["splits"]
    kept = [one for one in splits if one["map kept"]]
    change = float(np.median([one["test"]["change"] / abs(one["scores"]["factors"]) for one in splits]))
    coverage = [float(np.median([one["coverage"][name] for one in splits])) for name in ("factors", "map")]
    cells = [
        f"{sum(one['factors kept'] for one in splits)} of {len(splits)}",
        f"{len(kept)} of {len(splits)}",
        f"{100 * change:+.2f} %",
        str(_better(splits)),
        str(_worse(splits)),
        str(_worse(kept)),
        *(f"{100 * share:.1f} %" for share in coverage),
    ]
    return f"| {each['table']} | {each['model']} | {each['rule']} | {' | '.join(cells)} |"


def main() -> None:
    """Measure or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the predictions that held_out.py keeps")
    parser.add_argument("--measure", action="store_true", help="measure what is missing")
    parser.add_argument("--device", default="cpu", help="of the arrays, such as cuda")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every Nth model from the Ith on")
    parser.add_argument("--where", default=results.processor(), help="the machine, for the section")
    given = parser.parse_args()
    if given.measure:
        measure(given.folder, given.device, given.part)
        return
    lines = report(given.folder)
    results.write(results.RECALIBRATION, lines, given.where, ("uqprism", "numpy", "torch"))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
