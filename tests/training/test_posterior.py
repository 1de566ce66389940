"""Draws from the posterior: their distribution where it is known, how they are judged, and what becomes of them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.errors import ArgumentError
from uqprism.training import MLP, DeepEnsemble, MeanVariance, TabularMLP, TrainingWarning, posterior, train
from uqprism.training.data import prepare
from uqprism.training.heads.gaussian import gaussian_nll
from uqprism.training.options import TrainingOptions
from uqprism.training.posterior import Energy, judge, prior_scales
from uqprism.training.stack import Stack

from .problems import FAST, rows_of, waves

SAMPLED: dict[str, Any] = {**FAST, "network": MLP((5,)), "head": "mean_variance", "posterior_samples": 4, "posterior_steps": 40}


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # so few steps never converge
        yield


class FixedNoise(MeanVariance):
    """Gaussians of a known variance."""

    name = "fixed_noise"

    def parameters(self, raw: Any) -> dict[str, Any]:
        return {"mean": raw[..., 0], "variance": torch.full_like(raw[..., 0], 0.25)}


def test_draws_of_a_linear_model_have_the_known_posterior() -> None:
    """Bayesian linear regression has a Gaussian posterior in closed form."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = x @ [1.0, -0.5] + 0.5 * rng.normal(size=40)
    settings = {**FAST, "n_members": 8, "max_epochs": 1, "posterior_samples": 100, "posterior_steps": 2000, "dtype": "float64"}
    ensemble = train(x, y, network=MLP(()), head=FixedNoise(), seed=1, **settings)
    weights = ensemble.stack.views(ensemble.stack.rows)
    draws = torch.cat([weights["0.weight"][:, 0], weights["0.bias"][:, :1]], 1).numpy()  # of the mean's output alone
    a = np.column_stack([(x - x.mean(0)) / x.std(0), np.ones(40)])
    scales = prior_scales(MLP(()), (2,), 2).numpy()[[0, 1, 4]]
    covariance = np.linalg.inv(a.T @ a / 0.25 + np.diag(scales**-2.0))
    mean = covariance @ a.T @ ((y - y.mean()) / y.std()) / 0.25
    assert ensemble.posterior is not None
    assert ensemble.posterior.r_hat < 1.1
    assert_allclose(draws.mean(0), mean, atol=0.25 * np.sqrt(np.diag(covariance)).min())
    assert_allclose(np.sqrt(np.diag(np.cov(draws.T))), np.sqrt(np.diag(covariance)), rtol=0.2)


def normed(*_: Any) -> Any:
    """A network that does not run as a chain."""
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))


