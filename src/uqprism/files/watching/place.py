"""How far the files of a watch were read: kept beside its state, so that the next run goes on from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError
from uqprism.files.parquet import ParquetInput, row_group_sizes
from uqprism.files.paths import Span, ending
from uqprism.files.read import open_input
from uqprism.files.state import state_of
from uqprism.tasks.watch import Watch

STATE = "state.npz"
LONG = {"reference", "recalibration"}  # settings that a message does not repeat


class Progress(NamedTuple):
    """How many rows of a file were read, and the state of the file if these were all."""

    rows: int
    seen: str


@dataclass
class Place:
    """How far the files were read.

    Attributes:
        settings: what the watch was begun with.
        files: how far each file was read.
        outcomes: the files of late outcomes that were read, each with its state.
        log: the log of windows, and how many bytes of it belong to the state.
    """

    settings: Mapping[str, Any]
    files: dict[str, Progress] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    log: tuple[str, int] | None = None

    def record(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)


def resumed(folder: Path, settings: Mapping[str, Any]) -> tuple[Watch, Place] | None:
    """The watch of the state in this folder, if there is one; refuses other settings than it was begun with."""
    if not (folder / STATE).exists():
        return None
    watch, beside = Watch.resume(folder / STATE)
    now = json.loads(json.dumps(dict(settings)))
    for name, before in beside["settings"].items():
        if now[name] != before:
            change = "" if name in LONG else f": {before!r}, and not {now[name]!r}"
            raise ArgumentError(f"state {folder}: was begun with another {name}{change}; name another folder to begin anew")
    files = {path: Progress(*found) for path, found in beside["files"].items()}
    return watch, Place(now, files, dict(beside["outcomes"]), beside["log"] and tuple(beside["log"]))


def fingerprint(reference: Sequence[Span]) -> str:
    """What tells the files of a reference from others."""
    digest = hashlib.blake2b(digest_size=16)
    for span in reference:
        about = state_of(span.path)
        digest.update(f"{about.size} {about.digest}\n".encode())
    return digest.hexdigest()


def seen_state(path: Path) -> str:
    """What tells whether a file has changed."""
    about = state_of(path)
    return f"{about.size} {about.modified} {about.digest}"


def after(span: Span, columns: Columns, rows: int) -> Span:
    """The span from the row group on that holds the row after so many; other files than Parquet are read from the beginning."""
    if not rows or ending(span.path) not in (".parquet", ".pq"):
        return span
    with closing(open_input(span, columns)) as file:
        sizes = row_group_sizes(file.file) if isinstance(file, ParquetInput) else []
    first, start = 0, 0
    while start < len(sizes) and first + sizes[start] <= rows:
        first, start = first + sizes[start], start + 1
    return replace(span, row_groups=tuple(range(start, len(sizes))), first_row=first)
