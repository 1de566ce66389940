"""Whether a progress bar is to be shown: on a terminal, and one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_taken: ContextVar[bool] = ContextVar("_taken", default=False)


def bar_is_shown(asked: bool | None) -> bool:
    """What was asked for; by default on a terminal, unless another bar is there already."""
    return (sys.stderr.isatty() and not _taken.get()) if asked is None else asked


@contextmanager
def only_bar() -> Iterator[None]:
    """A block whose bar has the terminal for itself: those of steps inside it, such as training, stay away."""
    token = _taken.set(True)
    try:
        yield
    finally:
        _taken.reset(token)
