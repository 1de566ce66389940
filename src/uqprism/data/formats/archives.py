"""Members of zip and tar archives, read without unpacking them."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from uqprism.errors import FileError


def zip_member(path: Path, name: str) -> bytes:
    """The contents of the one member with this file name, in whatever folder of the archive."""
    try:
        with ZipFile(path) as archive:
            return archive.read(_only(path, name, archive.namelist()))
    except (BadZipFile, EOFError, zlib.error, NotImplementedError) as error:
        raise damaged(path, error) from None


def tar_member(path: Path, name: str) -> bytes:
    """The same of a tar archive, compressed or not."""
    try:
        with tarfile.open(path) as archive:
            files = [member.name for member in archive.getmembers() if member.isfile()]
            member = archive.extractfile(_only(path, name, files))
            return b"" if member is None else member.read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: object) -> FileError:
    """The error for an archive that cannot be opened or ends too soon."""
    return FileError(f"{path} is damaged or of another kind: {error}; delete it, and it is downloaded again")


def _only(path: Path, name: str, members: list[str]) -> str:
    found = [member for member in members if member.rsplit("/", 1)[-1] == name]
    if len(found) != 1:
        raise FileError(f"{path} must hold one file {name}, got {len(found)} among {len(members)} members")
    return found[0]
