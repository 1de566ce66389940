"""Who can learn, and from what: models of scikit-learn, functions, tables, tensors, images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import uqprism as up
from uqprism.errors import InvalidValueError, UnsupportedError

from .problems import EXCESS, Counted, X, Y, cubics, loop, picks


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(10, min_samples_leaf=2),
        BaggingRegressor(BayesianRidge(), 5),
        make_pipeline(StandardScaler(), BaggingRegressor(BayesianRidge(), 5)),
        GaussianProcessRegressor(RBF(0.5, "fixed") + WhiteKernel(0.05, "fixed"), alpha=0.0),
    ],
    ids=["forest", "bag", "pipeline", "process"],
)
def test_scikit_learn_models_learn_and_are_left_as_they_were(model: Any) -> None:
    """Cloned in each round, with a seed where they had none: the same learner gives the same picks."""
    before = str(model.get_params())
    learner = loop(model, initial=20, batch_size=10, acquisition="crps.excess.members.members")
    states = list(learner)
    assert states[-1].metrics["rmse"] < 0.75 * np.std(Y)
    assert picks(learner) == picks(states)
    assert str(model.get_params()) == before
    assert not hasattr(model, "n_features_in_")


def test_functions_may_return_scikit_learn_models() -> None:
    first = next(iter(loop(lambda x, y: [BayesianRidge().fit(x[i::3], y[i::3]) for i in range(3)])))
    assert first.scores.max() > 0.0


def test_a_regressor_keeps_the_seed_it_has() -> None:
    def states(random_state: int | None, seed: int) -> list[float]:
        fit = RandomForestRegressor(5, random_state=random_state)
        return [state.metrics["nll"] for state in loop(fit, initial=np.arange(20), rounds=1, random_state=seed)]

    assert states(3, 0) == states(3, 1)
    assert states(None, 0) != states(None, 1)


@pytest.mark.parametrize("model", [Ridge(), BaggingRegressor(Ridge(), 3)])
def test_models_that_do_not_say_how_uncertain_they_are_get_advice(model: Any) -> None:
    with pytest.raises(
        UnsupportedError, match=r"Ridge predicts numbers .*BaggingRegressor\(BayesianRidge\(\)\).*a bag of Ridge does not"
    ):
        list(loop(model))


def test_a_model_that_cannot_disagree_with_itself_is_no_guide() -> None:
    with pytest.raises(InvalidValueError, match=r"zero for every point, because the model has one member.*BaggingRegressor"):
        list(loop(BayesianRidge()))
    assert len(list(loop(BayesianRidge(), acquisition="log.bayes.members"))) == 4


class Samples:
    """A model that predicts draws, which have no density."""

    def predict_ensemble(self, inputs: np.ndarray) -> up.EnsemblePrediction:
        rng = np.random.default_rng(0)
        return up.EnsemblePrediction.samples(inputs[:, 0] + rng.normal(size=(3, 20, len(inputs))))


def test_predictions_without_a_density_have_no_likelihood() -> None:
    learner = loop(lambda *_: Samples(), acquisition="crps.excess.members.members")
    assert all(list(state.metrics) == ["rmse", "crps"] for state in learner)


def test_tables_reach_the_model_as_tables() -> None:
    frame = pd.DataFrame(X, columns=["along", "across"], index=np.arange(200)[::-1])
    fit = Counted()
    states = list(loop(fit, frame, pd.Series(Y, index=frame.index), test=(frame.iloc[:9], Y[:9])))
    assert picks(states) == picks(loop(test=(X[:9], Y[:9])))
    inputs, targets = fit.calls[0]
    assert list(inputs.columns) == ["along", "across"]
    assert_array_equal(targets, Y[states[0].labelled])
    assert len(list(loop(RandomForestRegressor(5), frame, test=None, rounds=2))) == 2


def test_tensors_reach_the_model_as_tensors() -> None:
    fit = Counted()
    tensors = torch.tensor(X), torch.tensor(Y)
    states = list(loop(fit, *tensors, test=tensors))
    assert picks(states) == picks(loop(test=(X, Y)))
    assert all(isinstance(part, torch.Tensor) for part in fit.calls[0])
    assert isinstance(states[0].scores, np.ndarray)


class OnTensors:
    """Two Gaussians whose parameters are tensors."""

    def predict_ensemble(self, inputs: torch.Tensor) -> up.EnsemblePrediction:
        return up.EnsemblePrediction.gaussian(mean=torch.stack([inputs[:, 0], inputs[:, 1]]), scale=torch.ones(2, len(inputs)))


def test_predictions_on_tensors_give_states_of_arrays() -> None:
    tensors = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    state = next(iter(loop(lambda *_: OnTensors(), *tensors, test=tensors)))
    assert isinstance(state.measures[EXCESS], np.ndarray)
    error = (X.astype(np.float32).mean(axis=1) - Y) ** 2
    assert state.metrics["rmse"] == pytest.approx(np.sqrt(error.mean()), rel=1e-5)


@pytest.mark.parametrize("selection", ["softmax", "diverse"])
def test_images_lists_and_sparse_matrices_work(selection: str) -> None:
    class Bright:
        def predict_ensemble(self, inputs: Any) -> up.EnsemblePrediction:
            inputs = inputs.toarray() if hasattr(inputs, "toarray") else inputs
            flat = np.asarray(inputs).reshape(len(inputs), -1)
            return up.EnsemblePrediction.gaussian(mean=flat.T[:2], scale=np.ones((2, len(flat))))

    flat = np.random.default_rng(0).normal(size=(60, 12))
    kinds = [flat, flat.reshape(60, 1, 3, 4), flat.tolist(), csr_array(flat)]
    found = [picks(loop(lambda *_: Bright(), kind, np.arange(60.0), test=None, selection=selection)) for kind in kinds]
    assert all(each == found[0] for each in found)


def test_distances_can_be_measured_in_features_of_the_model() -> None:
    """In a feature that only tells the left half from the right, the farthest point is always in the other half."""
    half = (X[:, 0] > 0.0).astype(float)
    seen = []

    def features(model: Any, inputs: np.ndarray) -> np.ndarray:
        seen.append(type(model).__name__)
        return (inputs[:, 0] > 0.0).astype(float)

    (state,) = loop(initial=np.flatnonzero(half == 0.0)[:12], selection="diverse", features=features, rounds=1)
    assert half[state.picked[0]] == 1.0
    assert seen == ["Cubics"]


def test_a_function_that_takes_a_seed_gets_another_in_each_round() -> None:
    seeds: list[int] = []

    def fit(inputs: Any, targets: Any, seed: int) -> Any:
        seeds.append(seed)
        return cubics(inputs, targets, seed)

    learner = loop(fit)
    assert picks(learner) == picks(learner)
    assert len(set(seeds[:4])) == 4
    assert seeds[:4] == seeds[4:]
