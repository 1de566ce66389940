"""How far promises of "removable" are kept, for networks, forests, boosting, Gaussian processes, MC dropout and evidence.

    python benchmarks/audit.py known        # sets of known truth: factors fitted up to n rows, judged at 2n and 4n on other sets
    python benchmarks/audit.py tables DIR   # real tables (Parquet files) in a folder, on subsamples
    python benchmarks/audit.py write        # the page of results, from what has been measured

Each audit is kept in benchmarks/audit.json when it is done; the same command goes on from there.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import uqprism as up
from uqprism.paper.data.synthetic import sine, two_curves
from uqprism.support.storage import write_text
from uqprism.tasks.audit import Audit, audit
from uqprism.training import MLP, StackedFit

STORE = Path(__file__).with_suffix(".json")
RULES = ("crps", "log", "quadratic", "squared_error")
MEASURES = [f"{rule}.excess.{roles}" for rule in RULES for roles in ("members.members", "mixture.members")]
N, TEST = 1024, 2000  # rows of an audit on a set of known truth, whose sizes are n/8 ... n; rows to judge by
SLOW_N = 256  # the same for models that are slow to train
CLOSELY = "networks, resampled rows"  # audited four times on every set; the others once on two of them
MOST, SLOW_MOST = 1600, 800  # rows of a table, of which a quarter is held out

# Sets of known truth ---------------------------------------------------------------------------------------------------


def friedman(n: int, seed: int) -> tuple[Any, Any]:
    """Five inputs (Friedman 1991), with noise that grows from 0.5 to 2.5 along the first."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 5))
    mean = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3] + 5.0 * x[:, 4]
    return x, mean + (0.5 + 2.0 * x[:, 0]) * rng.standard_normal(n)


def plane(n: int, seed: int) -> tuple[Any, Any]:
    """Eight inputs, of which three bend the target, with noise of 0.5."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size=(n, 8))
    mean = x @ np.linspace(1.0, 0.0, 8) + np.tanh(2.0 * x[:, 0] * x[:, 1]) + np.abs(x[:, 2])
    return x, mean + 0.5 * rng.standard_normal(n)


def hills(n: int, seed: int) -> tuple[Any, Any]:
    """Six inputs, of which five count, one of them as a step; made after the rule for the factor was chosen."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 6))
    mean = 2.0 * np.sin(np.pi * x[:, 0]) + 3.0 * x[:, 1] * x[:, 2] + 2.0 / (1.0 + np.exp(-8.0 * x[:, 3])) + x[:, 4]
    return x, mean + (0.3 + 0.3 * np.abs(x[:, 5])) * rng.standard_normal(n)


KNOWN: dict[str, Callable[[int, int], tuple[Any, Any]]] = {
    "friedman": friedman,
    "plane": plane,
    "hills": hills,
    "sine": sine,
    "two_curves": two_curves,
}

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


def passes_of(model: Any, X: Any) -> Any:
    return model.predict_ensemble(X, passes=30)


def ten_of(model: Any, X: Any) -> Any:
    return up.from_model(model, X, n_members=10)


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {  # what fits, and what predicts
    "networks, resampled rows": (lambda: networks(bootstrap=True), None),
    "networks, seeds only": (networks, None),
    "forest": (lambda: forest, None),
    "forest, leaves of 5": (lambda: partial(forest, min_samples_leaf=5), None),
    "boosting": (lambda: boosting, None),
    "Gaussian process": (lambda: process, ten_of),
    "MC dropout": (Passes, passes_of),
    "evidential": (lambda: networks(n_members=1, head="evidential"), None),
}
SLOW = {"Gaussian process"}

# Runs ------------------------------------------------------------------------------------------------------------------


def stored() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def short(values: Any) -> list[float]:
    """In six digits, which the file has room for."""
    return [float(f"{value:.6g}") for value in values]


def keep(key: str, found: Audit, seconds: float) -> None:
    """Keep what an audit found, by measure."""
    about = {
        name: {
            "excess": short(found[name].excess),
            "noise": short(found[name].noise),
            "penalty": short(found[name].penalty),
            "procedural": short(found[name].procedural),
            "data": short(found[name].data),
            "after": {str(growth): short(found[name].after(growth)) for growth in (2, 4)},
        }
        for name in found
    }
    write_text(STORE, json.dumps(stored() | {key: {"sizes": found.sizes, "measures": about}}))
    print(f"{key}: {seconds:.0f} s. {found}", flush=True)


def run(key: str, fit: Any, *given: Any, **settings: Any) -> None:
    if key in stored():
        return
    started = time.perf_counter()
    keep(key, audit(fit, *given, measures=MEASURES, progress=False, **settings), time.perf_counter() - started)


