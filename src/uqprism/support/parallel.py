"""How many threads a call may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


def threads() -> int:
    """The number of threads to use: that of `limited_to`, else UQPRISM_THREADS, else one for each core of this process."""
    limit, given = _threads.get(), os.environ.get("UQPRISM_THREADS", "")
    if limit is not None:
        return limit
    if given.isdigit():
        return max(1, int(given))
    # The cores this process may use, which in a container or a batch job are fewer than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def limited_to(count: int) -> Iterator[None]:
    """Within the block, calls from this thread use `count` threads; for callers that have threads of their own."""
    token = _threads.set(count)
    try:
        yield
    finally:
        _threads.reset(token)
