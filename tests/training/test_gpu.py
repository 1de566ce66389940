"""Training on a GPU: recorded steps give what eager ones give on a CPU."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.training import MLP, SmallCNN, TabularMLP, TrainingWarning, train, train_many

from .problems import FAST, Explosive, cut_off, images, rows_of, waves
from .test_networks import Gate
from .test_trainer import ALONE

pytestmark = pytest.mark.gpu

CUDA = {**FAST, "device": "cuda", "dtype": "float64", "batch_size": 16}
CPU = {**CUDA, "device": "cpu"}

CASES = {
    **ALONE,
    "crps": (MLP((8,)), waves, {"head": "crps"}),
    "warm-up": (MLP((8,)), waves, {"head": "warm_up", "max_epochs": 12}),
    "evidential": (MLP((8,)), waves, {"head": "evidential"}),
    "laplace": (MLP((8,)), waves, {"head": "laplace"}),
    "narrow and wide": (MLP((40, 5)), waves, {"head": "mixture"}),
    "embedded": (TabularMLP((20, 5), pieces=4, width=3), waves, {"head": "mixture"}),
    "bins of a tree": (TabularMLP((8,), pieces=4, width=None, bins="tree"), waves, {"head": "histogram"}),
    "periodic": (TabularMLP((8,), embedding="periodic", pieces=2), waves, {"head": "quantiles"}),
    "embedded, dropout": (TabularMLP((8,), dropout=0.3, pieces=4, width=3), waves, {"head": "mixture"}),
    "shared": (TabularMLP((8, 6), pieces=4, width=3), waves, {"head": "mixture", "shared": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_members_as_on_a_cpu(case: str) -> None:
    network, data, settings = CASES[case]
    x, y = data()
    device = train(x, y, network=network, **{**CUDA, **settings})
    host = train(x, y, network=network, **{**CPU, **settings})
    assert device.history.best_epochs == host.history.best_epochs
    assert_allclose(rows_of(device.to("cpu")), rows_of(host), rtol=1e-6, atol=1e-8)
    assert_allclose(device.predict_ensemble(x).matched.mean, host.predict_ensemble(x).matched.mean, rtol=1e-6, atol=1e-8)


def test_many_training_sets() -> None:
    x, y = waves(90)
    rows = np.stack([np.arange(40), np.arange(50, 90)])
    for a, b in zip(*(train_many(x, y, rows, network=MLP((6,)), **where) for where in (CUDA, CPU)), strict=True):
        assert_allclose(rows_of(a.to("cpu")), rows_of(b), rtol=1e-6, atol=1e-8)


def test_embedded_columns_of_many_training_sets() -> None:
    x, y = waves(90)
    rows = np.stack([np.arange(40), np.arange(50, 90)])
    network = TabularMLP((6,), pieces=3, width=2)
    for a, b in zip(*(train_many(x, y, rows, network=network, **where) for where in (CUDA, CPU)), strict=True):
        assert_allclose(rows_of(a.to("cpu")), rows_of(b), rtol=1e-6, atol=1e-8)


def test_draws_of_a_posterior() -> None:
    """The first steps; later ones part, as small differences grow."""
    x, y = waves(60)
    settings = {"network": TabularMLP((6,), pieces=3, width=2), "posterior_samples": 3, "posterior_steps": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        device, host = (train(x, y, **settings, **where) for where in (CUDA, CPU))
    assert (device.n_members, device.predict_ensemble(x).origin.kind) == (9, "posterior")
    assert_allclose(rows_of(device.to("cpu")), rows_of(host), rtol=1e-5, atol=1e-7)


def test_a_restart_on_the_device() -> None:
    x, y = waves(40)
    settings = {"n_members": 6, "network": lambda *_: Explosive(False), "seed": 1}
    with pytest.warns(TrainingWarning, match="restarted"):
        device = train(x, y, **{**CUDA, **settings})
    with pytest.warns(TrainingWarning, match="restarted"):
        host = train(x, y, **{**CPU, **settings})
    assert_allclose(rows_of(device.to("cpu")), rows_of(host), rtol=1e-6, atol=1e-8)


def test_a_run_resumes_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = waves(60)
    whole = train(x, y, **{**CUDA, "max_epochs": 8})
    cut_off(monkeypatch, 5, RuntimeError("power failure"))
    settings = {**CUDA, "max_epochs": 8, "checkpoint": tmp_path, "checkpoint_every": 2}
    with pytest.raises(RuntimeError, match="power failure"):
        train(x, y, **settings)
    monkeypatch.undo()
    assert_allclose(rows_of(train(x, y, **settings).to("cpu")), rows_of(whole.to("cpu")), rtol=1e-9, atol=1e-12)


def test_tensors_stay_on_the_device(tmp_path: Path) -> None:
    x, y = (torch.tensor(v, device="cuda", dtype=torch.float32) for v in waves(60))
    model = up.DeepEnsembleRegressor(3, max_epochs=3, random_state=0).fit(x, y)
    ens = model.predict_ensemble(x)
    assert ens.members.mean.is_cuda
    assert up.decompose(ens, rule="crps").excess.is_cuda
    model.ensemble_.save(tmp_path / "m.safetensors")
    loaded = up.DeepEnsemble.load(tmp_path / "m.safetensors")
    assert_allclose(loaded.predict_ensemble(x.cpu().numpy()).members.mean, ens.members.mean.cpu(), rtol=1e-6, atol=1e-7)
    dropped = up.MCDropoutRegressor(5, max_epochs=3, random_state=0).fit(x, y).predict_ensemble(x)
    assert dropped.members.mean.is_cuda


def test_a_network_that_cannot_be_recorded_is_trained() -> None:
    x, y = waves(40)
    device, host = (train(x, y, network=lambda *_: Gate(), **where) for where in (CUDA, CPU))
    assert_allclose(rows_of(device.to("cpu")), rows_of(host), rtol=1e-6, atol=1e-8)
    assert train(x, y, network=MLP((4,)), **CUDA).n_members == 3  # and the next one is recorded again


def test_other_generators_and_settings_are_left_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2), torch.rand(2, device="cuda")
    torch.manual_seed(3)
    precision = torch.backends.cudnn.conv.fp32_precision
    for where in (CPU, CUDA):
        train(*waves(30), **where, network=MLP((4,), dropout=0.5))
    assert_allclose(torch.rand(2), expected[0])
    assert_allclose(torch.rand(2, device="cuda").cpu(), expected[1].cpu())
    assert torch.backends.cudnn.conv.fp32_precision == precision


def test_a_pickled_model_opens_without_a_gpu() -> None:
    x, y = waves(30)
    ensemble = train(x, y, **CUDA)
    copied = pickle.loads(pickle.dumps(ensemble))  # noqa: S301  ours, from a line before
    assert not copied.stack.rows.is_cuda
    assert_allclose(copied.predict_ensemble(x).matched.mean, ensemble.predict_ensemble(x).matched.mean, rtol=1e-9, atol=1e-12)


def test_no_tf32() -> None:
    """Convolutions in float32 agree with double precision far better than TF32's ten bits."""
    x, y = images(32, 16)
    single = train(x, y, network=SmallCNN(), **{**CUDA, "dtype": "float32", "max_epochs": 1})
    double = train(x, y, network=SmallCNN(), **{**CUDA, "max_epochs": 1})
    assert_allclose(single.predict_ensemble(x).matched.mean, double.predict_ensemble(x).matched.mean, rtol=1e-3, atol=1e-4)
