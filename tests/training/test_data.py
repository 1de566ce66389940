"""Unusual data that is accepted, and data that is refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.training import MLP, Scaling, train, train_many

from .problems import FAST, images, waves

SMALL = {**FAST, "network": MLP((16,)), "max_epochs": 200, "validation_fraction": 0.0, "learning_rate": 0.02}


def errors(x: np.ndarray, y: np.ndarray, **settings: object) -> np.ndarray:
    """Standardised residuals of a fitted ensemble's own training rows."""
    ens = train(x, y, **{**SMALL, **settings}).predict_ensemble(x)
    values = np.asarray(y, dtype=float).reshape(-1)
    assert np.isfinite(ens.members.mean).all()
    assert (ens.members.variance > 0).all()
    spread = np.std(values) if np.ptp(values) else abs(values[0])
    return (ens.mixture.mean - values) / spread


FINE = {
    "one feature": lambda: waves(80, 1),
    "integers": lambda: (np.arange(80).reshape(-1, 1), np.arange(80) // 2),
    "large targets": lambda: (waves(80)[0], 1e6 + 1e6 * waves(80)[1]),
    "offset targets": lambda: (waves(80)[0], 1e8 + waves(80)[1]),
    "tiny targets": lambda: (waves(80)[0], 1e-12 * waves(80)[1]),
    "float32": lambda: tuple(v.astype(np.float32) for v in waves(80)),
    "constant targets": lambda: (waves(80)[0], np.full(80, 3e5)),
    "tiny constant": lambda: (waves(80)[0], np.full(80, 3e-9)),
    "vanishing targets": lambda: (1e-200 * waves(80)[0], 1e-130 * waves(80)[1]),
    "huge targets": lambda: (1e200 * waves(80)[0], 1e130 * waves(80)[1]),
    "objects": lambda: (waves(80)[0].astype(object), list(waves(80)[1])),
    "half precision": lambda: tuple(v.astype(np.float16) for v in waves(80)),
    "constant feature": lambda: (np.column_stack([waves(80)[0], np.full(80, 7.7e8)]), waves(80)[1]),
    "column of targets": lambda: (waves(80)[0], waves(80)[1][:, None]),
    "booleans": lambda: (waves(80)[0] > 0, waves(80)[1]),
    "two rows": lambda: waves(2),
}


@pytest.mark.parametrize("case", FINE)
def test_odd_data_gives_a_correct_model(case: str) -> None:
    x, y = FINE[case]()
    found = errors(x, y)
    limit = {"booleans": 0.95, "constant targets": 1e-6, "tiny constant": 1e-6, "two rows": 2.0}.get(case, 0.6)
    assert np.sqrt(np.mean(found**2)) < limit


def test_float64_networks() -> None:
    x, y = waves(60)
    ensemble = train(x, y, **FAST, dtype="float64")
    assert ensemble.stack.rows.dtype == torch.float64
    assert ensemble.predict_ensemble(x).members.mean.dtype == np.float64


def test_predictions_are_in_the_users_units() -> None:
    """The same table in other units gives the same predictions in those units."""
    x, y = waves(60)
    plain = train(x, y, **FAST).predict_ensemble(x).members
    moved = train(1e3 * x - 5.0, 100.0 * y + 1e4, **FAST).predict_ensemble(1e3 * x - 5.0).members
    assert_allclose(moved.mean, 1e4 + 100.0 * plain.mean, rtol=1e-6)
    assert_allclose(moved.variance, 1e4 * plain.variance, rtol=1e-4)


def test_validation_keeps_its_digits_beside_integers() -> None:
    """Targets of 0.9 in validation and integers in training: early stopping uses 0.9, not 0."""
    x, y = np.arange(40.0)[:, None], np.arange(40) % 2
    held = np.zeros((10, 1)), np.full(10, 0.9)
    ensemble = train(x.astype(int), y, validation=held, **FAST)
    loss = up.rules.Log().score(ensemble.predict_ensemble(held[0]).members, held[1]).mean(axis=1)
    best = [min(curve.validation) for curve in ensemble.history.curves]
    assert_allclose(loss - np.log(float(ensemble.target_scaling.scale)), best, rtol=1e-5)


def test_training_sets_far_apart_keep_their_digits() -> None:
    """A set around a billion and one around zero: each is learned as if it were alone."""
    x, y = waves(80, 1)
    x[40:] += 1e9
    settings = {**SMALL, "max_epochs": 60, "n_members": 2}
    for own, ensemble in zip((slice(40), slice(40, 80)), train_many(x, y, np.arange(80).reshape(2, 40), **settings), strict=True):
        alone = train(x[own], y[own], **settings).predict_ensemble(x[own]).mixture.mean
        assert_allclose(ensemble.predict_ensemble(x[own]).mixture.mean, alone, atol=0.02)


def test_scaling_is_exact_far_from_zero() -> None:
    """Columns around a billion, constant columns, channels of images, integers."""
    rng = np.random.default_rng(0)
    table = 1e9 + rng.normal(size=(9000, 2))
    table[:, 1] = 0.1
    scaled = Scaling.of(torch.tensor(table)).apply(torch.tensor(table), torch.float64).numpy()
    assert_allclose(scaled[:, 0].std(), 1.0, rtol=1e-6)
    assert_array_equal(scaled[:, 1], 0.0)
    pictures = torch.tensor(rng.integers(0, 256, size=(50, 3, 4, 4)), dtype=torch.uint8)
    found = Scaling.of(pictures)
    assert_allclose(found.mean, pictures.double().mean((0, 2, 3)), rtol=1e-12)
    assert_allclose(found.scale, pictures.double().std((0, 2, 3), correction=0), rtol=1e-12)


def test_training_works_with_gradients_switched_off() -> None:
    x, y = waves(20)
    expected = train(x, y, **FAST).predict_ensemble(x).matched.mean
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            assert_allclose(train(x, y, **FAST).predict_ensemble(x).matched.mean, expected)


def nan_at(which: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = waves(20)
    (x if which == 0 else y)[7] = np.nan if which == 0 else np.inf
    return x, y


X, Y = waves(20)
REFUSED = {
    "NaN in inputs": (lambda: train(*nan_at(0), **FAST), r"inputs must be finite: 1 of 20 rows .* first is row 7"),
    "infinite target": (lambda: train(*nan_at(1), **FAST), "targets must be finite"),
    "NaN in validation": (lambda: train(X, Y, validation=nan_at(0), **FAST), "validation inputs must be finite"),
    "one row": (lambda: train(X[:1], Y[:1], **FAST), "n_samples=1"),
    "no rows": (lambda: train(X[:0], Y[:0], **FAST), "no rows"),
    "lengths": (lambda: train(X, Y[:-1], **FAST), "as many rows, got 20 and 19"),
    "one axis": (lambda: train(X[:, 0], Y, **FAST), r"use x\[:, None\]"),
    "two targets": (lambda: train(X, np.stack([Y, Y], 1), **FAST), "one number per row"),
    "text": (lambda: train([["a"], ["b"]], [0.0, 1.0], **FAST), "must be numbers"),
    "numbers as text": (lambda: train(X, Y.astype(str), **FAST), "targets must be numbers"),
    "validation shape": (lambda: train(X, Y, validation=(X[:, :2], Y), **FAST), r"rows of shape \(3,\)"),
    "setting": (lambda: train(X, Y, epochs=3), "unknown training option 'epochs'; did you mean 'max_epochs'"),
    "members": (lambda: train(X, Y, n_members=0), "n_members must be a positive integer"),
    "epochs": (lambda: train(X, Y, max_epochs=0), "max_epochs must be a positive integer"),
    "rate": (lambda: train(X, Y, learning_rate=float("nan")), "learning_rate must be positive"),
    "decay": (lambda: train(X, Y, weight_decay=-1), "weight_decay must not be negative"),
    "fraction": (lambda: train(X, Y, validation_fraction=1.0), "validation_fraction must lie in"),
    "precision": (lambda: train(X, Y, dtype="float16"), "dtype must be float32 or float64"),
    "seeds": (lambda: train(X, Y, n_members=2, member_seeds=[1]), "member_seeds must be 2 integers"),
    "negative seed": (lambda: train(X, Y, seed=-1), "seed must be an integer that is not negative"),
    "too many seeds": (lambda: train_many(X, Y, [[0, 1]], seed=[1, 2]), "for each of 1 experiments"),
    "rows": (lambda: train_many(X, Y, [[0, 1, 20]], **FAST), "rows must lie between 0 and 19"),
    "rows' axes": (lambda: train_many(X, Y, [0, 1], **FAST), r"rows must be row numbers \(experiments, n\)"),
    "a mask for rows": (lambda: train_many(X, Y, np.ones((2, 20), bool), **FAST), "use np.flatnonzero on a mask"),
    "parts of rows": (lambda: train_many(X, Y, [[0.5, 1.5]], **FAST), "rows must be row numbers"),
    "ragged rows": (lambda: train_many(X, Y, [[0, 1], [2]], **FAST), "rows must be an array of numbers"),
    "epochs None": (lambda: train(X, Y, max_epochs=None), "max_epochs must be a positive integer, got None"),
    "batch of parts": (lambda: train(X, Y, batch_size=16.5), "batch_size must be a positive integer"),
    "members of parts": (lambda: train(X, Y, n_members=2.5), "n_members must be a positive integer"),
    "rate None": (lambda: train(X, Y, learning_rate=None), "learning_rate must be positive"),
    "seed of parts": (lambda: train(X, Y, seed=1.5), "seed must be an integer"),
    "device": (lambda: train(X, Y, device="gpu"), "device must be 'cpu' or 'cuda'"),
    "complex": (lambda: train(torch.ones(4, 2, dtype=torch.complex64), Y[:4]), "inputs must be real numbers"),
    "sparse": (lambda: train(torch.eye(4).to_sparse(), Y[:4]), "in a dense tensor"),
    "masked": (lambda: train(X, np.ma.masked_array(Y, np.arange(20) == 3)), "targets must not be masked"),
    "too large": (lambda: train(X, 1e200 * Y, **FAST), "change their units"),
    "passes": (lambda: train(X, Y, **FAST).predict_ensemble(X, passes=3), "needs a network with dropout"),
    "predicted shape": (lambda: train(X, Y, **FAST).predict_ensemble(X[:, :2]), r"inputs must be \(rows, 3\)"),
    "predicted NaN": (lambda: train(X, Y, **FAST).predict_ensemble(nan_at(0)[0]), "inputs must be finite"),
    "evidence": (lambda: train(X, Y, **FAST).predict_evidential(X), "does not predict evidence"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_data_is_refused_with_a_reason(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(up.UqprismError, match=message):
        call()


@pytest.mark.slow
def test_images_train() -> None:
    x, y = images(200)
    ensemble = train(x, y, **{**FAST, "max_epochs": 30, "network": "small_cnn", "batch_size": 32})
    mean = ensemble.predict_ensemble(x).mixture.mean
    assert np.corrcoef(mean, y)[0, 1] > 0.9
