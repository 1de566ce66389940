"""Which files a data set is read from, told apart by their contents without loading it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from uqprism.errors import FileError
from uqprism.paper.data.presence import presence

WHOLE = 64 << 20  # files up to this size are hashed in full: a tenth of a second
END = 1 << 20  # of larger ones this much at both ends


def fingerprint(name: str, root: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Size and SHA-256 of every file that the data set or the outliers of this name would be read from and that is there.

    The keys are names relative to the root, so that the same files under another root have the same fingerprint. Folders of
    pictures, which may have tens of thousands of files, count by the names and sizes of these. Files that are absent have no
    key, and sets that are generated have none at all.
    """
    found = presence(name, root)
    try:
        return {path.relative_to(found.root).as_posix(): _folder(path) if path.is_dir() else _file(path) for path in found.there}
    except OSError as error:
        raise FileError(f"cannot read {error.filename}: {error.strerror}") from None


def _file(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= WHOLE:
            return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"
        ends = hashlib.sha256(file.read(END))
        file.seek(-END, os.SEEK_END)
        ends.update(file.read())
        return f"{size} {ends.hexdigest()}"


def _folder(path: Path) -> str:
    """The same of a folder with a folder for each city: how many files there are, without hidden ones, and of their list."""
    files = sorted(each for each in path.glob("*/*") if not each.name.startswith(".") and each.is_file())
    lines = "".join(f"{each.relative_to(path).as_posix()} {each.stat().st_size}\n" for each in files)
    return f"{len(files)} {hashlib.sha256(lines.encode()).hexdigest()}"
