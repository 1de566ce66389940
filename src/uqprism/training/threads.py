"""How many threads a small step is worth: all of them on a quiet machine, one on a busy one.

Small matrices keep two threads busy for some microseconds at a time, and then each waits for the other. Where another process
takes a core, that wait is a time slice long: a step of 3 ms was seen to take 200 ms with two threads and 4 ms with one. So both
are tried now and then, for MLPs: there what is computed does not change, as no sum is split between threads (a test trains with
both). The gradients of convolutions are sums that are split, so that their last digits depend on the number of threads: other
networks keep the process's, or two runs would differ by how busy the machine was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.support.optional import require

torch = require("torch", extra="deep")

PROBES = 5  # steps with each number of threads
GAIN = 0.8  # of one thread's time, which several must not exceed: what they win is little, what they may lose is much
FIRST, LAST = 100, 6400  # steps until the next trial: twice as many each time
SLOW, PATIENCE = 5.0, 10  # a step so many times slower than usual is worth a trial, but not at once after the last


class Threads:
    """Runs steps and, for stacks whose numbers do not depend on it, watches the clock."""

    def __init__(self, technique: str) -> None:
        self.most = self.chosen = torch.get_num_threads()
        self._fixed = technique != "matmul" or self.most == 1
        self._usual, self._since, self._interval = float("inf"), 0, FIRST
        self._found: dict[int, float] = {}
        self._queue: list[int] = []
        self._try()

    def __call__(self, step: Callable[[Any], None], rows: Any) -> None:
        """One step, with the threads that are on trial or have won, or those that there are."""
        if self._fixed:
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
def kept(count: int | None = None) -> Iterator[None]:
    """The number of threads of the process, within as given, is afterwards what it was."""
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)
