"""What happened in training, member by member."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class TrainingWarning(UserWarning):
    """Training did not go as planned: a member started again, or the run was cut short."""


@dataclass(frozen=True)
class Event:
    """One thing that did not go as planned.

    Attributes:
        kind: `restarted` or `interrupted`.
        member: which, or None for all.
        epoch: the member's own, or that of the run.
        message: in a sentence.
    """

    kind: str
    member: int | None
    epoch: int
    message: str

    def warn(self) -> Event:
        """Tell the user now; the history tells it later."""
        warnings.warn(self.message, TrainingWarning, stacklevel=2)
        return self


@dataclass
class Curves:
    """Losses per epoch of one member; a restart begins them anew."""

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class History:
    """The record of a training run.

    Attributes:
        seeds: of the members; each with its data makes the member.
        curves: each member's mean loss by epoch, in standardised units.
        best_epochs: the epoch, from 1, whose weights each member has.
        events: restarts and interruptions.
        technique: how the members ran together.
    """

    seeds: tuple[int, ...]
    curves: tuple[Curves, ...]
    best_epochs: tuple[int, ...]
    events: tuple[Event, ...] = ()
    technique: str = "loop"

    @property
    def training_loss(self) -> Any:
        """(epochs, members), NaN after a member's end."""
        return _padded([curve.training for curve in self.curves])

    @property
    def validation_loss(self) -> Any:
        """(epochs, members), NaN after a member's end; no epochs where there was no validation."""
        return _padded([curve.validation for curve in self.curves])

    def part(self, members: slice) -> History:
        """That of some of the members."""
        inside = range(*members.indices(len(self.seeds)))
        events = tuple(
            dataclasses.replace(event, member=inside.index(event.member) if event.member is not None else None)
            for event in self.events
            if event.member is None or event.member in inside
        )
        return History(self.seeds[members], self.curves[members], self.best_epochs[members], events, self.technique)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> History:
        """What `to_dict` gave."""
        return cls(
            seeds=tuple(data["seeds"]),
            curves=tuple(Curves(**curve) for curve in data["curves"]),
            best_epochs=tuple(data["best_epochs"]),
            events=tuple(Event(**event) for event in data["events"]),
            technique=data["technique"],
        )


def _padded(lists: list[list[float]]) -> Any:
    length = max(len(values) for values in lists)
    return np.array([values + [np.nan] * (length - len(values)) for values in lists]).T.reshape(length, len(lists))
