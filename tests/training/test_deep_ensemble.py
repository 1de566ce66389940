"""A deep ensemble predicts, saves and loads."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.training import MLP, Evidential, Natural, ResNet18, SmallCNN, train

from .problems import FAST, images, waves


def test_tensors_in_tensors_out() -> None:
    x, y = (torch.tensor(v, dtype=torch.float32) for v in waves(40))
    ensemble = train(x, y, **FAST)
    found = ensemble.predict_ensemble(x).members.mean
    assert isinstance(found, torch.Tensor)
    assert_allclose(found, ensemble.predict_ensemble(x.numpy()).members.mean, rtol=1e-6, atol=1e-7)


def test_a_prediction_does_not_depend_on_the_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = waves(200)
    ensemble = train(x, y, **FAST)
    whole = ensemble.predict_ensemble(x).members
    assert_allclose(ensemble.predict_ensemble(x[17:18]).members.mean, whole.mean[:, 17:18], rtol=1e-12)
    monkeypatch.setattr("uqprism.training.deep_ensemble.VALUES_AT_ONCE", 100)
    assert_allclose(ensemble.predict_ensemble(x).members.variance, whole.variance, rtol=1e-12)
    assert ensemble.predict_ensemble(x[:0]).points_shape == (0,)


def test_dropout_passes_are_members() -> None:
    x, y = waves(60)
    ensemble = train(x, y, **FAST, network=MLP((32, 32), dropout=0.5))
    ens = ensemble.predict_ensemble(x, passes=40, seed=1)
    assert ens.n_members == 120
    assert len(np.unique(ens.members.mean[:, 0].round(12))) == 120
    assert_allclose(ensemble.predict_ensemble(x[9:12], passes=40, seed=1).members.mean, ens.members.mean[:, 9:12], rtol=1e-12)
    assert not np.allclose(ensemble.predict_ensemble(x, passes=40, seed=2).members.mean, ens.members.mean)
    assert ensemble.predict_ensemble(x).n_members == 3  # without passes, dropout is off


def test_own_networks_with_dropout_predict_in_passes() -> None:
    def build(shape: tuple[int, ...], n_outputs: int) -> torch.nn.Module:
        nn = torch.nn
        return nn.Sequential(nn.Linear(*shape, 8), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, n_outputs))

    x, y = waves(40)
    ensemble = train(x, y, **FAST, network=build)
    assert ensemble.stack.technique == "vmap"
    first, second = (ensemble.predict_ensemble(x, passes=5, seed=seed).members.mean for seed in (0, 0))
    assert_allclose(first, second)
    assert len(np.unique(first[:, 0])) == 15
    assert_allclose(ensemble.predict_ensemble(x).members.mean, ensemble.predict_ensemble(x).members.mean)


def own_network(shape: tuple[int, ...], n_outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(*shape, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, n_outputs))


SAVED = {
    "mlp": (waves, {"network": MLP((5, 4), "gelu")}),
    "float64": (waves, {"network": MLP((5,)), "dtype": "float64"}),
    "evidential": (waves, {"network": MLP((5,)), "head": Evidential(weight=0.1, n_members=7)}),
    "numpy numbers": (waves, {"network": MLP(np.array([4, 3])), "head": Evidential(n_members=np.int64(5))}),
    "laplace": (waves, {"network": MLP((5,)), "head": "laplace"}),
    "convolutions": (images, {"network": SmallCNN((1, 2, 3), 4)}),
    "batch norm": (images, {"network": ResNet18(stem=3, width=4)}),
    "own": (waves, {"network": own_network}),
}


@pytest.mark.parametrize("case", SAVED)
def test_a_saved_ensemble_predicts_the_same(case: str, tmp_path: Path) -> None:
    data, settings = SAVED[case]
    x, y = data()
    ensemble = train(x, y, **FAST, **settings)
    path = tmp_path / "deep" / "model.safetensors"
    ensemble.save(path)
    loaded = up.DeepEnsemble.load(path, network=own_network if case == "own" else None)
    before, after = (e.predict_ensemble(x) for e in (ensemble, loaded))
    for name in ("mean", "scale"):
        assert_array_equal(getattr(after.matched, name), getattr(before.matched, name))
    assert loaded.history == ensemble.history
    assert loaded.head == ensemble.head
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    copied = pickle.loads(pickle.dumps(ensemble))  # noqa: S301  ours, from a line before; estimators are pickled like this
    assert_array_equal(copied.predict_ensemble(x).matched.mean, before.matched.mean)


def test_own_networks_must_be_given_again_and_own_heads_be_registered(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    train(*waves(30), **FAST, network=own_network).save(path)
    with pytest.raises(up.UqprismError, match="pass it again as network="):
        up.DeepEnsemble.load(path)
    with pytest.raises(up.UqprismError, match="the parameters do not fit"):
        up.DeepEnsemble.load(path, network=MLP((7,)))

    class Mine(Natural):
        pass

    with pytest.raises(up.UqprismError, match="Mine is not registered"):
        train(*waves(30), **FAST, head=Mine()).save(tmp_path / "model")


def test_the_names_of_columns_are_saved(tmp_path: Path) -> None:
    table = pd.DataFrame(waves(30)[0], columns=["a", "b", "c"])
    train(table, waves(30)[1], **FAST).save(tmp_path / "model")
    loaded = up.DeepEnsemble.load(tmp_path / "model")
    assert loaded.predict_ensemble(table).n_points == 30
    with pytest.raises(up.UqprismError, match="columns a, b, c, in this order; got c, b, a"):
        loaded.predict_ensemble(table[["c", "b", "a"]])
