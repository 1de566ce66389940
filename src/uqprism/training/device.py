"""Where training runs: the device, the precision of its matrix products, and the number of threads of a CPU.

Two threads that work on small matrices wait for each other every few microseconds. If another process takes a core, a wait is
a time slice long: a step of 3 ms was seen to take 200 ms with two threads and 4 ms with one. Recorded steps give each thread
members of its own instead. For other steps of MLPs, `Threads` measures both numbers now and then: their results do not depend
on it, since no sum is split between threads (a test trains with both). The gradients of convolutions are sums that are split,
so that their last digits depend on the number of threads: other networks keep the number of the process, or two runs would
differ by how busy the machine was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.support.parallel import threads

torch = require("torch", extra="deep")

PROBES = 5  # steps with each number of threads in a trial
GAIN = 0.8  # several threads are chosen below this share of one thread's time: they win little and may lose much
FIRST, LAST = 100, 6400  # steps until the next trial: twice as many each time
SLOW, PATIENCE = 5.0, 10  # a step this many times slower than usual starts a trial, after this many steps at the earliest


def training_device(name: Any) -> Any:
    """The device of this name; without a name, CUDA if there is a device."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise ArgumentError(f"device must be 'cpu' or 'cuda', got {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ArgumentError(f"device {name!r} was requested, but PyTorch finds no CUDA device")
    return device


# The settings belong to the process: threads that predict at once count in and out, and the last one restores them.
_in_use, _lock = [0], threading.Lock()
_before: list[tuple[Any, str, Any]] = []


@contextmanager
def full_precision(device: Any) -> Iterator[None]:
    """Switch TF32 off for matrix products and convolutions on a GPU, until the last such block ends."""
    if torch.device(device).type != "cuda":
        yield
        return
    with _lock:
        _in_use[0] += 1
        if _in_use[0] == 1:
            _before.extend((where, name, getattr(where, name)) for where, name in _precisions())
            for where, name, _ in _before:
                setattr(where, name, "ieee" if name == "fp32_precision" else False)
    try:
        yield
    finally:
        with _lock:
            _in_use[0] -= 1
            if _in_use[0] == 0:
                for where, name, value in _before:
                    setattr(where, name, value)
                _before.clear()


def _precisions() -> list[tuple[Any, str]]:
    """PyTorch's settings; since 2.9 each operator has its own, which must not be mixed with the older ones."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if hasattr(matmul, "fp32_precision") and hasattr(cudnn, "conv"):
        return [(matmul, "fp32_precision"), (cudnn.conv, "fp32_precision")]
    return [(matmul, "allow_tf32"), (cudnn, "allow_tf32")]


class Threads:
    """Runs steps with the number of threads that is fastest, for stacks whose numbers do not depend on it."""

    def __init__(self, technique: str) -> None:
        self.most = self.chosen = torch.get_num_threads()
        self._fixed = technique != "matmul" or self.most == 1  # no convolutions: their sums are split between threads
        self._usual, self._since, self._interval = float("inf"), 0, FIRST
        self._found: dict[int, float] = {}
        self._queue: list[int] = []
        self._try()

    def __call__(self, step: Callable[[Any], None], rows: Any, limit: int | None = None) -> None:
        """Run one step, with the number of threads on trial or the chosen one, or with one if the limit is lower than they."""
        if self._fixed:
            step(rows)
            return
        if limit is not None and limit < self.most:
            torch.set_num_threads(1)
            step(rows)
            return
        count = self._queue.pop() if (trial := bool(self._queue)) else self.chosen
        if count != torch.get_num_threads():
            torch.set_num_threads(count)
        start = time.perf_counter()
        step(rows)
        took = time.perf_counter() - start
        if trial:
            self._found[count] += took / PROBES
            if not self._queue:
                self._settle()
            return
        self._since += 1
        if self._since >= self._interval or (took > SLOW * self._usual and self._since >= PATIENCE):
            self._try()

    def _try(self) -> None:
        self._queue, self._found = [1] * PROBES + [self.most] * PROBES, {1: 0.0, self.most: 0.0}

    def _settle(self) -> None:
        self.chosen = self.most if self._found[self.most] < GAIN * self._found[1] else 1
        self._usual, self._since, self._interval = self._found[self.chosen], 0, min(2 * self._interval, LAST)


@contextmanager
def torch_threads(count: int | None = None) -> Iterator[None]:
    """Run a block with this many PyTorch threads; afterwards the number is what it was before the block."""
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


_trainings = [0]  # that run in this process now


@contextmanager
def share_of_cores() -> Iterator[Callable[[], int]]:
    """Within the block, give a function that says how many threads this training may use now.

    Those that PyTorch may use here, which joblib limits in its processes, or that `uqprism.support.parallel` allows, divided
    by the number of trainings in this process: a search may run several, on threads of its own.
    """
    own = min(threads(), torch.get_num_threads())
    with _lock:
        _trainings[0] += 1
    try:
        yield lambda: max(1, own // _trainings[0])
    finally:
        with _lock:
            _trainings[0] -= 1
