"""90 % intervals of ours beside those of MAPIE and crepes on real tables: a section of RESULTS-recalibration.md.

Run `held_out.py FOLDER` first, then this with the same folder, where MAPIE and crepes are installed. Finished tables are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import results
from crepes import ConformalRegressor
from crepes.extras import DifficultyEstimator
from held_out import HeldOut, kept_splits
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import SplitConformalRegressor
from recalibration import CHANCE, COVERAGE, KNOWN, SPLITS, by_chance
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import uqprism as up

PLAIN = "plain"
INTERVALS = {
    PLAIN: "ours, constant width around the mean",
    "by CRPS": "ours, width in proportion to the total risk of the CRPS",
    "MAPIE": "its residual-normalised score around the same means, with a random forest for the size of the residuals",
    "crepes, plain": "its standard conformal regressor around the same means",
    "crepes": "its normalised one, by its estimate of the difficulty from the residuals of the 25 nearest rows; half of the rows "
    "for it, half for the margin",
}
Bounds = tuple[np.ndarray, np.ndarray]


class Stored(RegressorMixin, BaseEstimator):
    """A fitted model for MAPIE, which looks up the mean of each row by the last column of its inputs."""

    is_fitted = True  # which MAPIE looks for

    def __init__(self, means: Any = None) -> None:
        self.means = means

    def fit(self, inputs: Any, target: Any) -> Stored:
        """Do nothing."""
        return self

    def predict(self, inputs: Any) -> Any:
        """The stored means."""
        return np.asarray(self.means)[inputs[:, -1].astype(int)]


def mapie(given: HeldOut, known: np.ndarray, new: np.ndarray) -> Bounds:
    """Intervals by MAPIE with its residual-normalised score."""
    means = given.ensemble.mixture.mean
    inputs = np.column_stack([given.inputs, np.arange(len(means))])
    # A forest: with the default, a linear model of the logarithm, single rows of most tables have intervals of any length.
    sizes = make_pipeline(FunctionTransformer(_without_last), RandomForestRegressor(100, min_samples_leaf=5, random_state=0))
    score = ResidualNormalisedScore(residual_estimator=sizes, random_state=0)
    model = SplitConformalRegressor(Stored(means), confidence_level=COVERAGE, conformity_score=score, prefit=True)
    model.conformalize(inputs[known], given.target[known])
    found = model.predict_interval(inputs[new])[1]
    return found[:, 0, 0], found[:, 1, 0]


def _without_last(inputs: Any) -> Any:
    return inputs[:, :-1]


def crepes(given: HeldOut, known: np.ndarray, new: np.ndarray, *, normalised: bool) -> Bounds:
    """Intervals by crepes."""
    means = given.ensemble.mixture.mean
    residuals = given.target - means
    if not normalised:
        plain = ConformalRegressor().fit(residuals=residuals[known])
        return _apart(plain.predict_int(y_hat=means[new], confidence=COVERAGE))
    first, second = np.array_split(known, 2)
    inputs = StandardScaler().fit(given.inputs[first]).transform(given.inputs)
    difficulty = DifficultyEstimator().fit(X=inputs[first], residuals=residuals[first])
    fitted = ConformalRegressor().fit(residuals=residuals[second], sigmas=difficulty.apply(inputs[second]))
    return _apart(fitted.predict_int(y_hat=means[new], sigmas=difficulty.apply(inputs[new]), confidence=COVERAGE))


def _apart(both: Any) -> Bounds:
    return both[:, 0], both[:, 1]


def one_split(given: HeldOut, seed: int) -> dict[str, Any]:
    """Intervals with one choice of the rows to learn from."""
    ens, y = given.ensemble, given.target
    order = np.random.default_rng(seed).permutation(len(y))
    count = min(KNOWN, len(y) // 2)
    known, new = order[:count], order[count:]
    learn = (ens[known], y[known], ens[new], COVERAGE)
    ways: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: up.conformal_intervals(*learn, method="constant"),
        "by CRPS": lambda: up.conformal_intervals(*learn, method="measure"),
        "MAPIE": lambda: mapie(given, known, new),
        "crepes, plain": lambda: crepes(given, known, new, normalised=False),
        "crepes": lambda: crepes(given, known, new, normalised=True),
    }
    found: dict[str, Any] = {"new": len(new)}
    for name, way in ways.items():
        lower, upper = way()
        inside = int(((lower <= y[new]) & (y[new] <= upper)).sum())
        rows = count // 2 if name == "crepes" else count
        found[name] = {"inside": inside, "rows": rows, "width": float(np.mean(upper - lower))}
    return found


def report(found: list[dict[str, Any]]) -> list[str]:
    """The section."""
    splits = [one for each in found for one in each["splits"]]
    lines = [
        "## 90 % intervals beside MAPIE and crepes",
        "",
        f"{len({each['table'] for each in found})} tables, two models each, {SPLITS} splits of the rows that the models have not "
        f"seen: up to {KNOWN:,} to calibrate on, the others to judge. Within chance: the share of splits whose count of outcomes "
        f"inside lies in the {CHANCE:.0%} range of the beta-binomial law, which the guarantee implies for random splits. Width: "
        "the mean over rows in units of plain conformal's, the median over the splits; its mean is geometric.",
        "",
        "| intervals | how | mean coverage | lowest and highest of a table | splits within chance | width, mean | median |",
        "|---" * 7 + "|",
    ]
    for name, how in INTERVALS.items():
        coverage = [_coverage(each, name) for each in found]
        inside = np.mean([by_chance(one[name], one["new"]) for one in splits])
        widths = [_width(each, name) for each in found]
        lines.append(
            f"| {name} | {how} | {100 * np.mean(coverage):.1f} % | {100 * min(coverage):.1f} to {100 * max(coverage):.1f} % | "
            f"{100 * inside:.0f} % | {np.exp(np.mean(np.log(widths))):.2f} | {np.median(widths):.2f} |"
        )
    shown = [name for name in INTERVALS if name != PLAIN]
    lines += ["", "By table: coverage in percent and, after the comma, width.", "", f"| table | model | {' | '.join(shown)} |"]
    lines.append("|---" * (len(shown) + 2) + "|")
    for each in found:
        cells = [f"{100 * _coverage(each, name):.1f}, {_width(each, name):.2f}" for name in shown]
        lines.append(f"| {each['table']} | {each['model']} | {' | '.join(cells)} |")
    return lines


def _coverage(each: dict[str, Any], name: str) -> float:
    return sum(one[name]["inside"] for one in each["splits"]) / sum(one["new"] for one in each["splits"])


def _width(each: dict[str, Any], name: str) -> float:
    return float(np.median([one[name]["width"] / one[PLAIN]["width"] for one in each["splits"]]))


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the predictions that held_out.py keeps")
    lines = report(kept_splits(parser.parse_args().folder, "conformal_peers", one_split, SPLITS))
    packages = ("uqprism", "numpy", "scikit-learn", "torch", "mapie", "crepes")
    results.write(results.RECALIBRATION, lines, results.processor(), packages)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
