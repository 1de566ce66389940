"""The folder of data files, and the download of official files that are missing from it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from uqprism.errors import FileError
from uqprism.support.optional import require
from uqprism.support.progress import ProgressBar, progress_bar

VARIABLE = "UQPRISM_DATA"
NAMING = "with root= in Python, with --data or UQPRISM_DATA for the command"  # how to name a folder, for errors
TIMEOUT = 30.0  # seconds without an answer
BLOCK = 1 << 20  # bytes


@dataclass(frozen=True)
class Remote:
    """An official file that can be downloaded.

    Attributes:
        folder: its folder under the data root.
        url: its address.
        sha256: the checksum of its contents, in hexadecimal.
        size: in bytes; None where it is not known.
        alias: its name under the data root, where that is not the end of the address.
    """

    folder: str
    url: str
    sha256: str
    size: int | None = None
    alias: str = ""

    @property
    def name(self) -> str:
        """The file name under the data root."""
        return self.alias or self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Root:
    """The folder of data files.

    An official file is expected at `folder/name`, with or without the ending `.gz`, and downloaded there if it is missing. Its
    checksum is compared once, after the download: hashing would add seconds to every load, and the readers check formats.

    Attributes:
        path: the folder; the first download creates it.
        downloads: whether missing files are downloaded.
    """

    path: Path
    downloads: bool = True

    @classmethod
    def of(cls, folder: str | os.PathLike[str] | None = None, *, downloads: bool = True) -> Root:
        """This folder; else the folder that UQPRISM_DATA names; else `uqprism` in the user's cache folder."""
        given = folder or os.environ.get(VARIABLE)
        if given is None:
            return cls(require("pooch", extra="paper").os_cache("uqprism"), downloads)
        path = Path(given).expanduser()
        if not path.is_dir():
            where = "root (for the command: --data)" if folder else VARIABLE
            raise FileError(f"{where} must be a folder, and there is none called {path}; create it, or name none")
        return cls(path, downloads)

    def compact(self, name: str) -> Path | None:
        """The compact copy of this name, which lies in the folder itself; None if it is not there."""
        path = self.path / name
        return path if path.is_file() else None

    def official(self, remote: Remote) -> Path:
        """The official file, downloaded if it is missing."""
        target = self.path / remote.folder / remote.name
        for path in (target, target.with_name(remote.name.removesuffix(".gz"))):
            if path.is_file():
                return path
        return self._download(remote, target)

    def files(self, compact: str, *official: Remote) -> list[Path]:
        """The files that a data set is read from: its compact copy if there is one, else its official files."""
        copy = self.compact(compact)
        return [self.official(remote) for remote in official] if copy is None else [copy]

    def _download(self, remote: Remote, target: Path) -> Path:
        if not self.downloads:
            raise _missing(remote, target, "downloads are off")
        _download(remote, target)
        return target


def _download(remote: Remote, target: Path) -> None:
    """Write the official file to `target` if its checksum is the expected one; write nothing otherwise."""
    pooch = require("pooch", extra="paper")
    try:
        with progress_bar(remote.name, remote.size or 0, counted=False, extra="paper") as bar:
            fetch = pooch.HTTPDownloader(
                progressbar=_PoochBar(bar),
                chunk_size=BLOCK,
                timeout=TIMEOUT,
                headers={"User-Agent": "uqprism"},  # some servers refuse the default name
            )
            pooch.retrieve(remote.url, f"sha256:{remote.sha256}", fname=target.name, path=target.parent, downloader=fetch)
        target.chmod(target.parent.stat().st_mode & 0o666)  # Pooch leaves it readable by its owner alone
    except (OSError, ValueError) as error:
        why = getattr(error.args[0] if error.args else None, "reason", None)  # of a failed connection, in one sentence
        raise _missing(remote, target, why or error) from None


def _missing(remote: Remote, target: Path, why: object) -> FileError:
    """The error for an official file that is neither there nor downloaded: where it comes from and where to put it."""
    size = "" if remote.size is None else f"{remote.size:,} bytes, "
    return FileError(
        f"{remote.name} is not in {target.parent} and could not be downloaded: {why}. Get it from {remote.url} ({size}SHA-256 "
        f"{remote.sha256}) and put it in {target.parent}, or name the folder that holds {remote.folder}/{remote.name} {NAMING}"
    )


class _PoochBar:
    """The methods that Pooch calls on a progress bar; it sets `total` from the length that the server states."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar, self._done, self.total = bar, 0, 0

    def update(self, size: int) -> None:
        self._done += size
        self._bar.update(advance=size, text=f"{self._done / 1e6:,.0f} MB")

    def reset(self) -> None:
        self._done = 0
        self._bar.update(completed=0)

    def close(self) -> None:
        pass
