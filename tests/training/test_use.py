"""How the estimators are used: weights, intervals, scores, files, further training, searches and pipelines."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  which the search below needs
from sklearn.model_selection import GridSearchCV, HalvingRandomSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import uqprism as up
from uqprism.training import train

from .problems import FAST, waves

QUICK: dict[str, Any] = {"n_members": 3, "hidden": (16,), "max_epochs": 20, "learning_rate": 0.01, "random_state": 0}
QUICK |= {"device": "cpu", "progress": False, "patience": None}
X, Y = waves(120)


def quick(**settings: Any) -> up.DeepEnsembleRegressor:
    return up.DeepEnsembleRegressor(**{**QUICK, **settings})


def test_a_weight_of_zero_is_no_row_and_the_unit_of_weights_is_free() -> None:
    weights = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    frame = pd.DataFrame(X, columns=list("abc"))
    there = weights > 0.0
    found = quick().fit(X, Y, sample_weight=weights).predict(X)
    assert_array_equal(found, quick().fit(X[there], Y[there], sample_weight=weights[there]).predict(X))
    assert_array_equal(found, quick().fit(frame, Y, sample_weight=weights).predict(frame))
    assert_allclose(found, quick().fit(X, Y, sample_weight=8.0 * weights).predict(X), rtol=1e-6)
    assert_allclose(quick().fit(X, Y, sample_weight=np.ones(len(Y))).predict(X), quick().fit(X, Y).predict(X), rtol=1e-6)


def test_weights_decide_between_rows_that_contradict_each_other() -> None:
    x, y = np.zeros((200, 1)), np.tile([0.0, 1.0], 100)
    model = quick(head="mean_variance", max_epochs=60).fit(x, y, sample_weight=np.tile([1.0, 4.0], 100))
    assert_allclose(model.predict(x[:1]), 0.8, atol=0.05)


BAD = {
    "count": (np.ones(3), "one number per row"),
    "sign": (-np.ones(len(Y)), "not negative"),
    "nothing": (np.zeros(len(Y)), "not all zero"),
    "missing": (np.full(len(Y), np.nan), "must be finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_weights_that_are_none_are_refused(case: str) -> None:
    weights, message = BAD[case]
    with pytest.raises(up.UqprismError, match=message):
        quick().fit(X, Y, sample_weight=weights)
    with pytest.raises(up.UqprismError, match="weights must be one per row"):
        train(X, Y, weights=np.ones(3), **FAST)


def test_intervals_and_quantiles_are_those_of_the_mixture() -> None:
    model = quick().fit(X, Y)
    mixture = model.predict_ensemble(X).mixture
    found = model.predict_quantiles(X, [0.1, 0.5, 0.75])
    assert found.shape == (len(Y), 3)
    for i, level in enumerate([0.1, 0.5, 0.75]):
        assert_allclose(mixture.cdf(found[:, i]), level, atol=1e-9)
    lower, upper = model.predict_interval(X, coverage=0.8)
    assert_allclose(mixture.cdf(upper) - mixture.cdf(lower), 0.8, atol=1e-9)
    assert isinstance(model.predict_interval(torch.tensor(X))[0], torch.Tensor)
    for bad in (0.0, 1.0, 90):
        with pytest.raises(up.UqprismError, match="coverage must lie between 0 and 1"):
            model.predict_interval(X, coverage=bad)
    with pytest.raises(up.UqprismError, match="levels must be probabilities"):
        model.predict_quantiles(X, [0.5, 1.0])


def test_score_is_the_crps_skill() -> None:
    model = quick().fit(X, Y)
    achieved = up.rules.CRPS().score(model.predict_ensemble(X).mixture, Y)
    distances = np.abs(Y[:, None] - Y)
    assert_allclose(model.score(X, Y), 1.0 - achieved.mean() / (0.5 * distances.mean()))
    w = np.random.default_rng(0).random(len(Y))
    w /= w.sum()
    assert_allclose(model.score(X, Y, sample_weight=w), 1.0 - w @ achieved / (0.5 * w @ distances @ w))
    assert_allclose(model.score(torch.tensor(X), torch.tensor(Y)), model.score(X, Y))
    assert model.score(X, np.zeros(len(Y))) == 0.0  # of which there is nothing to save
    assert_allclose(model.score(X, Y[:, None]), model.score(X, Y))
    with pytest.raises(up.UqprismError, match=r"y must be finite: 1 of 120 rows.*row 7"):
        model.score(X, np.where(np.arange(len(Y)) == 7, np.nan, Y))
    with pytest.raises(up.UqprismError, match="one number per row, got 5 for 120 rows"):
        model.score(X, Y[:5])


@pytest.mark.parametrize("head", ["natural", "mixture", "quantiles"])
@pytest.mark.parametrize("transform", ["log", "yeo_johnson", "quantile_normal"])
def test_score_of_transformed_targets(head: str, transform: str) -> None:
    """It is that of the rule, which takes pairs of bars, from a kernel that takes each bar once."""
    x, y = X[:20], np.exp(Y[:20])
    model = quick(head=head, target_transform=transform, max_epochs=3).fit(X, np.exp(Y))
    achieved = up.rules.CRPS().score(model.predict_ensemble(x).mixture, y).mean()
    assert_allclose(model.score(x, y), 1.0 - achieved / (0.5 * np.abs(y[:, None] - y).mean()), rtol=1e-7)


def test_what_is_predicted_for_no_rows_is_empty() -> None:
    for settings in ({}, {"head": "quantiles"}, {"head": "natural", "target_transform": "yeo_johnson"}):
        model = quick(**settings, max_epochs=2).fit(X, Y)
        none = pd.DataFrame(X[:0])
        mean, scale = model.predict(none, return_std=True)
        assert mean.shape == scale.shape == model.uncertainty(none).shape == model.predict_interval(none)[0].shape == (0,)
        assert model.predict_quantiles(none).shape == (0, 3)


def flat(shape: tuple[int, ...], n_outputs: int) -> torch.nn.Module:
    return torch.nn.Linear(shape[0], n_outputs)


@pytest.mark.parametrize("kind", [up.DeepEnsembleRegressor, up.MCDropoutRegressor, up.EvidentialRegressor])
def test_every_estimator_is_kept_in_a_file(kind: type, tmp_path: Any) -> None:
    model = kind(4, hidden=(8,), max_epochs=2, random_state=0, device="cpu").fit(X, Y)
    model.save(tmp_path / "model.safetensors")
    again = kind.load(tmp_path / "model.safetensors")
    assert again.get_params() == model.get_params()
    assert_array_equal(again.predict_ensemble(X).members.mean, model.predict_ensemble(X).members.mean)
    assert_array_equal(clone(again).fit(X, Y).predict(X), model.predict(X))
    other = up.EvidentialRegressor if kind is up.DeepEnsembleRegressor else up.DeepEnsembleRegressor
    with pytest.raises(up.UqprismError, match=f"holds a {kind.__name__}: read it with {kind.__name__}.load"):
        other.load(tmp_path / "model.safetensors")
    model.ensemble_.save(tmp_path / "networks.safetensors")
    with pytest.raises(up.UqprismError, match=r"networks alone: read it with uqprism.DeepEnsemble.load"):
        kind.load(tmp_path / "networks.safetensors")


def test_files_of_other_networks_and_heads(tmp_path: Any) -> None:
    path = tmp_path / "model.safetensors"
    hidden = up.DeepEnsembleRegressor().hidden
    quick(network=up.training.MLP((4,)), hidden=hidden, head=up.training.BetaNLL(0.3)).fit(X, Y).save(path)
    again = up.DeepEnsembleRegressor.load(path)
    assert again.network == up.training.MLP((4,))
    assert again.head == up.training.BetaNLL(0.3)
    model = quick(network=flat, hidden=hidden).fit(X, Y)
    model.save(path)
    with pytest.raises(up.UqprismError, match="pass it again as network="):
        up.DeepEnsembleRegressor.load(path)
    assert_array_equal(up.DeepEnsembleRegressor.load(path, network=flat).predict(X), model.predict(X))


def test_warm_start_goes_on() -> None:
    model = quick(max_epochs=5, warm_start=True).fit(X, Y)
    before = model.ensemble_
    rounds = [before, *(model.fit(X, Y).ensemble_ for _ in range(4))]
    losses = [each.history.training_loss[-1].mean() for each in rounds]
    assert losses == sorted(losses, reverse=True)
    assert len(model.ensemble_.history.training_loss) == 5
    assert_array_equal(before.predict_ensemble(X).members.mean, quick(max_epochs=5).fit(X, Y).predict_ensemble(X).members.mean)
    # In the units that the networks know, also on other rows.
    moved = model.fit(X + 1.0, 2.0 * Y).ensemble_
    assert torch.equal(moved.target_scaling.scale, before.target_scaling.scale)
    with pytest.raises(up.UqprismError, match="start has 3 networks"):
        model.set_params(n_members=4).fit(X, Y)
    cold = quick(max_epochs=5).fit(X, Y)
    assert_array_equal(cold.fit(X, Y).predict(X), before.predict_ensemble(X).matched.mean)


def test_further_training_refuses_settings_that_it_cannot_follow() -> None:
    for changed in ({"head": "crps"}, {"hidden": (8,)}, {"target_transform": "yeo_johnson"}, {"shared": True}):
        model = quick(max_epochs=1, warm_start=True).fit(X, Y)
        (name,) = changed
        with pytest.raises(up.UqprismError, match=f"with {'network' if name == 'hidden' else name}=.* which cannot become"):
            model.set_params(**changed).fit(X, Y)
    shared = quick(max_epochs=1, warm_start=True, shared=True).fit(X, Y)
    assert shared.set_params(max_epochs=20, learning_rate=0.003).fit(X, Y).score(X, Y) > 0.0  # these may change


def test_single_rows_train_further() -> None:
    model, frame = quick(), pd.DataFrame(X)
    before = model.partial_fit(frame, Y).predict(frame[:1])
    for _ in range(100):
        model.partial_fit(frame[:1], [5.0])
    assert abs(model.predict(frame[:1])[0] - 5.0) < 0.5 * abs(before[0] - 5.0)
    assert np.isfinite(quick().partial_fit(X, Y).partial_fit(X[:1], Y[:1]).predict(X)).all()


def test_partial_fit_learns_from_one_batch_after_the_other() -> None:
    model = quick(hidden=(32,))
    x, y = waves(600)
    for _ in range(15):
        for start in range(0, 600, 200):
            model.partial_fit(x[start : start + 200], y[start : start + 200])
    assert model.score(x, y) > quick(hidden=(32,)).partial_fit(x, y).score(x, y) + 0.15
    assert model.n_iter_ == 1
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(x[:, :2], y)


def test_searches() -> None:
    grid = GridSearchCV(quick(max_epochs=3), {"head": ["natural", "warm_up"], "target_transform": [None, "yeo_johnson"]}, cv=2)
    assert grid.fit(X, Y).predict(X).shape == Y.shape
    halving = HalvingRandomSearchCV(
        quick(max_epochs=3), {"hidden": [(4,), (8,), (16,)]}, cv=2, min_resources=40, random_state=0, n_candidates=3
    )
    assert halving.fit(X, Y).best_estimator_.predict_ensemble(X).n_members == 3


def test_a_pipeline_passes_the_ensemble_on() -> None:
    pipeline = make_pipeline(StandardScaler(), quick()).fit(X, Y)
    ens = up.from_model(pipeline, X)
    assert_array_equal(ens.members.mean, pipeline[-1].predict_ensemble(pipeline[:-1].transform(X)).members.mean)
    mean, scale = pipeline.predict(X, return_std=True)
    assert_allclose(mean, ens.matched.mean, rtol=1e-12)
    assert_allclose(scale, ens.matched.scale, rtol=1e-12)
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=["Oslo", "Bergen"] * 60)
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough")
    tables = make_pipeline(encoder.set_output(transform="pandas"), quick()).fit(frame, Y)
    assert up.from_model(tables, frame).n_members == 3
    assert next(iter(tables[-1].feature_names_in_)) == "onehotencoder__town_Bergen"


def test_progress_of_ten_members_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    train(X, Y, n_members=10, max_epochs=30, patience=None, device="cpu", progress=True)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]", capfd.readouterr().err)]
    shown = [line for line in lines if "mean loss" in line]
    assert shown
    assert all(len(line.rstrip()) <= 80 and "…" not in line for line in shown)
    assert any(re.search(r"epoch.*\d+/30.*\d:\d\d:\d\d.*mean loss -?\d.*, 10 of 10 learning", line) for line in shown)