@pytest.mark.parametrize("network", [MLP((5,), "silu"), TabularMLP((5,), pieces=3, width=2), normed])
def test_the_energy_is_minus_the_log_posterior(network: Any) -> None:
    """Against the densities of the predictions and the prior, and its gradient against differences."""
    x, y = waves(30)
    options, seeds = TrainingOptions(n_members=2, dtype="float64"), torch.tensor([3, 4])
    data = prepare(x, y, None, seeds=seeds, n_experiments=1, options=options, device="cpu", weights=np.linspace(0.5, 1.5, 30))
    head = MeanVariance()
    stack = Stack.build(network, data.inputs[:2], 2, seeds.tolist())
    scales = prior_scales(network, (3,), 2).double()
    energy = Energy(stack, data, head, scales)
    at = stack.rows / scales
    value, gradient = energy(at)
    with torch.no_grad():
        raw = stack(data.inputs.expand(2, *data.inputs.shape))
        nll = gaussian_nll(**head.parameters(raw), target=data.targets) * data.weights
    assert_allclose(value, nll.sum(1) + 0.5 * (at**2).sum(1), rtol=1e-10)
    step = 1e-6 * torch.randn(at.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_allclose((energy(at + step)[0] - energy(at - step)[0]) / 2, (gradient * step).sum(1), rtol=1e-4)


def test_convergence_of_known_chains() -> None:
    rng = np.random.default_rng(0)
    independent = rng.normal(size=(8, 200, 30))
    r_hat, effective = judge(independent)
    assert r_hat < 1.02
    assert 1000 < effective < 2500  # of 1,600
    apart = independent + 3.0 * np.arange(8)[:, None, None]
    assert judge(apart)[0] > 3.0
    assert judge(apart)[1] < 20.0
    slow = np.zeros((8, 2000, 5))  # autocorrelation .9: a draw in 19 counts
    for i in range(1, 2000):
        slow[:, i] = 0.9 * slow[:, i - 1] + np.sqrt(1 - 0.81) * rng.normal(size=(8, 5))
    assert judge(slow)[1] == pytest.approx(16000 / 19, rel=0.25)
    drifting = independent + np.linspace(0.0, 3.0, 200)[:, None]
    assert judge(drifting)[0] > 1.1


def test_members_and_draws_are_one_ensemble_in_files_too(tmp_path: Path) -> None:
    x, y = waves(60)
    settings = {"hidden": (5,), "head": "mean_variance", "max_epochs": 2, "posterior_samples": 4, "posterior_steps": 40}
    with pytest.warns(TrainingWarning, match="split R-hat"):
        model = up.DeepEnsembleRegressor(3, random_state=0, device="cpu", **settings).fit(x, y)
    ens = model.predict_ensemble(x)
    assert (ens.n_members, ens.origin.kind) == (12, "posterior")
    assert model.ensemble_.history.events[-1].kind == "unconverged"
    model.save(tmp_path / "model.safetensors")
    loaded = up.DeepEnsembleRegressor.load(tmp_path / "model.safetensors")
    assert (loaded.posterior_samples, loaded.ensemble_.posterior) == (4, model.ensemble_.posterior)
    assert_array_equal(loaded.predict_ensemble(x).members.mean, ens.members.mean)
    with pytest.raises(ArgumentError, match="cannot be trained further"):
        train(x, y, start=DeepEnsemble.load(tmp_path / "model.safetensors"), max_epochs=1)


def test_too_few_draws_to_judge_are_told() -> None:
    with pytest.warns(TrainingWarning, match="2 draws of each member cannot tell"):
        few = train(*waves(30), **{**SAMPLED, "posterior_samples": 2})
    assert few.posterior is not None
    assert few.posterior.from_dict(few.posterior.to_dict()) == few.posterior


def test_an_interrupt_keeps_the_draws_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    step, made = posterior.Walk.step, []

    def counted(self: Any, tuning: int = 0) -> None:
        made.append(tuning)
        if len(made) == stop:
            raise KeyboardInterrupt
        step(self, tuning)

    monkeypatch.setattr(posterior.Walk, "step", counted)
    stop = 32  # after the draws of steps 25 and 30
    with pytest.warns(TrainingWarning, match="each member keeps its 2 draws"):
        ensemble = train(*waves(30), **SAMPLED)
    assert ensemble.n_members == 3 * 2
    assert (made.count(1), made.count(2)) == (10, 10)
    made.clear()
    stop = 5
    with pytest.raises(KeyboardInterrupt):
        train(*waves(30), **SAMPLED)


def test_a_member_walks_as_if_it_were_alone() -> None:
    x, y = waves(50)
    settings = {**SAMPLED, "posterior_steps": 8, "dtype": "float64"}
    together = rows_of(train(x, y, **settings, member_seeds=[11, 22, 33])).reshape(3, 4, -1)
    alone = rows_of(train(x, y, **{**settings, "n_members": 1}, member_seeds=[22]))
    assert_allclose(together[1], alone, rtol=1e-7, atol=1e-9)
    assert np.abs(np.diff(together, axis=1)).max(2).min() > 1e-4


def test_what_cannot_be_sampled_is_refused() -> None:
    with pytest.raises(ArgumentError, match="independent members"):
        train(*waves(), **SAMPLED, shared=True)
    with pytest.raises(ArgumentError, match="posterior_samples must be a positive integer"):
        train(*waves(), **{**SAMPLED, "posterior_samples": 0})
    with pytest.raises(ArgumentError, match="posterior_steps must be at least 8"):
        train(*waves(), **{**SAMPLED, "posterior_steps": 7})
    with pytest.raises(ArgumentError, match="evidential"):
        train(*waves(), **{**SAMPLED, "head": "evidential"})