def known(names: list[str]) -> None:
    """Audits of n rows, and what happens with other sets of 4n rows."""
    for model in names:
        make_fit, predict = MODELS[model]
        n = SLOW_N if model in SLOW else N
        audits, others, repeats = (4, 4, 4) if model == CLOSELY else (1, 2, 2)
        for name, make in list(KNOWN.items())[: None if model == CLOSELY else 2]:
            how = {"test": make(TEST, 10**6), "predict": predict}
            for number in range(audits):
                run(f"known/{name}/{model}/audit {number}", make_fit(), *make(n, number), repeats=repeats, seed=number, **how)
            for number in range(others):
                seed = 1000 + number
                about = {"seed": seed, "parts": 4, "repeats": 1, "resamples": 0}
                run(f"known/{name}/{model}/other {number}", make_fit(), *make(4 * n, seed), **about, **how)


def tables(folder: str, names: list[str]) -> None:
    """Audits of real tables, on a subsample of the rows; each repeat holds out other rows."""
    for path in sorted([*Path(folder).glob("*.parquet"), *Path(folder).glob("tables/*.parquet")]):
        for model in [] if path.stem in LEFT_OUT else names:
            make_fit, predict = MODELS[model]
            data = table(path, SLOW_MOST if model in SLOW else MOST)
            run(f"tables/{path.stem}/{model}", make_fit(), *data, repeats=2, predict=predict)


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


# The page --------------------------------------------------------------------------------------------------------------

RESULTS = Path(__file__).with_name("RESULTS-audit.md")
MAIN, LOG = "crps.excess.members.members", "log.excess.members.members"
KIND = {  # the kind of member that a model's audits are evidence for
    "networks, resampled rows": "resampled",
    "networks, seeds only": "networks",
    "forest": "forest",
    "boosting": "boosting",
    "Gaussian process": "process",
    "MC dropout": "dropout",
    "evidential": "evidential",
}


FEWEST = 3  # tables, of which the report speaks


def of(kind: str, model: str, measure: str) -> dict[str, list[dict[str, Any]]]:
    """What was measured, by data set: `known audit`, `known other` or `tables`."""
    found: dict[str, list[dict[str, Any]]] = {}
    for key, value in stored().items():
        first, *rest = key.split("/")
        own = rest[1] == model and measure in value["measures"]
        if own and (first == kind or (first == "known" and rest[2].startswith(kind.removeprefix("known ")))):
            about = value["measures"][measure]
            found.setdefault(rest[0], []).append({name: np.array(each) for name, each in about.items() if name != "after"})
            found[rest[0]][-1] |= {"after": about["after"], "sizes": value["sizes"]}
    return found


def evidence() -> dict[str, tuple[int, float, float, float]]:
    """For each kind of member, on how many tables, and the median, smallest and largest share that twice the rows removed."""
    found = {}
    for model, kind in KIND.items():
        shares = [each["after"]["2"][0] for (each,) in of("tables", model, MAIN).values()]
        if len(shares) >= FEWEST:
            found[kind] = len(shares), *(round(float(x), 2) + 0.0 for x in (np.median(shares), min(shares), max(shares)))
    return found


def truths(others: list[dict[str, Any]]) -> tuple[float, float]:
    """What twice and four times the rows removed on other sets, as shares of the excess there."""
    excess, penalty = (np.mean([each[name] for each in others], axis=0) for name in ("excess", "penalty"))
    return float((penalty[0] - penalty[1]) / excess[0]), float((penalty[0] - penalty[2]) / excess[0])


def ratios(model: str, measure: str) -> dict[str, tuple[Any, ...]]:
    """By set of known truth: the mean factors for 2 and 4, what happened, and how many audits are within 20 %."""
    audits, others = of("known audit", model, measure), of("known other", model, measure)
    found = {}
    for name in audits:
        if name in others:
            factors = np.array([[each["after"][growth][0] for growth in ("2", "4")] for each in audits[name]])
            truth = np.array(truths(others[name]))
            near = (np.abs(factors / truth - 1.0) <= 0.2).sum(axis=0)
            found[name] = (factors.mean(axis=0), truth, near, len(factors))
    return found


def write() -> None:
    """The page of results, the tables of the page on audits, and the numbers that the report quotes."""
    write_text(RESULTS, "\n".join([HEAD, *_known(), *_known(LOG), *_tables(), *_each_table(), *_measures()]) + "\n")
    before, rest = DOCS.read_text().split(MARKS[0])
    tables = "\n".join(["", *_tables(), *_known(), *_known(LOG)])
    write_text(DOCS, f"{before}{MARKS[0]}\n{tables}{MARKS[1]}{rest.split(MARKS[1])[1]}")
    for kind, numbers in evidence().items():
        print(f'    "{kind}": Kept{numbers},')


DOCS = Path(__file__).parent.parent / "docs" / "audit.md"
MARKS = "<!-- audits: written by benchmarks/audit.py -->", "<!-- end of the audits -->"
HEAD = """# Results of audits

Written by `python benchmarks/audit.py write` from `benchmarks/audit.json`. [The page on audits](../docs/audit.md) says what the
words mean. Factors are what twice (2x) or four times (4x) the rows remove from the penalty, as a share of the excess before.
"""


