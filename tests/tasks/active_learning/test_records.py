"""Loops that are stopped go on and end as if nothing had happened; folders of other loops are refused and stay as they are."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

import uqprism as up
from uqprism.errors import ArgumentError, FileError, InvalidValueError
from uqprism.tasks.active_learning import LearningState
from uqprism.tasks.active_learning.pool import digest
from uqprism.training import MLP, StackedFit

from ...training.problems import cut_off
from .problems import EXCESS, Counted, X, Y, cubics, data, loop


def same(first: Iterable[LearningState], second: Iterable[LearningState]) -> None:
    """All of both, to the last bit."""
    for one, other in zip(first, second, strict=True):
        for name in ("round", "labelled", "pool", "scores", "picked"):
            assert_array_equal(getattr(one, name), getattr(other, name))
        assert dict(one.metrics) == dict(other.metrics)
        assert list(one.measures) == list(other.measures)
        for name in one.measures:
            assert_array_equal(one.measures[name], other.measures[name])
        assert one.measures.exactness == other.measures.exactness


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("changed", [{}, {"selection": "diverse", "measures": "crps.bayes.members"}, {"acquisition": "random"}])
def test_an_error_in_the_third_round_loses_nothing(tmp_path: Path, changed: dict[str, Any]) -> None:
    whole = list(loop(Counted(), **changed))
    with pytest.raises(RuntimeError, match="the power went out"):
        list(loop(Counted(fail_at=2), folder=tmp_path, **changed))
    assert sorted(contents(tmp_path)) == ["learner.json", "round_0000.npz", "round_0001.npz"]
    fit = Counted()
    learner = loop(fit, folder=tmp_path, **changed)
    same(learner, whole)
    assert len(learner.labelled) == 36
    before = contents(tmp_path)
    same(learner, whole)
    assert len(fit.calls) == 2
    assert contents(tmp_path) == before


KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
from tests.tasks.active_learning.problems import cubics, loop
calls = []
def fit(inputs, targets, seed):
    calls.append(1)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return cubics(inputs, targets, seed)
list(loop(fit, folder={folder!r}))
"""


def test_a_killed_process_goes_on_where_it_was(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    script = KILLED.format(path=[str(root), *sys.path], folder=str(tmp_path / "al"))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL

    def fit(inputs: Any, targets: Any, seed: int) -> Any:
        calls.append(len(targets))
        return cubics(inputs, targets, seed)

    fit.__qualname__ = "fit"  # as it is called in the script
    calls: list[int] = []
    same(loop(fit, folder=tmp_path / "al"), loop())
    assert calls == [12 + 3 * 6]


def test_more_rounds_may_follow_and_fewer_be_looked_at(tmp_path: Path) -> None:
    whole = list(loop(Counted(), rounds=6))
    same(loop(Counted(), rounds=4, folder=tmp_path), whole[:4])
    fit = Counted()
    same(loop(fit, rounds=6, folder=tmp_path), whole)
    assert len(fit.calls) == 2
    same(loop(Counted(fail_at=0), rounds=2, folder=tmp_path), whole[:2])


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("initial is 12 there and 13 here", {"initial": 13}),
    (f"acquisition is {EXCESS} there and random here", {"acquisition": "random"}),
    ("batch_size is 6 there and 5 here", {"batch_size": 5}),
    ("random_state is 0 there and 7 here", {"random_state": 7}),
    ("selection is softmax there and top here", {"selection": "top"}),
    (r"temperature is 1\.0 there and 0\.5 here", {"temperature": 0.5}),
    ("scores is standardised there and rank here", {"scores": "rank"}),
    (r'measures is \[\] there and \["log.bayes.members"\] here', {"measures": ["log.bayes.members"]}),
    ("test targets are others", {"test": (data(60, seed=1)[0], data(60, seed=2)[1])}),
    ("test inputs are given only once; test targets are given only once", {"test": None}),
    ("fit is .*Counted.* there and cubics here", {"fit": cubics}),
    ("pool_inputs are others", {"x": X + 1e-12}),
    ("pool_targets are others", {"y": np.append(Y[:-1], 0.0)}),
]


@pytest.mark.parametrize(("message", "changed"), OTHERS)
def test_a_folder_of_other_settings_or_data_is_refused_and_kept(tmp_path: Path, message: str, changed: dict[str, Any]) -> None:
    list(loop(Counted(), rounds=2, folder=tmp_path))
    before = contents(tmp_path)
    with pytest.raises(ArgumentError, match=f"holds rounds of another loop: {message}"):
        loop(**{"fit": Counted(), "folder": tmp_path, **changed})
    assert contents(tmp_path) == before


def test_parameters_of_models_and_rules_count_as_settings(tmp_path: Path) -> None:
    def learner(fit: Any, bandwidth: float = 0.5) -> Any:
        measure = up.Measure("kernel", "excess", "members", "members", up.rules.GaussianKernel(bandwidth, name="kernel"))
        return loop(fit, rounds=1, acquisition=measure, folder=tmp_path)

    list(learner(RandomForestRegressor(3)))
    list(learner(RandomForestRegressor(3, n_jobs=1, verbose=0)))
    with pytest.raises(ArgumentError, match="fit parameters: n_estimators is 3 there and 4 here"):
        learner(RandomForestRegressor(4))
    with pytest.raises(ArgumentError, match=r"acquisition is .*bandwidth.*0\.5.* there and .*0\.6"):
        learner(RandomForestRegressor(3), 0.6)


