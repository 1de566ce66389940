"""What the files of a data set are and whether they are there, without reading or fetching them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from uqprism.errors import FileError
from uqprism.paper.data.catalogue import Files, datasets
from uqprism.paper.data.outliers import changes
from uqprism.paper.data.remotes import Remote
from uqprism.paper.data.root import Root


@dataclass(frozen=True)
class _Looking(Root):
    """A root that notes what it would have to fetch."""

    lacking: list[str] = field(default_factory=list)

    def _fetched(self, remote: Remote, target: Path) -> Path:
        self.lacking.append(f"{target} is not there; it would be downloaded from {remote.url}")
        return target


@dataclass(frozen=True)
class Presence:
    """How much of a data set is there.

    Attributes:
        root: the folder of the data files.
        there: the files and folders that would be read and are there.
        absent: a sentence for each that is not.
    """

    root: Path
    there: tuple[Path, ...] = ()
    absent: tuple[str, ...] = ()


def presence(name: str, root: str | os.PathLike[str] | None = None) -> Presence:
    """What the data set or the outliers of this name would be read from under this root; nothing for those that are generated."""
    files = _files(name)
    if files is None:
        return Presence(Path())
    try:
        looking = _Looking(Root.of(root).path)
    except FileError as error:
        return Presence(Path(), absent=(str(error),))
    try:
        found = files(looking)
    except FileError as error:
        return Presence(looking.path, absent=(*looking.lacking, str(error)))
    return Presence(looking.path, tuple(path for path in found if path.exists()), tuple(looking.lacking))


def _files(name: str) -> Files | None:
    """The function that lists what is read, None where nothing is."""
    if name in datasets.names():
        return datasets.get(name).files
    change = changes.get(name)
    return change.files if change.sources else None
