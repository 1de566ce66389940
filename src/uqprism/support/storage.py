"""Files that are complete or absent, and are written without pickle; `reading` reads them."""

from __future__ import annotations

import glob
import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np

from uqprism.errors import FileError

TEMPORARY = "_uqprism-tmp-"
ABANDONED = 3600.0  # seconds without a change after which a temporary file belongs to no run


@contextmanager
def atomic_path(path: str | os.PathLike[str], run: str | None = None) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to `path` when the block ends and removed if the block raises.

    Args:
        path: the file to write; an existing one stays until it is replaced.
        run: 12 characters that name the run, for `sweep`; random by default.
    """
    target = Path(path)
    # Each attempt has a name of its own, because a cluster may try one part twice at the same time. The suffix hides it from
    # readers that find the files of a folder by their suffixes.
    temporary = target.with_name(f"{TEMPORARY}{run or uuid.uuid4().hex[:12]}-{uuid.uuid4().hex[:8]}-{target.name}.tmp")
    try:
        yield temporary
        _sync(temporary)  # before the rename, or a lost machine could leave the name without the contents
        os.replace(temporary, target)
        _sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write, which becomes `path` when the block ends; an existing `path` stays until then."""
    with atomic_path(path) as temporary:
        try:
            file = temporary.open("xb")
        except OSError as error:
            raise FileError(f"cannot write {os.fspath(path)}: {error.strerror}") from None
        with file:
            yield file


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk, where the system supports that."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sweep(output: Path, run: str | None = None, *, idle: float = ABANDONED) -> None:
    """Remove the temporary files of this run, or those that killed processes left.

    Args:
        output: a folder, which is searched to any depth, or the file that was to be written.
        run: the run whose files are removed; by default the abandoned files of all runs.
        idle: for how many seconds nothing may have changed an abandoned file.
    """
    pattern = f"{TEMPORARY}{run or '?' * 12}-{'?' * 8}-"
    leftovers = output.rglob(f"{pattern}*") if output.is_dir() else output.parent.glob(f"{pattern}{glob.escape(output.name)}.tmp")
    for leftover in leftovers:
        with suppress(FileNotFoundError):
            if run is not None or idle <= 0 or time.time() - leftover.stat().st_mtime > idle:
                leftover.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write the text as UTF-8, atomically."""
    with atomic(path) as file:
        file.write(text.encode())


def write_npz(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays and a JSON header to one .npz file, atomically."""
    entries = {**arrays, "header": np.frombuffer(json.dumps({"format": kind, "version": 1, **header}).encode(), dtype=np.uint8)}
    with atomic(path) as file:
        save_arrays(file, entries)


def save_arrays(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """Write arrays as .npz. Unlike with `numpy.savez`, any name will do: also `file`."""
    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
