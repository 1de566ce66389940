"""Acquisitions side by side: what each would do alone, models shared and trained together, ranks and spreads over seeds."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

import uqprism as up
from uqprism.errors import ArgumentError, InvalidValueError, UqprismError
from uqprism.tasks.active_learning import LearningState, LoopSettings, Pool, compare_acquisitions
from uqprism.tasks.active_learning.records import Records
from uqprism.tasks.result import TaskResult
from uqprism.training import MLP, StackedFit

from .problems import EXCESS, Counted, X, Y, cubics, loop, picks, settings

NAMES = ["random", EXCESS, "crps.total.members.members"]

# Acquisitions that never pick the same points, so that no two loops share a model by chance.
APART: dict[str, Any] = {
    "acquisitions": {"random": "random", "excess": EXCESS, "near zero": lambda ensemble: -np.abs(ensemble.members.mean[0])},
    "selection": "top",
}


def comparison(fit: Any = cubics, **changed: Any) -> TaskResult:
    chosen = {"acquisitions": NAMES, "seeds": [3, 8], **settings(), **changed}
    own = {name: chosen.pop(name) for name in ("seeds", "metric", "folder", "keep", "progress") if name in chosen}
    pool, acquisitions = Pool.of(X, Y, chosen.pop("test")), chosen.pop("acquisitions")
    return compare_acquisitions(fit, pool, acquisitions, LoopSettings(**chosen), **own)


class Together:
    """A fit for many at once, which notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def __call__(self, inputs: Any, targets: Any, seed: int = 0) -> Any:
        raise AssertionError("many is to be called")

    def many(self, inputs: Any, targets: Any, rows: np.ndarray, seeds: list[int]) -> list[Any]:
        self.asked.append(rows.shape)
        return [cubics(inputs[each], targets[each], seed) for each, seed in zip(rows, seeds, strict=True)]


@pytest.mark.parametrize("fit", [cubics, Together()], ids=["one by one", "together"])
@pytest.mark.parametrize("changed", [{}, {"selection": "diverse"}, {"scores": "rank", "temperature": 0.5}])
def test_loops_in_lockstep_are_the_single_loops(fit: Any, changed: dict[str, Any], tmp_path: Path) -> None:
    result = comparison(fit, folder=tmp_path, **changed)
    for seed in (3, 8):
        for name in NAMES:
            learner = loop(acquisition=name, random_state=seed, **changed)
            states = list(learner)
            part = result.parts[f"seed {seed}"]
            assert_array_equal(part.curves[name], [state.metrics["nll"] for state in states])
            assert part[name] == pytest.approx(learner.averages["nll"], rel=1e-15)
            for metric in ("rmse", "crps"):
                assert part.metrics[metric][name] == pytest.approx(learner.averages[metric], rel=1e-15)
            for state in states:
                saved = LearningState.load(tmp_path / f"seed_{seed}" / name / f"round_{state.round:04d}.npz")
                assert_array_equal(saved.picked, state.picked)


def test_what_is_reported_is_the_mean_over_rounds_and_seeds() -> None:
    result = comparison(seeds=4)
    assert (result.task, result.metric, result.higher_is_better) == ("active_learning", "nll", False)
    assert list(result.parts) == ["seed 0", "seed 1", "seed 2", "seed 3"]
    table = np.array([[part[name] for name in NAMES] for part in result.parts.values()])  # (seeds, acquisitions)
    assert_allclose([result[name] for name in NAMES], table.mean(axis=0))
    assert_allclose([result.metrics["rank"][name] for name in NAMES], np.mean([rankdata(row) for row in table], axis=0))
    for name in NAMES:
        assert_allclose(result.curves[name], np.mean([part.curves[name] for part in result.parts.values()], axis=0))
        assert result.curves[name].mean() == pytest.approx(result[name])
        runs = np.array([part.curves[name] for part in result.parts.values()])
        assert_allclose(result.curves[f"{name} spread"], np.sqrt(((runs - runs.mean(axis=0)) ** 2).sum(axis=0) / 3.0))
    assert_array_equal(result.curves["labelled"], [12, 18, 24, 30])
    assert result.best() == NAMES[int(np.argmin(table.mean(axis=0)))]
    assert result.settings["seeds"] == [0, 1, 2, 3]


