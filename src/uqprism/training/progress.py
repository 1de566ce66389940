"""Progress of training on standard error: epochs, time left at most, the loss of each member."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.support.optional import require
from uqprism.support.progress import bar_is_shown
from uqprism.training.state import State

SHOWN = 12  # members whose losses fit on a line; of more, the range is shown


@contextmanager
def bar(max_epochs: int, shown: bool | None) -> Iterator[Callable[[State], None]]:
    """A function that is told of the state after every epoch; None shows it on a terminal only."""
    if not bar_is_shown(shown):
        yield lambda _: None
        return
    require("rich", extra="deep")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("epoch"), MofNCompleteColumn(), BarColumn(20), TimeRemainingColumn(), TextColumn("{task.description}")]
    with Progress(*columns, console=Console(file=sys.stderr, force_terminal=True), transient=True) as progress:
        task: Any = progress.add_task("", total=max_epochs)

        def tell(state: State) -> None:
            progress.update(task, completed=min(max(state.ages), max_epochs), description=losses(state))

        yield tell


def losses(state: State) -> str:
    """The members' latest losses; those of members that have stopped, their best."""
    latest = []
    for member, curve in enumerate(state.curves):
        curve_now = curve.validation or curve.training
        stopped = not state.learning[member]
        latest.append(state.best_losses[member] if stopped and curve.validation else curve_now[-1] if curve_now else float("nan"))
    if len(latest) > SHOWN:
        return f"{sum(state.learning)} of {len(latest)} learning, losses {min(latest):.3f} to {max(latest):.3f}"
    return "loss " + " ".join(f"{loss:.3f}{'' if state.learning[i] else '.'}" for i, loss in enumerate(latest))
