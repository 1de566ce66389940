"""Records of finished files: which can be kept when a run is resumed, and the manifest of a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import Part
from uqprism.files.read import naming, pa, pq
from uqprism.files.stream import FinishedPart, part_record
from uqprism.files.write import RECORD
from uqprism.support.storage import write_text
from uqprism.support.versions import __version__

MANIFEST = "_uqprism.json"


def recorded(path: Path) -> dict[str, Any] | None:
    """What this file was made from, and how; None if `score` did not write it, or its format cannot hold a record."""
    if path.suffix != ".parquet":
        return None
    try:
        about = (pq.read_metadata(path).metadata or {}).get(RECORD.encode())
    except (pa.ArrowException, OSError):
        return None
    return None if about is None else json.loads(about)


def existing(output: Path) -> dict[Path, dict[str, Any] | None]:
    """The files that exist already, each with its record."""
    if output.is_dir():
        # The manifest and temporary files.
        files = [path for path in sorted(output.rglob("*")) if path.is_file() and not path.name.startswith(("_", "."))]
    else:
        files = [output] if output.exists() else []
    return {path: recorded(path) for path in files}


def finished(output: Path, parts: Sequence[Part], options: ScoreOptions, *, resume: bool, overwrite: bool) -> list[FinishedPart]:
    """The parts that are complete and can be kept. Other existing files are an error, unless they are to be overwritten.

    Raises:
        ArgumentError: the output exists and neither `resume` nor `overwrite` is set; it was made from other inputs or
            with other options; or the folder has files that this program did not write.
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
    for path in found:
        if path not in wanted:
            raise ArgumentError(f"output {output}: {path.name} is not a part of this run; pass --overwrite to start again")
    return [_kept(wanted[path], about, options) for path, about in found.items()]


def _kept(part: Part, about: dict[str, Any] | None, options: ScoreOptions) -> FinishedPart:
    if about is None:
        raise ArgumentError(f"output {part.target}: has no record of its making (only Parquet files have one); pass --overwrite")
    now = json.loads(json.dumps(part_record(part, options)))  # as it would be read back
    if about["bad_rows"] == 0:  # then `on_bad` makes no difference
        about["options"]["on_bad"] = now["options"]["on_bad"]
    changed = _differences(about, now)
    if changed:
        raise ArgumentError(f"output {part.target}: was made with {'; '.join(changed)}; pass --overwrite to start again")
    return FinishedPart(part, about["rows"], about["bad_rows"])


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The differences between two records, in words."""
    found = [f"version {before['version']}, now {now['version']}"] if before["version"] != now["version"] else []
    old, new = before["options"], now["options"]
    found += [f"{name} {_brief(old.get(name))}, now {_brief(new[name])}" for name in new if old.get(name) != new[name]]
    sources = {source["name"]: source for source in before["sources"]}
    for source in now["sources"]:
        earlier = sources.pop(source["name"], None)
        if earlier is None:
            found.append(f"no input {source['name']}")
        elif earlier != source:
            what = (
                "size" if earlier["size"] != source["size"] else "time" if earlier["modified"] != source["modified"] else "rows"
            )
            found.append(f"another {source['name']} (its {what} has changed)")
    return found + [f"also the input {name}" for name in sources]


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def remove_stale(output: Path, parts: Sequence[Part]) -> None:
    """Remove the parts of an earlier run that this complete one did not replace."""
    wanted = {part.target for part in parts}
    for path, about in existing(output).items():
        if about is not None and path not in wanted:  # never a file that another program wrote
            path.unlink()


def write_manifest(output: Path, made: Sequence[FinishedPart], options: ScoreOptions) -> None:
    """Write the manifest, which lists the parts of the folder."""
    entries = [
        {
            "part": one.part.target.relative_to(output).as_posix(),
            "sources": [span.record() for span in one.part.spans],
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
    }
    target = output / MANIFEST
    with naming(target, "written"):
        write_text(target, json.dumps(about, indent=1) + "\n")