def _known(measure: str = MAIN) -> list[str]:
    lines = [
        f"### Sets of known truth, `{measure}`",
        "",
        f"Audits of n = {N:,} rows ({SLOW_N:,} for Gaussian processes), sizes n/8 to n, judged on {TEST:,} further "
        "rows. *Happened* is the mean over other sets of the same truth, which are trained on n, 2n and 4n rows (four such sets "
        "for networks on resampled rows, two for the others). *By doubling* is what each doubling up to n removed, as a share of "
        "the excess before it: where it rises, the audit says that the factor is a guess.",
        "",
        "| model | set | audits | factor 2x | happened | ratio | factor 4x | happened | ratio | within 20 % | by doubling |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for model in MODELS:
        audits = of("known audit", model, measure)
        for name, (factor, truth, near, count) in ratios(model, measure).items():
            both = " | ".join(f"{f:.2f} | {t:.2f} | {f / t:.2f}" for f, t in zip(factor, truth, strict=True))
            shares = np.mean([each["penalty"][:-1] - each["penalty"][1:] for each in audits[name]], axis=0)
            shares /= np.mean([each["excess"][:-1] for each in audits[name]], axis=0)
            told = ", ".join(f"{share:.2f}" for share in shares)
            lines.append(f"| {model} | {name} | {count} | {both} | {near[0]} and {near[1]} of {count} | {told} |")
    return [*lines, ""]


def _tables() -> list[str]:
    lines = [
        "### Real tables",
        "",
        f"Up to {MOST:,} rows of each table ({SLOW_MOST:,} for Gaussian processes), a quarter held out, two repeats; "
        "CRPS, members in both roles. *Promised* is the excess as a share of what the models expect to pay, at the largest size; "
        "*noise gone* is the share of the noise of the smallest size (an eighth of the rows) that is gone at the largest; *from "
        "seeds* is the share of the disagreement between two training sets that is there within one. Medians over the tables, "
        "with the smallest and the largest.",
        "",
        "| model | tables | promised | factor 2x | factor 4x | noise gone | from seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in MODELS:
        found = [each for (each,) in of("tables", model, MAIN).values()]
        if found:
            columns = [
                [f"{x:.0%}" for x in _middle([(e["excess"] / (e["excess"] + e["noise"]))[-1] for e in found])],
                *([f"{round(x, 2) + 0.0:.2f}" for x in _middle([e["after"][growth][0] for e in found])] for growth in ("2", "4")),
                [f"{x:.0%}" for x in _middle([1.0 - e["noise"][-1] / e["noise"][0] for e in found])],
                [f"{x:.0%}" for x in _middle([e["procedural"][-2] / (e["procedural"] + e["data"])[-2] for e in found])],
            ]
            cells = " | ".join(f"{middle} ({low} to {high})" for middle, low, high in columns)
            lines.append(f"| {model} | {len(found)} | {cells} |")
    return [*lines, ""]


def _middle(values: list[float]) -> tuple[float, float, float]:
    return float(np.median(values)), float(min(values)), float(max(values))


def _each_table() -> list[str]:
    models = [model for model in MODELS if of("tables", model, MAIN)]
    lines = [
        "Factors for twice the rows by table (CRPS, members in both roles):",
        "",
        f"| table | {' | '.join(models)} |",
        "|---" * (len(models) + 1) + "|",
    ]
    every = {model: of("tables", model, MAIN) for model in models}
    for name in sorted({name for each in every.values() for name in each}):
        cells = [f"{round(each[name][0]['after']['2'][0], 2) + 0.0:.2f}" if name in each else "" for each in every.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _measures() -> list[str]:
    lines = [
        "### Which measure's promise is kept best?",
        "",
        "Factors for four times the rows on the tables: the median, and how far the tables are apart (the largest of the middle "
        "half divided by the smallest). A factor that is near 1 and the same everywhere would need no audit. Last, on sets of "
        "known truth, the mean distance of the ratio of factor and truth from 1.",
        "",
        "| model | measure | median factor 4x | apart | distance from truth, 2x and 4x |",
        "|---|---|---|---|---|",
    ]
    for model in MODELS:
        for measure in MEASURES:
            factors = np.array([each["after"]["4"][0] for (each,) in of("tables", model, measure).values()])
            away = [np.abs(factor / truth - 1.0) for factor, truth, _, _ in ratios(model, measure).values()]
            if not len(factors):
                continue
            low, high = np.quantile(factors, [0.25, 0.75])
            apart = f"{high / low:.1f}" if low > 0.0 else "sign differs"
            told = " and ".join(f"{x:.0%}" for x in np.mean(away, axis=0)) if away else ""
            lines.append(f"| {model} | `{measure}` | {np.median(factors):.2f} | {apart} | {told} |")
    return [*lines, ""]


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "known":
        known(rest or list(MODELS))
    elif what == "tables":
        tables(rest[0], rest[1:] or list(MODELS))
    elif what == "write":
        write()