def test_functions_are_told_apart_by_name_wherever_they_are_in_memory(tmp_path: Path) -> None:
    def states() -> list[LearningState]:
        fit = functools.partial(cubics, seed=3)
        return list(loop(fit, rounds=1, acquisition=lambda e: e.members.mean[0], folder=tmp_path))

    same(states(), states())
    assert "0x" not in (tmp_path / "learner.json").read_text()


DAMAGES = {
    "cut off": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "other": lambda _: b"round three was good",
    "one bit": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_round_is_told_with_the_remedy(tmp_path: Path, damage: str) -> None:
    learner = loop(Counted(), folder=tmp_path)
    whole = list(learner)
    bad = tmp_path / "round_0002.npz"
    bad.write_bytes(DAMAGES[damage](bad.read_bytes()))
    with pytest.raises(InvalidValueError, match=r"round_0002.npz is damaged .*delete this file, and the round is computed again"):
        list(learner)
    bad.unlink()
    same(learner, whole)


def test_rounds_of_two_loops_are_never_mixed(tmp_path: Path) -> None:
    list(loop(Counted(), folder=tmp_path / "a"))
    list(loop(Counted(), folder=tmp_path / "b", random_state=1))
    (tmp_path / "a" / "round_0002.npz").write_bytes((tmp_path / "b" / "round_0002.npz").read_bytes())
    message = "round_0002.npz does not follow from the rounds before it; delete it and all later"
    with pytest.raises(InvalidValueError, match=message):
        list(loop(Counted(), folder=tmp_path / "a"))
    (tmp_path / "a" / "learner.json").unlink()
    with pytest.raises(ArgumentError, match=r"holds rounds but no learner.json"):
        loop(Counted(), folder=tmp_path / "a")


def test_nothing_is_written_before_the_first_round_and_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    learner = loop(Counted(), folder=tmp_path)
    assert list(contents(tmp_path)) == ["notes.txt"]
    list(learner)
    assert (tmp_path / "notes.txt").read_text() == "precious"
    (tmp_path / "learner.json").write_text("[1]")
    with pytest.raises(InvalidValueError, match=r"learner.json was not written by ActiveLearner"):
        loop(Counted(), folder=tmp_path)
    with pytest.raises(FileError, match=r"folder must be a folder, .*notes.txt is a file"):
        loop(Counted(), folder=tmp_path / "notes.txt")
    loop(Counted(), folder=tmp_path / "al")
    assert not (tmp_path / "al").exists()


def test_bad_scores_in_a_later_round_leave_the_earlier_ones(tmp_path: Path) -> None:
    learner = loop(acquisition=lambda e: np.where(e.n_points < 180, np.nan, e.members.mean[0]), folder=tmp_path)
    with pytest.raises(InvalidValueError, match="acquisition '<lambda>' must give finite scores, got nan for 176 of 176 points"):
        list(learner)
    assert sorted(contents(tmp_path)) == ["learner.json", "round_0000.npz", "round_0001.npz"]


def test_a_state_comes_back_from_its_file(tmp_path: Path) -> None:
    state = next(iter(loop(measures=["crps.bayes.members"])))
    state.save(tmp_path / "state.npz")
    same([LearningState.load(tmp_path / "state.npz")], [state])


def test_ctrl_c_in_training_ends_the_loop_and_not_just_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer keeps what it has when it is interrupted, which must not become a finished round."""
    fit = StackedFit(n_members=2, network=MLP((4,)), max_epochs=4, device="cpu", dtype="float64")
    whole = list(loop(fit, rounds=2, selection="top"))
    with monkeypatch.context() as patch:
        cut_off(patch, 6, KeyboardInterrupt())
        with pytest.warns(up.training.TrainingWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
            list(loop(fit, rounds=2, selection="top", folder=tmp_path))
    assert sorted(contents(tmp_path)) == ["learner.json", "round_0000.npz"]
    same(loop(fit, rounds=2, selection="top", folder=tmp_path), whole)
    assert json.loads((tmp_path / "learner.json").read_text())["fit"].startswith("StackedFit(n_members=2")


def test_fingerprints_tell_contents_names_and_types_apart() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    variants = [frame, frame.rename(columns={"a": "c"}), frame.assign(b=["x", "z"])]
    variants += [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3), dtype=np.float32)]
    variants += [np.array([text, None], dtype=object) for text in "ab"]
    assert len({digest(each) for each in variants}) == len(variants)
    assert digest(frame) == digest(frame.copy())
    assert digest(np.zeros((3, 2))) == digest(np.asfortranarray(np.zeros((3, 2))))
    assert digest(np.zeros((4, 2))[::2]) == digest(np.zeros((2, 2)))
