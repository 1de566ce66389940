"""Transforms of targets: there and back, and the distributions of the targets against draws and densities by their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.training import train, train_many
from uqprism.training.transforms import LogTransform, QuantileNormal, TargetTransform, YeoJohnson, from_dict, to_dict, transforms

from .problems import FAST, waves

RNG = np.random.default_rng(0)
SKEWED = np.exp(RNG.normal(1.0, 0.7, size=1000))
FITTED = [transforms.get(name).of(SKEWED) for name in transforms.names()]
MEAN, SCALE = RNG.normal(size=(4, 50)) * 0.5, 0.5 * np.exp(0.3 * RNG.normal(size=(4, 50)))


def ids(transform: TargetTransform) -> str:
    return transform.name


@pytest.mark.parametrize("transform", FITTED, ids=ids)
def test_there_and_back(transform: TargetTransform) -> None:
    values = transform.apply(SKEWED)
    assert_allclose(transform.undo(values), SKEWED, rtol=1e-9)
    assert (np.diff(values[np.argsort(SKEWED)]) >= 0.0).all()
    assert abs(scipy.stats.skew(values)) < 0.15 * scipy.stats.skew(SKEWED)
    wide = np.linspace(-12.0, 12.0, 99)
    assert_allclose(transform.apply(transform.undo(wide)), wide, rtol=1e-9, atol=1e-9)
    assert from_dict(to_dict(transform)) == transform


def test_yeo_johnson_is_that_of_scipy() -> None:
    """The power of largest likelihood, and the same map."""
    found = YeoJohnson.of(SKEWED)
    x = (SKEWED - SKEWED.mean()) / SKEWED.std()
    ours = scipy.stats.yeojohnson_llf(found.power, x)
    around = [scipy.stats.yeojohnson_llf(power, x) for power in np.linspace(0.0, 2.0, 101)]
    assert ours >= max(around) - 1e-6
    assert_allclose(found.apply(SKEWED), scipy.stats.yeojohnson(x, found.power), rtol=1e-9, atol=1e-12)
    for power in (0.0, 1.0, 2.0):
        assert_allclose(YeoJohnson(power, 0.0, 1.0).apply(x), scipy.stats.yeojohnson(x, power), rtol=1e-9, atol=1e-12)


def test_the_log_of_a_gaussian_is_exactly_lognormal() -> None:
    found = LogTransform().prediction(up.EnsemblePrediction.gaussian(mean=MEAN, scale=SCALE)).members
    oracle = scipy.stats.lognorm(s=SCALE, scale=np.exp(MEAN))
    assert isinstance(found, up.LogNormal)
    assert_allclose(found.mean, oracle.mean(), rtol=1e-12)
    y = np.full(50, 1.7)
    assert_allclose(up.rules.Log().score(found, y), -oracle.logpdf(y), rtol=1e-9)
    mixed = up.EnsemblePrediction.gaussian_mixture(mean=MEAN[None], scale=SCALE[None])
    several = LogTransform().prediction(mixed)
    assert_allclose(several.members.mean, oracle.mean().mean(0)[None], rtol=1e-12)


@pytest.mark.parametrize("transform", FITTED[1:], ids=ids)
def test_distributions_of_targets_are_the_change_of_variables(transform: TargetTransform) -> None:
    """Exact at its quantiles; elsewhere to the accuracy that docs/tables.md states."""
    prediction = transform.prediction(up.EnsemblePrediction.gaussian(mean=MEAN, scale=SCALE))
    d = prediction.members
    for level in scipy.stats.norm.cdf([-2.0, 0.0, 1.2]):
        exact = transform.undo(MEAN + SCALE * scipy.stats.norm.ppf(level))
        assert_allclose(d.cdf(exact), level, rtol=1e-6)
    # Means of many Gaussian quantiles, mapped back.
    nodes = scipy.stats.norm.ppf((np.arange(20000) + 0.5) / 20000)[:, None, None]
    values = transform.undo(MEAN + SCALE * nodes)
    assert_allclose(d.mean, values.mean(0), rtol=5e-3)
    assert_allclose(np.sqrt(d.variance), values.std(0), rtol=0.02)
    y = RNG.choice(SKEWED, size=50)
    crps = np.abs(values - y).mean(0) - 0.5 * gini(values)
    assert_allclose(up.rules.CRPS().score(d, y), crps, rtol=5e-3, atol=5e-3 * crps.mean())
    # The log density is that of the Gaussian, plus the logarithm of the slope.
    step = 1e-6 * y
    slope = (transform.apply(y + step) - transform.apply(y - step)) / (2.0 * step)
    exact = -scipy.stats.norm.logpdf(transform.apply(y), MEAN, SCALE) - np.log(slope)
    likely = np.abs(transform.apply(y) - MEAN) < 3.0 * SCALE
    error = (up.rules.Log().score(d, y) - exact)[likely]
    assert abs(error.mean()) < 0.05
    assert np.abs(error).max() < {"yeo_johnson": 0.2, "quantile_normal": 0.7}[transform.name]  # its slope jumps


@pytest.mark.parametrize("transform", FITTED[1:], ids=ids)
def test_mixtures_become_bars(transform: TargetTransform) -> None:
    """Exact at their edges, which lie at places of every component."""
    mean, scale = MEAN[None] + 0.8 * np.array([-1.0, 0.0, 1.0])[:, None, None], SCALE * np.array([0.2, 0.5, 0.4])[:, None, None]
    shares = np.array([0.5, 0.2, 0.3])[:, None, None] + 0.0 * mean
    given = up.EnsemblePrediction.gaussian_mixture(
        mean=mean.swapaxes(0, 1), scale=scale.swapaxes(0, 1), shares=shares.swapaxes(0, 1)
    )
    d = transform.prediction(given).members
    at = transform.undo(mean[1] + scale[1] * 1.2)
    assert_allclose(d.cdf(at), given.members.cdf(mean[1] + scale[1] * 1.2), atol=5e-3)
    nodes = scipy.stats.norm.ppf((np.arange(20000) + 0.5) / 20000)[:, None, None]
    exact = sum(share * transform.undo(m + s * nodes).mean(0) for share, m, s in zip(shares, mean, scale, strict=True))
    assert_allclose(d.mean, exact, rtol=5e-3)
    assert np.isfinite(up.rules.Log().score(d, np.median(SKEWED))).all()


def gini(values: np.ndarray) -> np.ndarray:
    """The mean distance between two of the values, along the first axis."""
    count = len(values)
    ranks = (2.0 * np.arange(1, count + 1) - count - 1.0) / count**2
    return 2.0 * np.einsum("i,i...->...", ranks, np.sort(values, axis=0))


def test_targets_of_few_values_and_of_one() -> None:
    grades = np.repeat([3.0, 4.0, 5.0], [10, 30, 10])
    transform = QuantileNormal.of(grades)
    assert_allclose(transform.apply(np.array([3.0, 4.0, 5.0])), scipy.stats.norm.ppf([0.1, 0.5, 0.9]), atol=1e-12)
    for name in ("quantile_normal", "yeo_johnson"):
        constant = transforms.get(name).of(np.full(20, 7.0))
        assert_allclose(constant.undo(constant.apply(np.full(3, 7.0))), 7.0)


@pytest.mark.parametrize("head", ["natural", "mixture", "quantiles", "histogram", "laplace"])
@pytest.mark.parametrize("name", transforms.names())
def test_trained_with_each_head_and_kept_in_a_file(head: str, name: str, tmp_path: Any) -> None:
    x, y = waves(80)
    model = up.DeepEnsembleRegressor(
        2, head=head, target_transform=name, hidden=(8,), max_epochs=2, random_state=0, device="cpu", progress=False
    )
    ens = model.fit(x, np.exp(y), validation=(x[:9], np.exp(y[:9]))).predict_ensemble(x)
    model.save(tmp_path / "model.safetensors")
    again = up.DeepEnsembleRegressor.load(tmp_path / "model.safetensors")
    assert again.target_transform == name
    assert_array_equal(again.predict(x), model.predict(x))
    assert_allclose(ens.mixture.mean, model.predict(x), rtol=1e-12)
    tensors = model.predict_ensemble(torch.tensor(x)).mixture.mean
    assert isinstance(tensors, torch.Tensor)
    assert_allclose(tensors, ens.mixture.mean, rtol=1e-12)


def test_predictions_far_from_the_data_do_not_overflow() -> None:
    x, y = waves(60)
    for name in transforms.names():
        far = train(x, np.exp(y), **FAST, target_transform=name).predict_ensemble(1e6 * x)
        assert np.isfinite(far.mixture.quantile(0.5)).all()


def test_targets_that_a_transform_cannot_take() -> None:
    x, y = waves(20)
    with pytest.raises(up.UqprismError, match=r"needs targets above zero, got .* use 'yeo_johnson'"):
        train(x, y, **FAST, target_transform="log")
    with pytest.raises(up.UqprismError, match="did you mean 'yeo_johnson'"):
        train(x, y, **FAST, target_transform="yeojohnson")
    rows = np.arange(20).reshape(2, 10)
    with pytest.raises(up.UqprismError, match="several training sets have none in common"):
        train_many(x, y, rows, **FAST, target_transform="yeo_johnson")
    assert len(train_many(x, np.exp(y), rows, **FAST, target_transform="log")) == 2
    evidential = up.EvidentialRegressor(target_transform="yeo_johnson", max_epochs=1, random_state=0).fit(x, y)
    assert_allclose(evidential.predict(x), evidential.predict_ensemble(x).matched.mean)
    with pytest.raises(up.UqprismError, match="the evidence is of the transformed targets"):
        evidential.predict_evidential(x)
