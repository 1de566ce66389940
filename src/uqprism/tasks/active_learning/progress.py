"""Progress of a comparison on standard error: rounds of all loops, and the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.support.optional import require
from uqprism.support.progress import bar_is_shown, only_bar


@contextmanager
def bar(total: int, shown: bool | None) -> Iterator[Callable[[int], None]]:
    """A function that is told how many more rounds are done; None shows it on a terminal only."""
    if not bar_is_shown(shown):
        yield lambda _: None
        return
    require("rich", extra="cli")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("rounds"), MofNCompleteColumn(), BarColumn(20), TimeRemainingColumn()]
    with only_bar(), Progress(*columns, console=Console(file=sys.stderr, force_terminal=True), transient=True) as progress:
        task: Any = progress.add_task("", total=total)
        yield lambda done: progress.update(task, advance=done)
