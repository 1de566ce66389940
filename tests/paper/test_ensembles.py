"""Ensembles in a store: predictions and record are of one training."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from uqprism.paper import ensembles
from uqprism.paper.ensembles import EnsembleSpec, StoredEnsemble, Training
from uqprism.paper.store import Store
from uqprism.tasks import prediction_error
from uqprism.training import DeepEnsemble

SMALL = Training(channels=(2, 2, 2), hidden=4, n_members=2, max_epochs=2, patience=1)
TRAINED: dict[int, DeepEnsemble] = {}  # those that are not kept, by the seed of their first member


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> EnsembleSpec:
    """An ensemble that is not kept, and of which each training comes out otherwise, as on a GPU."""
    from uqprism.training.networks.convolutional import ResNet18

    how = dataclasses.replace(SMALL, network="resnet18", max_epochs=1)
    assert how.architecture() == ResNet18()
    monkeypatch.setattr(Training, "architecture", lambda _: ResNet18(stem=3, width=2))
    TRAINED.clear()
    train = ensembles.trained_now

    def trained_now(*rows: object, **settings: object) -> object:
        ensemble = train(*rows, **{**settings, "seed": len(TRAINED)})
        TRAINED[ensemble.history.seeds[0]] = ensemble
        return ensemble

    monkeypatch.setattr(ensembles, "trained_now", trained_now)
    return EnsembleSpec("dots", 0, how, {"sizes": (16, 8, 8)})


def of_one_training(fit: EnsembleSpec, store: Store) -> int:
    """Its first member's seed, if what is kept is what the ensemble of that seed predicts."""
    fitted = StoredEnsemble(fit, store)
    record, predictions, measures = fitted.record(), fitted.predictions(), fitted.measures()
    seed = record.data["member seeds"][0]
    expected = TRAINED[seed].predict_ensemble(fitted.data.test.inputs)
    np.testing.assert_array_equal(predictions.members.mean, expected.members.mean)
    assert record.data["error"] == np.sqrt(prediction_error(expected, fitted.data.test.targets).mean())
    name = "squared_error.bayes.members"
    np.testing.assert_array_equal(measures[name], ensembles.measured(expected)[name])
    return seed


def test_predictions_and_record_of_a_network_that_is_not_kept_are_of_one_training(large: EnsembleSpec, tmp_path: Path) -> None:
    """Killed after the predictions were kept, or with measures of them, or left with half of the files."""
    store = Store(tmp_path)
    ensembles.predict_all([large], store)
    assert large.predictions() in store
    assert large.members not in store
    assert not (tmp_path / "unfinished").exists()
    before = of_one_training(large, store)
    assert of_one_training(large, store) == before
    for lost in ([large.record], [large.record, large.measures], [large.predictions()]):
        for each in lost:
            store.discard(each)
        after = of_one_training(large, store)
        assert after != before
        before = after


def test_half_a_training_is_not_completed_by_that_of_a_run_beside_it(large: EnsembleSpec, tmp_path: Path) -> None:
    mine, beside = (Store(tmp_path / name, None, (tmp_path / other,)) for name, other in (("a", "b"), ("b", "a")))
    first = of_one_training(large, mine)
    assert of_one_training(large, beside) == first
    mine.discard(large.record)
    second = of_one_training(large, beside)
    assert second != first
    assert of_one_training(large, mine) == second


def test_numbers_do_not_depend_on_the_threads_of_the_process(tmp_path: Path) -> None:
    """Gradients of convolutions are summed in parts, one for each thread, so ours are trained with one."""
    import torch

    before, found = torch.get_num_threads(), []
    fit = EnsembleSpec("dots", 0, SMALL, {"sizes": (96, 32, 40)})
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(StoredEnsemble(fit, Store(tmp_path / str(count))).predictions().members.mean)
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)
