"""Members that share matrices: what they compute, how they train, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.testing import assert_close

import uqprism as up
from uqprism.errors import ArgumentError
from uqprism.training import MLP, DeepEnsemble, SharedMLP, SmallCNN, TabularMLP, train, train_many

from .problems import FAST, images, rows_of, waves

SMALL = TabularMLP((8, 6), pieces=4, width=3)


def test_a_member_is_an_mlp_of_scaled_matrices() -> None:
    """By hand: scale_out * (W (scale_in * x)) + bias, layer by layer, for each member."""
    torch.manual_seed(0)
    module = SharedMLP((5, 4), embedding=None, members=3)((2,), 6).double()
    for parameter in module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    first, one, _, second, two, _, last = module
    x = torch.randn(7, 2, dtype=torch.float64)
    found = module(x).unflatten(-1, (3, 2))
    for member in range(3):
        h = x
        for scaled, layer in ((first, one), (second, two)):
            out = (h * scaled.scale[member]) @ layer.weight.T * layer.scale[member] + layer.bias[member]
            h = torch.relu(out)
        assert_close(found[:, member], h @ last.weight[member] + last.bias[member, 0])


def test_members_begin_with_signs_of_whole_columns() -> None:
    torch.manual_seed(0)
    module = SharedMLP((5,), pieces=4, width=3, members=6)((4,), 6)
    signs = module[2].scale.detach()
    assert set(signs.unique().tolist()) == {-1.0, 1.0}
    assert_array_equal(signs, signs[:, ::3].repeat_interleave(3, 1))
    assert len(signs.unique(dim=0)) > 1


@pytest.mark.parametrize("head", ["natural", "mixture", "histogram"])
def test_shared_members_learn_and_differ(head: str) -> None:
    x, y = waves(200)
    settings = {**FAST, "head": head, "max_epochs": 60, "batch_size": 32, "learning_rate": 0.01}
    ensemble = train(x, y, network=SMALL, shared=True, **settings)
    ens = ensemble.predict_ensemble(x)
    assert (ens.n_members, len(ensemble.stack), ens.origin.kind) == (3, 1, "shared")
    assert ensemble.stack.technique == "matmul"
    means = ens.members.mean
    assert np.abs(means[0] - means[1]).mean() > 1e-3
    assert np.mean((ens.matched.mean - y) ** 2) < 0.4 * y.var()


def test_the_loss_is_the_mean_of_the_members_losses() -> None:
    x, y = waves(60)
    ensemble = train(x, y, network=SMALL, shared=True, head="natural", validation=(x, y), **FAST)
    ens = ensemble.predict_ensemble(x)
    nll = up.rules.Log().score(ens.members, np.broadcast_to(y, (3, 60))) - np.log(y.std())
    best = ensemble.history.best_epochs[0] - 1
    assert_allclose(ensemble.history.validation_loss[best, 0], nll.mean(), rtol=1e-4)


def test_many_training_sets_of_shared_members() -> None:
    x, y = waves(90)
    rows = np.arange(90).reshape(2, 45)
    settings = {**FAST, "network": SMALL, "shared": True, "seed": 2}
    for each, one in zip(rows, train_many(x, y, rows, **settings), strict=True):
        alone = train(x[each], y[each], **settings)
        assert_allclose(one.predict_ensemble(x).members.mean, alone.predict_ensemble(x).members.mean, rtol=1e-3, atol=1e-3)


def test_files_and_further_training(tmp_path: Path) -> None:
    x, y = waves(60)
    model = up.DeepEnsembleRegressor(4, hidden=(6,), shared=True, max_epochs=2, random_state=0, warm_start=True, device="cpu")
    expected = model.fit(x, y).predict_ensemble(x).members.mean
    model.save(tmp_path / "model.safetensors")
    loaded = up.DeepEnsembleRegressor.load(tmp_path / "model.safetensors")
    assert loaded.shared
    assert_array_equal(loaded.predict_ensemble(x).members.mean, expected)
    ensemble = DeepEnsemble.load(tmp_path / "model.safetensors")
    assert (ensemble.n_members, "4 members that share one network" in repr(ensemble)) == (4, True)
    before = rows_of(ensemble).copy()
    again = model.fit(x, y).ensemble_
    assert (again.n_members, again.stack.rows.shape) == (4, ensemble.stack.rows.shape)
    assert np.abs(rows_of(again) - before).max() > 0
    assert train(x, y, start=ensemble, max_epochs=1, device="cpu").n_members == 4


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(ArgumentError, match="needs a TabularMLP or an MLP"):
        train(*images(), network=SmallCNN((2, 3, 4), 5), shared=True, **FAST)
    with pytest.raises(ArgumentError, match="bootstrap=False"):
        train(*waves(), shared=True, bootstrap=True, **FAST)
    assert train(*waves(), network=MLP((4,)), shared=True, **FAST).n_members == 3
