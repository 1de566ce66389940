"""Progress of training on standard error: epochs, time left at most, the loss of each member."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from uqprism.support.progress import progress_bar
from uqprism.training.state import State

SHOWN = 12  # members whose losses fit on a line; of more, the range is shown


@contextmanager
def bar(max_epochs: int, shown: bool | None) -> Iterator[Callable[[State], None]]:
    """A function to call with the state after every epoch; None shows the bar on a terminal only."""
    with progress_bar("epoch", max_epochs, shown=shown, extra="deep") as progress:
        yield lambda state: progress.update(completed=min(max(state.ages), max_epochs), text=losses(state))


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
