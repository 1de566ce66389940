"""Recorded steps: the numbers of the plain ones, the same with any number of threads, and threads that end when they should."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import uqprism as up
from uqprism.support.parallel import limited_to
from uqprism.training import MLP, MixtureHead, SharedMLP, TabularMLP, TrainingWarning, recorded, train
from uqprism.training.device import share_of_cores, torch_threads
from uqprism.training.recorded import RecordedStepper

from .problems import FAST, rows_of, waves

MIXTURE: dict[str, Any] = {**FAST, "head": "mixture"}
NETWORKS = {
    "columns": TabularMLP((20, 20)),
    "pieces as they are": TabularMLP((9,), width=None),
    "periodic": TabularMLP((9,), embedding="periodic"),
    "plain": MLP((33, 17)),
    "linear": MLP(()),
    "smooth": MLP((8,), "silu"),
}
RECORDED = {"columns", "pieces as they are", "plain", "linear"}


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, slice]]:
    """The thread and the members of each round of steps; every step is work enough for a thread."""
    found: list[tuple[int, slice]] = []
    steps = RecordedStepper._steps

    def noted(self: RecordedStepper, batches: Any, rates: Any, part: slice, stop: threading.Event) -> None:
        found.append((threading.get_ident(), part))
        steps(self, batches, rates, part, stop)

    monkeypatch.setattr(RecordedStepper, "_steps", noted)
    monkeypatch.setattr(recorded, "LEAST_WORK", 1)
    return found


@contextmanager
def cores(count: int) -> Iterator[None]:
    with torch_threads(count), limited_to(count):
        yield


@pytest.mark.parametrize("case", NETWORKS)
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_plain_steps(case: str, weighted: bool, parts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In double precision, against the steps that are not recorded."""
    x, y = waves(90)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=90) if weighted else None
    settings = {**MIXTURE, "dtype": "float64", "batch_size": 37, "network": NETWORKS[case], "weights": weights}
    found = train(x, y, **settings)
    assert bool(parts) is (case in RECORDED)
    monkeypatch.setattr(RecordedStepper, "suits", lambda *_: False)
    plain = train(x, y, **settings)
    assert_allclose(rows_of(found), rows_of(plain), rtol=1e-9, atol=1e-12)
    assert_allclose(found.history.validation_loss, plain.history.validation_loss, rtol=1e-9)
    assert_allclose(found.history.training_loss, plain.history.training_loss, rtol=1e-9)


@pytest.mark.parametrize(
    ("network", "size"), [(TabularMLP((33, 17)), 37), (TabularMLP((10,), width=None), 50), (MLP((9, 13)), 16)]
)
def test_the_number_of_threads_changes_no_digit(network: Any, size: int, parts: list[tuple[int, slice]]) -> None:
    """Also for layers and batches of odd sizes, and after members have stopped."""
    x, y = waves(150)
    settings = {**MIXTURE, "n_members": 7, "max_epochs": 30, "patience": 3, "batch_size": size, "network": network}
    found = []
    for count in (1, 2, 3):
        parts.clear()
        with cores(count):
            found.append(train(x, y, **settings))
        assert len({thread for thread, _ in parts}) == count
        assert len({(part.start, part.stop) for _, part in parts[:count]}) == count
    for other in found[1:]:
        assert_array_equal(rows_of(other), rows_of(found[0]))
        assert_array_equal(other.history.validation_loss, found[0].history.validation_loss)
    assert min(len(curve.training) for curve in found[0].history.curves) < 30


def test_small_steps_stay_on_one_thread(monkeypatch: pytest.MonkeyPatch, parts: list[tuple[int, slice]]) -> None:
    monkeypatch.setattr(recorded, "LEAST_WORK", 10**9)
    with cores(2):
        train(*waves(60), **MIXTURE, network=MLP((8,)))
    assert {thread for thread, _ in parts} == {threading.get_ident()}


