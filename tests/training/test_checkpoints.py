"""Tensor files that are refused if they are damaged, and runs that are killed and continue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from numpy.testing import assert_array_equal

import uqprism as up
from uqprism.errors import BadFileError
from uqprism.training import MLP, History, TrainingWarning, checkpoints, train
from uqprism.training.checkpoints import KIND, read_tensors, write_tensors

from .problems import FAST, Explosive, cut_off, rows_of, waves


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    train(*waves(30), **FAST, network=MLP((4,))).save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_a_file_that_is_cut_off_or_changed_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in (0, 5, 100, len(whole) - 1):
        saved.write_bytes(whole[:length])
        with pytest.raises(up.UqprismError, match="is not a readable safetensors file, or is incomplete"):
            up.DeepEnsemble.load(saved)
    for at in (len(whole) - 3, whole.index(b"natural") + 1):  # in the numbers, and in the header
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(up.UqprismError, match="was changed after it was written"):
            up.DeepEnsemble.load(saved)


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "other.safetensors"
    with pytest.raises(up.UqprismError, match="there is no file"):
        up.DeepEnsemble.load(path)
    safetensors.torch.save_file({"rows": torch.zeros(2)}, path)
    with pytest.raises(up.UqprismError, match="was not written by uqprism"):
        up.DeepEnsemble.load(path)
    write_tensors(path, "something else", {}, {"rows": torch.zeros(2)})
    with pytest.raises(up.UqprismError, match="holds a something else, not a DeepEnsemble"):
        up.DeepEnsemble.load(path)
    monkeypatch.setattr(checkpoints, "VERSION", 2)
    write_tensors(path, "DeepEnsemble", {}, {"rows": torch.zeros(2)})
    monkeypatch.undo()
    with pytest.raises(up.UqprismError, match="format version 2, this version of uqprism reads 1; load it with the uqprism"):
        up.DeepEnsemble.load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("network", {"name": "mlp", "hidden": [100_000, 100_000, 100_000]}, "parameters each, but it holds"),
        ("network", {"name": "nothing"}, "unknown network 'nothing'"),
        ("network", [], "does not hold what DeepEnsemble.save writes"),
        ("head", {}, "does not hold what DeepEnsemble.save writes: it lacks 'name'"),
        ("input_shape", "ab", "does not hold what DeepEnsemble.save writes"),
        ("history", None, "does not hold what DeepEnsemble.save writes"),
        ("architecture", {}, "it lacks 'shapes'"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_before_building(saved: Path, name: str, value: Any, message: str) -> None:
    header, tensors = read_tensors(saved, "DeepEnsemble")
    about = {key: each for key, each in header.items() if key not in {"format", "version"}}
    write_tensors(saved, "DeepEnsemble", {**about, name: value}, tensors)
    with pytest.raises(BadFileError, match=rf"model\.safetensors: .*{message}"):
        up.DeepEnsemble.load(saved)


def test_a_failed_write_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(up.UqprismError, match=r"cannot write .*full"):
        train(*waves(30), **FAST, network=MLP((3,))).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_file_replaced_while_it_is_read_is_read_whole(tmp_path: Path) -> None:
    path, stop = tmp_path / "model", threading.Event()

    def replace() -> None:
        count = 0
        while not stop.is_set():
            write_tensors(path, "counter", {"count": count}, {"count": torch.full((1000,), count)})
            count += 1

    write_tensors(path, "counter", {"count": -1}, {"count": torch.full((1000,), -1)})
    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(100):
            header, tensors = read_tensors(path, "counter")
            assert int(tensors["count"][0]) == header["count"]
    finally:
        stop.set()
        writer.join()


RUN = """
import sys
import torch
torch.set_num_threads(1)
from uqprism.training import MLP, train
from tests.training.problems import waves
train(*waves(100), network=MLP((12,), dropout=0.2), n_members=4, max_epochs=150, patience=40, batch_size=16,
      learning_rate=0.01, device="cpu", checkpoint=sys.argv[1], checkpoint_every=3).save(sys.argv[2])
