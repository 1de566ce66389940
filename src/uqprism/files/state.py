"""The state of an input file, which tells whether it changed while it was read or since its part was written."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from uqprism.errors import BadFileError, FileError, InvalidValueError, ShapeError

EDGE = 1 << 16  # bytes at either end of a file
MAGIC = b"PAR1"


@dataclass(frozen=True)
class FileState:
    """The state of a file at one time.

    Attributes:
        size: in bytes.
        modified: the time of the last change, in nanoseconds.
        inode: the number of the file, which another file under the same name does not have.
        digest: of the footer of a Parquet file, and of the first and last 64 kB of any other: the end of an .npz file holds the
            checksums of its arrays.
    """

    size: int
    modified: int
    inode: int
    digest: str

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state of this file now."""
        if not path.is_file() and path.exists():  # a pipe would be waited for
            raise OSError(errno.EINVAL, "it is no regular file")
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            return cls(about.st_size, about.st_mtime_ns, about.st_ino, _digest(file, about.st_size))

    def record(self) -> dict[str, Any]:
        """What identifies the contents in a later run. A copy has another inode, so that is left out."""
        return {"size": self.size, "modified": self.modified, "digest": self.digest}

    def change(self, later: FileState) -> str:
        """How a later state differs, in words; empty if it does not."""
        if self.size != later.size:
            return f"its size was {self.size:,} bytes and is {later.size:,}"
        if self.inode != later.inode:
            return "another file has taken its name"
        if self.modified != later.modified:
            return "it was written to"
        return "its contents are others" if self.digest != later.digest else ""


def _digest(file: IO[bytes], size: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    file.seek(max(0, size - 8))
    end = file.read(8)
    footer = int.from_bytes(end[:4], "little") + 8
    if end[4:] == MAGIC and footer <= size:
        file.seek(size - footer)
        digest.update(file.read(footer))
    else:
        file.seek(0)
        digest.update(file.read(EDGE))
        file.seek(max(0, size - EDGE))
        digest.update(file.read(EDGE))
    return digest.hexdigest()


def state_of(path: Path) -> FileState:
    """The state of an input; one that cannot be opened is a bad file."""
    try:
        return FileState.of(path)
    except OSError as error:
        raise BadFileError(path, f"cannot be read: {error.strerror}") from None


@contextmanager
def blaming(path: Path) -> Iterator[None]:
    """Turn errors over the contents of an input into a `BadFileError` of that file."""
    try:
        yield
    except BadFileError:
        raise
    except (FileError, InvalidValueError, ShapeError) as error:
        raise BadFileError(path, str(error).removeprefix(f"{path}: ")) from error


@contextmanager
def unchanged(path: Path, planned: FileState | None = None) -> Iterator[FileState]:
    """The state of an input before the block; a change until the end of the block makes it a bad file.

    Args:
        path: the input.
        planned: the state that it must have at the beginning already.
    """
    before = state_of(path)
    if planned is not None:
        _compare(path, planned, before)
    try:
        yield before
    except BadFileError:
        _compare(path, before, state_of(path))  # the change is the cause, whatever it led to
        raise
    _compare(path, before, state_of(path))


def _compare(path: Path, before: FileState, now: FileState) -> None:
    if change := before.change(now):
        raise BadFileError(
            path, f"changed while it was read: {change}; deliver files under another name and rename them when whole"
        )
