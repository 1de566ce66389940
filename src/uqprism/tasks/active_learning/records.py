"""The state of a loop after each round, and the folder in which finished rounds are kept."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, FileError, InvalidValueError
from uqprism.measures import MeasureTable
from uqprism.measures.table import restored_exactness
from uqprism.support.reading import loading, read_json
from uqprism.support.storage import make_folder, write_npz, write_text

FORMAT = "uqprism.LearningState"
COLUMN = "measure:"  # before the names of measures in a file


@dataclass(frozen=True, eq=False, repr=False)
class LearningState:
    """One round: a model trained on the labelled points, its predictions for the rest of the pool, and the batch picked.

    `str(state)` is one line.

    Attributes:
        round: from 0.
        labelled: indices that the model was trained on: the initial ones, then picks in the order picked.
        pool: indices of the rest, sorted.
        scores: of the acquisition for each point of the pool; high ones are picked first; zeros for `random`.
        measures: the acquisition's measure and further requested ones, over the pool.
        picked: the indices picked at the end of the round, in the order picked; the next round is trained on them too.
        metrics: `nll`, `rmse` and `crps` of the mixture on the test set; empty without one. A distribution without a density,
            such as samples, has no `nll`.
    """

    round: int
    labelled: np.ndarray
    pool: np.ndarray
    scores: np.ndarray
    measures: MeasureTable
    picked: np.ndarray
    metrics: Mapping[str, float]

    @property
    def all_labelled(self) -> np.ndarray:
        """The labelled indices with those picked: what the next round is trained on."""
        return np.concatenate([self.labelled, self.picked])

    def __str__(self) -> str:
        numbers = [f"{name} {value:.4g}" for name, value in self.metrics.items()]
        return ", ".join([f"round {self.round}: {len(self.labelled)} labelled", *numbers])

    def __repr__(self) -> str:
        return f"<LearningState: {self}>"

    def without_pool(self) -> LearningState:
        """The state without the numbers of each point of the pool: enough to resume a loop, in a thousandth of the space."""
        return replace(self, pool=self.pool[:0], scores=self.scores[:0], measures=MeasureTable({}, {}))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header, whole or not at all; read it back with `load`."""
        exactness = {name: list(how) for name, how in self.measures.exactness.items()}
        header = {"round": self.round, "metrics": dict(self.metrics), "exactness": exactness}
        arrays = {name: getattr(self, name) for name in ("labelled", "pool", "scores", "picked")}
        write_npz(path, FORMAT, header, arrays | {COLUMN + name: column for name, column in self.measures.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LearningState:
        """Read what `save` wrote."""
        with loading(path, FORMAT) as (header, arrays):
            columns = {name.removeprefix(COLUMN): arrays.pop(name) for name in [*arrays] if name.startswith(COLUMN)}
            measures = MeasureTable(columns, restored_exactness(header["exactness"], columns))
            return cls(round=int(header["round"]), metrics=dict(header["metrics"]), measures=measures, **arrays)


RECORD = "learner.json"


@dataclass(frozen=True)
class Records:
    """The rounds of one loop in its folder.

    Attributes:
        folder: the folder.
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
            there = read_json(self.folder / RECORD)
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
        self.check()  # another loop may have begun here in the meantime
        make_folder(self.folder)
        if not (self.folder / RECORD).exists():
            write_text(self.folder / RECORD, json.dumps(self.about, indent=2) + "\n")

    def path(self, round_number: int) -> Path:
        """The file of a round."""
        return self.folder / f"round_{round_number:04d}.npz"

    def save(self, state: LearningState) -> None:
        """Keep a finished round."""
        try:
            (state if self.whole else state.without_pool()).save(self.path(state.round))
        except FileError as error:
            raise FileError(f"{error}; earlier rounds are kept") from None

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


@dataclass(frozen=True)
class Stacks:
    """Which loops were trained in one stack in each round, in a file beside the folders of the loops.

    The last digits of a model depend on the stack that it was trained in. If a comparison was stopped while it saved a round,
    the loops that are left are therefore trained in the stack of that round, together with those that are finished.

    Attributes:
        folder: the folder of the comparison.
        loops: the names of its loops.
    """

    folder: Path
    loops: tuple[str, ...]

    def of(self, round_number: int, waiting: Collection[str]) -> list[list[str]]:
        """The stacks to train in a round, so that all of these loops are in one; those not trained before share a new one."""
        # A stack with loops that this comparison lacks cannot be trained again.
        known = [stack for stack in self._read(round_number) if set(stack) <= set(self.loops)]
        again = [stack for stack in known if set(stack) & set(waiting)]
        new = [name for name in self.loops if name in waiting and not any(name in stack for stack in known)]
        if new:
            text = json.dumps({"trained together": [*known, new]}, indent=2)
            try:
                write_text(self._path(round_number), text + "\n")  # before training: no round is saved that is not in it
            except OSError as error:
                raise FileError(f"cannot write into folder {self.folder}: {error.strerror}") from None
        return [*again, *([new] if new else [])]

    def _path(self, round_number: int) -> Path:
        return self.folder / f"round_{round_number:04d}.json"

    def _read(self, round_number: int) -> list[list[str]]:
        path = self._path(round_number)
        try:
            return [list(stack) for stack in json.loads(path.read_text())["trained together"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidValueError(
                f"{os.fspath(path)} is damaged; delete this file: what is left of the round is then trained in a stack of its own"
            ) from None


def _differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    return [name for name in {**first, **second} if first.get(name) != second.get(name)]


def _change(name: str, old: Any, new: Any) -> str:
    return f"{name} is {_brief(old)} there and {_brief(new)} here"


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
