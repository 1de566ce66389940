"""Models with a standard deviation, alone, in lists, bags and pipelines; and models without one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import uqprism as up
from uqprism.errors import UqprismError

RNG = np.random.default_rng(5)
X = 3.0 + 2.0 * RNG.normal(size=(60, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * RNG.normal(size=60)


def process() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(RBF(3.0, "fixed") + WhiteKernel(0.1, "fixed"), alpha=0.05, normalize_y=True)


@pytest.mark.parametrize("base", [BayesianRidge(), process()])
def test_bags_are_looped_over_with_their_own_features(base: object) -> None:
    bag = BaggingRegressor(base, n_estimators=4, max_features=0.5, random_state=0).fit(X, y)
    ens = up.from_model(bag, X[:9])
    for i in range(4):
        model = bag.estimators_[i]
        mean, scale = model.predict(X[:9][:, bag.estimators_features_[i]], return_std=True)
        noise = 0.05 * model._y_train_std**2 if isinstance(base, GaussianProcessRegressor) else 0.0
        assert_allclose(ens.members.mean[i], mean, rtol=1e-12)
        assert_allclose(ens.members.scale[i] ** 2, scale**2 + noise, rtol=1e-12)
    assert_allclose(ens.mixture.mean, bag.predict(X[:9]), rtol=1e-12)


def test_lists_and_single_models() -> None:
    models = [BayesianRidge().fit(X[::2], y[::2]), ARDRegression().fit(X[1::2], y[1::2])]
    ens = up.from_model(tuple(models), X)
    for i, model in enumerate(models):
        mean, scale = model.predict(X, return_std=True)
        assert_array_equal(ens.members.mean[i], mean)
        assert_array_equal(ens.members.scale[i], scale)
    one = up.from_model(models[0], X)
    assert one.n_members == 1
    assert_array_equal(up.decompose(one, rule="crps").excess, 0.0)


def test_pipelines_transform_first_wherever_they_stand() -> None:
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(3, random_state=0)).fit(X, y)
    assert_allclose(up.from_model(forest, X).mixture.mean, forest.predict(X), rtol=1e-12)
    gp = make_pipeline(StandardScaler(), process()).fit(X, y)
    assert_allclose(up.from_model(gp, X, n_members=4).mixture.mean, gp.predict(X), rtol=1e-10)
    lines = [make_pipeline(StandardScaler(), BayesianRidge()).fit(X[i::2], y[i::2]) for i in range(2)]
    ens = up.from_model(lines, X)
    assert_array_equal(ens.members.scale[1], lines[1].predict(X, return_std=True)[1])
    bag = BaggingRegressor(make_pipeline(StandardScaler(), BayesianRidge()), n_estimators=3, random_state=0).fit(X, y)
    assert_allclose(up.from_model(bag, X).mixture.mean, bag.predict(X), rtol=1e-12)
    alone = make_pipeline(BayesianRidge()).fit(X, y)
    assert_array_equal(up.from_model(alone, X).members.mean[0], alone.predict(X))


def test_a_finished_search_stands_for_its_best_model() -> None:
    search = GridSearchCV(RandomForestRegressor(3, random_state=0), {"min_samples_leaf": [2, 5]}, cv=2).fit(X, y)
    assert_allclose(up.from_model(search, X).mixture.mean, search.predict(X), rtol=1e-12)


def test_data_frames_pass_without_a_warning() -> None:
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd"))
    for model in (
        [BayesianRidge().fit(frame, y)],
        process().fit(frame, y),
        BaggingRegressor(BayesianRidge(), n_estimators=2, max_features=2, random_state=0).fit(frame, y),
        make_pipeline(StandardScaler(), BayesianRidge()).fit(frame, y),
    ):
        assert up.from_model(model, frame).n_points == len(frame)


def test_models_with_predict_ensemble_give_their_own_ensemble() -> None:
    class Own:
        def predict_ensemble(self, X: np.ndarray) -> up.EnsemblePrediction:
            return up.EnsemblePrediction.gaussian(mean=[X[:, 0], X[:, 1]], scale=1.0)

    assert_array_equal(up.from_model(Own(), X).members.mean, X[:, :2].T)
    with pytest.raises(UqprismError, match=r"model 0 of the list: Own is an ensemble itself"):
        up.from_model([Own()], X)


class Sure:
    """A model that is certain in rows 1 and 3."""

    def predict(self, X: np.ndarray, return_std: bool = False) -> tuple[np.ndarray, np.ndarray]:
        scale = np.ones(len(X))
        scale[[1, 3]] = 0.0
        return X[:, 0], scale


def test_what_does_not_know_its_uncertainty_is_refused() -> None:
    transformed = TransformedTargetRegressor(BayesianRidge(), func=np.cbrt, inverse_func=lambda t: t**3)
    boosting = r"GradientBoostingRegressor predicts numbers without noise.*validation=\(X_valid, y_valid\)"
    for model, message in (
        (GradientBoostingRegressor(n_estimators=2).fit(X, y), boosting),
        ([LinearRegression().fit(X, y)], "model 0 of the list: LinearRegression predicts numbers"),
        (LogisticRegression().fit(X, y > 0), "LogisticRegression is a classifier"),
        (transformed.fit(X, y), r"pass its fitted .regressor_"),
        ([], "at least one fitted model"),
        ([BayesianRidge().fit(X, y), Sure()], r"model 1 of the list: Sure .* scale .*got 0 in row 1, 3"),
        ([RandomForestRegressor(2).fit(X, y)], "ensemble itself"),
    ):
        with pytest.raises(UqprismError, match=message):
            up.from_model(model, X)
    ridge = BayesianRidge()
    for model in ([ridge], ridge, make_pipeline(StandardScaler(), ridge), GaussianProcessRegressor()):
        with pytest.raises(NotFittedError):
            up.from_model(model, X)


def test_models_that_are_no_regressors_or_not_searched_yet_say_so() -> None:
    """Whether fitted or not; a search that kept no model, or a vote that is not fitted, is no regressor of numbers."""
    search = GridSearchCV(RandomForestRegressor(2), {"min_samples_leaf": [2]}, cv=2, refit=False)
    for model, message in (
        (RandomForestClassifier(2), "RandomForestClassifier is a classifier"),
        (IsolationForest(n_estimators=2).fit(X), "IsolationForest does not predict a target"),
        (search.fit(X, y), "keeps no best model with refit=False"),
        ({"a": BayesianRidge().fit(X, y)}, r"got a dict\. Pass list\(models.values\(\)\)"),
        ((ridge for ridge in [BayesianRidge().fit(X, y)]), r"got a generator\. Pass list\(models\)"),
    ):
        with pytest.raises(UqprismError, match=message):
            up.from_model(model, X)
    search.refit = True
    for unfitted in (clone(search), TransformedTargetRegressor(BayesianRidge()), VotingRegressor([("a", BayesianRidge())])):
        with pytest.raises(NotFittedError):
            up.from_model(unfitted, X)


def test_a_vote_is_an_ensemble_with_the_weights_of_its_models() -> None:
    models = [("ridge", BayesianRidge()), ("none", "drop"), ("ard", ARDRegression())]
    for weights in (None, [3, 7, 1]):
        vote = VotingRegressor(models, weights=weights).fit(X, y)
        ens = up.from_model(vote, X)
        assert ens.n_members == 2
        assert_allclose(ens.mixture.mean, vote.predict(X), rtol=1e-12)
        assert_allclose(ens.members.scale[1], vote.estimators_[1].predict(X, return_std=True)[1])
    assert_allclose(ens.weights, [0.75, 0.25])


def test_arrays_of_models_are_lists() -> None:
    models = [BayesianRidge().fit(X[i::2], y[i::2]) for i in range(2)]
    assert_array_equal(up.from_model(np.array(models, dtype=object), X).members.mean, up.from_model(models, X).members.mean)


def test_a_forest_in_a_list_is_one_gaussian_with_validation_rows() -> None:
    forests = [RandomForestRegressor(5, random_state=i).fit(X[:40], y[:40]) for i in range(2)]
    bag = BaggingRegressor(n_estimators=3, random_state=0).fit(X[:40], y[:40])
    ens = up.from_model([*forests, bag], X, validation=(X[40:], y[40:]))
    for i, model in enumerate([*forests, bag]):
        assert_allclose(ens.members.mean[i], model.predict(X))
        assert_allclose(ens.members.variance[i], np.mean((model.predict(X[40:]) - y[40:]) ** 2))