"""


def epoch_of(folder: Path) -> int:
    found = list(folder.glob("[!.]*.safetensors"))
    return int(read_tensors(found[0], KIND)[0]["epoch"]) if found else 0


@pytest.mark.slow
def test_a_killed_run_continues_and_ends_with_the_same_members(tmp_path: Path) -> None:
    """SIGKILL twice during training, the second time after some members have stopped early."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])}
    folder, path = tmp_path / "checkpoints", tmp_path / "model.safetensors"

    def start(*arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", RUN, *map(str, arguments)], env=environment)

    for wanted in (5, 40):
        process = start(folder, path)
        while epoch_of(folder) < wanted:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed_at = epoch_of(folder)
    assert not path.exists()
    assert start(folder, path).wait() == 0
    whole = tmp_path / "whole.safetensors"
    assert start(tmp_path / "others", whole).wait() == 0
    found, expected = (up.DeepEnsemble.load(p) for p in (path, whole))
    assert 40 <= killed_at < max(len(c.training) for c in expected.history.curves)
    assert_array_equal(rows_of(found), rows_of(expected))
    assert found.history == expected.history


def test_a_finished_run_is_not_trained_again_unless_its_damaged_checkpoint_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = waves(30)
    settings = {**FAST, "network": MLP((4,)), "checkpoint": tmp_path, "checkpoint_every": 2}
    first = train(x, y, **settings)
    monkeypatch.setattr("uqprism.training.trainer.Trainer._epoch", lambda _: pytest.fail("trained again"))
    assert_array_equal(rows_of(train(x, y, **settings)), rows_of(first))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(up.UqprismError, match="delete it to train from the start"):
        train(x, y, **settings)


@pytest.mark.parametrize("change", [{"learning_rate": 0.1}, {"seed": 9}, {"head": "crps"}, {"network": MLP((5,))}, {"data": 1}])
def test_another_run_does_not_continue_from_this_checkpoint(change: dict[str, object], tmp_path: Path) -> None:
    x, y = waves(30)
    settings = {**FAST, "network": MLP((4,)), "checkpoint": tmp_path}
    train(x, y, **settings)
    given = {**settings, **{k: v for k, v in change.items() if k != "data"}}
    y = y + (0.5 * x[:, 0] if "data" in change else 0.0)
    assert_array_equal(rows_of(train(x, y, **given)), rows_of(train(x, y, **{**given, "checkpoint": None})))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("function", ["checkpoint", "load"])
def test_own_networks_are_distinguished_by_their_outputs(function: str, tmp_path: Path) -> None:
    """The same parameters, but another activation."""

    def build(activation: type) -> Any:
        return lambda shape, n: torch.nn.Sequential(torch.nn.Linear(*shape, 4), activation(), torch.nn.Linear(4, n))

    class Hidden(torch.nn.Module):
        def __init__(self, power: int) -> None:
            super().__init__()
            self.layer, self.power = torch.nn.Linear(3, 2), power

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x**self.power)

    x, y = waves(30)
    for first, second in ((build(torch.nn.Tanh), build(torch.nn.SiLU)), (lambda *_: Hidden(1), lambda *_: Hidden(3))):
        if function == "checkpoint":
            train(x, y, **FAST, network=first, checkpoint=tmp_path)
            found = train(x, y, **FAST, network=second, checkpoint=tmp_path)
            assert_array_equal(rows_of(found), rows_of(train(x, y, **FAST, network=second)))
        else:
            train(x, y, **FAST, network=first).save(tmp_path / "model")
            with pytest.raises(up.UqprismError, match="they predict other values"):
                up.DeepEnsemble.load(tmp_path / "model", network=second)


def test_folders_that_cannot_be_written_are_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch()
    monkeypatch.setattr("uqprism.training.trainer.Trainer._epoch", lambda _: pytest.fail("trained first"))
    with pytest.raises(up.UqprismError, match="checkpoint must be a folder"):
        train(*waves(30), **FAST, checkpoint=path)
    monkeypatch.undo()
    with pytest.raises(up.UqprismError, match="cannot write"):
        train(*waves(30), **FAST).save(tmp_path)


def test_restarts_survive_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = waves(40)
    settings = {**FAST, "n_members": 6, "network": lambda *_: Explosive(False), "seed": 1, "max_epochs": 6}
    with pytest.warns(TrainingWarning, match="diverged"):
        whole = train(x, y, **settings)
    cut_off(monkeypatch, 3, RuntimeError("power failure"))
    with pytest.warns(TrainingWarning, match="diverged"), pytest.raises(RuntimeError, match="power failure"):
        train(x, y, **settings, checkpoint=tmp_path, checkpoint_every=1)
    monkeypatch.undo()
    resumed = train(x, y, **settings, checkpoint=tmp_path, checkpoint_every=1)
    assert_array_equal(rows_of(resumed), rows_of(whole))
    assert resumed.history == whole.history


def test_histories_convert_to_json_and_back() -> None:
    history = train(*waves(30), **FAST).history
    assert History.from_dict(json.loads(json.dumps(history.to_dict()))) == history
    assert np.isfinite(history.training_loss).all()
