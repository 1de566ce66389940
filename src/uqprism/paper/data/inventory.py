"""The files of a data set: which are there, which are missing, and their checksums, without loading or downloading them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from uqprism.errors import FileError, MissingExtraError
from uqprism.paper.data.catalogue import Files, datasets
from uqprism.paper.data.ood import kinds
from uqprism.paper.data.root import Remote, Root
from uqprism.support.storage import TEMPORARY

WHOLE = 64 << 20  # bytes: files up to this size are hashed completely, which takes a tenth of a second
END = 1 << 20  # bytes that are hashed at both ends of larger files


@dataclass(frozen=True)
class _ListingRoot(Root):
    """A root that lists missing official files in place of downloading them."""

    missing: list[str] = field(default_factory=list)

    def _download(self, remote: Remote, target: Path) -> Path:
        self.missing.append(f"{target} is not there; it would be downloaded from {remote.url}")
        return target


@dataclass(frozen=True)
class Presence:
    """Which files of a data set are there.

    Attributes:
        root: the folder of the data files.
        there: the files and folders that are there and would be read.
        absent: one sentence about each that is missing.
    """

    root: Path
    there: tuple[Path, ...] = ()
    absent: tuple[str, ...] = ()


def presence(name: str, root: str | os.PathLike[str] | None = None) -> Presence:
    """The files that this data set or kind of OOD mosaics would be read from under this root; none for generated ones."""
    files = _files(name)
    if files is None:
        return Presence(Path())
    try:
        listing = _ListingRoot(Root.of(root).path)
    except (FileError, MissingExtraError) as error:  # no such folder, or no Pooch to name the default one
        return Presence(Path(), absent=(str(error),))
    try:
        found = files(listing)
    except FileError as error:  # a set that cannot be downloaded
        return Presence(listing.path, absent=(*listing.missing, str(error)))
    return Presence(listing.path, tuple(path for path in found if path.exists()), tuple(listing.missing))


def _files(name: str) -> Files | None:
    """The function that lists the files, or None for what is generated."""
    if name in datasets:
        return datasets.get(name).files
    kind = kinds.get(name)
    return kind.files if kind.sources else None


def fingerprint(name: str, root: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Size and SHA-256 of every file that this data set or kind of OOD mosaics would be read from and that is there.

    The keys are paths relative to the root, so the same files under another root have the same fingerprint. A folder of pictures,
    which may hold tens of thousands of files, is described by the names and sizes of its files. Missing files have no key, and
    generated data sets have none at all.
    """
    found = presence(name, root)
    try:
        return {path.relative_to(found.root).as_posix(): _folder(path) if path.is_dir() else _file(path) for path in found.there}
    except OSError as error:
        raise FileError(f"cannot read {error.filename}: {error.strerror}") from None


def _file(path: Path) -> str:
    """Size and SHA-256 of the file, of large files that of both ends."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= WHOLE:
            return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"
        ends = hashlib.sha256(file.read(END))
        file.seek(-END, os.SEEK_END)
        ends.update(file.read())
        return f"{size} {ends.hexdigest()}"


def _folder(path: Path) -> str:
    """Number of files in the folders of this folder, hidden ones left out, and the SHA-256 of their names and sizes."""
    files = sorted(each for each in path.glob("*/*") if not each.name.startswith((".", TEMPORARY)) and each.is_file())
    lines = "".join(f"{each.relative_to(path).as_posix()} {each.stat().st_size}\n" for each in files)
    return f"{len(files)} {hashlib.sha256(lines.encode()).hexdigest()}"
