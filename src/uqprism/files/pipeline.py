"""Read the next batch, compute some and write the last one at the same time, with few of them in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def overlapped(
    items: Iterator[Item], compute: Callable[[Item], Result], write: Callable[[Result], None], *, threads: int
) -> None:
    """Compute every item and write the results in their order.

    At most one item is being read, `threads` computed and one written, and one more waits at each door. Whatever a step raises
    is raised here, once the steps under way are over.
    """
    reader, writer, workers = ThreadPoolExecutor(1), ThreadPoolExecutor(1), ThreadPoolExecutor(threads)
    computing: deque[Future[Result]] = deque()
    writing: Future[None] | None = None

    def pass_on() -> None:
        nonlocal writing
        result = computing.popleft().result()
        if writing is not None:
            writing.result()
        writing = writer.submit(write, result)

    try:
        reading = reader.submit(next, items, None)
        while (item := reading.result()) is not None:
            reading = reader.submit(next, items, None)
            computing.append(workers.submit(compute, item))
            if len(computing) > threads:
                pass_on()
        while computing:
            pass_on()
        if writing is not None:
            writing.result()
    finally:
        for pool in (reader, workers, writer):
            pool.shutdown(wait=True, cancel_futures=True)
