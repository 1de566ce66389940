"""Recalibration and 90 % intervals on real tables, beside plain conformal prediction: RESULTS-recalibration.md.

Run `held_out.py FOLDER` first, then this with the same folder. Finished tables are kept in the folder, so that an interrupted run
continues. `conformal_peers.py` compares with MAPIE and crepes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import results
from held_out import HeldOut, kept_splits
from scipy.stats import betabinom

import uqprism as up

SPLITS, KNOWN = 5, 1_000  # of the held-out rows, and how many of them to learn from, or half of all
COVERAGE, CHANCE = 0.9, 0.95
Z = 1.645  # one-sided 5 %
INTERVALS = {
    "plain": "constant width around the mean",
    "by CRPS": "width in proportion to the total risk of the CRPS",
    "quantiles": "conformalised quantiles of the ensemble",
    "recalibrated": "the same of the recalibrated ensemble; half of the rows for the factors, half for the margin",
    "own": "quantiles of the ensemble as it is, without any outcomes",
    "own, recalibrated": "quantiles of the recalibrated ensemble, without a margin",
}


def own(ensemble: up.EnsemblePrediction) -> tuple[np.ndarray, np.ndarray]:
    """The quantiles of the ensemble."""
    lower, upper = (np.asarray(ensemble.mixture.quantile(level)) for level in (0.05, 0.95))
    return lower, upper


def one_split(given: HeldOut, seed: int) -> dict[str, Any]:
    """Scores and intervals with one choice of the rows to learn from."""
    ens, y = given.ensemble, given.target
    order = np.random.default_rng(seed).permutation(len(y))
    count = min(KNOWN, len(y) // 2)
    known, new = order[:count], order[count:]
    first, second = np.array_split(known, 2)
    factors = up.recalibrate(ens[known], y[known], progress=False)
    halves = up.recalibrate(ens[first], y[first], progress=False)
    before, after = (up.prediction_error(each, y[new], "crps") for each in (ens[new], factors.apply(ens[new])))
    change = after - before
    error = float(change.std() / len(change) ** 0.5)
    learn = (ens[known], y[known], ens[new], COVERAGE)
    ways: dict[str, Callable[[], Any]] = {
        "plain": lambda: up.conformal_intervals(*learn, method="constant"),
        "by CRPS": lambda: up.conformal_intervals(*learn, method="measure"),
        "quantiles": lambda: up.conformal_intervals(*learn, method="quantiles"),
        "recalibrated": lambda: up.conformal_intervals(
            halves.apply(ens[second]), y[second], halves.apply(ens[new]), COVERAGE, method="quantiles"
        ),
        "own": lambda: own(ens[new]),
        "own, recalibrated": lambda: own(factors.apply(ens[new])),
    }
    intervals = {}
    for name, way in ways.items():
        lower, upper = way()
        inside = int(((lower <= y[new]) & (y[new] <= upper)).sum())
        rows = len(second) if name == "recalibrated" else len(known)
        intervals[name] = {"inside": inside, "rows": rows, "width": float(np.mean(upper - lower))}
    return {
        "kept": factors.kept,
        "noise": factors.fitted[0],
        "disagreement": factors.fitted[1],
        "before": float(before.mean()),
        "after": float(after.mean()),
        "z": float(change.mean()) / error if error else 0.0,
        "new": len(new),
        "intervals": intervals,
    }


def by_chance(one: dict[str, Any], new: int) -> bool:
    """Whether the number of outcomes inside is one that chance explains: beta-binomial, for split conformal intervals."""
    rank = int(np.ceil((one["rows"] + 1) * COVERAGE - 1e-9))
    law = betabinom(new, rank, one["rows"] + 1 - rank)
    return bool(law.ppf((1.0 - CHANCE) / 2.0) <= one["inside"] <= law.ppf((1.0 + CHANCE) / 2.0))


def report(found: list[dict[str, Any]]) -> list[list[str]]:
    """The sections of the results."""
    return [_recalibration(found), _intervals(found), _widths(found)]


def _recalibration(found: list[dict[str, Any]]) -> list[str]:
    splits = [one for each in found for one in each["splits"]]
    tables = {each["table"] for each in found}
    worse = sum(one["z"] > Z for one in splits)
    kept = sum(one["kept"] for one in splits)
    lines = [
        "## Recalibration",
        "",
        f"{len(tables)} tables, two models each, {SPLITS} splits of the rows that the models have not seen: up to {KNOWN:,} to "
        "learn the two factors from (CRPS), the others to judge. Medians over the splits; worse and better count splits in which "
        "the CRPS on the other rows changed significantly (paired, one-sided 5 %).",
        "",
        f"Factors were kept in {kept} of {len(splits)} splits. The CRPS on new rows was significantly worse in {worse}, and "
        f"significantly better in {sum(one['z'] < -Z for one in splits)}.",
        "",
        "| table | model | kept | noise x | disagreement x | CRPS before | after | change | worse | better |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        own_splits = each["splits"]
        before, after, noise, apart = (
            float(np.median([one[name] for one in own_splits])) for name in ("before", "after", "noise", "disagreement")
        )
        change = float(np.median([one["after"] / one["before"] - 1.0 for one in own_splits]))
        lines.append(
            f"| {each['table']} | {each['model']} | {sum(one['kept'] for one in own_splits)} of {SPLITS} | {noise:.2f} | "
            f"{apart:.2f} | {before:.4g} | {after:.4g} | {100 * change:+.1f} % | {sum(one['z'] > Z for one in own_splits)} | "
            f"{sum(one['z'] < -Z for one in own_splits)} |"
        )
    return lines


def _coverage(each: dict[str, Any], name: str) -> float:
    inside = sum(one["intervals"][name]["inside"] for one in each["splits"])
    return inside / sum(one["new"] for one in each["splits"])


def _intervals(found: list[dict[str, Any]]) -> list[str]:
    splits = [one for each in found for one in each["splits"]]
    lines = [
        "## Coverage of 90 % intervals",
        "",
        f"Within chance: the share of splits whose count of outcomes inside lies in the {CHANCE:.0%} range of the beta-binomial "
        "law, which the guarantee implies for random splits. Width: the mean over rows in units of plain conformal's, and of "
        "these the geometric mean over tables and models.",
        "",
        "| intervals | how | mean coverage | lowest and highest of a table | splits within chance | width | median width |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, how in INTERVALS.items():
        coverage = [_coverage(each, name) for each in found]
        inside = np.mean([by_chance(one["intervals"][name], one["new"]) for one in splits])
        widths = [_width(each, name) for each in found]
        lines.append(
            f"| {name} | {how} | {100 * np.mean(coverage):.1f} % | {100 * min(coverage):.1f} to {100 * max(coverage):.1f} % | "
            f"{100 * inside:.0f} % | {np.exp(np.mean(np.log(widths))):.2f} | {np.median(widths):.2f} |"
        )
    return lines


def _width(each: dict[str, Any], name: str) -> float:
    """The mean width in units of that of plain conformal, the median over the splits."""
    return float(np.median([one["intervals"][name]["width"] / one["intervals"]["plain"]["width"] for one in each["splits"]]))


def _widths(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Widths by table",
        "",
        "Coverage in percent and, after the comma, width in units of plain conformal's.",
        "",
        f"| table | model | {' | '.join(INTERVALS)} |",
        "|---" * (len(INTERVALS) + 2) + "|",
    ]
    for each in found:
        cells = [f"{100 * _coverage(each, name):.1f}, {_width(each, name):.2f}" for name in INTERVALS]
        lines.append(f"| {each['table']} | {each['model']} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the predictions that held_out.py keeps")
    given = parser.parse_args()
    for section in report(kept_splits(given.folder, "recalibration", one_split, SPLITS)):
        results.write(results.RECALIBRATION, section, results.processor(), ("uqprism", "numpy", "scikit-learn", "torch"))
        print("\n".join(["", *section]))


if __name__ == "__main__":
    main()
