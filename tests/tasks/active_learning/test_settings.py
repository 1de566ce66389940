"""Bad arguments are refused before anything is trained, with the argument, the requirement and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestRegressor

import uqprism as up
from uqprism.errors import UqprismError

from .problems import Counted, X, Y, cubics, loop

HOLED = np.where(np.arange(200) % 90 == 7, np.nan, Y)
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"rounds": 40},
        r"initial \+ rounds \* batch_size must not exceed the pool: 12 \+ 40 \* 6 = 252 points of 200; .*at most rounds=31",
    ),
    ({"batch_size": 500}, "with this pool take a smaller initial or batch_size"),
    ({"initial": 500}, "with this pool take a smaller initial or batch_size"),
    ({"initial": 0}, "initial must be at least 1, got 0"),
    ({"initial": 2.5}, r"initial must be an integer, got 2\.5"),
    ({"initial": []}, "initial must be a number of points or their indices"),
    ({"initial": np.array([], dtype=int)}, "at least one point to start from"),
    ({"initial": [1, 2, 1]}, "initial must name each point once, got 1 2 times"),
    ({"initial": [1, 200]}, "initial must be indices from 0 to 199, got 200"),
    ({"initial": [-1, 2]}, "initial must be indices from 0 to 199, got -1"),
    ({"initial": np.ones(200, dtype=bool)}, "of a mask, take np.flatnonzero"),
    ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ({"rounds": 0}, "rounds must be at least 1, got 0"),
    ({"rounds": 2.0}, r"rounds must be an integer, got 2\.0"),
    ({"rounds": True}, "rounds must be an integer, got True"),
    ({"random_state": -1}, "random_state must be at least 0, got -1"),
    ({"random_state": None}, "random_state must be an integer, got None"),
    ({"temperature": 0.0}, "temperature must be a finite number greater than zero, got 0"),
    ({"temperature": float("nan")}, "temperature must be a finite number greater than zero, got nan"),
    ({"temperature": "hot"}, "temperature must be a finite number greater than zero, got 'hot'"),
    ({"temperature": 2.0, "selection": "top"}, "temperature and scores are for selection='softmax'"),
    ({"scores": "rank", "selection": "diverse"}, "temperature and scores are for selection='softmax'"),
    ({"selection": "topk"}, "unknown selection 'topk'; did you mean 'top'"),
    ({"scores": "ranks"}, "unknown scaling of scores 'ranks'; did you mean 'rank'"),
    ({"features": cubics}, "features is for selection='diverse', got 'softmax'"),
    ({"features": 3, "selection": "diverse"}, "features must be a function"),
    ({"acquisition": "crsp.excess.members.members"}, "unknown rule 'crsp'; did you mean 'crps'"),
    ({"acquisition": "log.excess.member.members"}, "did you mean 'members'"),
    ({"acquisition": "entropy"}, "unknown measure 'entropy'"),
    ({"acquisition": 3}, "acquisition must be the name of a measure"),
    ({"measures": ["log.byes.members"]}, "unknown"),
    ({"measures": [3]}, "measures must be names or Measures, got 3"),
    ({"test": X}, r"test must be a pair \(inputs, targets\), got ndarray"),
    ({"test": (X, Y[:-1])}, "test inputs and test targets must have as many rows, got 200 and 199"),
    ({"test": (X[:1], Y[:1])}, "test must have at least 2 rows, got 1"),
    ({"test": (X, HOLED)}, "test targets must be finite: 3 of 200 are NaN or infinite, the first in row 7"),
    ({"test": (X[:, :1], Y)}, r"test inputs must have rows of the pool's shape \(2,\), got \(1,\)"),
    ({"y": Y[:-1]}, "pool_inputs and pool_targets must have as many rows, got 200 and 199"),
    ({"y": HOLED}, "pool_targets must be finite: 3 of 200 are NaN or infinite, the first in row 7; drop those rows"),
    ({"y": torch.tensor(HOLED)}, "pool_targets must be finite"),
    ({"y": np.stack([Y, Y], 1)}, r"pool_targets must be one number for each row, got shape \(200, 2\)"),
    ({"y": ["a"] * 200}, "pool_targets must be real numbers"),
    ({"x": 5.0}, "pool_inputs must be an array or a table of rows"),
    ({"x": [[1.0], [1.0, 2.0]]}, "pool_inputs must be rows of one length"),
    ({"fit": RandomForestRegressor}, r"got the class RandomForestRegressor; pass RandomForestRegressor\(\)"),
    ({"fit": 3}, r"fit must be a function \(inputs, targets\) -> model, or a scikit-learn regressor, got int"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG)
def test_bad_arguments_are_refused_before_any_training(changed: dict[str, Any], message: str) -> None:
    counted = Counted()
    with pytest.raises(UqprismError, match=message):
        loop(**{"fit": counted, **changed})
    assert counted.calls == []


SCORES: list[tuple[Any, str]] = [
    (lambda e: np.where(np.arange(e.n_points) == 4, np.nan, 1.0), "must give finite scores, got nan for 1 of 188 points"),
    (lambda e: np.where(np.arange(e.n_points) < 4, np.inf, 1.0), "got inf for 4 of 188 points; .*return a low number"),
    (lambda _: np.ones(3), r"acquisition '<lambda>' must return one score for each of 188 points, got shape \(3,\)"),
    (lambda e: e.members.mean, r"got shape \(5, 188\)"),
]


@pytest.mark.parametrize(("acquisition", "message"), SCORES)
def test_bad_scores_name_the_acquisition(acquisition: Any, message: str) -> None:
    with pytest.raises(UqprismError, match=message):
        list(loop(acquisition=acquisition))


@dataclass
class Predicting:
    """A model that predicts the same whatever its inputs are."""

    predicted: Any

    def predict_ensemble(self, inputs: Any) -> Any:
        return self.predicted[: len(inputs)]


PREDICTED = up.EnsemblePrediction.gaussian(mean=np.random.default_rng(0).normal(size=(3, 200)), scale=np.ones((3, 200)))


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        (PREDICTED[:5], r"must predict one point for each of 188 rows, got \(5,\)"),
        (np.zeros(200), "predict_ensemble must return an EnsemblePrediction, got ndarray"),
    ],
)
def test_models_that_predict_something_else_are_refused(predicted: Any, message: str) -> None:
    with pytest.raises(UqprismError, match=message):
        list(loop(lambda *_: Predicting(predicted), test=None))


FEATURES: list[tuple[dict[str, Any], str]] = [
    ({"features": lambda _, x: x[:3]}, r"features\(model, inputs\) must have one row for each of 200 points, got shape \(3, 2\)"),
    ({"features": lambda _, x: np.full(x.shape, np.nan)}, "must be finite for selection='diverse'"),
    ({"x": np.array([["a", "b"]] * 200)}, "pool_inputs must be numbers for selection='diverse'; give features="),
]


@pytest.mark.parametrize(("changed", "message"), FEATURES)
def test_features_without_distances_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UqprismError, match=message):
        list(loop(lambda *_: Predicting(PREDICTED), selection="diverse", test=None, **changed))
