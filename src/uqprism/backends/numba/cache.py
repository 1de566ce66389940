"""Compiled kernels on disk, for the next process. Whatever is stale, damaged or not writable there, they are compiled again.

Numba's own cache has an index file and numbered files of code. It unpickles the index before it compares whether it is stale, and
code without a checksum; two processes that compile for other arguments at the same time may take the same number. Here every
file stands for itself: its name follows from the sources and the argument types, and it begins with its checksum.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from uqprism.support.progress import Announcement
from uqprism.support.storage import atomic, locked

COMPILING = Announcement("compiling for this machine, which happens once")
COMPILING_ALWAYS = Announcement("compiling, which happens in each process, because no folder can be written to keep the result")
CHECKSUM = hashlib.sha256().digest_size  # bytes


class KernelCache(FunctionCache):
    """The cache of one kernel. Failures to read are misses, failures to write are ignored."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = CodeFiles(Path(self._cache_path), self._impl.filename_base)

    @property
    def lock(self) -> Path:
        """The file that is locked while the kernel is looked for and compiled."""
        return Path(self._cache_path, f"{self._impl.filename_base}.lock")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code for these argument types, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling and linking raise all kinds of errors
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code."""
        with suppress(OSError):  # such as a full disk
            super().save_overload(sig, data)


@contextmanager
def first_use(kept: KernelCache | None) -> Iterator[None]:
    """Say that this takes a while and happens once; other processes that need the same kernel wait, and then find it on disk."""
    with COMPILING() if kept else COMPILING_ALWAYS(), ExitStack() as stack:
        if kept is not None:
            with suppress(OSError):  # a folder that can be read only: nothing is written there, either
                stack.enter_context(locked(kept.lock))
        yield


class CodeFiles:
    """The files of one kernel, in the place of Numba's `IndexDataCacheFile`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, f"{name}-{_digest()[:16]}"
        self.family = name

    def load(self, key: Any) -> Any:
        """What was saved under this key; None if there is nothing, or if it is damaged."""
        try:
            found = self._path(key).read_bytes()
        except OSError:
            return None
        checksum, data = found[:CHECKSUM], found[CHECKSUM:]
        if hashlib.sha256(data).digest() != checksum:
            return None
        return pickle.loads(data)  # noqa: S301 (code that this package wrote)

    def save(self, key: Any, data: Any) -> None:
        """Save under this key, and remove the code of other sources."""
        packed = dumps(data)
        with atomic(self._path(key)) as file:
            file.write(hashlib.sha256(packed).digest() + packed)
        for path in self.folder.iterdir():
            if path.name.startswith(f"{self.family}-") and not path.name.startswith(f"{self.name}-"):
                path.unlink(missing_ok=True)

    def flush(self) -> None:
        """Remove what was saved."""
        for path in self.folder.glob(f"{self.name}-*"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return self.folder / f"{self.name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


@cache
def _digest() -> str:
    """A hash of the code of all backends, and of the versions of what compiles it.

    Numba looks for changes in the kernel's own file only; its pieces lie in others.
    """
    found = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {os.name}".encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()
