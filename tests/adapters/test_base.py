"""`from_model` finds the adapter of a model, passes it the options it has, and says what it accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_array_equal
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import uqprism as up
from uqprism.adapters import Adapter, adapters, one_member
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError

RNG = np.random.default_rng(2)
INPUTS = RNG.normal(size=(40, 2))
TARGETS = INPUTS[:, 0] + 0.1 * RNG.normal(size=40)
RIDGE, TREE = BayesianRidge().fit(INPUTS, TARGETS), DecisionTreeRegressor(random_state=0).fit(INPUTS, TARGETS)


class Oracle:
    """A model of a library that nobody has heard of."""


@pytest.fixture
def oracle() -> Any:
    @adapters.register("oracle")
    class OracleAdapter(Adapter):
        supports = "oracles"

        def matches(self, model: Any) -> bool:
            return isinstance(model, Oracle)

        def predict(self, model: Any, X: np.ndarray, *, doubt: float = 1.0) -> up.EnsemblePrediction:
            return one_member(model, "laplace", location=X[:, 0], scale=np.full(len(X), doubt))

    yield Oracle()
    adapters.remove("oracle")


def test_an_adapter_is_one_class(oracle: Oracle) -> None:
    """It serves single models, lists and pipelines, with its options."""
    ens = up.from_model(oracle, INPUTS, doubt=2.0)
    assert_array_equal(ens.members.location, INPUTS[None, :, 0])
    assert_array_equal(ens.members.scale, np.full((1, 40), 2.0))
    assert up.from_model([oracle, oracle], INPUTS, doubt=3.0).members.scale.tolist() == [[3.0] * 40] * 2
    scaled = make_pipeline(StandardScaler().fit(INPUTS), oracle)
    assert_array_equal(up.from_model(scaled, INPUTS).members.location[0], scaled[0].transform(INPUTS)[:, 0])
    with pytest.raises(InvalidValueError, match=r"model 1 of the list: Oracle must predict a scale .* got -1"):
        up.from_model([RIDGE, oracle], INPUTS, doubt=-1.0)


def test_an_unknown_model_is_refused_in_two_sentences_with_the_way_out() -> None:
    with pytest.raises(UnsupportedError) as caught:
        up.from_model(Oracle(), INPUTS)
    message = str(caught.value)
    assert message.startswith("no adapter knows Oracle")
    assert message.count(". ") == 1
    assert all(way in message for way in ("from_draws", "EnsemblePrediction.gaussian", "write an adapter"))
    with pytest.raises(ArgumentError, match="a fitted model, got the class BayesianRidge"):
        up.from_model(BayesianRidge, INPUTS)


def test_rows_are_given_to_models_and_not_to_predictions() -> None:
    with pytest.raises(ArgumentError, match="needs X, the rows that BayesianRidge shall predict"):
        up.from_model(RIDGE)
    with pytest.raises(ArgumentError, match="model 1 of the list: from_model needs X"):
        up.from_model([scipy.stats.norm(np.zeros(40), 1.0), TREE])
    with pytest.raises(ArgumentError, match="rv_continuous_frozen has predicted already; leave X out"):
        up.from_model([scipy.stats.norm(np.zeros(40), 1.0)], INPUTS)


def test_members_predict_for_the_same_points() -> None:
    with pytest.raises(ShapeError, match=r"the same points, got the shapes \(2,\), \(3,\)"):
        up.from_model([scipy.stats.norm(np.zeros(n), 1.0) for n in (2, 3)])


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(
        ArgumentError, match=r"^min_sample is not an option of any model; DecisionTreeRegressor takes min_samples$"
    ):
        up.from_model(TREE, INPUTS, min_sample=3)
    with pytest.raises(ArgumentError, match=r"^head is for PyTorch modules.*; BayesianRidge has no options$"):
        up.from_model(make_pipeline(RIDGE), INPUTS, head="natural")
    with pytest.raises(ArgumentError, match=r"n_members is for .*Gaussian processes"):
        up.from_model([TREE, RIDGE], INPUTS, n_members=3)


def test_members_of_a_list_take_the_options_that_they_have() -> None:
    """Also where one is given by its variance and the other by its scale."""
    ens = up.from_model([TREE, RIDGE], INPUTS, min_samples=12)
    assert_array_equal(ens.members.scale[0], up.from_model(TREE, INPUTS, min_samples=12).members.scale[0])
    assert_array_equal(ens.members.scale[1], RIDGE.predict(INPUTS, return_std=True)[1])


def test_options_go_to_predict_ensemble() -> None:
    class Own:
        def predict_ensemble(self, X: np.ndarray, *, passes: int = 1) -> up.EnsemblePrediction:
            return up.EnsemblePrediction.gaussian(mean=np.tile(X[:, 0], (passes, 1)), scale=1.0)

    assert up.from_model(Own(), INPUTS, passes=3).n_members == 3
    with pytest.raises(ArgumentError, match="pases is not an option of any model; Own takes passes"):
        up.from_model(Own(), INPUTS, pases=3)


def test_a_list_of_both_kinds_of_models_names_the_two() -> None:
    import torch
    from sklearn.linear_model import BayesianRidge

    model, network = BayesianRidge().fit([[0.0], [1.0], [2.0]], [0.0, 1.5, 1.8]), torch.nn.Linear(1, 2)
    for models in ([model, network], (network, model)):
        with pytest.raises(up.UqprismError, match=r"mixes PyTorch modules \(Linear\) with other models \(BayesianRidge\)"):
            up.from_model(models, [[0.5]])
