"""Models that predict distributions for tables, each as its documentation starts it: ours and those it is compared with.

A model takes inputs, targets and a seed, and gives a function from inputs to an ensemble prediction. Peers that predict one
number get a Gaussian with the variance of their errors on a tenth of the training rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import uqprism as up

Array = Any
Predict = Callable[[Array], Any]
Fit = Callable[[Array, Array, int], Predict]
LEVELS = [0.01, 0.05, *(round(0.1 * i, 1) for i in range(1, 10)), 0.95, 0.99]
DEVICE = os.environ.get("UQPRISM_PEERS", "cpu")  # of the networks of pytabkit: "cuda" where there is one
DRAWS = 200  # of the 8,000 that bde keeps, evenly spaced: the exact CRPS of a mixture takes the square of their number
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
        ens = up.from_model(model, inputs_of.transform(inputs), n_members=DRAWS)
        mean, scale = targets_of.mean_[0], targets_of.scale_[0]
        return up.EnsemblePrediction.gaussian(
            mean=mean + scale * np.asarray(ens.members.mean), variance=scale**2 * np.asarray(ens.members.variance)
        )

    return predict


def pytabkit(name: str) -> Fit:
    """RealMLP or TabM with their tuned defaults, which predict numbers: a Gaussian of the validation error."""

    def fit(x: Array, y: Array, seed: int) -> Predict:
        import pytabkit
        from sklearn.model_selection import train_test_split

        x_train, x_kept, y_train, y_kept = train_test_split(x, y, test_size=0.1, random_state=seed)
        model = getattr(pytabkit, name)(random_state=seed, device=DEVICE, n_threads=CORES, verbosity=0)
        model.fit(x_train, y_train)
        variance = float(np.mean((np.ravel(model.predict(x_kept)) - y_kept) ** 2))

        def predict(inputs: Array) -> Any:
            mean = np.ravel(model.predict(inputs)).astype(np.float64)[None]
            return up.EnsemblePrediction.gaussian(mean=mean, variance=np.full_like(mean, variance))

        return predict

    return fit


OURS = "uqprism"
MODELS: dict[str, Fit] = {
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
LARGEST = {"Gaussian process": 2000}  # training rows: its time grows with their cube
ON_DEVICE = ("RealMLP", "TabM")
IMPORTED = {
    "CatBoost": "catboost",
    "CatBoost x 10": "catboost",
    "random forest": "sklearn",
    "Gaussian process": "sklearn",
    "LightGBM quantiles": "lightgbm",
    "XGBoost quantiles": "xgboost",
    "NGBoost": "ngboost",
    OURS: "torch",
    "bde": "bde",
    "RealMLP": "pytabkit",
    "TabM": "pytabkit",
}
