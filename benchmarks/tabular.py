"""Deep ensembles beside what else predicts distributions for tables, each as its documentation starts it.

    UQPRISM_DATA=... python benchmarks/tabular.py run --rows 2000 --splits 3      # one line of JSON per finished cell; goes on
    python benchmarks/tabular.py write                                            # RESULTS-tabular.md from these lines

A cell is a model on a split of a table. Fits of a model that took longer than the limit are not tried on larger tables. Peers
that predict one number get a Gaussian with the variance of their errors on a tenth of the training rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import public

import uqprism as up
from uqprism.errors import UnsupportedError

Array = Any
Predict = Callable[[Array], Any]
HERE = Path(__file__).parent
CELLS, REPORT = HERE / "tabular.jsonl", HERE / "RESULTS-tabular.md"
LEVELS = [0.01, 0.05, *(round(0.1 * i, 1) for i in range(1, 10)), 0.95, 0.99]
LIMIT = 600.0  # seconds of one fit
LARGEST = {"Gaussian process": 2000}  # training rows: its time grows with their cube
CORES = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


def ours(x: Array, y: Array, seed: int) -> Predict:
    """`DeepEnsembleRegressor` as it comes."""
    model = up.DeepEnsembleRegressor(random_state=seed, device="cpu", progress=False).fit(x, y)
    return model.predict_ensemble


def catboost(x: Array, y: Array, seed: int) -> Predict:
    """CatBoost's own uncertainty: one model, whose virtual ensembles are the members."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        verbose=0,
        allow_writing_files=False,
        random_seed=seed,
        thread_count=CORES,
    ).fit(x, y)
    return lambda inputs: up.from_model(model, inputs)


def catboost_ten(x: Array, y: Array, seed: int) -> Predict:
    """Ten such models from different seeds, each a member."""
    from catboost import CatBoostRegressor

    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": CORES}
    models = [
        CatBoostRegressor(loss_function="RMSEWithUncertainty", random_seed=10 * seed + i, **quiet).fit(x, y) for i in range(10)
    ]
    return lambda inputs: up.from_model(models, inputs)


def lightgbm(x: Array, y: Array, seed: int) -> Predict:
    """A model for each of thirteen quantiles."""
    from lightgbm import LGBMRegressor

    models = [
        LGBMRegressor(objective="quantile", alpha=level, random_state=seed, verbose=-1, n_jobs=CORES).fit(x, y)
        for level in LEVELS
    ]
    return lambda inputs: up.from_model(models, inputs)


def xgboost(x: Array, y: Array, seed: int) -> Predict:
    """One model of thirteen quantiles."""
    from xgboost import XGBRegressor

    model = XGBRegressor(objective="reg:quantileerror", quantile_alpha=LEVELS, random_state=seed, n_jobs=CORES).fit(x, y)
    return lambda inputs: up.from_model([model], inputs)


def ngboost(x: Array, y: Array, seed: int) -> Predict:
    """One Gaussian."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=seed, verbose=False).fit(x, y)
    return lambda inputs: up.from_model([model], inputs)


def forest(x: Array, y: Array, seed: int) -> Predict:
    """The trees' leaves as members, through `from_model`."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(random_state=seed, n_jobs=CORES).fit(x, y)
    return lambda inputs: up.from_model(model, inputs)


