"""Files that are written whole or not at all and read without pickle; packages that may be missing."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from uqprism.errors import FileError, InvalidValueError, MissingExtraError


def require(package: str, *, extra: str) -> Any:
    """The package, or an error that names the extra it comes with."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(package, extra) from None


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
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:  # of a cut-off file, NumPy closes none
            arrays = {name: file[name] for name in file.files}
    except (ValueError, BadZipFile, AttributeError, TypeError, EOFError) as error:
        reason = "it is something else" if "allow_pickle" in str(error) else str(error)  # that advice of NumPy's is not ours
        raise InvalidValueError(f"{os.fspath(path)} is not a readable .npz file: {reason}") from None
    header = json.loads(arrays.pop("header").tobytes()) if "header" in arrays else {}
    if header.get("format") != kind:
        raise InvalidValueError(f"{os.fspath(path)} was not written by {kind.rsplit('.', maxsplit=1)[-1]}.save")
    return header, arrays
