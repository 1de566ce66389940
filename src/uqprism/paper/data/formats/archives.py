"""Members of zip and tar archives, read without unpacking them and with their checksums compared."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from zipfile import ZipFile

from uqprism.errors import FileError
from uqprism.paper.data.formats.damage import reading

GZIP = b"\x1f\x8b"
BLOCK = 1 << 20
DAMAGED = "damaged or of another kind"


def zip_member(path: Path, name: str) -> bytes:
    """The contents of the one member with this file name, in whatever folder of the archive."""
    with reading(path, DAMAGED), ZipFile(path) as archive:
        return archive.read(_only(path, name, archive.namelist()))


def tar_member(path: Path, name: str) -> bytes:
    """The same of a tar archive, gzipped or not; only gzip has a checksum of the contents."""
    with reading(path, DAMAGED), _plain(path) as stream:
        contents: dict[str, bytes] = {}
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                if member.isfile():
                    wanted = archive.extractfile(member) if _base(member.name) == name else None
                    contents[member.name] = b"" if wanted is None else wanted.read()
        while stream.read(BLOCK):  # tarfile stops at the end of the archive, and gzip's checksum comes after it
            pass
        return contents[_only(path, name, list(contents))]


def _plain(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """The file to read from, decompressed."""
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP
    return gzip.open(path) if compressed else path.open("rb")


def _base(member: str) -> str:
    return member.rsplit("/", 1)[-1]


def _only(path: Path, name: str, members: list[str]) -> str:
    found = [member for member in members if _base(member) == name]
    if len(found) != 1:
        raise FileError(f"{path} must hold one file {name}, got {len(found)} among {len(members)} members")
    return found[0]
