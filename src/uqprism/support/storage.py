"""Files that are written whole or not at all and read without pickle."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np

from uqprism.errors import FileError, InvalidValueError


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write into that takes the name `path` when the block ends well; what stood there stays until then."""
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before it has the name, or a lost machine could leave the name without the contents
        os.chmod(temporary, 0o666 & ~_umask())  # a temporary file is private, the result should not be
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """The text as UTF-8, whole or not at all."""
    with atomic(path) as file:
        file.write(text.encode())


def write_npz(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Arrays and a JSON header in one .npz file; what stood at `path` stays until the new file is complete."""
    entries = {**arrays, "header": np.frombuffer(json.dumps({"format": kind, "version": 1, **header}).encode(), dtype=np.uint8)}
    with atomic(path) as file:
        np.savez(file, allow_pickle=False, **entries)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_npz(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a file that `write_npz` wrote for this kind."""
    try:
        arrays = npz_arrays(path)
        header = json.loads(arrays.pop("header").tobytes()) if "header" in arrays else {}
    except Exception as error:  # on damaged bytes zipfile, zlib and json raise whatever they stumble over
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.filename is not None):  # not even opened
            raise
        reason = "it is something else" if "allow_pickle" in str(error) else str(error)  # that advice of NumPy's is not ours
        raise InvalidValueError(f"{os.fspath(path)} is not a readable .npz file: {reason}") from None
    if not isinstance(header, dict) or header.get("format") != kind:
        raise InvalidValueError(f"{os.fspath(path)} was not written by {kind.rsplit('.', maxsplit=1)[-1]}.save")
    return header, arrays


def npz_arrays(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> dict[str, Any]:
    """The arrays in a .npz file, all or those of these names that are there.

    Each is taken out of the archive whole, which compares its checksum, and parsed then: `numpy.load` parses first, and of an
    array that claims to be shorter than it is it never reads the end, where the checksum is.
    """
    with ZipFile(path) as archive:
        there = {member.removesuffix(".npy"): member for member in archive.namelist()}
        wanted = [name for name in (there if names is None else names) if name in there]
        return {name: np.lib.format.read_array(io.BytesIO(archive.read(there[name])), allow_pickle=False) for name in wanted}
