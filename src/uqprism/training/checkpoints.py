"""Checkpoints: the state of a run in one file of a folder, so that it goes on where it was cut off."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from uqprism.errors import ArgumentError
from uqprism.training import files
from uqprism.training.history import Curves, Event
from uqprism.training.state import COUNTERS, State

KIND = "training checkpoint"
NAME = "checkpoint.safetensors"


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often.

    Attributes:
        folder: None writes nothing.
        every: epochs between two of them.
        fingerprint: of the data and settings; a checkpoint of others is refused.
    """

    folder: str | os.PathLike[str] | None
    every: int
    fingerprint: str

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ArgumentError(f"checkpoint_every must be at least 1, got {self.every}")

    @property
    def path(self) -> Path | None:
        """The file."""
        return None if self.folder is None else Path(self.folder) / NAME

    def due(self, epoch: int) -> bool:
        """True after every so many epochs."""
        return self.folder is not None and epoch % self.every == 0

    def save(self, state: State) -> None:
        """Write the state, whole or not at all."""
        if self.path is None:
            return
        header = {name: getattr(state, name) for name in COUNTERS}
        header["curves"] = [dataclasses.asdict(curve) for curve in state.curves]
        header["events"] = [dataclasses.asdict(event) for event in state.events]
        files.write(self.path, KIND, {**header, "fingerprint": self.fingerprint}, state.tensors())

    def restore(self, state: State) -> bool:
        """Bring a fresh state to where the last checkpoint was; False if there is none."""
        if self.path is None or not self.path.exists():
            return False
        header, tensors = files.read(self.path, KIND)
        if header["fingerprint"] != self.fingerprint:
            raise ArgumentError(
                f"the checkpoint in {os.fspath(self.folder or '')} belongs to other data or settings; "
                "give the same ones, another folder, or delete it"
            )
        state.restore(tensors)
        for name in COUNTERS:
            setattr(state, name, header[name])
        state.curves = [Curves(**curve) for curve in header["curves"]]
        state.events = [Event(**event) for event in header["events"]]
        return True
