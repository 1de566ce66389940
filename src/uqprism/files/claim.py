"""One run at a time into one output: a lock, and a name in it by which a run sees that the output is still its own."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.errors import BusyError, FileError

if sys.platform != "win32":
    import fcntl

LOCK = "_uqprism-lock"
LONGEST = 128  # bytes of a name beside the prefix


@dataclass(frozen=True)
class Claim:
    """The claim of one run to its output. It can be sent to a worker, which asks `check` before it names a part.

    Attributes:
        output: the file or folder.
        path: the lock file, which names the run.
        run: 12 characters that name the run.
        locked: whether the file system has locks; without them `check` is all that keeps two runs apart.
    """

    output: Path
    path: Path
    run: str
    locked: bool

    def check(self) -> None:
        """Raise if another run has taken the output, or if the lock file is gone."""
        owner = _owner(self.path)
        if owner.get("run") != self.run:
            who = f"{_named(owner)} has taken it" if owner else f"its lock file {self.path} is gone"
            raise BusyError(f"output {self.output}: this run gives up, because {who}; run again when no other run writes to it")


@contextmanager
def claimed(output: Path, *, folder: bool) -> Iterator[Claim]:
    """Keep other runs out of this output during the block.

    The system drops the lock when a process ends, however it ends. The lock file of a killed run is taken over by the next.

    Args:
        output: a file, or a folder, which is made.
        folder: which of the two.

    Raises:
        BusyError: another run has the lock.
    """
    new = not output.exists()
    path = (output if folder else output.parent) / (LOCK if folder else f"{LOCK}-{_short(output.name)}")
    path = path.absolute()  # for workers, which have other working folders
    with _writing(output):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, locked = _acquire(path, output)
    claim = Claim(output, path, uuid.uuid4().hex[:12], locked)
    try:
        with _writing(output):
            _write(handle, claim.run)
        yield claim
    finally:
        with suppress(OSError):  # such as a file system that has become read-only, or a folder that holds parts
            if _owner(path).get("run") in {claim.run, None}:
                path.unlink(missing_ok=True)
            if new and folder:
                output.rmdir()
        os.close(handle)


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, BusyError):
            raise
        raise FileError(f"output {output}: cannot be written: {error.strerror}") from None


def _short(name: str) -> str:
    encoded = os.fsencode(name)
    return name if len(encoded) <= LONGEST else hashlib.sha256(encoded).hexdigest()


def _acquire(path: Path, output: Path) -> tuple[int, bool]:
    """The open lock file, and whether it is locked."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            locked = _lock(handle)
        except BlockingIOError:
            os.close(handle)
            raise BusyError(f"output {output}: {_named(_owner(path))} is writing to it; wait for it, or name another") from None
        if not locked and _alive(owner := _owner(path)):
            os.close(handle)
            raise BusyError(f"output {output}: {_named(owner)} is writing to it; if that is no run, remove {path}")
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle, locked
        os.close(handle)  # the run before removed this file at its end


def _lock(handle: int) -> bool:
    """Lock the file; False if the file system has no locks. Raises BlockingIOError if another has it."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # the numbers of this error differ between file systems
        return False
    return True


def _write(handle: int, run: str) -> None:
    owner = {"run": run, "process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S%z")}
    os.ftruncate(handle, 0)
    os.write(handle, json.dumps(owner).encode())


def _owner(path: Path) -> dict[str, Any]:
    """What the lock file says; empty if there is none."""
    try:
        owner = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _named(owner: dict[str, Any]) -> str:
    if not owner:
        return "another run"
    return f"another run (process {owner.get('process')} on {owner.get('host')} since {owner.get('since')})"


def _alive(owner: dict[str, Any]) -> bool:
    """Whether this process certainly runs. Without locks nothing is known of other machines."""
    if owner.get("host") != socket.gethostname() or not isinstance(owner.get("process"), int):
        return False
    try:
        os.kill(owner["process"], 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True
