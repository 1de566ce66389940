"""Embedded columns: what the pieces are, where they come from, and what happens far from the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeRegressor

import uqprism as up
from uqprism.errors import UnknownNameError
from uqprism.training import DeepEnsemble, TabularMLP, TrainingWarning, train, train_many
from uqprism.training.networks.bins import edges
from uqprism.training.networks.tabular import Pieces

from .problems import FAST, Explosive, waves

if TYPE_CHECKING:
    from pathlib import Path

SMALL = TabularMLP((8,), pieces=4, width=3)


def test_the_pieces_of_a_column_are_its_empirical_distribution_and_the_distance_beyond() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.lognormal(size=200), rng.integers(0, 2, 200), np.full(200, 7.0)])
    layer = Pieces(3, SMALL)
    for name, value in layer.observe(torch.tensor(rows), torch.zeros(200)).items():
        layer.register_buffer(name, value)
    new = np.column_stack([np.linspace(-1.0, 30.0, 50), np.linspace(-1.0, 2.0, 50), np.linspace(0.0, 9.0, 50)])
    found = layer(torch.tensor(new)).numpy().reshape(50, 3, 5)
    edges = np.quantile(rows[:, 0], np.linspace(0.0, 1.0, 5))
    assert_allclose(found[:, 0, :4].sum(1), np.interp(new[:, 0], edges, np.arange(5)), atol=1e-12)
    assert_allclose(found[:, 1, :4].sum(1), np.clip(new[:, 1], 0.0, 1.0))  # two values have one bin
    assert_array_equal(found[:, 2, :4], 0.0)  # one value has none
    assert_allclose(found[..., 4], new - np.clip(new, rows.min(0), rows.max(0)))


@pytest.mark.parametrize("repeated", [False, True])
def test_the_bins_of_a_tree_are_those_of_scikit_learn(repeated: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=(300, 2))
    x[:, 1] = np.round(x[:, 1]) if repeated else x[:, 1]
    y = np.sin(3.0 * x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=300)
    for column, ends in enumerate(edges("tree", x, y, 6)):
        tree = DecisionTreeRegressor(max_leaf_nodes=6, min_samples_leaf=8).fit(x[:, column : column + 1], y).tree_
        expected = np.sort(tree.threshold[tree.feature == 0])
        assert_allclose(ends, [x[:, column].min(), *expected, x[:, column].max()])


def test_bins_of_a_tree_train_and_are_saved(tmp_path: Path) -> None:
    x, y = waves(90)
    ensemble = train(x, y, network=TabularMLP((8,), pieces=4, width=3, bins="tree"), **FAST)
    quantile = train(x, y, network=SMALL, **FAST)
    assert not torch.allclose(ensemble.stack.buffers["0.left"], quantile.stack.buffers["0.left"], atol=0.01)
    model = up.DeepEnsembleRegressor(2, bins="tree", max_epochs=1, device="cpu").fit(x, y)
    assert model.ensemble_.network == TabularMLP(bins="tree")
    ensemble.save(tmp_path / "model.safetensors")
    loaded = DeepEnsemble.load(tmp_path / "model.safetensors")
    assert loaded.network == ensemble.network
    assert_array_equal(loaded.predict_ensemble(x).members.mean, ensemble.predict_ensemble(x).members.mean)
    with pytest.raises(UnknownNameError, match="quantile"):
        TabularMLP(bins="quantiles")
    constant = edges("tree", np.full((20, 1), 3.0), np.arange(20.0), 4)[0]
    assert_array_equal(constant, [3.0])  # one value has no bin


def test_bins_are_those_of_each_training_set_and_saved_with_the_members(tmp_path: Path) -> None:
    x, y = waves(90)
    x[45:] *= 50.0
    settings = {**FAST, "network": SMALL, "seed": 2}
    together = train_many(x, y, np.arange(90).reshape(2, 45), **settings)
    for rows, one in zip(np.arange(90).reshape(2, 45), together, strict=True):
        alone = train(x[rows], y[rows], **settings)
        assert_allclose(one.stack.buffers["0.left"], alone.stack.buffers["0.left"], rtol=1e-4, atol=1e-5)
        expected = alone.predict_ensemble(x[rows]).members
        found = one.predict_ensemble(x[rows]).members
        assert_allclose(found.mean, expected.mean, rtol=1e-3, atol=1e-4)
        one.save(tmp_path / "model.safetensors")
        loaded = DeepEnsemble.load(tmp_path / "model.safetensors")
        assert_array_equal(loaded.predict_ensemble(x[rows]).members.mean, found.mean)


class Broken(Explosive):
    """A network with an embedding whose outputs are infinite for some initial weights."""

    def __init__(self) -> None:
        super().__init__(always=False)
        self.pieces = Pieces(3, TabularMLP(pieces=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(self.pieces(x)[:, ::2])


def test_a_restarted_member_keeps_the_bins() -> None:
    x, y = waves(40)
    with pytest.warns(TrainingWarning, match="restarted"):
        ensemble = train(x, y, **{**FAST, "n_members": 6, "network": Broken, "seed": 1})
    lowest = ensemble.stack.buffers["pieces.lowest"]
    assert_allclose(lowest, np.tile((x.min(0) - x.mean(0)) / x.std(0), (6, 1)), rtol=1e-5)


def test_deviations_grow_far_from_the_data() -> None:
    """At a hundred standard deviations at most one point in fifty may have a smaller deviation than the median inside."""
    x, y = waves(300, 4)
    model = up.DeepEnsembleRegressor(n_members=5, hidden=(32, 32), max_epochs=60, random_state=0, device="cpu").fit(x, y)
    direction = np.random.default_rng(1).normal(size=(400, 4))
    far = 100.0 * x.std(0) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    inside, outside = (model.predict(rows, return_std=True)[1] for rows in (x, far))
    assert np.mean(outside < np.median(inside)) <= 0.02
    one_column = np.repeat(np.median(x, 0)[None], 8, 0)
    one_column[np.arange(8), np.arange(8) % 4] += 100.0 * np.repeat([-1.0, 1.0], 4) * x.std()
    assert model.predict(one_column, return_std=True)[1].min() > np.median(inside)
