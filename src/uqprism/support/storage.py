"""Files that are complete or absent, and are written without pickle; `reading` reads them."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from uqprism.errors import ArgumentError, FileError, UqprismError

TEMPORARY = "_uqprism-tmp-"
PAGES = (".html", ".htm")
PICTURES = (".png", ".svg", ".pdf")
LONGEST_TAIL = 128  # bytes; most systems allow 255 for a whole name
UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}
ABANDONED = 3600.0  # seconds without a change after which a temporary file belongs to no run


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system into one line that names the file that was to be written."""
    try:
        yield
    except OSError as error:
        if isinstance(error, UqprismError):  # it names a file already
            raise
        raise FileError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from None


def in_words(error: OSError) -> str:
    """An error of the system in the form of this package's messages: the file and what is wrong with it."""
    if isinstance(error, UqprismError) or error.strerror is None:
        return str(error)
    named = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return ": ".join([*named[:1], error.strerror])


@contextmanager
def atomic_path(path: str | os.PathLike[str], run: str | None = None) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to `path` when the block ends and removed if the block raises.

    Args:
        path: the file to write; an existing one stays until it is replaced.
        run: 12 characters that name the run, for `sweep`; random by default.
    """
    target = Path(path)
    with writing(path):
        _check_regular(target)
    temporary = _temporary(target, run)
    try:
        yield temporary
        with writing(path):
            _sync(temporary)  # before the rename, or a lost machine could leave the name without the contents
            os.replace(temporary, target)
        with suppress(OSError):  # the file is there; some systems cannot sync a folder
            _sync(target.parent)
    finally:
        with suppress(OSError):  # such as one that has become read-only, which the block has met too
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write, which becomes `path` when the block ends; an existing `path` stays until then."""
    with atomic_path(path) as temporary, writing(path), temporary.open("xb") as file:
        yield file


def check_ending(path: str | os.PathLike[str], endings: Iterable[str], what: str = "path") -> str:
    """The ending of a name, in lower case, which says the format of the file; a name without one is of the first format.

    Args:
        path: the file to write.
        endings: those of the formats that can be written; with another, the error names them.
        what: the argument or option, for the error.
    """
    found, known = Path(path).suffix.lower(), tuple(endings)
    if found and found not in known:
        raise ArgumentError(f"{what} must end in {', '.join(known)}, got {os.fspath(path)!r}")
    return found or known[0]


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise now, before long work, if `path` could not be written at its end: a byte is written beside it and removed.

    Temporary files of this path that a killed process left are removed.
    """
    target = Path(path)
    temporary = _temporary(target, None)
    with writing(path):
        _check_regular(target)
        _try(temporary)
        sweep(target)


def _try(temporary: Path) -> None:
    """Write a byte, because a disk that is full still takes empty files."""
    try:
        temporary.write_bytes(b"0")
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder that files can be written to, with those above it; raise if that is not possible."""
    folder = Path(path)
    temporary = _temporary(folder / "file", None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _try(temporary)
    except OSError as error:
        reason = "it is a file" if folder.is_file() else error.strerror
        raise FileError(f"cannot write into {os.fspath(path)}: {reason}") from None


def _check_regular(target: Path) -> None:
    """Refuse folders, and devices such as /dev/null, which a new file would replace."""
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):  # what lies above it shows when the temporary file is made
        return
    if not stat.S_ISREG(mode):
        raise FileError(f"cannot write {target}: it is {'a folder' if stat.S_ISDIR(mode) else 'no regular file'}; name a file")


def _temporary(target: Path, run: str | None) -> Path:
    # Each attempt has a name of its own, because a cluster may try one part twice at the same time. The suffix hides it from
    # readers that find the files of a folder by their suffixes.
    return target.with_name(f"{TEMPORARY}{run or uuid.uuid4().hex[:12]}-{uuid.uuid4().hex[:8]}-{_tail(target)}.tmp")


def _tail(target: Path) -> str:
    """The name of the file or, if a temporary name with it might be too long, a digest of it."""
    name = os.fsencode(target.name)
    return target.name if len(name) <= LONGEST_TAIL else hashlib.sha256(name).hexdigest()


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a lock that processes and threads share by the name of a file, which stays there.

    The system frees it when the process ends, however it ends.
    """
    with Path(path).open("ab") as file:
        _lock(file)
        yield  # closing the file frees the lock


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        while True:
            with suppress(OSError):  # after ten seconds without the lock
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                return
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk, where the system supports that."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED:  # a full disk may be reported only here
            raise
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
    own = f"{pattern}{glob.escape(_tail(output))}.tmp"
    leftovers = output.rglob(f"{pattern}*") if output.is_dir() else output.parent.glob(own)
    for leftover in leftovers:
        with suppress(FileNotFoundError):
            if run is not None or idle <= 0 or time.time() - leftover.stat().st_mtime > idle:
                leftover.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write the text as UTF-8, atomically; bytes of file names that are not UTF-8 become replacement characters."""
    with atomic(path) as file:
        file.write(re.sub("[\ud800-\udfff]", "\ufffd", text).encode())


def write_npz(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays and a JSON header to one .npz file, atomically."""
    check_ending(path, [".npz"])
    entries = {**arrays, "header": np.frombuffer(json.dumps({"format": kind, "version": 1, **header}).encode(), dtype=np.uint8)}
    with atomic(path) as file:
        save_arrays(file, entries)


def save_arrays(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """Write arrays as .npz. Unlike with `numpy.savez`, any name will do: also `file`."""
    from zipfile import ZipFile  # as `import uqprism` must be quick

    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
