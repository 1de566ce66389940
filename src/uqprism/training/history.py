"""The record of a training run, and its progress bar."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.support.progress import progress_bar

if TYPE_CHECKING:
    from uqprism.training.checkpoints import State


class TrainingWarning(UserWarning):
    """A member was restarted, training was interrupted, or it ended while members were still improving."""


@dataclass(frozen=True)
class Event:
    """A restart or an interruption.

    Attributes:
        kind: `restarted`, `interrupted`, `capped` if members were still improving at the last epoch, or `unconverged` for
            draws of a posterior that should not be trusted.
        member: the number of the member, or None for all.
        epoch: of the member, or of the run for an interruption.
        message: one sentence for the user.
    """

    kind: str
    member: int | None
    epoch: int
    message: str

    def warn(self) -> Event:
        """Emit the message as a `TrainingWarning`."""
        warnings.warn(self.message, TrainingWarning, stacklevel=2)
        return self


@dataclass
class Curves:
    """One member's losses by epoch, since its last restart."""

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class History:
    """The record of a training run.

    Attributes:
        seeds: of the members.
        curves: each member's mean loss by epoch, in standardised units.
        best_epochs: the epoch, counted from 1, whose weights each member has.
        events: restarts and interruptions.
        technique: how the members ran together: matmul, vmap or loop.
    """

    seeds: tuple[int, ...]
    curves: tuple[Curves, ...]
    best_epochs: tuple[int, ...]
    events: tuple[Event, ...] = ()
    technique: str = "loop"

    @property
    def training_loss(self) -> Any:
        """Losses (epochs, members), NaN after a member stopped."""
        return _padded([curve.training for curve in self.curves])

    @property
    def validation_loss(self) -> Any:
        """Losses (epochs, members), NaN after a member stopped; no epochs without validation."""
        return _padded([curve.validation for curve in self.curves])

    def part(self, members: slice) -> History:
        """The history of some of the members."""
        inside = range(*members.indices(len(self.seeds)))
        events = tuple(
            dataclasses.replace(event, member=inside.index(event.member) if event.member is not None else None)
            for event in self.events
            if event.member is None or event.member in inside
        )
        return History(self.seeds[members], self.curves[members], self.best_epochs[members], events, self.technique)

    def with_event(self, event: Event) -> History:
        """The history with one more event."""
        return dataclasses.replace(self, events=(*self.events, event))

    def to_dict(self) -> dict[str, Any]:
        """The history as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> History:
        """The history that `to_dict` wrote."""
        return cls(
            seeds=tuple(data["seeds"]),
            curves=tuple(Curves(**curve) for curve in data["curves"]),
            best_epochs=tuple(data["best_epochs"]),
            events=tuple(Event(**event) for event in data["events"]),
            technique=data["technique"],
        )


def _padded(lists: list[list[float]]) -> Any:
    length = max(len(values) for values in lists)
    return np.array([values + [np.nan] * (length - len(values)) for values in lists]).T


@contextmanager
def progress_of(max_epochs: int, shown: bool | None) -> Iterator[Callable[[State], None]]:
    """Show a progress bar and give a function to call with the state after every epoch."""
    with progress_bar("epoch", max_epochs, shown=shown, extra="deep") as progress:
        yield lambda state: progress.update(completed=min(max(state.ages), max_epochs), text=_latest_losses(state))


def _latest_losses(state: State) -> str:
    """The mean of the members' latest losses, of members that have stopped the best; short enough for a line of 80 columns."""
    latest = []
    for member, curve in enumerate(state.curves):
        curve_now = curve.validation or curve.training
        stopped = not state.learning[member]
        latest.append(state.best_losses[member] if stopped and curve.validation else curve_now[-1] if curve_now else float("nan"))
    learning = f", {sum(state.learning)} of {len(latest)} learning" if len(latest) > 1 else ""
    return f"mean loss {sum(latest) / len(latest):.3g}{learning}"
