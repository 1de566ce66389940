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
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import public
import results

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
    """A Gaussian process with a length for each column, on at most 2,000 rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF(np.ones(x.shape[1])) + WhiteKernel()
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
    mixture, matched = ens.mixture, ens.matched
    lower, upper = mixture.quantile(0.05), mixture.quantile(0.95)
    found = {"rmse": np.sqrt(np.mean((matched.mean - y) ** 2)), "nll_gaussian": np.mean(up.rules.Log().score(matched, y))}
    with contextlib.suppress(UnsupportedError):  # quantiles that coincide have no density
        found["nll"] = np.mean(up.rules.Log().score(mixture, y))
    found |= {
        "crps": np.mean(up.rules.CRPS().score(mixture, y)),
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


def run(tables: Iterable[str], models: Iterable[str], splits: int, most: int, most_test: int, path: Path) -> None:
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
        run(given.tables, given.models, given.splits, given.rows, given.test_rows, given.cells)


if __name__ == "__main__":
    main()