def test_spreads_are_over_seeds_and_paired() -> None:
    """Twice the same acquisition never differs from itself, whatever the seeds; the spread is that of a mean over seeds."""
    result = comparison(seeds=5, acquisitions={"a": EXCESS, "b": EXCESS, "c": "random"})
    assert result.replicates is not None
    assert_allclose(result.replicates[:, 0], result.replicates[:, 1])
    assert result["a"] == result["b"]
    assert result.metrics["rank"]["a"] == result.metrics["rank"]["b"]
    table = np.array([part["c"] for part in result.parts.values()])
    assert result.spread()["c"] == pytest.approx(table.std(ddof=1) / np.sqrt(5), rel=0.15)
    single = comparison(seeds=1)
    assert not single.has_spread
    assert set(single.curves) == {"labelled", *NAMES}
    assert single.best() in NAMES


def test_another_metric_can_be_the_one_that_counts(tmp_path: Path) -> None:
    result = comparison(metric="rmse")
    assert set(result.metrics) == {"nll", "crps", "rank"}
    assert result["random"] == pytest.approx(comparison().metrics["rmse"]["random"])
    result.save(tmp_path / "result.npz")
    assert TaskResult.load(tmp_path / "result.npz").rows() == result.rows()
    assert '"active_learning"' in result.to_json()


def test_models_are_trained_once_for_all_that_share_them() -> None:
    """In round 0 one for each seed; later one for each loop, or fewer where two loops picked the same points."""
    fit = Counted()
    comparison(fit, **APART)
    assert len(fit.calls) == 2 + 3 * 6
    fit = Counted()
    comparison(fit, acquisitions={"a": EXCESS, "b": EXCESS})
    assert len(fit.calls) == 2 * 4
    together = Together()
    comparison(together, **APART)
    assert together.asked == [(2, 12), (6, 18), (6, 24), (6, 30)]

    fit = Counted()  # seeds that start from the same points have models of their own
    result = comparison(fit, initial=np.arange(12), rounds=1)
    assert len(fit.calls) == 2
    assert len({part.curves["random"][0] for part in result.parts.values()}) == 2


@pytest.mark.parametrize("fail_at", [0, 5, 13])
def test_a_comparison_that_was_stopped_goes_on(tmp_path: Path, fail_at: int) -> None:
    chosen: dict[str, Any] = {**APART, "folder": tmp_path}
    whole = comparison(Counted(), **APART)
    with pytest.raises(RuntimeError, match="the power went out"):
        comparison(Counted(fail_at=fail_at), **chosen)
    fit = Counted()
    again = comparison(fit, **chosen)
    assert len(fit.calls) == 20 - fail_at
    assert again.rows() == whole.rows()
    fit = Counted()
    assert comparison(fit, **chosen).rows() == whole.rows()
    assert fit.calls == []
    chosen["acquisitions"] = {**APART["acquisitions"], "near half": lambda e: -np.abs(e.members.mean[0] - 0.5)}
    more = comparison(fit, **chosen, seeds=[3, 8, 9])
    assert len(fit.calls) == 2 * 4 + 1 + 4 * 3  # one more acquisition for two seeds, all of them for the third
    assert more.parts["seed 3"]["random"] == whole.parts["seed 3"]["random"]
    with pytest.raises(ArgumentError, match=r"seed_3.random holds rounds of another loop: batch_size is 6 there and 5 here"):
        comparison(fit, **chosen, batch_size=5)


class Rounded(Together):
    """Models whose digits depend on what they were trained together with, as those of a stack do."""

    def many(self, inputs: Any, targets: Any, rows: np.ndarray, seeds: list[int]) -> list[Any]:
        models = super().many(inputs, targets, rows, seeds)
        return [replace(model, noise=model.noise * (1.0 + 1e-3 * len(rows))) for model in models]


def stopped_at_save(monkeypatch: pytest.MonkeyPatch, count: int, **chosen: Any) -> None:
    """A comparison whose power goes out before the round of this number, counted over all loops, is saved."""
    saved: list[int] = []
    save = Records.save

    def failing(self: Records, state: LearningState) -> None:
        if len(saved) == count:
            raise RuntimeError("the power went out")
        saved.append(state.round)
        save(self, state)

    with monkeypatch.context() as patch:
        patch.setattr(Records, "save", failing)
        with pytest.raises(RuntimeError, match="the power went out"):
            comparison(Rounded(), **APART, **chosen)