def process(x: Array, y: Array, seed: int) -> Predict:
    """A Gaussian process with a length for each column, or one for all where there are many, on at most 2,000 rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF(np.ones(x.shape[1]) if x.shape[1] <= 20 else 1.0) + WhiteKernel()
    gaussian = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    model = make_pipeline(StandardScaler(), gaussian).fit(x, y)

    def predict(inputs: Array) -> Any:
        mean, scale = model.predict(inputs, return_std=True)
        return up.EnsemblePrediction.gaussian(mean=mean[None], scale=scale[None])

    return predict


def bde(x: Array, y: Array, seed: int) -> Predict:
    """Bayesian deep ensembles: microcanonical Langevin sampling from trained members."""
    from bde import BdeRegressor
    from sklearn.preprocessing import StandardScaler

    inputs_of, targets_of = StandardScaler().fit(x), StandardScaler().fit(y[:, None])
    # The settings of its README; those of its signature are for a trial run.
    settings = {"hidden_layers": [16, 16], "n_members": 8, "epochs": 200, "patience": 10, "lr": 1e-3, "weight_decay": 1e-4}
    sampling = {"warmup_steps": 5000, "n_samples": 2000, "n_thinning": 2, "validation_split": 0.15}
    model = BdeRegressor(seed=seed, **settings, **sampling)
    model.fit(inputs_of.transform(x), targets_of.transform(y[:, None])[:, 0])

    def predict(inputs: Array) -> Any:
        ens = up.from_model(model, inputs_of.transform(inputs))
        mean, scale = targets_of.mean_[0], targets_of.scale_[0]
        return up.EnsemblePrediction.gaussian(
            mean=mean + scale * np.asarray(ens.members.mean), variance=scale**2 * np.asarray(ens.members.variance)
        )

    return predict


def pytabkit(name: str) -> Callable[[Array, Array, int], Predict]:
    """RealMLP or TabM with their tuned defaults, which predict numbers: a Gaussian of the validation error."""

    def fit(x: Array, y: Array, seed: int) -> Predict:
        import pytabkit
        from sklearn.model_selection import train_test_split

        x_train, x_kept, y_train, y_kept = train_test_split(x, y, test_size=0.1, random_state=seed)
        model = getattr(pytabkit, name)(random_state=seed, device="cpu", n_threads=CORES, verbosity=0)
        model.fit(x_train, y_train)
        variance = float(np.mean((np.ravel(model.predict(x_kept)) - y_kept) ** 2))

        def predict(inputs: Array) -> Any:
            mean = np.ravel(model.predict(inputs)).astype(np.float64)[None]
            return up.EnsemblePrediction.gaussian(mean=mean, variance=np.full_like(mean, variance))

        return predict

    return fit


OURS = "uqprism"
MODELS: dict[str, Callable[[Array, Array, int], Predict]] = {
    "CatBoost": catboost,
    "random forest": forest,
    "LightGBM quantiles": lightgbm,
    "XGBoost quantiles": xgboost,
    "NGBoost": ngboost,
    "CatBoost x 10": catboost_ten,
    OURS: ours,
    "bde": bde,
    "RealMLP": pytabkit("RealMLP_TD_Regressor"),
    "TabM": pytabkit("TabM_D_Regressor"),
    "Gaussian process": process,
}
PACKAGES = ("uqprism", "torch", "catboost", "lightgbm", "xgboost", "ngboost", "scikit-learn", "sklearn-contrib-bde", "pytabkit")


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


def finished(path: Path = CELLS) -> list[dict[str, Any]]:
    """The cells of earlier runs."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(tables: Iterable[str], models: Iterable[str], splits: int, *, most: int, most_test: int, path: Path) -> None:
    """Measure the cells that are missing, the first split of every table before the second of any."""
    names = ("table", "split", "rows", "model")
    done = {tuple(cell[name] for name in names) for cell in finished(path)}
    slow: dict[str, float] = {}
    for number in range(splits):
        for table in tables:
            x, y = public.load(table)
            training, test = public.split(y, number, most, most_test)
            for name in models:
                own = training[: LARGEST.get(name, most)]
                key = (table, number, len(training), name)
                size = len(own) * x.shape[1]
                if key in done or size >= 1.2 * slow.get(name, np.inf):
                    continue
                cell = dict(zip(names, key, strict=True)) | {"columns": x.shape[1], "test_rows": len(test), "used_rows": len(own)}
                start = time.perf_counter()
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        predict = MODELS[name](x[own], y[own], number)
                        cell["fit"] = time.perf_counter() - start
                        start = time.perf_counter()
                        ens = predict(x[test])
                        cell["predict"] = time.perf_counter() - start
                        cell |= scores(ens, y[test])
                except Exception as error:  # a peer that cannot fit a table is a result too
                    cell["error"] = f"{type(error).__name__}: {error}"[:200]
                if time.perf_counter() - start > LIMIT or cell.get("fit", 0.0) > LIMIT:
                    slow[name] = min(slow.get(name, np.inf), size)
                with path.open("a") as file:
                    file.write(json.dumps(cell) + "\n")
                print({k: round(v, 3) if isinstance(v, float) else v for k, v in cell.items()}, flush=True)


def ranks(values: dict[str, dict[str, float]], models: list[str]) -> dict[str, float]:
    """The mean rank of each model over the tables that all of these models have."""
    rows = [one for one in values.values() if all(model in one for model in models)]
    order = [{model: 1.0 + sum(one[other] < one[model] for other in models) for model in models} for one in rows]
    return {model: float(np.mean([each[model] for each in order])) for model in models} if order else {}


