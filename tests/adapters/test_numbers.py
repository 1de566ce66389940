"""Models that predict numbers: the noise is their mean squared error on validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import uqprism as up
from uqprism.errors import UqprismError

RNG = np.random.default_rng(4)
X, X_VALID = 3.0 + 2.0 * RNG.normal(size=(80, 3)), 3.0 + 2.0 * RNG.normal(size=(30, 3))
y, y_valid = (np.sin(x[:, 0]) + 0.1 * x[:, 1] + 0.2 * RNG.normal(size=len(x)) for x in (X, X_VALID))
VALIDATION = (X_VALID, y_valid)


def squared_error(model: Any) -> float:
    return np.mean((model.predict(X_VALID) - y_valid) ** 2)


MODELS = {
    "boosting": GradientBoostingRegressor(n_estimators=5, random_state=0),
    "histograms": HistGradientBoostingRegressor(max_iter=5),
    "pipeline": make_pipeline(StandardScaler(), LinearRegression()),
    "search": GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=2),
    "search in a pipeline": make_pipeline(StandardScaler(), GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=2)),
    "transformed": TransformedTargetRegressor(LinearRegression(), func=np.sinh, inverse_func=np.arcsinh),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_noise_is_the_error_on_validation_rows(kind: str) -> None:
    """Whatever stands around a model sees the validation rows as it sees all others."""
    model = MODELS[kind].fit(X, y)
    members = up.from_model(model, X, validation=VALIDATION).members
    assert_array_equal(members.mean[0], model.predict(X))
    assert_allclose(members.variance, np.full((1, 80), squared_error(model)), rtol=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array])
def test_the_models_of_a_bag_take_their_columns_of_the_validation_rows(convert: Any) -> None:
    bag = BaggingRegressor(Ridge(), n_estimators=4, max_features=2, random_state=0).fit(X, y)
    members = up.from_model(bag, convert(X), validation=(convert(X_VALID), y_valid)).members
    for i, (model, columns) in enumerate(zip(bag.estimators_, bag.estimators_features_, strict=True)):
        assert_allclose(members.mean[i], model.predict(X[:, columns]))
        assert_allclose(members.variance[i, 0], np.mean((model.predict(X_VALID[:, columns]) - y_valid) ** 2))
    assert_allclose(up.from_model(bag, X, variance=0.1).mixture.mean, bag.predict(X))


def test_a_list_is_an_ensemble() -> None:
    models = [GradientBoostingRegressor(n_estimators=5, subsample=0.5, random_state=seed).fit(X, y) for seed in range(3)]
    ens = up.from_model(models, X, validation=VALIDATION)
    assert_allclose(ens.members.variance[:, 0], [squared_error(model) for model in models])
    d = up.decompose(ens, rule="squared_error", prediction="mixture", truth="members")
    assert_allclose(d.epistemic, np.var([model.predict(X) for model in models], axis=0))
    assert_array_equal(up.from_model(models[0], X, variance=np.arange(1.0, 81.0)).members.variance[0], np.arange(1.0, 81.0))


class Column:
    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, :1]


def test_a_column_is_one_number_per_row() -> None:
    members = up.from_model(Column(), X, validation=(X_VALID, y_valid[:, None])).members
    assert_array_equal(members.mean, X[None, :, 0])
    assert_allclose(members.variance[0, 0], np.mean((X_VALID[:, 0] - y_valid) ** 2))


BAD = {
    "neither": ({}, "predicts numbers without noise"),
    "both": ({"validation": VALIDATION, "variance": 1.0}, "one of validation and variance"),
    "rows alone": ({"validation": X_VALID}, "a pair of rows and targets"),
    "lengths": ({"validation": (X_VALID, y)}, "a target for each row"),
    "two variances": ({"variance": [1.0, 2.0]}, r"an array \(points,\), here \(80,\)"),
    "no variance": ({"variance": 0.0}, "Column must predict a variance .* greater than zero"),
    "no rows": ({"validation": (X_VALID[:0], y_valid[:0])}, "a target for each row"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_noise_is_refused(case: str) -> None:
    options, message = BAD[case]
    with pytest.raises(UqprismError, match=message):
        up.from_model(Column(), X, **options)


def test_targets_of_validation_are_finite() -> None:
    with pytest.raises(UqprismError, match="targets of validation must be finite"):
        up.from_model(LinearRegression().fit(X, y), X, validation=(X_VALID, np.where(y_valid > 0, np.nan, y_valid)))


def test_a_regressor_with_an_empty_list_of_classes_is_no_classifier() -> None:
    """As CatBoost's regressors have."""
    model = LinearRegression().fit(X, y)
    model.classes_ = []
    assert_allclose(up.from_model(model, X, variance=0.1).members.mean[0], model.predict(X))
