"""A prediction remembers what made it, wherever it goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import uqprism as up
from uqprism.ensemble.origin import KINDS, UNKNOWN, Origin
from uqprism.files.points import Points

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)


def boosted(**settings: Any) -> up.EnsemblePrediction:
    models = [GradientBoostingRegressor(n_estimators=5, random_state=seed).fit(X, Y) for seed in range(3)]
    return up.from_model(models, X, **settings)


@pytest.mark.parametrize(
    ("make", "origin"),
    [
        (lambda: up.from_model(RandomForestRegressor(4, random_state=0).fit(X, Y), X), Origin("forest", "forest", 4)),
        (
            lambda: up.from_model(make_pipeline(StandardScaler(), RandomForestRegressor(4, random_state=0)).fit(X, Y), X),
            Origin("forest", "forest", 4),
        ),
        (lambda: up.from_model(BaggingRegressor(n_estimators=4, random_state=0).fit(X, Y), X), Origin("bagging", "forest", 4)),
        (lambda: boosted(variance=0.01), Origin("list", "boosting", 3)),
        (
            lambda: up.from_model(GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None).fit(X, Y), X, n_members=6),
            Origin("gaussian_process", "process", 6),
        ),
        (lambda: up.from_model([BayesianRidge().fit(X, Y)], X), Origin("list", "unknown", 1)),
        (lambda: up.from_posterior(np.zeros((3, 5)), scale=1.0), Origin("from_posterior", "posterior", 3)),
        (lambda: up.EvidentialPrediction(0.0, 1.0, 2.0, 1.0).as_ensemble(8), Origin("evidential", "evidential", 8)),
        (lambda: up.EnsemblePrediction.gaussian(mean=np.zeros((2, 3)), scale=np.ones((2, 3))), UNKNOWN),
    ],
)
def test_what_made_a_prediction(make: Any, origin: Origin) -> None:
    assert make().origin == origin
    assert origin.kind in KINDS


def test_our_networks_say_how_their_members_differ() -> None:
    settings = {"max_epochs": 1, "hidden": (4,), "random_state": 0}
    regressors = {
        "networks": up.DeepEnsembleRegressor(n_members=2, **settings),
        "resampled": up.DeepEnsembleRegressor(n_members=2, bootstrap=True, **settings),
        "dropout": up.MCDropoutRegressor(n_members=2, **settings),
        "evidential": up.EvidentialRegressor(n_members=2, **settings),
    }
    for kind, regressor in regressors.items():
        found = up.from_model(regressor.fit(X, Y), X)
        assert found.origin == Origin("predict_ensemble", kind, 2)


def test_a_saved_ensemble_of_resampled_networks_says_so(tmp_path: Path) -> None:
    regressor = up.DeepEnsembleRegressor(n_members=2, bootstrap=True, max_epochs=1, hidden=(4,), random_state=0).fit(X, Y)
    regressor.ensemble_.save(tmp_path / "networks.safetensors")
    assert up.DeepEnsemble.load(tmp_path / "networks.safetensors").predict_ensemble(X).origin.kind == "resampled"


def test_the_origin_stays_through_slices_and_files(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    given = boosted(variance=0.01)
    given.save(tmp_path / "saved.npz")
    pq.write_table(given.to_arrow(), tmp_path / "table.parquet")
    copies = [
        given[3:9],
        given[np.arange(4)],
        given.flat(),
        given.counted(),
        up.EnsemblePrediction.concatenate([given, given[:2]]),
        up.EnsemblePrediction.load(tmp_path / "saved.npz"),
        up.from_frame(given.to_pandas()),
        up.from_arrow(given.to_arrow()),
        up.from_arrow(pq.read_table(tmp_path / "table.parquet")),
        Points.of(tmp_path / "saved.npz").ensemble(),
        Points.of(tmp_path / "table.parquet").ensemble(),
    ]
    assert [each.origin for each in copies] == [Origin("list", "boosting", 3)] * len(copies)


def test_predictions_of_different_origin_have_none_together() -> None:
    given = boosted(variance=0.01)
    other = up.EnsemblePrediction(given.members, check=False)
    assert up.EnsemblePrediction.concatenate([given, other]).origin == UNKNOWN


def test_a_header_that_says_nonsense_is_unknown() -> None:
    assert Origin.from_dict(None) == UNKNOWN
    assert Origin.from_dict({"adapter": "mine", "kind": "sorcery", "n_members": True}) == Origin("mine")