def write(path: Path) -> None:
    """The report."""
    cells = [cell for cell in finished(path) if "error" not in cell]
    models = [model for model in MODELS if any(cell["model"] == model for cell in cells)]
    tables = [table for table in public.FILES if any(cell["table"] == table for cell in cells)]
    crps = _means(cells, tables, models, "crps")
    lines = ["# Beside what else predicts distributions for tables", "", *PREFACE.splitlines(), "", "## CRPS", ""]
    lines += ["| table | rows | splits | " + " | ".join(models) + " |", "|---" * (len(models) + 3) + "|"]
    for table in tables:
        own = [cell for cell in cells if cell["table"] == table]
        best = min(crps[table].values())
        shown = [f"**{_number(crps[table][m])}**" if crps[table].get(m) == best else _number(crps[table].get(m)) for m in models]
        splits = len({cell["split"] for cell in own if cell["model"] == OURS})
        mark = " *" if any(cell.get("note") for cell in own) else ""
        lines.append(f"| {table}{mark} | {max(cell['used_rows'] for cell in own):,} | {splits} | {' | '.join(shown)} |")
    everywhere = [model for model in models if all(model in crps[table] for table in tables)]
    mean = ranks(crps, everywhere)
    if OURS in mean:
        order = sorted(mean, key=mean.__getitem__)
        lines += ["", f"Mean rank over all {len(tables)} tables, of models that have all: "]
        lines[-1] += ", ".join(f"{model} {mean[model]:.2f}" for model in order) + "."
        lost = {
            f"{table} ({model}, {100 * (crps[table][OURS] / crps[table][model] - 1):.0f} %)"
            for table in tables
            for model in models
            if model in crps[table] and crps[table][OURS] > 1.1 * crps[table][model]
        }
        lines += ["", f"Lost to any of them by more than 10 %: {', '.join(sorted(lost)) or 'none'}."]
    lines += [
        "",
        "## All scores",
        "",
        "Means over the tables that each model and ours both have, ours divided out (below 1 is better than ours),",
    ]
    lines += ["but for coverage, NLL (less ours, of standardised targets) and standard errors over tables.", ""]
    lines += [
        "| model | tables | CRPS | RMSE | NLL | NLL of one Gaussian | coverage at 90 % | width | seconds to fit | to predict |",
        "|---" * 10 + "|",
    ]
    for model in models:
        lines.append(_compared(cells, tables, model))
    REPORT.write_text("\n".join(lines).rstrip() + "\n")


def _means(cells: list[dict[str, Any]], tables: list[str], models: list[str], score: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for table in tables:
        for model in models:
            own = [c for c in cells if (c["table"], c["model"]) == (table, model) and score in c]
            if own:
                # The first split is the one that all have.
                found.setdefault(table, {})[model] = float(
                    np.mean([c[score] for c in own if c["split"] == 0] or [c[score] for c in own])
                )
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _compared(cells: list[dict[str, Any]], tables: list[str], model: str) -> str:
    """A row of the table of all scores."""
    shown, used = [], 0
    for score in ("crps", "rmse", "nll", "nll_gaussian", "coverage", "width", "fit", "predict"):
        both = _means(cells, tables, [model, OURS], score)
        pairs = [(one[model], one[OURS]) for one in both.values() if model in one and OURS in one]
        used = max(used, len(pairs))
        if score == "coverage":
            values = [own for own, _ in pairs]
        elif score.startswith("nll"):
            values = [own - other for own, other in pairs]
        else:
            values = [float(np.log(own / other)) for own, other in pairs]
        if not values:
            shown.append("")
            continue
        mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
        plain = score == "coverage" or score.startswith("nll")
        shown.append(f"{mean:.2f} ± {error:.2f}" if plain else f"{np.exp(mean):.2f} ± {np.exp(mean) * error:.2f}")
    return f"| {model} | {used} | {' | '.join(shown)} |"


PREFACE = """`python benchmarks/tabular.py run`, then `write`. Every model as its documentation starts it, on random 90/10 splits
with at most 2,000 training rows, drawn at random, and 2,000 test rows (also for the Gaussian process); one
thread each, on a machine with much other work, so that times are only good for factors of several. All get the same
numbers: categories of at most 12 values as a column each, others by their frequency, missing numbers as the median
with a column that says so. RealMLP and TabM predict numbers: a Gaussian with the variance of their errors on a tenth
of the training rows. LightGBM and XGBoost predict 13 quantiles; where these coincide there is no density, and no NLL.
Tables are those of `benchmarks/public.py`; the logarithm of the target is predicted for sgemm and online_news. The
first split of each table is shown, as the machine's time was short; an empty cell was not measured."""


def main() -> None:
    """Run or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "write"])
    parser.add_argument("--tables", nargs="*", default=list(public.FILES))
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000, help="training rows at most")
    parser.add_argument("--test-rows", type=int, default=2000)
    parser.add_argument("--cells", type=Path, default=CELLS)
    given = parser.parse_args()
    if given.what == "run":
        run(given.tables, given.models, given.splits, most=given.rows, most_test=given.test_rows, path=given.cells)
    else:
        write(given.cells)


if __name__ == "__main__":
    main()