@pytest.mark.parametrize(
    "settings",
    [
        {"network": MLP((8,)), "head": "natural"},
        {"network": MLP((8,)), "head": MixtureHead(rule="quadratic")},
        {"network": MLP((8,), dropout=0.1)},
        {"network": MLP((8,)), "max_gradient": 1.0},
        {"network": MLP((8,)), "weight_decay": 0.1},
        {"network": SharedMLP(members=2, hidden=(8,))},
        {"network": MLP((8,)), "technique": "loop"},
    ],
)
def test_other_steps_are_not_recorded(settings: dict[str, Any], parts: list[Any]) -> None:
    """Those of the paper's heads keep their numbers."""
    options = {**MIXTURE, **settings}
    if isinstance(options["network"], SharedMLP):
        options |= {"network": TabularMLP((8,)), "shared": True}
    train(*waves(40), **options)
    assert parts == []


def failing(error: Callable[[], object], part: int, epoch: int) -> Callable[..., None]:
    """Steps of which one part of the members, by number, fails in one epoch; others wait until they are told to stop."""
    steps, rounds = RecordedStepper._steps, {0: 0, 1: 0}

    def run(self: RecordedStepper, batches: Any, rates: Any, where: slice, stop: threading.Event) -> None:
        number = 0 if where.start == 0 else 1
        rounds[number] += 1
        if rounds[number] <= epoch:
            steps(self, batches, rates, where, stop)
        elif number == part:
            error()
        else:
            assert part == 1 or stop.wait(30.0)

    return run


@pytest.mark.parametrize("part", [0, 1])
def test_an_error_in_a_thread_is_raised(part: int, parts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def error() -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(RecordedStepper, "_steps", failing(error, part, 1))
    before = threading.active_count()
    with cores(2), pytest.raises(MemoryError, match="no more"):
        train(*waves(40), **MIXTURE, network=MLP((8,)))
    assert threading.active_count() == before


def test_an_interrupt_stops_all_threads_and_keeps_the_best(parts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches the main thread, in the middle of an epoch."""
    settings = {**MIXTURE, "network": MLP((8,)), "schedule": "constant"}
    whole = train(*waves(40), **{**settings, "max_epochs": 2})
    monkeypatch.setattr(RecordedStepper, "_steps", failing(lambda: signal.raise_signal(signal.SIGINT), 0, 2))
    before, handler = threading.active_count(), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with cores(2), pytest.warns(TrainingWarning, match="interrupted after 2 epochs"):
            found = train(*waves(40), **{**settings, "max_epochs": 10})
    finally:
        signal.signal(signal.SIGINT, handler)
    assert threading.active_count() == before
    assert_array_equal(rows_of(found), rows_of(whole))


def test_trainings_share_the_cores() -> None:
    with cores(4), share_of_cores() as first:
        assert first() == 4
        with share_of_cores() as second:
            assert (first(), second()) == (2, 2)
            with share_of_cores():
                assert first() == 1
        assert first() == 4
    with torch_threads(1), limited_to(4), share_of_cores() as limited:
        assert limited() == 1


def test_a_search_on_threads_uses_no_more_than_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two trainings at once takes one of two cores, from its second epoch at the latest."""
    monkeypatch.setattr(recorded, "LEAST_WORK", 1)
    monkeypatch.setenv("UQPRISM_THREADS", "2")
    steps, lock, meeting = RecordedStepper._steps, threading.Lock(), threading.Barrier(2, timeout=60.0)
    now, most = [0], [0]

    def counted(self: RecordedStepper, *given: Any) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        try:
            steps(self, *given)
        finally:
            with lock:
                now[0] -= 1

    run = up.training.trainer.Trainer.run

    def met(self: Any, show: Any) -> Any:
        def shown(state: Any) -> None:
            show(state)
            if state.epoch == 1:
                meeting.wait()  # both train
                most[0] = 0
                meeting.wait()

        return run(self, shown)

    monkeypatch.setattr(up.training.trainer.Trainer, "run", met)
    monkeypatch.setattr(RecordedStepper, "_steps", counted)
    model = up.DeepEnsembleRegressor(2, network=MLP((16,)), max_epochs=6, random_state=0, progress=False, device="cpu")
    with torch_threads(2):  # not by scikit-learn's search, in which tests see warnings that are ignored elsewhere
        joblib.Parallel(2, "threading")(joblib.delayed(clone(model).fit)(*waves(80, seed=seed)) for seed in range(4))
    assert 1 <= most[0] <= 2
