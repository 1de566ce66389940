"""Fetching an official file: whole and with the right checksum, or not at all."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from uqprism.errors import FileError
from uqprism.paper.data.remotes import Remote
from uqprism.support.storage import atomic

BLOCK = 1 << 20
NAMING = "with root= in Python, with --data or UQPRISM_DATA for the command"  # how a folder is named, for errors
SECONDS_OF_SILENCE = 30.0


def download(remote: Remote, target: Path) -> None:
    """The remote's file at `target`, once its SHA-256 is the expected one."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Servers of data refuse clients without a name of their own; addresses come from this package's table.
        request = Request(remote.url, headers={"User-Agent": "uqprism"})  # noqa: S310
        with urlopen(request, timeout=SECONDS_OF_SILENCE) as response, atomic(target) as file, _progress(remote) as tell:  # noqa: S310
            digest, size = hashlib.sha256(), 0
            while block := response.read(BLOCK):
                file.write(block)
                digest.update(block)
                size += len(block)
                tell(size)
            if digest.hexdigest() != remote.sha256:
                raise missing(remote, target, f"what came, {size:,} bytes, has the SHA-256 {digest.hexdigest()}")
    except FileError:
        raise
    except (OSError, HTTPException) as error:
        raise missing(remote, target, error if isinstance(error, HTTPError) else getattr(error, "reason", error)) from None


def missing(remote: Remote, target: Path, why: object) -> FileError:
    """The error for a file that is not there and cannot be had: what it is, where it comes from, where it belongs."""
    size = "" if remote.size is None else f"{remote.size:,} bytes, "
    return FileError(
        f"{remote.name} is not in {target.parent} and could not be downloaded: {why}. Get it from {remote.url} ({size}SHA-256 "
        f"{remote.sha256}) and put it in {target.parent}, or name the folder that holds {remote.folder}/{remote.name} "
        f"{NAMING}"
    )


@contextmanager
def _progress(remote: Remote) -> Iterator[Callable[[int], None]]:
    """A function that is told how many bytes have come; it shows them on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        sys.stderr.write(f"downloading {remote.url}\n")
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(20), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(remote.name, total=remote.size)
        yield lambda size: bar.update(task, completed=size)
