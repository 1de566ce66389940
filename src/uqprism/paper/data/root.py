"""Where data files are: a folder that is given, or the environment names, or a cache in the user's home."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from uqprism.errors import FileError
from uqprism.paper.data.download import download, missing
from uqprism.paper.data.remotes import Remote

VARIABLE = "UQPRISM_DATA"


@dataclass(frozen=True)
class Root:
    """The folder with data files.

    A file is looked for under `folder/name` of its remote, with or without its ending `.gz`. It is downloaded to that place if it
    is not there. What is found is not hashed again, which would cost seconds for every load: its parser checks it.

    Attributes:
        path: the folder; it is made by the first download.
        downloads: whether what is missing is fetched.
    """

    path: Path
    downloads: bool = True

    @classmethod
    def of(cls, folder: str | os.PathLike[str] | None = None, *, downloads: bool = True) -> Root:
        """This folder; else that of UQPRISM_DATA; else uqprism in the user's cache folder."""
        given = folder or os.environ.get(VARIABLE)
        if given is None:
            return cls(_cache() / "uqprism", downloads)
        path = Path(given).expanduser()
        if not path.is_dir():
            where = "root (for the command: --data)" if folder else VARIABLE
            raise FileError(f"{where} must be a folder, and there is none called {path}; make it, or name none")
        return cls(path, downloads)

    def own(self, name: str) -> Path | None:
        """The file of this name in the folder itself, where there is one: the compact files lie there."""
        path = self.path / name
        return path if path.is_file() else None

    def file(self, remote: Remote) -> Path:
        """The remote's file, fetched if need be."""
        target = self.path / remote.folder / remote.name
        for path in (target, target.with_name(remote.name.removesuffix(".gz"))):
            if path.is_file():
                return path
        return self._fetched(remote, target)

    def files(self, compact: str, *official: Remote) -> list[Path]:
        """What a set is read from: its compact copy where there is one, else its official files."""
        own = self.own(compact)
        return [self.file(remote) for remote in official] if own is None else [own]

    def _fetched(self, remote: Remote, target: Path) -> Path:
        if not self.downloads:
            raise missing(remote, target, "downloads are off")
        download(remote, target)
        return target


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if os.path.isabs(given) else Path.home() / ".cache"  # relative ones are to be ignored, says XDG
