"""The estimators in scikit-learn's own checks and tools, and on ordinary tables."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import uqprism as up
from uqprism.training import Evidential, TabularMLP, TrainingOptions, networks

from .problems import images, waves

QUICK: dict[str, Any] = {"hidden": (32,), "max_epochs": 100, "patience": 40, "learning_rate": 0.01}
QUICK |= {"random_state": 0, "device": "cpu"}
HIDDEN = up.DeepEnsembleRegressor().hidden


def quick(kind: type, **settings: Any) -> Any:
    return kind(**{"n_members": 4, **QUICK, **settings})


KINDS = [up.DeepEnsembleRegressor, up.MCDropoutRegressor, up.EvidentialRegressor]


# A row of weight two is not two rows: it enters one batch, and one of two equal rows may be kept for validation.
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": "weights are of the loss, and batches and validation rows are drawn"}


@pytest.mark.slow
@parametrize_with_checks([quick(kind) for kind in KINDS], expected_failed_checks=lambda _: WEIGHTS)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    if "check_regressors_train" not in str(check):  # the one that asks for a good model
        estimator = clone(estimator).set_params(max_epochs=12)
    if "array_api" not in str(check):  # which needs an environment variable before SciPy is loaded: see the next test
        check(estimator)


@pytest.mark.slow
def test_scikit_learns_check_of_other_arrays() -> None:
    code = """
import uqprism as up
from sklearn.utils.estimator_checks import estimator_checks_generator
for kind in (up.DeepEnsembleRegressor, up.MCDropoutRegressor, up.EvidentialRegressor):
    checks = [c for e, c in estimator_checks_generator(kind(2, max_epochs=2, hidden=(4,))) if "array_api" in str(c)]
    assert checks
    for check in checks:
        check(kind(2, max_epochs=2, hidden=(4,)))
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_ensemble(kind: type) -> None:
    x, y = waves(200)
    model = quick(kind, max_epochs=2 * QUICK["max_epochs"]).fit(x, y)
    ens = model.predict_ensemble(x)
    assert isinstance(ens, up.EnsemblePrediction)
    assert ens.n_members == 4
    mean, scale = model.predict(x, return_std=True)
    assert_array_equal(mean, model.predict(x))
    assert_allclose(mean, ens.matched.mean, rtol=1e-9)
    if kind is not up.EvidentialRegressor:  # there in closed form, which alpha near one keeps the members from
        assert_allclose(scale, ens.matched.scale, rtol=1e-9)
    assert r2_score(y, mean) > 0.6
    assert_array_equal(model.uncertainty(x), up.decompose(ens, rule="crps").excess)
    # All three rules, so that no kernel is compiled for two of them alone.
    table = model.uncertainty(x, measure=["log.bayes.members", "crps.total.mixture.members", "quadratic.bayes.members"])
    assert_array_equal(table["log.bayes.members"], model.uncertainty(x, measure="log.bayes.members"))


def test_evidential_closed_forms() -> None:
    x, y = waves(100)
    model = quick(up.EvidentialRegressor).fit(x, y)
    found = model.predict_evidential(x)
    assert_array_equal(found.mean, model.predict(x))
    assert_allclose(model.predict(x, return_std=True)[1] ** 2, found.beta / (found.alpha - 1) * (1 + 1 / found.nu))


def test_feature_names_of_a_table() -> None:
    x, y = waves(60)
    table = pd.DataFrame(x, columns=["age", "weight", "height"])
    model = quick(up.DeepEnsembleRegressor, max_epochs=2).fit(table, pd.Series(y))
    assert list(model.feature_names_in_) == ["age", "weight", "height"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[["weight", "age", "height"]])
    with pytest.raises(up.UqprismError, match="columns age, weight, height, in this order; got weight"):
        model.ensemble_.predict_ensemble(table[["weight", "age", "height"]])


def test_works_in_scikit_learns_tools() -> None:
    x, y = waves(150)
    model = make_pipeline(PolynomialFeatures(2), quick(up.DeepEnsembleRegressor, n_members=2))
    assert cross_val_score(model, x, y, cv=2, scoring="r2").mean() > 0.3
    search = GridSearchCV(quick(up.DeepEnsembleRegressor, n_members=2, max_epochs=10), {"hidden": [(4,), (16,)]}, cv=2).fit(x, y)
    assert search.best_params_["hidden"] in {(4,), (16,)}
    assert up.from_model(search.best_estimator_, x).n_members == 2


def test_random_state_and_pickle() -> None:
    x, y = waves(60)
    model = quick(up.MCDropoutRegressor, max_epochs=3).fit(x, y)
    same = clone(model).fit(x, y)
    assert_array_equal(model.predict(x), same.predict(x))
    other = clone(model).set_params(random_state=1).fit(x, y)
    assert np.abs(model.predict(x) - other.predict(x)).max() > 1e-4
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301  ours, from a line before
    assert_array_equal(model.predict(x), copied.predict(x))


def flat(shape: tuple[int, ...], n_outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), n_outputs))


def test_images_tensors_and_own_networks() -> None:
    x, y = images(40)
    model = quick(up.DeepEnsembleRegressor, network="small_cnn", hidden=HIDDEN, max_epochs=2).fit(x, y)
    assert model.predict(x).shape == (40,)
    inputs, targets = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    model = quick(up.DeepEnsembleRegressor, network=flat, hidden=HIDDEN)
    found = model.fit(inputs, targets).predict(inputs)
    assert isinstance(found, torch.Tensor)
    assert found.shape == (40,)


