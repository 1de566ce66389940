"""Paths: which files are read, and where their results are written."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from uqprism.errors import ArgumentError, FileError, warn
from uqprism.files.state import FileState

READABLE = (".parquet", ".pq", ".csv", ".npz")
PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}  # of CSV files, as Arrow calls them
PACKED = tuple(f".csv{packed}" for packed in PACKINGS)
ENDINGS = f"{', '.join(READABLE)}, or {', '.join(PACKED)}"
OTHER_DATA = (
    ".gz",
    ".bz2",
    ".xz",
    ".zst",
    ".zip",
    ".tsv",
    ".json",
    ".jsonl",
    ".feather",
    ".arrow",
    ".orc",
    ".npy",
    ".xlsx",
    ".h5",
    ".nc",
)
WRITABLE = (".parquet", ".csv", ".npz")
PathLike = str | os.PathLike[str]
AnyPath = TypeVar("AnyPath", bound=PathLike)


@dataclass(frozen=True)
class Span:
    """One input file, or some row groups of a Parquet file.

    Attributes:
        path: the file.
        name: its path below the common root of all inputs, which is also that of its part in the output.
        row_groups: the row groups to read; None reads all.
        first_row: the number of rows of the file before these.
        state: the state in which the row groups were counted, which the file must still have when they are read.
    """

    path: Path
    name: str
    row_groups: tuple[int, ...] | None = None
    first_row: int = 0
    state: FileState | None = None

    def record(self, state: FileState) -> dict[str, Any]:
        """What is read, from a file in this state: if any of it changes, its rows are others."""
        groups = None if self.row_groups is None else list(self.row_groups)
        return {"name": self.name, **state.record(), "row_groups": groups}


@dataclass(frozen=True)
class Part:
    """One output file and the inputs it is made from."""

    target: Path
    spans: tuple[Span, ...]


def find_files(inputs: PathLike | Sequence[PathLike]) -> list[Span]:
    """The files of these paths, folders and glob patterns, sorted within each, without duplicates.

    Folders are searched to any depth, also behind symbolic links; a file that is reached twice counts once. Names that start
    with `_` or `.` are ignored, as is usual for data folders. Of data in formats that are not read, a warning names a file.
    """
    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    found: dict[str, tuple[Path, Path]] = {}
    for item in given:
        for root, path in _files(os.fspath(item)):
            real = os.path.realpath(path)
            found[real] = min(found.get(real, (path, root)), (path, root), key=_detour)
    if not found:
        raise ArgumentError("no input was given; name files, folders or patterns")
    # Below one root, inputs from several folders have names of their own.
    root = _above_partitions(Path(os.path.commonpath([os.path.abspath(folder) for _, folder in found.values()])))
    return [Span(path, Path(os.path.abspath(path)).relative_to(root).as_posix()) for path, _ in found.values()]


def ending(path: Path) -> str:
    """The ending of a name, which says the format of the file, in small letters: some systems write .CSV."""
    both = "".join(path.suffixes[-2:]).lower()
    return both if both in PACKED else path.suffix.lower()


def is_readable(path: Path) -> bool:
    """Whether the ending is that of a format that is read."""
    return ending(path) in READABLE + PACKED


def packing(path: Path) -> str | None:
    """How a CSV file is packed, as Arrow calls it; None if it is not."""
    found = ending(path)
    return PACKINGS[found.removeprefix(".csv")] if found in PACKED else None


def _detour(place: tuple[Path, Path]) -> tuple[bool, int]:
    """Whether a file is reached through links, and how deep it is: its own name comes before others."""
    path, root = place
    own = os.path.join(os.path.realpath(root), path.relative_to(root))
    return own != os.path.realpath(path), len(path.parts)


def _files(item: str) -> Iterator[tuple[Path, Path]]:
    """Each file after the folder that its name is relative to."""
    path = Path(item)
    if path.is_dir():
        files = _readable(item, _below(path))
        if not files:
            raise FileError(f"{item}: the folder holds no files that end in {ENDINGS}")
        yield from ((path, file) for file in files)
    elif path.exists():  # asked before patterns, because names may hold brackets
        if not is_readable(path):
            raise FileError(f"{item}: files end in {ENDINGS}; {'unpack' if _is_packed(path) else 'convert'} this one")
        if not path.is_file():
            raise FileError(f"{item}: is a device or a pipe; write it to a file first")
        yield path.parent, path
    elif glob.has_magic(item):
        root = Path(re.split(r"[^/]*[*?[]", item, maxsplit=1)[0] or ".")
        files = _readable(item, _matching(root, Path(item).relative_to(root).parts))
        if not files:
            raise FileError(f"{item}: nothing matches this pattern")
        yield from ((root, file) for file in files)
    else:
        raise FileError(f"{item}: no such file, folder or pattern")


def _readable(item: str, files: Iterator[Path]) -> list[Path]:
    """Those of these files that can be read, in order; warns of data in other formats."""
    found, others = [], []
    for file in files:
        if is_readable(file):
            found.append(file)
        elif ending(file) in OTHER_DATA:
            others.append(file)
    if others:
        first = min(others)
        warn(
            f"{item}: {len(others):,} {'file is' if len(others) == 1 else 'files are'} not read, such as {first}; files end in "
            f"{ENDINGS}, so {'unpack' if _is_packed(first) else 'convert'} them"
        )
    return sorted(found)  # the order of a folder differs between systems


def _is_packed(path: Path) -> bool:
    return ending(path) in OTHER_DATA[:5]


def _matching(root: Path, pattern: tuple[str, ...]) -> Iterator[Path]:
    """The files whose path below a folder matches, or that are below a folder that does; `**` stands for any folders."""
    if "**" not in pattern:
        for match in (Path(found) for found in glob.glob(os.path.join(glob.escape(os.fspath(root)), *pattern))):
            if _ignored(match.relative_to(root)):
                continue
            yield from _below(match) if match.is_dir() else [match]
        return
    # Not by `glob`, which follows links that form a circle forty times.
    for file in _below(root) if root.is_dir() else ():
        parts = file.relative_to(root).parts
        if any(_fits(parts[:i], pattern) for i in range(1, len(parts) + 1)):
            yield file


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _below(folder: Path) -> Iterator[Path]:
    """The files in a folder and in all below it, also behind links, which are followed last and to each folder once."""
    seen: set[str] = set()
    waiting = [os.fspath(folder)]
    while waiting:
        for place, folders, names in os.walk(waiting.pop(0), onerror=_unreadable):
            real = os.path.realpath(place)
            # The folder itself may lie below a hidden one.
            folders[:] = [] if real in seen else sorted(name for name in folders if not _ignored(Path(name)))
            waiting += [os.path.join(place, name) for name in folders if os.path.islink(os.path.join(place, name))]
            files = [] if real in seen else [Path(place, name) for name in names if not _ignored(Path(name))]
            seen.add(real)
            # A link to a file that is gone is an input that cannot be read; pipes are none.
            yield from (file for file in files if file.is_file() or not file.exists())


def _unreadable(error: OSError) -> None:
    raise FileError(f"{error.filename}: the folder cannot be read: {error.strerror}") from None


def _ignored(relative: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in relative.parts)


def _above_partitions(root: Path) -> Path:
    """The folder above any `key=value` folders: their names are data, so parts keep them."""
    while "=" in root.name:
        root = root.parent
    return root


def plan_parts(spans: Sequence[Span], output: PathLike) -> list[Part]:
    """The parts to write: one if the output is a file, one per input if it is a folder."""
    target = Path(output)
    if target.suffix and not target.is_dir():
        if ending(target) not in WRITABLE:
            raise ArgumentError(f"output {target}: ends in {', '.join(WRITABLE)} for a file, or in nothing for a folder")
        if len(spans) > 1 and any("=" in part for span in spans for part in Path(span.name).parts[:-1]):
            raise ArgumentError(f"output {target}: one file would lose the partition keys of the input folders; name a folder")
        parts = [Part(target, tuple(spans))]
    else:
        parts = [Part(target / _part_name(span.name), (span,)) for span in spans]
    check_apart(parts, target)
    return parts


def _part_name(name: str) -> str:
    """The name of the part of an input. It depends on nothing else, so that inputs may come and go between runs."""
    return name if name.endswith(".parquet") else f"{name}.parquet"


def check_apart(parts: Sequence[Part], output: Path) -> None:
    """Refuse two inputs for one part, and an output that is or contains an input."""
    taken: dict[Path, Path] = {}
    sources = {span.path.resolve() for part in parts for span in part.spans}
    for part in parts:
        other = taken.setdefault(part.target, part.spans[0].path)
        if other != part.spans[0].path:
            raise ArgumentError(f"{other} and {part.spans[0].path} would both become {part.target}; rename one")
        if part.target.resolve() in sources:  # a link to an input is the input
            raise ArgumentError(f"output {part.target}: is an input; name another")
    if any(output.resolve() in source.parents for source in sources):
        raise ArgumentError(f"output {output}: holds the inputs; name another folder")


def named_by_stem(paths: Sequence[AnyPath]) -> dict[str, AnyPath]:
    """The paths of several OOD files, named by their stems, or by whole paths if two stems agree."""
    names = [_stem(Path(path)) for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise ArgumentError(f"the OOD files must differ, got {', '.join(names)}")
    return dict(zip(names, paths, strict=True))


def _stem(path: Path) -> str:
    return path.name[: -len(found)] if (found := ending(path)) in PACKED else path.stem


def check_outside(inputs: PathLike | Sequence[PathLike], output: Path) -> None:
    """Refuse an output in an input folder, because the next run would read it as an input."""
    for item in [inputs] if isinstance(inputs, str | os.PathLike) else inputs:
        folder = Path(item)
        if folder.is_dir() and output.resolve().is_relative_to(folder.resolve()):
            raise ArgumentError(f"output {output}: lies in the input folder {folder}; name another place")
