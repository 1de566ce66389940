"""Finished rounds in a folder: one file each, and what they were made with, so that a loop goes on and never mixes two."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, FileError, InvalidValueError
from uqprism.support.storage import write_text
from uqprism.tasks.active_learning.state import LearningState

RECORD = "learner.json"


@dataclass(frozen=True)
class Records:
    """The rounds of one loop in its folder.

    Attributes:
        folder: where.
        about: settings and data of this loop; a folder that was written with others is refused.
        whole: whether rounds are kept with the scores of the pool.
    """

    folder: Path
    about: dict[str, Any]
    whole: bool = True

    def check(self) -> None:
        """Refuse a folder that holds rounds of another loop; changes nothing there."""
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(f"folder must be a folder, {self.folder} is a file; name another")
        if not (self.folder / RECORD).exists():
            if any(self.folder.glob("round_*.npz")):
                raise ArgumentError(f"{self.folder} holds rounds but no {RECORD} that says whose they are; name another folder")
            return
        try:
            there = json.loads((self.folder / RECORD).read_text())
            differ = _differing(there, self.about)
        except (ValueError, TypeError, AttributeError):
            raise InvalidValueError(f"{self.folder / RECORD} was not written by ActiveLearner, or was changed since") from None
        if differ:
            raise ArgumentError(
                f"{self.folder} holds rounds of another loop: {'; '.join(self._difference(name, there) for name in differ)}. "
                "Name another folder, or delete this one to start anew"
            )

    def _difference(self, name: str, there: dict[str, Any]) -> str:
        if name in {"pool_inputs", "pool_targets", "test inputs", "test targets"}:
            return f"{name} are others" if there.get(name) and self.about.get(name) else f"{name} are given only once"
        old, new = there.get(name), self.about.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            return f"{name}: " + ", ".join(_change(each, old.get(each), new.get(each)) for each in _differing(old, new))
        return _change(name, old, new)

    def open(self) -> None:
        """Check again, make the folder, and say whose it is."""
        self.check()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / RECORD).exists():
                write_text(self.folder / RECORD, json.dumps(self.about, indent=2) + "\n")
        except OSError as error:
            raise FileError(f"cannot write into folder {self.folder}: {error.strerror}") from None

    def path(self, round_number: int) -> Path:
        """The file of a round."""
        return self.folder / f"round_{round_number:04d}.npz"

    def save(self, state: LearningState) -> None:
        """Keep a finished round."""
        try:
            (state if self.whole else state.without_pool()).save(self.path(state.round))
        except OSError as error:
            raise FileError(
                f"cannot write {self.path(state.round)}: {error.strerror or error}; earlier rounds are kept"
            ) from None

    def load(self, round_number: int, labelled: np.ndarray) -> LearningState | None:
        """A finished round, which must go on from these labelled points; None if it is not there."""
        path = self.path(round_number)
        if not path.exists():
            return None
        try:
            state = LearningState.load(path)
        except (InvalidValueError, KeyError, TypeError, OSError) as error:
            raise InvalidValueError(
                f"{os.fspath(path)} is damaged ({error}); delete this file, and the round is computed again"
            ) from None
        if state.round != round_number or not np.array_equal(state.labelled, labelled):
            raise InvalidValueError(
                f"{os.fspath(path)} does not follow from the rounds before it; "
                "delete it and all later rounds to compute them again"
            )
        return state


def _differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    return [name for name in {**first, **second} if first.get(name) != second.get(name)]


def _change(name: str, old: Any, new: Any) -> str:
    return f"{name} is {_brief(old)} there and {_brief(new)} here"


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
