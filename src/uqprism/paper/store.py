"""The store of a run: one file per artefact, named by a digest of everything that decides its contents.

    dataset -> members -> predictions -> measures -> result        bundle: anything else, as plain data and arrays

A file gets its name only when it is complete, so a run that was killed at any moment can continue from the store.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from uqprism.errors import ArgumentError, FileError
from uqprism.registry import unknown
from uqprism.support.reading import loading, read_json
from uqprism.support.storage import TEMPORARY, locked, write_npz, write_text
from uqprism.support.versions import __version__

FORMAT = "uqprism.paper.Bundle"  # in every stored file, and compared when it is read
UNFINISHED = "unfinished"


class ArtefactKind(NamedTuple):
    """The class of a kind of artefact (it has `save` and `load`), and the ending of its files."""

    module: str
    name: str
    ending: str = "npz"


# Classes by name, so that a store without networks does not import PyTorch.
KINDS = {
    "dataset": ArtefactKind("uqprism.paper.data", "Dataset"),
    "members": ArtefactKind("uqprism.training", "DeepEnsemble", "safetensors"),
    "predictions": ArtefactKind("uqprism.ensemble", "EnsemblePrediction"),
    "measures": ArtefactKind("uqprism.measures", "MeasureTable"),
    "result": ArtefactKind("uqprism.tasks.result", "TaskResult"),
    "bundle": ArtefactKind("uqprism.paper.store", "Bundle"),
}


@dataclass(frozen=True)
class Bundle:
    """Plain data (what JSON can hold) and arrays, each by name: the artefact of jobs that no other type fits."""

    data: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header, whole or not at all."""
        write_npz(path, FORMAT, {"data": dict(self.data)}, dict(self.arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bundle:
        """Read what `save` wrote."""
        with loading(path, FORMAT) as (header, arrays):
            return cls(dict(header["data"]), arrays)


@dataclass(frozen=True)
class Artefact:
    """The identity of something that is made once and stored.

    Attributes:
        kind: one of `KINDS`.
        key: everything that decides the contents, except the sources: a frozen dataclass of plain data, or plain data.
        sources: the artefacts it is made from.
    """

    kind: str
    key: Any
    sources: tuple[Artefact, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of artefact", self.kind, KINDS)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the kind, the key, the sources and the version of this package."""
        # By their digests, so that a change of a source reaches everything that follows from it.
        sources = [source.digest for source in self.sources]
        # Another version may compute other numbers; the class tells settings apart that are alike as plain data.
        parts = [__version__, self.kind, type(self.key).__module__, type(self.key).__qualname__, as_data(self.key), sources]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Store:
    """The artefacts of a run in a folder, as `KIND/DIGEST.npz`, each with a record of how it was made in a .json file.

    Attributes:
        folder: the folder of this run.
        data: the root folder of the data sets; None for the default of `uqprism.paper.data`.
        others: stores of other runs; artefacts found there are read and not made again.
    """

    folder: Path
    data: Path | None = None
    others: tuple[Path, ...] = ()

    def __contains__(self, artefact: Artefact) -> bool:
        return self._found(artefact) is not None

    def get(self, artefact: Artefact, make: Callable[[], Any] | None = None) -> Any:
        """The value of an artefact: read from the store, or made and stored first.

        A value that was just made is read back too, so that a rerun computes with exactly the same numbers.
        """
        if artefact not in self:
            if make is None:
                raise FileError(f"there is no artefact {artefact.kind!r} of {as_data(artefact.key)} in {self.folder}")
            with self._making(artefact):
                if artefact not in self:
                    self.make(artefact, make)
        path = self._found(artefact)
        kind = KINDS[artefact.kind]
        load = getattr(importlib.import_module(kind.module), kind.name).load
        # Networks go to the GPU if there is one, wherever they were trained.
        return load(path, device=_device()) if artefact.kind == "members" else load(path)

    def unfinished(self, artefact: Artefact) -> Path:
        """A folder for checkpoints while the artefact is made; it is removed when the artefact is stored."""
        return self.folder / UNFINISHED / artefact.digest

    @contextmanager
    def _making(self, artefact: Artefact) -> Iterator[None]:
        """Wait for another process that makes this artefact, such as a worker that a killed run has left."""
        folder = self.folder / UNFINISHED
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"{artefact.digest}.lock"):
            yield

    def record(self, artefact: Artefact) -> dict[str, Any]:
        """How the artefact was made: key, sources, seconds, date, device and versions."""
        path = self._found(artefact)
        if path is None:
            raise FileError(f"there is no artefact {artefact.kind!r} of {as_data(artefact.key)} in {self.folder}")
        return read_json(path.with_suffix(".json"))

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of all artefacts in this folder."""
        for path in sorted(path for kind in KINDS for path in self.folder.glob(f"{kind}/*.json")):
            yield read_json(path)

    def devices(self) -> dict[str, float]:
        """Seconds of work per accelerator (or `none`), of the kind that took longest: making one artefact may include others."""
        found: dict[str, dict[str, float]] = {}
        for record in self.records():
            kinds = found.setdefault(record["accelerator"], {})
            kinds[record["kind"]] = kinds.get(record["kind"], 0.0) + record["seconds"]
        return {device: round(max(kinds.values()), 1) for device, kinds in found.items()}

    def sweep(self) -> None:
        """Remove unfinished files of killed processes; no other process may be writing."""
        shutil.rmtree(self.folder / UNFINISHED, ignore_errors=True)
        for path in self.folder.glob(f"*/{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def having(self, *artefacts: Artefact) -> Store | None:
        """A store of only the first folder that has all of these artefacts, so that they come from one run; None if none has."""
        alone = (Store(folder, self.data) for folder in (self.folder, *self.others))
        return next((store for store in alone if all(each in store for each in artefacts)), None)

    def discard(self, artefact: Artefact) -> None:
        """Remove the artefact from this run's folder, if it is there."""
        path = self.folder / _name(artefact)
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink(missing_ok=True)  # after the value: every value has a record

    def _found(self, artefact: Artefact) -> Path | None:
        places = (folder / _name(artefact) for folder in (self.folder, *self.others))
        return next((path for path in places if path.exists()), None)

    def make(self, artefact: Artefact, make: Callable[[], Any]) -> None:
        """Make and store the artefact, replacing one that is there."""
        started = time.perf_counter()
        value = make()
        record = {
            "kind": artefact.kind,
            "key": as_data(artefact.key),
            "sources": [source.digest for source in artefact.sources],
            "version": __version__,
            # With those of artefacts that were made on the way; `devices` and plans allow for that.
            "seconds": round(time.perf_counter() - started, 3),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "accelerator": accelerator(),
            "versions": loaded_versions(),
        }
        path = self.folder / _name(artefact)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path.with_suffix(".json"), json.dumps(record, indent=2) + "\n")  # first, so that every value has a record
        value.save(path)
        shutil.rmtree(self.unfinished(artefact), ignore_errors=True)  # not earlier: until now checkpoints were all there was


def _name(artefact: Artefact) -> Path:
    return Path(artefact.kind, f"{artefact.digest}.{KINDS[artefact.kind].ending}")


def as_data(value: Any) -> Any:
    """Settings as plain data: dataclasses become mappings, tuples become lists."""
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
    try:
        # Through JSON, so that settings equal those read from a result.json; NaN would not even equal itself.
        return json.loads(json.dumps(plain, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"settings and keys must be what JSON can hold, got {value!r}: {error}") from None


def checksum(*arrays: Any) -> str:
    """SHA-256 of the shapes, types and contents of arrays."""
    found = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        found.update(f"{array.dtype.str}{array.shape}".encode())  # bytes alone do not tell (2, 3) from (6,)
        found.update(array.data)
    return found.hexdigest()


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def hardware() -> dict[str, Any]:
    """The processor, the number of cores, and the GPU if PyTorch was loaded and finds one."""
    return {"processor": _processor(), "cores": os.cpu_count(), "accelerator": accelerator()}


def loaded_versions() -> dict[str, str]:
    """Versions that numbers computed now depend on; of PyTorch and its CUDA only if PyTorch was loaded."""
    found = {"uqprism": __version__, "python": platform.python_version(), "numpy": np.__version__}
    # Looked up, not imported: importing PyTorch takes seconds.
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = str(torch.__version__)
        if torch.version.cuda is not None:
            found["cuda"] = str(torch.version.cuda)
    return found


def distinct_versions(records: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The different sets of versions in the records of artefacts; records without versions are ignored."""
    found: list[dict[str, str]] = []
    for record in records:
        if "versions" in record and record["versions"] not in found:
            found.append(record["versions"])
    return sorted(found, key=lambda each: sorted(each.items()))


def accelerator() -> str:
    """The name of the GPU if PyTorch was loaded and finds one, else `none`."""
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else "none"


def _processor() -> str:
    try:
        # On Linux, `platform.processor()` names no model.
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
