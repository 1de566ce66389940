"""Tensor files and checkpoints: safetensors files with a JSON header, and the state of a training run in such files.

Files are written whole or not at all, have a checksum, and contain no pickles.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uqprism.errors import BadFileError, FileError, InvalidValueError
from uqprism.support.optional import require
from uqprism.support.reading import parse_json, reading
from uqprism.support.storage import atomic, check_ending, make_folder, writing
from uqprism.training.history import Curves, Event
from uqprism.training.stack import Stack
from uqprism.training.step import Moments

torch = require("torch", extra="deep")

Tensor = Any
Tensors = dict[str, Tensor]
VERSION = 1  # of the file format; other versions are refused
KEY = "uqprism"
KIND = "training checkpoint"
COUNTERS = ("seeds", "best_losses", "best_epochs", "ages", "restarts", "waiting", "learning", "running", "epoch")


def write_tensors(path: str | os.PathLike[str], kind: str, header: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Write tensors and a header; a file at `path` is replaced once the new one is complete."""
    safetensors = require("safetensors.torch", extra="deep")
    ready = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}  # safetensors refuses views with gaps
    # `NaN` and `Infinity` are not JSON, and strict readers refuse them.
    text = json.dumps({"format": kind, "version": VERSION, **header}, default=_plain, allow_nan=False)
    metadata = {KEY: text, "checksum": _checksum(text, ready)}  # safetensors itself has no checksum
    check_ending(path, [".safetensors"])
    with writing(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(safetensors.save(ready, metadata))


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays as Python numbers and lists, for JSON."""
    return value.tolist()


def read_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the tensors of a file of this kind that `write_tensors` wrote."""
    safetensors = require("safetensors.torch", extra="deep")
    if not Path(path).exists():
        raise FileError(f"there is no file {os.fspath(path)}")
    with reading(path, "is not a readable safetensors file, or is incomplete"):
        data = Path(path).read_bytes()  # in one call: the file may be replaced while it is read
        tensors = safetensors.load(data)
        length = int.from_bytes(data[:8], "little")  # of the header that follows, by the format's definition
        metadata = parse_json(data[8 : 8 + length], path).get("__metadata__", {})
        header = _header(metadata, path, kind)
        if metadata.get("checksum") != _checksum(metadata[KEY], tensors):
            raise BadFileError(path, "was changed after it was written: its checksum does not match")
    return header, tensors


def _header(metadata: dict[str, str], path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    if KEY not in metadata:
        raise BadFileError(path, "was not written by uqprism: it lacks its header")
    header = parse_json(metadata[KEY], path)
    if header.get("format") != kind:
        raise BadFileError(path, f"holds a {header.get('format')}, not a {kind}")
    if header.get("version") != VERSION:
        raise BadFileError(
            path,
            f"has format version {header.get('version')}, this version of uqprism reads {VERSION}; "
            "load it with the uqprism that wrote it, or train again",
        )
    return header


def _checksum(text: str, tensors: dict[str, Any]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(memoryview(value.reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def fingerprint(*parts: Any) -> str:
    """A short name for data and settings, which tells the checkpoints of different runs apart."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, torch.Tensor):
            digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
            digest.update(memoryview(part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
        else:
            digest.update(json.dumps(part, sort_keys=True, default=str).encode())
    return digest.hexdigest()[:32]  # 128 bits: no two runs share a name by chance


@dataclass
class State:
    """Everything that changes during training. Matrices have one row per member, lists one entry per member.

    Attributes:
        rows, buffers, moments: the parameters, the buffers and Adam's moments as they are now.
        best_rows, best_buffers: parameters and buffers in each member's best epoch.
        seeds: the members' seeds.
        best_losses: the validation loss of the best epoch.
        best_epochs: the number of the best epoch, from 1; 0 before the first.
        ages: epochs that the member has finished since it was started or restarted.
        restarts: how often the member was restarted.
        waiting: epochs since the best one.
        learning: whether the member is still trained.
        running: the members in the current stack; some of them may have stopped learning.
        curves: losses by epoch.
        events: restarts and interruptions.
        epoch: epochs that the run has finished.
    """

    rows: Tensor
    buffers: Tensors
    moments: Moments
    best_rows: Tensor
    best_buffers: Tensors
    seeds: list[int]
    best_losses: list[float] = field(default_factory=list)
    best_epochs: list[int] = field(default_factory=list)
    ages: list[int] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    learning: list[bool] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    curves: list[Curves] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    epoch: int = 0

    @classmethod
    def of(cls, stack: Stack, seeds: list[int]) -> State:
        """The state before the first epoch."""
        count = len(stack)
        return cls(
            rows=stack.rows.clone(),
            buffers=_copied(stack.buffers),
            moments=Moments.zeros(stack.rows),
            best_rows=stack.rows.clone(),
            best_buffers=_copied(stack.buffers),
            seeds=list(seeds),
            best_losses=[float("inf")] * count,
            best_epochs=[0] * count,
            ages=[0] * count,
            restarts=[0] * count,
            waiting=[0] * count,
            learning=[True] * count,
            running=list(range(count)),
            curves=[Curves() for _ in range(count)],
        )

    def keep(self, stack: Stack, moments: Moments) -> None:
        """Copy the numbers of the current stack."""
        at = torch.tensor(self.running, device=self.rows.device)
        self.rows[at] = stack.rows
        self.moments.first[at], self.moments.second[at] = moments.first, moments.second
        self.moments.steps[at] = moments.steps
        for name, value in stack.buffers.items():
            self.buffers[name][at] = value

    def keep_best(self, stack: Stack, members: list[int]) -> None:
        """Copy the numbers that these members have in the current stack, as their best."""
        if not members:
            return
        at = torch.tensor(members, device=self.rows.device)
        places = {member: place for place, member in enumerate(self.running)}
        inside = torch.tensor([places[member] for member in members], device=self.rows.device)
        self.best_rows[at] = stack.rows[inside]
        for name, value in stack.buffers.items():
            self.best_buffers[name][at] = value[inside]

    def restart(self, member: int, seed: int, row: Tensor, buffers: Tensors) -> None:
        """Restart a member with fresh weights; call `keep` before.

        Its best weights stay until it has finished an epoch again, in case it never does.
        """
        self.rows[member] = row
        for name, value in buffers.items():
            self.buffers[name][member] = value
        for moment in (self.moments.first, self.moments.second, self.moments.steps):
            moment[member] = 0
        self.seeds[member] = seed
        self.restarts[member] += 1
        self.ages[member] = self.waiting[member] = 0
        self.best_losses[member] = float("inf")
        self.learning[member] = True
        self.curves[member] = Curves()

    def tensors(self) -> Tensors:
        """The arrays by name."""
        found = {"rows": self.rows, "best_rows": self.best_rows, "first": self.moments.first}
        found |= {"second": self.moments.second, "steps": self.moments.steps}
        for kind, buffers in (("buffer", self.buffers), ("best_buffer", self.best_buffers)):
            found |= {f"{kind}.{name}": value for name, value in buffers.items()}
        return found

    def restore(self, tensors: Tensors) -> None:
        """Overwrite the arrays with those of a file."""
        for name, value in self.tensors().items():
            value.copy_(tensors[name])  # in place, so that a checkpoint may come from another device


def _copied(buffers: Tensors) -> Tensors:
    return {name: value.clone() for name, value in buffers.items()}


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoint file of one run, in a folder that runs with other data or options may share.

    Attributes:
        folder: None writes nothing.
        every: epochs between two checkpoints.
        fingerprint: the name of the file, which follows from data and options.
    """

    folder: str | os.PathLike[str] | None
    every: int
    fingerprint: str

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        if Path(self.folder).is_file():
            raise FileError(f"checkpoint must be a folder, {os.fspath(self.folder)} is a file")
        make_folder(self.folder)  # before training, because an error at the first checkpoint would lose its epochs

    @property
    def path(self) -> Path | None:
        """The file of this run."""
        return None if self.folder is None else Path(self.folder) / f"{self.fingerprint}.safetensors"

    def due(self, epoch: int) -> bool:
        """Whether a checkpoint follows this epoch."""
        return self.folder is not None and epoch % self.every == 0

    def save(self, state: State) -> None:
        """Write the state."""
        if self.path is None:
            return
        header = {name: getattr(state, name) for name in COUNTERS}
        header["best_losses"] = [loss if math.isfinite(loss) else None for loss in state.best_losses]  # JSON has no infinity
        header["curves"] = [dataclasses.asdict(curve) for curve in state.curves]
        header["events"] = [dataclasses.asdict(event) for event in state.events]
        write_tensors(self.path, KIND, header, state.tensors())

    def restore(self, state: State) -> bool:
        """Overwrite a fresh state with the last checkpoint; False if there is none."""
        if self.path is None or not self.path.exists():
            return False
        try:
            header, tensors = read_tensors(self.path, KIND)
        except InvalidValueError as error:
            raise InvalidValueError(f"{error}; delete it to train from the start") from None
        with reading(self.path, "does not hold the state of a run; delete it to train from the start"):
            losses = [math.inf if loss is None else float(loss) for loss in header["best_losses"]]
            counters = {name: header[name] for name in COUNTERS} | {"best_losses": losses}
            curves = [Curves(**curve) for curve in header["curves"]]
            events = [Event(**event) for event in header["events"]]
            state.restore(tensors)
        for name, value in counters.items():
            setattr(state, name, value)
        state.curves, state.events = curves, events
        return True