@pytest.mark.parametrize("count", [0, 4, 6, 9, 23])
def test_a_comparison_stopped_within_a_round_ends_with_the_same_bits(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops that are left are trained with those that are finished, not in a smaller stack."""
    whole = comparison(Rounded(), **APART)
    stopped_at_save(monkeypatch, count, folder=tmp_path)
    stopped_at_save(monkeypatch, min(1, 23 - count), folder=tmp_path)  # again, at most one save later
    assert comparison(Rounded(), **APART, folder=tmp_path).rows() == whole.rows()


def test_loops_that_are_added_do_not_train_finished_ones_again(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"folder": tmp_path, "selection": "top"}
    acquisitions = dict(APART["acquisitions"])
    first = {name: acquisitions.pop(name) for name in ("random", "excess")}
    comparison(Rounded(), **chosen, acquisitions=first)
    fit = Rounded()
    whole = comparison(fit, **chosen, acquisitions={**acquisitions, **first})
    assert fit.asked == [(2, 12), (2, 18), (2, 24), (2, 30)]
    damaged = tmp_path / "seed_3" / "near_zero" / "round_0003.npz"
    damaged.unlink()
    fit = Rounded()
    assert comparison(fit, **chosen, acquisitions={**acquisitions, **first}).rows() == whole.rows()
    assert fit.asked == [(2, 30)]
    (tmp_path / "round_0003.json").write_text("{")
    damaged.unlink()
    with pytest.raises(InvalidValueError, match=r"round_0003.json is damaged; delete this file"):
        comparison(Rounded(), **chosen, acquisitions={**acquisitions, **first})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"acquisitions": []}, "acquisitions must hold at least one"),
        ({"acquisitions": EXCESS}, "acquisitions must be a list or a mapping"),
        ({"acquisitions": [EXCESS, EXCESS]}, f"'{EXCESS}' is there twice; give a mapping"),
        ({"acquisitions": [lambda _: 0, lambda _: 1]}, "'<lambda>' is there twice"),
        ({"acquisitions": {"a/b": "random", "a_b": EXCESS}}, "is there twice"),
        ({"acquisitions": {"labelled": "random"}}, "no acquisition can be named 'labelled'"),
        ({"acquisitions": ["crsp.excess.members.members"]}, "did you mean 'crps'"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"seeds": []}, "seeds must be at least one, each once"),
        ({"seeds": [1, 1]}, "seeds must be at least one, each once"),
        ({"seeds": [0.5]}, "seeds must be an integer"),
        ({"test": None}, "pool must have a test set"),
        ({"metric": "mse"}, "unknown metric 'mse'; did you mean 'rmse'"),
        ({"rounds": 60}, "at most rounds=31"),
    ],
)
def test_bad_comparisons_are_refused_before_any_training(changed: dict[str, Any], message: str) -> None:
    fit = Counted()
    with pytest.raises(UqprismError, match=message):
        comparison(fit, **changed)
    assert fit.calls == []


def test_too_few_models_from_many_are_noticed() -> None:
    class Forgetful(Together):
        def many(self, *given: Any) -> list[Any]:
            return super().many(*given)[:-1]

    with pytest.raises(UqprismError, match=r"fit.many must return one model for each of 2 experiments, got 1"):
        comparison(Forgetful())


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_by_one_bar_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = StackedFit(n_members=2, network=MLP((4,)), max_epochs=2, device="cpu")
    for shown in (False, True):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda shown=shown: shown)
        monkeypatch.setattr(sys, "stderr", stream)
        comparison(fit, rounds=2, acquisitions=["random", EXCESS])
        assert ("rounds" in stream.getvalue()) is shown
        assert "epoch" not in stream.getvalue()
    before = stream.getvalue()
    comparison(progress=False)
    assert stream.getvalue() == before
    fit(X, Y)
    assert "epoch" in stream.getvalue()


QUICK = {"n_members": 2, "network": MLP((8,)), "max_epochs": 5, "device": "cpu", "dtype": "float64", "progress": False}


@pytest.mark.slow
def test_stacked_fits_of_many_are_those_of_each() -> None:
    fit = StackedFit(**QUICK)
    rows = np.stack([np.arange(40), np.arange(60, 100)])
    for seed, each, model in zip([5, 6], rows, fit.many(X, Y, rows, [5, 6]), strict=True):
        alone = fit(X[each], Y[each], seed=seed).predict_ensemble(X)
        assert_allclose(model.predict_ensemble(X).members.mean, alone.members.mean, rtol=1e-6, atol=1e-8)
        assert_allclose(model.predict_ensemble(X).members.scale, alone.members.scale, rtol=1e-6)
    assert not np.allclose(fit(X, Y, seed=5).predict_ensemble(X).members.mean, fit(X, Y, seed=6).predict_ensemble(X).members.mean)


def test_stacked_fits_take_settings_but_no_seeds() -> None:
    with pytest.raises(UqprismError, match="seed is no option of StackedFit"):
        StackedFit(seed=3)
    with pytest.raises(UqprismError, match="unknown training option 'n_member'; did you mean 'n_members'"):
        StackedFit(n_member=3)
    assert repr(StackedFit(n_members=3, head="crps")) == "StackedFit(n_members=3, head='crps')"


@pytest.mark.slow
def test_networks_trained_in_one_stack_learn_as_single_learners_do() -> None:
    """In double precision the two differ by rounding, far less than the scores of two points do, so the picks are the same."""
    fit = StackedFit(**QUICK)
    changed = {"selection": "top", "rounds": 3, "initial": 20}
    result = comparison(fit, seeds=[4], acquisitions=["random", EXCESS], **changed)
    for name in ("random", EXCESS):
        alone = [state.metrics["nll"] for state in loop(fit, acquisition=name, random_state=4, **changed)]
        assert_allclose(result.curves[name], alone, rtol=1e-6)


KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
from pathlib import Path
from tests.tasks.active_learning.test_comparison import narrow
from uqprism.tasks.active_learning.records import Records
save, saved = Records.save, []
def deadly(self, state):
    if len(saved) == 14:
        os.kill(os.getpid(), signal.SIGKILL)
    saved.append(state)
    save(self, state)
Records.save = deadly
narrow(Path({folder!r}))
"""


def narrow(folder: Path) -> TaskResult:
    """Networks in single precision, whose rounding depends on the stack; saves 15 rounds."""
    fit = StackedFit(n_members=2, network=MLP((50, 50)), max_epochs=50, device="cpu", progress=False)
    acquisitions = {name: name for name in ("random", EXCESS, "crps.total.members.members", "log.bayes.members")}
    acquisitions["crps.bayes.members"] = "crps.bayes.members"
    return comparison(fit, folder=folder, seeds=1, rounds=3, acquisitions=acquisitions)


def test_networks_of_a_killed_comparison_are_the_same_to_the_bit(tmp_path: Path) -> None:
    script = KILLED.format(path=[str(Path(__file__).parents[3]), *sys.path], folder=str(tmp_path / "killed"))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert len(list((tmp_path / "killed").rglob("round_*.npz"))) == 14
    assert narrow(tmp_path / "killed").rows() == narrow(tmp_path / "whole").rows()


def test_deep_ensembles_are_regressors_to_learn_with() -> None:
    model = up.DeepEnsembleRegressor(n_members=2, hidden=(4,), max_epochs=2, device="cpu", progress=False)
    learner = loop(model, rounds=2, initial=20)
    assert picks(learner) == picks(learner)


def test_with_picks_alone_files_are_small_and_a_stopped_comparison_goes_on(tmp_path: Path) -> None:
    whole = comparison(Counted(), **APART)
    with pytest.raises(RuntimeError, match="the power went out"):
        comparison(Counted(fail_at=9), **APART, folder=tmp_path, keep="picks")
    fit = Counted()
    again = comparison(fit, **APART, folder=tmp_path, keep="picks")
    assert 0 < len(fit.calls) < 2 + 3 * 6
    assert again.rows() == whole.rows()
    state = LearningState.load(tmp_path / "seed_3" / "excess" / "round_0001.npz")
    assert (len(state.labelled), len(state.picked), len(state.pool), len(state.scores), len(state.measures)) == (18, 6, 0, 0, 0)
    assert set(state.metrics) == {"nll", "rmse", "crps"}
    with pytest.raises(ArgumentError, match="keep"):  # they are not taken for whole rounds
        comparison(**APART, folder=tmp_path)
    with pytest.raises(UqprismError, match="'pick'; did you mean 'picks'"):
        comparison(keep="pick")
