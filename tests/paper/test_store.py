"""Artefacts: what decides their names, and that a name means finished contents."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import uqprism as up
from uqprism.errors import ArgumentError, FileError, UnknownNameError
from uqprism.paper import store as module
from uqprism.paper.store import Artefact, Bundle, Store, as_data, checksum
from uqprism.support.storage import atomic_path


@dataclass(frozen=True)
class Key:
    name: str = "dots"
    widths: tuple[int, ...] = (8, 8)
    rate: float = 1e-3


def test_a_digest_or_checksum_changes_with_whatever_decides_the_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Artefact("bundle", {"name": "dots", "seed": 0})
    members = Artefact("members", Key(), (data,))
    others = [
        Artefact("members", Key(rate=2e-3), (data,)),
        Artefact("members", as_data(Key()), (data,)),
        Artefact("predictions", Key(), (data,)),
        Artefact("members", Key(), ()),
        Artefact("members", Key(), (Artefact("bundle", {"name": "dots", "seed": 1}),)),
    ]
    assert len({each.digest for each in [members, *others]}) == 6
    assert Artefact("members", Key(), (Artefact("bundle", {"seed": 0, "name": "dots"}),)).digest == members.digest
    monkeypatch.setattr(module, "__version__", "next")
    assert Artefact("members", Key(), (data,)).digest != members.digest
    values = np.arange(6.0)
    different = [values, values + 1e-12, values.reshape(2, 3), values.astype(np.float32)]
    assert len({checksum(each) for each in different}) == 4
    assert checksum(values.reshape(2, 3).T) == checksum(np.ascontiguousarray(values.reshape(2, 3).T))


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    store, wanted, made = Store(tmp_path), Artefact("bundle", Key()), []

    def make() -> Bundle:
        made.append(1)
        return Bundle({"name": "dots"}, {"values": np.arange(3.0)})

    assert wanted not in store
    for _ in range(2):
        found = store.get(wanted, make)
        assert found.data == {"name": "dots"}
        np.testing.assert_array_equal(found.arrays["values"], [0.0, 1.0, 2.0])
    assert made == [1]
    assert store.record(wanted)["key"] == {"name": "dots", "widths": [8, 8], "rate": 0.001}


def test_an_artefact_says_with_which_versions_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch is named only where it was loaded: it is not loaded to be asked."""
    stated = {"uqprism": up.__version__, "python": platform.python_version(), "numpy": np.__version__}
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    store, without, with_torch = Store(tmp_path), Artefact("bundle", 0), Artefact("bundle", 1)
    store.get(without, Bundle)
    assert store.record(without)["versions"] == stated
    assert "torch" not in sys.modules
    cuda = SimpleNamespace(is_available=lambda: False)
    fake = SimpleNamespace(__version__="9.9+cu13", version=SimpleNamespace(cuda="13.0"), cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", fake)
    store.get(with_torch, Bundle)
    assert store.record(with_torch)["versions"] == {**stated, "torch": "9.9+cu13", "cuda": "13.0"}


def test_the_types_of_the_library_come_back_as_themselves(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ensemble = up.EnsemblePrediction.gaussian(mean=[[0.0, 1.0], [1.0, 3.0]], scale=[[1.0, 2.0], [1.0, 1.0]])
    predictions = Artefact("predictions", 0)
    measures = Artefact("measures", 0, (predictions,))
    found = store.get(measures, lambda: up.evaluate(store.get(predictions, lambda: ensemble)))
    np.testing.assert_array_equal(found["log.excess.members.members"], up.evaluate(ensemble)["log.excess.members.members"])
    assert isinstance(store.get(predictions), up.EnsemblePrediction)


def test_a_failure_leaves_nothing_and_keeps_what_must_survive(tmp_path: Path) -> None:
    store, wanted = Store(tmp_path), Artefact("bundle", Key())

    def make() -> Bundle:
        store.unfinished(wanted).mkdir(parents=True, exist_ok=True)
        (store.unfinished(wanted) / "checkpoint").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get(wanted, make)
    assert wanted not in store
    assert (store.unfinished(wanted) / "checkpoint").exists()
    store.get(wanted, Bundle)
    assert not store.unfinished(wanted).exists()


def test_half_written_files_of_a_killed_process_are_no_records_and_are_swept(tmp_path: Path) -> None:
    store, wanted = Store(tmp_path), Artefact("bundle", Key())
    store.get(wanted, Bundle)
    locks = {store.unfinished(wanted).parent, store.unfinished(wanted).with_suffix(".lock")}
    with atomic_path(tmp_path / "bundle" / "other.json") as temporary:
        temporary.write_text("{")
        assert len(list(store.records())) == 1
        before = set(tmp_path.rglob("*"))
        store.sweep()
        assert before - set(tmp_path.rglob("*")) == {temporary, *locks}
        temporary.touch()


def test_an_ensemble_continues_from_its_checkpoint(tmp_path: Path, epochs: Callable[..., list[int]]) -> None:
    from uqprism import training
    from uqprism.paper.ensembles import TRAINING, trained

    store, wanted = Store(tmp_path), Artefact("members", Key())
    inputs = np.linspace(-1.0, 1.0, 40)[:, None]
    given = {"n_members": 2, "max_epochs": 20, "patience": None, "network": training.MLP(hidden=(4,))}
    begun = epochs(stop=15)
    with pytest.raises(KeyboardInterrupt):
        trained(store, wanted, inputs, inputs[:, 0], **given)
    assert wanted not in store
    resumed = trained(store, wanted, inputs, inputs[:, 0], **given)
    assert len(begun) == 15 + 10  # the checkpoint was after ten
    again = trained(store, wanted, inputs, inputs[:, 0], **given)
    assert len(begun) == 25
    whole = training.train(inputs, inputs[:, 0], **{**TRAINING, **given, "progress": False})
    for ensemble in (resumed, again):
        np.testing.assert_array_equal(ensemble.predict_ensemble(inputs).members.mean, whole.predict_ensemble(inputs).members.mean)


def test_what_is_missing_or_no_plain_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown kind of artefact 'member'; did you mean 'members'"):
        Artefact("member", 0)
    with pytest.raises(FileError, match=r"no artefact 'bundle' of \{'name': 'dots'"):
        Store(tmp_path).get(Artefact("bundle", Key()))
    with pytest.raises(FileError, match="no artefact 'bundle' of 7"):
        Store(tmp_path).record(Artefact("bundle", 7))
    for key in ({"rate": float("nan")}, {"path": tmp_path}):
        with pytest.raises(ArgumentError, match="must be what JSON can hold"):
            Artefact("bundle", key).digest  # noqa: B018 (a property that computes)


def test_what_another_process_is_making_is_waited_for_and_not_made_twice(tmp_path: Path) -> None:
    """As after a kill: a worker that was left still makes the artefact that the resumed run needs."""
    store, wanted, made = Store(tmp_path), Artefact("bundle", Key()), list[int]()

    def make() -> Bundle:
        made.append(1)
        time.sleep(0.2)
        return Bundle({"made": len(made)})

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: store.get(wanted, make).data, range(2)))
    assert found == [{"made": 1}] * 2
    assert made == [1]
