"""Checkpoints: the state of a run in one file of a folder, so that it goes on where it was cut off."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass
from pathlib import Path

from uqprism.errors import FileError, InvalidValueError
from uqprism.training import files
from uqprism.training.history import Curves, Event
from uqprism.training.state import COUNTERS, State

KIND = "training checkpoint"


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often.

    Attributes:
        folder: None writes nothing. Runs with other data or settings have files of their own in it.
        every: epochs between two of them.
        fingerprint: of the data and settings, which names the file.
    """

    folder: str | os.PathLike[str] | None
    every: int
    fingerprint: str

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"checkpoint must be a folder, {os.fspath(self.folder)} cannot be one: {error.strerror}") from None
        if not os.access(self.folder, os.W_OK):
            raise FileError(f"checkpoint must be a folder to write into, {os.fspath(self.folder)} is read-only")

    @property
    def path(self) -> Path | None:
        """The file."""
        return None if self.folder is None else Path(self.folder) / f"{self.fingerprint}.safetensors"

    def due(self, epoch: int) -> bool:
        """True after every so many epochs."""
        return self.folder is not None and epoch % self.every == 0

    def save(self, state: State) -> None:
        """Write the state, whole or not at all."""
        if self.path is None:
            return
        header = {name: getattr(state, name) for name in COUNTERS}
        header["best_losses"] = [loss if math.isfinite(loss) else None for loss in state.best_losses]  # JSON has no infinity
        header["curves"] = [dataclasses.asdict(curve) for curve in state.curves]
        header["events"] = [dataclasses.asdict(event) for event in state.events]
        files.write(self.path, KIND, header, state.tensors())

    def restore(self, state: State) -> bool:
        """Bring a fresh state to where the last checkpoint was; False if there is none."""
        if self.path is None or not self.path.exists():
            return False
        try:
            header, tensors = files.read(self.path, KIND)
        except InvalidValueError as error:
            raise InvalidValueError(f"{error}; delete it to train from the start") from None
        state.restore(tensors)
        header["best_losses"] = [math.inf if loss is None else loss for loss in header["best_losses"]]
        for name in COUNTERS:
            setattr(state, name, header[name])
        state.curves = [Curves(**curve) for curve in header["curves"]]
        state.events = [Event(**event) for event in header["events"]]
        return True
