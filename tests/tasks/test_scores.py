"""What is given in place of a table: ensembles and decompositions work, other things are named."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from uqprism import tasks

RNG = np.random.default_rng(0)
MEAN, TARGET = RNG.normal(size=(3, 40)), RNG.normal(size=40)
ENS = up.EnsemblePrediction.gaussian(mean=MEAN, scale=np.exp(0.3 * RNG.normal(size=(3, 40))))
ERROR = up.prediction_error(ENS, TARGET)
DRAWS = up.from_draws(RNG.normal(size=(3, 20, 40)))

TASKS = {
    "flag": lambda table: tasks.flag(table, measure="crps.total.members.members").threshold,
    "selective": lambda table: dict(tasks.selective_prediction(table, error=ERROR, resamples=0)),
    "ood": lambda table: dict(tasks.ood_detection(table, table, resamples=0)),
    "correlation": lambda table: tasks.rank_correlation(table).matrix.tolist(),
    "choice": lambda table: tasks.select_measure(table, error=ERROR, resamples=50).measure,
}


@pytest.mark.parametrize("name", TASKS)
def test_an_ensemble_stands_for_its_usual_measures(name: str) -> None:
    assert TASKS[name](ENS) == TASKS[name](up.evaluate(ENS, "usual"))


def test_draws_stand_for_the_measures_that_need_no_density() -> None:
    assert {name.split(".")[0] for name in tasks.rank_correlation(DRAWS).names} == {"crps", "squared_error"}
    assert tasks.flag(DRAWS).measure == "crps.total.members.members"


def test_a_decomposition_has_its_three_risks() -> None:
    parts = up.decompose(ENS)
    assert tasks.rank_correlation(parts).names == ("total", "bayes", "excess")
    assert tasks.flag(parts, measure="excess").threshold == tasks.flag(parts.excess).threshold


@pytest.mark.parametrize("thing", [None, 3, "file.csv", MEAN, [up.evaluate(ENS, "usual")]])
def test_other_things_are_named(thing: object) -> None:
    for call in (tasks.flag, tasks.rank_correlation, lambda x: tasks.selective_prediction(x, error=ERROR)):
        with pytest.raises(up.UqprismError, match="table must"):
            call(thing)


@pytest.mark.parametrize("thing", [up.evaluate(ENS, "usual"), up.decompose(ENS)])
def test_what_is_computed_is_not_computed_again(thing: object) -> None:
    for call in (up.evaluate, up.decompose):
        with pytest.raises(up.UqprismError, match="computed already"):
            call(thing)


def test_tensors_with_gradients_work_in_every_task() -> None:
    import torch

    scale = ENS.members.scale
    with_gradients = up.EnsemblePrediction.gaussian(mean=torch.tensor(MEAN, requires_grad=True), scale=torch.tensor(scale))
    plain = up.EnsemblePrediction.gaussian(mean=MEAN, scale=scale)
    error = torch.tensor(ERROR, requires_grad=True)
    for name, call in TASKS.items():
        found, expected = call(up.evaluate(with_gradients, "usual")), call(up.evaluate(plain, "usual"))
        assert found == expected or found == pytest.approx(expected, rel=1e-9), name
    assert tasks.selective_prediction(up.decompose(with_gradients), error=error)["total"] > 0.0
    np.testing.assert_array_equal(up.prediction_error(with_gradients, torch.tensor(TARGET)), up.prediction_error(plain, TARGET))
