"""CatBoost, LightGBM, XGBoost, scikit-learn's gradient boosting and the LSS variants against their own predictions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.errors import ArgumentError, InvalidValueError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, and of quantiles that cross


@pytest.mark.libraries
def test_the_two_parts_are_the_uncertainties_that_catboost_reports(page: Callable) -> None:
    """Bayes and excess risk of the squared error are its data and knowledge uncertainty, to the last digits."""
    names = page("catboost")
    model, d, X_new = names["model"], names["d"], names["X_new"]
    own = model.virtual_ensembles_predict(X_new, prediction_type="TotalUncertainty", virtual_ensembles_count=10)
    assert_allclose(d.epistemic, own[:, 1], rtol=1e-9)
    assert_allclose(d.aleatoric, own[:, 2], rtol=1e-12)
    assert_allclose(d.total, own[:, 1] + own[:, 2], rtol=1e-12)
    assert_allclose(names["ens"].mixture.mean, own[:, 0], rtol=1e-12)
    members = up.from_model([model, model], X_new).members
    assert_array_equal(members.mean[1], model.predict(X_new)[:, 0])
    assert_array_equal(members.variance[1], model.predict(X_new)[:, 1])


@pytest.mark.libraries
def test_quantiles_of_catboost_at_several_levels_and_apart(page: Callable) -> None:
    names = page("catboost")
    several, apart = names["quantiles"]
    assert several.members.levels == apart.members.levels == (0.1, 0.5, 0.9)
    assert_array_equal(several.members.values[:, 0].T, np.sort(names["several"].predict(names["X_new"]), axis=1))
    own = [model.predict(names["X_new"]) for model in names["apart"]]
    assert_array_equal(apart.members.values[:, 0], np.sort(own, axis=0))


def test_models_of_lightgbm_are_grouped_by_level(page: Callable) -> None:
    """The first of every level is the first member; boosters and nested lists are the same."""
    names = page("lightgbm")
    models, X_new, values = names["models"], names["X_new"], names["ens"].members.values
    for i in range(5):
        own = [model.predict(X_new) for model in models[3 * i : 3 * i + 3]]
        assert_array_equal(values[:, i], np.sort(own, axis=0))
    nested = [[model.booster_ for model in models[i::3]] for i in range(3)]
    members = up.from_model([[level[i] for level in nested] for i in range(5)], X_new).members
    assert_array_equal(members.values, values)
    with pytest.raises(UnsupportedError, match=r"level 0.1 alone, which is not a distribution\. Pass a list of models"):
        up.from_model(models[0], X_new)
    with pytest.raises(ArgumentError, match=r"as many models of each level, got the levels \(and models\) 0.1 \(2\), 0.5 \(1\)"):
        up.from_model([*models[:3], models[0]], X_new)
    with pytest.raises(ArgumentError, match="quantiles at two levels or more"):
        up.from_model([models[0], models[3]], X_new)


@pytest.mark.libraries
def test_a_model_of_xgboost_has_several_levels(page: Callable) -> None:
    import xgboost

    names = page("xgboost")
    models, X_new, values = names["models"], names["X_new"], names["ens"].members.values
    assert_array_equal(values[:, 2].T, np.sort(models[2].predict(X_new), axis=1))
    boosters = up.from_model([model.get_booster() for model in models], xgboost.DMatrix(X_new))
    assert_array_equal(boosters.members.values, values)
    with pytest.raises(UnsupportedError, match="numbers without noise"):
        up.from_model(xgboost.XGBRegressor(n_estimators=2).fit(names["X"], names["y"]), X_new)


def test_quantiles_of_scikit_learn(page: Callable) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import QuantileRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    names = page("sklearn")
    X, y, X_new, values = names["X"], names["y"], names["X_new"], names["ens"].members.values
    own = [model.predict(X_new) for model in names["models"][3:6]]
    assert_array_equal(values[:, 1], np.sort(own, axis=0))
    for kind, options in ((HistGradientBoostingRegressor, {"loss": "quantile"}), (QuantileRegressor, {})):
        models = [make_pipeline(StandardScaler(), kind(quantile=q, **options)).fit(X, y) for q in (0.2, 0.8)]
        members = up.from_model(models, X_new, tails="gaussian").members
        assert (members.levels, members.tails_name) == ((0.2, 0.8), "gaussian")
        assert_array_equal(members.values[:, 0], np.sort([model.predict(X_new) for model in models], axis=0))


class XGBoostLSS:
    """As xgboostlss.model.XGBoostLSS, which predicts a data frame with a column per parameter."""

    __module__ = "xgboostlss.model"

    def __init__(self, distribution: object, **parameters: object) -> None:
        self.dist, self.parameters = SimpleNamespace(distribution=distribution), parameters

    def predict(self, data: np.ndarray, pred_type: str) -> pd.DataFrame:
        assert pred_type == "parameters"
        return pd.DataFrame(self.parameters, index=range(len(data)))


def test_lss_models_are_of_their_own_family() -> None:
    X, y = np.zeros((4, 1)), torch.linspace(-1.0, 1.0, 4, dtype=torch.float64)
    location, scale = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 0.5, 2.0, 1.5])
    for kind, parameters in (
        (torch.distributions.Normal, {"loc": location, "scale": scale}),
        (torch.distributions.Laplace, {"loc": location, "scale": scale}),
        (torch.distributions.StudentT, {"df": 3.0 + scale, "loc": location, "scale": scale}),
    ):
        members = up.from_model([XGBoostLSS(kind, **parameters)], X).members
        own = kind(**{key: torch.tensor(x) for key, x in parameters.items()}).log_prob(y)
        assert_allclose(members.log_density(y.numpy())[0], own, rtol=1e-12)
    with pytest.raises(UnsupportedError, match=r"not those of one distribution\. Pass draws"):
        up.from_model(XGBoostLSS(torch.distributions.Normal, param_1=location, param_2=scale), X)


@pytest.mark.libraries
def test_regressors_of_catboost_that_predict_numbers(page: Callable) -> None:
    """They have an attribute of classes, too, which is empty; classifiers are refused."""
    from catboost import CatBoost, CatBoostClassifier, CatBoostRegressor, sum_models

    names = page("catboost")
    X, y, quiet = names["X"], names["y"], {**names["quiet"], "iterations": 9}
    models = [CatBoostRegressor(**{**quiet, "random_seed": i}).fit(X[:150], y[:150]) for i in range(2)]
    ens = up.from_model(models, X, validation=(X[150:], y[150:]))
    assert_allclose(ens.members.mean[1], models[1].predict(X))
    with pytest.raises(UnsupportedError, match="CatBoostRegressor predicts numbers without noise"):
        up.from_model(models[0], X)
    assert_allclose(up.from_model(sum_models(models), X, variance=0.1).members.mean[0], sum(m.predict(X) for m in models))
    labels = (y > 0).astype(int)
    for model in (CatBoostClassifier(**quiet), CatBoost({**quiet, "loss_function": "Logloss"})):
        with pytest.raises(UnsupportedError, match="is a classifier"):
            up.from_model(model.fit(X, labels), X)
    few = CatBoostRegressor(loss_function="RMSEWithUncertainty", **quiet).fit(X, y)
    with pytest.raises(InvalidValueError, match="10 virtual ensembles need more than the 9 trees"):
        up.from_model(few, X)


@pytest.mark.libraries
def test_models_of_different_levels_are_not_joined(page: Callable) -> None:
    """The values of one would be read at the levels of the other."""
    import xgboost

    names = page("xgboost")
    options = {"objective": "reg:quantileerror", "n_estimators": 3}
    X, y, levels = names["X"], names["y"], ([0.1, 0.5, 0.9], [0.05, 0.5, 0.95])
    models = [xgboost.XGBRegressor(quantile_alpha=each, **options).fit(X, y) for each in levels]
    with pytest.raises(
        ArgumentError, match=r"must have the same levels and tails, got \[0.1, 0.5, 0.9\], exponential and \[0.05"
    ):
        up.from_model(models, X)


def test_the_folds_of_a_cross_validation_by_lightgbm_are_members(page: Callable) -> None:
    import lightgbm

    names = page("lightgbm")
    X, y = names["X"], names["y"]
    data = lightgbm.Dataset(X, y, free_raw_data=False)
    found = lightgbm.cv({"verbose": -1, "num_threads": 1}, data, 5, nfold=3, stratified=False, return_cvbooster=True)
    folds = found["cvbooster"]
    members = up.from_model(folds, X, variance=0.1).members
    assert_array_equal(members.mean, folds.predict(X))
    with pytest.raises(UnsupportedError, match="fold 0: Booster predicts numbers without noise"):
        up.from_model(folds, X)


def test_the_level_is_that_of_the_fit(page: Callable) -> None:
    """Not that which a parameter was set to afterwards."""
    names = page("lightgbm")
    models = names["models"][:3]
    models[0].set_params(alpha=0.3)
    assert up.from_model(models, names["X_new"]).members.levels == (0.1, 0.5, 0.9)
    models[0].set_params(alpha=0.1)
