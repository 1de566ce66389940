"""Records of finished files: which can be kept when a run is resumed, and the manifest of a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uqprism.errors import ArgumentError, BusyError
from uqprism.files.claim import LOCK
from uqprism.files.options import ScoreOptions
from uqprism.files.outcome import BadFile
from uqprism.files.paths import Part, ending
from uqprism.files.read import naming, pa, pq
from uqprism.files.state import FileState
from uqprism.files.stream import FinishedPart
from uqprism.files.write import RECORD
from uqprism.support.storage import write_text
from uqprism.support.versions import __version__

MANIFEST = "_uqprism.json"
Record = dict[str, Any]


def recorded(path: Path) -> Record | None:
    """What this file was made from, and how; None if `score` did not write it, or its format cannot hold a record."""
    if ending(path) != ".parquet":
        return None
    try:
        text = (pq.read_metadata(path).metadata or {}).get(RECORD.encode(), b"null")
        about = json.loads(text)
    except (pa.ArrowException, OSError, ValueError, RecursionError):
        return None
    return about if _is_record(about) else None


def _is_record(about: Any) -> bool:
    """Whether these are the entries of a record; any program can write a file that says it has one."""
    kinds = {"version": str, "options": dict, "sources": list, "rows": int, "bad_rows": int}
    if not isinstance(about, dict) or not all(isinstance(about.get(name), kind) for name, kind in kinds.items()):
        return False
    return "on_bad" in about["options"] and all(isinstance(source, dict) for source in about["sources"])


def existing(output: Path) -> dict[Path, Record | None]:
    """The files that exist already, each with its record."""
    if output.is_dir():
        for inner in (path for name in (MANIFEST, LOCK) for path in output.rglob(name) if path.parent != output):
            raise ArgumentError(
                f"output {output}: {inner.parent.relative_to(output)} in it is the output of another run; name another"
            )
        # The manifest and temporary files.
        files = [path for path in sorted(output.rglob("*")) if path.is_file() and not path.name.startswith(("_", "."))]
    else:
        files = [output] if output.exists() else []
    return {path: recorded(path) for path in files}


def finished(output: Path, parts: Sequence[Part], options: ScoreOptions, *, resume: bool, overwrite: bool) -> list[FinishedPart]:
    """The parts that are complete and made from inputs as they are now. Others are to be made again, or removed at the end.

    Raises:
        ArgumentError: the output exists and neither `resume` nor `overwrite` is set; it was made with other options; or
            the folder has files that this program did not write.
    """
    if resume and overwrite:
        raise ArgumentError("resume and overwrite (--resume, --overwrite) contradict each other; choose one")
    found = existing(output)
    if found and not (resume or overwrite):
        raise ArgumentError(f"output {output}: exists already; pass overwrite or resume (--overwrite, --resume), or name another")
    if output.is_dir() and (foreign := [path for path, about in found.items() if about is None]):
        raise ArgumentError(
            f"output {output}: {foreign[0].relative_to(output)} was not written by uqprism score; name another folder"
        )
    if not resume:
        return []
    wanted = {part.target: part for part in parts}
    kept = []
    for path, about in found.items():
        record = _of_this_run(path, about, options)
        if path in wanted and _sources_now(wanted[path]) == [_identity(source) for source in record["sources"]]:
            kept.append(FinishedPart(wanted[path], record))
    return kept


def _of_this_run(path: Path, about: Record | None, options: ScoreOptions) -> Record:
    """The record of a part; refuses one that was made with other options."""
    if about is None:
        raise ArgumentError(f"output {path}: has no record of its making (only Parquet files have one); pass --overwrite")
    now = {"version": __version__, "options": _plain(options.record())}
    if about["bad_rows"] == 0:  # then `on_bad` makes no difference
        now["options"]["on_bad"] = about["options"]["on_bad"]
    changed = _differences(about, now)
    if changed:
        raise ArgumentError(f"output {path}: was made with {'; '.join(changed)}; pass --overwrite to start again")
    return about


def _plain(value: Any) -> Any:
    """The value as it is read back from JSON."""
    return json.loads(json.dumps(value))


def _sources_now(part: Part) -> list[Record] | None:
    """What this part would be made from now; None if an input is gone."""
    try:
        return [span.record(span.state or FileState.of(span.path)) for span in part.spans]
    except OSError:
        return None


def _identity(source: Record) -> Record:
    return {name: value for name, value in source.items() if name != "rows"}


def _differences(before: Record, now: Record) -> list[str]:
    """The differences between the options of two records, in words."""
    found = [f"version {before['version']}, now {now['version']}"] if before["version"] != now["version"] else []
    old, new = before["options"], now["options"]
    return found + [f"{name} {_brief(old.get(name))}, now {_brief(new[name])}" for name in new if old.get(name) != new[name]]


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def remove_stale(output: Path, made: Sequence[FinishedPart]) -> list[Path]:
    """Remove the parts of earlier runs that are not among these."""
    wanted = {one.part.target for one in made}
    stale = [path for path, about in existing(output).items() if about is not None and path not in wanted]
    for path in stale:  # never a file that another program wrote
        path.unlink()
    return stale


def check_parts(output: Path, made: Sequence[FinishedPart]) -> None:
    """Raise if a part is no longer what this run wrote."""
    for one in made:
        if recorded(one.part.target) != _plain(one.record):
            raise BusyError(f"output {output}: {one.part.target} was changed by another program; run again with --resume")


def write_manifest(
    output: Path, made: Sequence[FinishedPart], options: ScoreOptions, *, bad_files: Sequence[BadFile], removed: Sequence[Path]
) -> None:
    """Write the manifest, which lists the parts of the folder, and the inputs and parts that are not in it."""
    entries = [
        {
            "part": one.part.target.relative_to(output).as_posix(),
            "sources": one.record["sources"],
            "rows": one.rows,
            "bad_rows": one.bad_rows,
        }
        for one in sorted(made, key=lambda one: os.fspath(one.part.target))  # a cluster finishes them in any order
    ]
    about = {
        "uqprism": __version__,
        "options": options.record(),
        "rows": sum(one.rows for one in made),
        "bad_rows": sum(one.bad_rows for one in made),
        "parts": entries,
        "bad_files": [{"path": os.fspath(one.path), "reason": one.reason} for one in bad_files],
        "removed": [path.relative_to(output).as_posix() for path in removed],
    }
    target = output / MANIFEST
    with naming(target, "written"):
        write_text(target, json.dumps(about, indent=1) + "\n")