def test_checkpoints_of_an_estimator(tmp_path: Any) -> None:
    x, y = waves(60)
    model = quick(up.DeepEnsembleRegressor, max_epochs=4, checkpoint=str(tmp_path), checkpoint_every=2)
    first = model.fit(x, y).predict(x)
    assert [p.suffix for p in tmp_path.iterdir()] == [".safetensors"]
    assert_array_equal(clone(model).fit(x, y).predict(x), first)
    search = GridSearchCV(model, {"hidden": [(4,), (8,)]}, cv=2).fit(x, y)  # each fit has a checkpoint of its own
    assert len(list(tmp_path.iterdir())) == 6
    assert search.best_estimator_.predict(x).shape == (60,)
    with pytest.raises(up.UqprismError, match="checkpoint needs random_state"):
        clone(model).set_params(random_state=None).fit(x, y)


def test_tensors_in_tensors_out_of_every_kind() -> None:
    x, y = (torch.tensor(v, dtype=torch.float32) for v in waves(40))
    for kind in KINDS:
        model = quick(kind, max_epochs=2).fit(x, y)
        mean, scale = model.predict(x, return_std=True)
        assert isinstance(mean, torch.Tensor)
        assert isinstance(scale, torch.Tensor)
        assert isinstance(model.predict_ensemble(x).members.mean, torch.Tensor)
        model.set_params(n_members=6)
        assert model.predict_ensemble(x).n_members == (4 if kind is up.DeepEnsembleRegressor else 6)
    model = quick(up.DeepEnsembleRegressor, max_epochs=2)
    model.fit(pd.DataFrame(x.numpy(), columns=list("abc")), y.requires_grad_()).fit(x, y.detach())
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("settings", [{"dropout": 0.0}, {"hidden": ()}, {"network": flat, "hidden": HIDDEN}])
def test_nothing_to_drop_is_refused_before_training(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uqprism.training.trainer.Trainer._epoch", lambda _: pytest.fail("trained first"))
    with pytest.raises(up.UqprismError, match="MC dropout needs"):
        quick(up.MCDropoutRegressor, **settings).fit(*waves(20))


def test_errors_say_where_and_what() -> None:
    x, y = waves(20)
    with pytest.raises(NotFittedError):
        up.DeepEnsembleRegressor().predict_ensemble(x)
    with pytest.raises(ValueError, match="minimum of 2"):
        up.DeepEnsembleRegressor().fit(x[:1], y[:1])
    for kind in (str, object):  # text is refused even if it is numbers
        with pytest.raises(up.UqprismError, match="y must be numbers, got text"):
            quick(up.DeepEnsembleRegressor).fit(np.zeros((4, 2)), np.array(["1.5", "2.5", "3.5", "0.5"], dtype=kind))
    with pytest.raises(up.UqprismError, match="got the text 'b' in column 1 of the array; give a data frame"):
        quick(up.DeepEnsembleRegressor).fit(np.array([[1.0, "b"], [2.0, "c"]], dtype=object), y[:2])
    with pytest.raises(up.UqprismError, match=r"rows \(X, y\) for early stopping, got float; .* validation_fraction"):
        quick(up.DeepEnsembleRegressor).fit(x, y, validation=0.2)
    with pytest.raises(up.UqprismError, match="y is None"):
        quick(up.DeepEnsembleRegressor).fit(pd.DataFrame(x), None)
    x[7, 1] = np.nan
    with pytest.raises(ValueError, match="the first is row 7"):
        quick(up.DeepEnsembleRegressor).fit(x, y)
    model = quick(up.DeepEnsembleRegressor, max_epochs=1).fit(*waves(20))
    with pytest.raises(ValueError, match="the first is row 7"):
        model.predict(x)
    with pytest.raises(up.UqprismError, match="network has its own hidden"):
        quick(up.DeepEnsembleRegressor, network=flat).fit(*waves(20))


def test_estimators_take_the_training_options_with_their_defaults() -> None:
    """The estimators state their arguments, as scikit-learn requires; names and defaults are those of `TrainingOptions`."""
    options = {field.name: field.default for field in dataclasses.fields(TrainingOptions)}
    without = {"validation", "seed", "member_seeds", "technique"}  # random_state is in place of the seeds
    of_several = {"bootstrap", "head", "shared", "posterior_samples", "posterior_steps"}  # what concerns ensembles of networks
    for kind in KINDS:
        given = kind().get_params()
        own = {"hidden", "activation", "embedding", "bins", "random_state", "dropout", "evidence_weight", "warm_start"}
        assert set(given) - own <= set(options) - without
        one_network = kind is not up.DeepEnsembleRegressor
        assert set(options) - without - set(given) <= (of_several if one_network else set())
        changed = {name for name, value in given.items() if name in options and value != options[name]}
        assert changed == {"network", "n_members" if one_network else "head"}
        assert given["network"] is None  # which stands for the default network with these arguments
        assert TabularMLP(given["hidden"], given["activation"], embedding=given["embedding"]) == networks.resolve(
            options["network"]
        )
    assert up.EvidentialRegressor().get_params()["evidence_weight"] == Evidential().weight
    assert up.EvidentialRegressor().n_members == Evidential().n_members


@pytest.mark.slow
def test_defaults_fit_a_table_without_tuning() -> None:
    """A thousand rows are enough to predict well, and to be uncertain far from the data."""
    x, y = waves(1500, 4)
    model = up.DeepEnsembleRegressor(n_members=5, random_state=0, device="cpu").fit(x[:1000], y[:1000])
    assert r2_score(y[1000:], model.predict(x[1000:])) > 0.75
    far = np.array([[30.0, 0.0, 0.0, 0.0]])
    assert model.uncertainty(far)[0] > 10 * np.median(model.uncertainty(x[1000:]))
