"""From an experiment to its folder: run, draw, write; or read what is there.

result.json   settings, seeds, versions, hardware, time, claims, tables, notes; written last, so its presence means finished
arrays.npz    what the pictures show
NAME.png/svg  the pictures
report.md     all of it to read
_work/        what an interrupted run goes on from; removed at the end
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from uqprism import __version__
from uqprism.errors import ArgumentError, FileError, InvalidValueError
from uqprism.experiments.base import Claim, Experiment, Result
from uqprism.experiments.report import page
from uqprism.storage import read_npz, require, write_npz, write_text

RECORD, ARRAYS, REPORT, WORK = "result.json", "arrays.npz", "report.md", "_work"
KIND = "uqprism.experiments.Result"
PACKAGES = ("numpy", "torch", "matplotlib")


@dataclass(frozen=True)
class Outcome:
    """What `reproduce` returns.

    Attributes:
        result: the numbers.
        record: what result.json holds beside them: preset, versions, hardware, time.
        folder: where all of it is.
        reused: True where a finished result was read and nothing was run.
    """

    result: Result
    record: Mapping[str, Any]
    folder: Path
    reused: bool

    def __str__(self) -> str:
        held = sum(claim.holds for claim in self.result.claims)
        how = f"finished on {self.record['finished']} (read, not run again)" if self.reused else f"{self.record['seconds']:.0f} s"
        lines = [f"{self.record['experiment']}: {held} of {len(self.result.claims)} of the paper's statements hold; {how}"]
        lines += [f"  {'holds' if claim.holds else 'FALSE':<7}{claim.name}: {claim.measured}" for claim in self.result.claims]
        if self.record["preset"] == "quick":
            lines.append("A quick run shows how it works; for verdicts take --preset paper.")
        return "\n".join([*lines, f"report: {self.folder / REPORT}"])


def produce(
    experiment: Experiment[Any],
    preset: str,
    *,
    out: str | os.PathLike[str],
    seed: int | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Outcome:
    """Run this preset into the folder, or read its finished result there."""
    config = experiment.config(preset, seed)
    folder = Path(out)
    if overwrite:
        (folder / RECORD).unlink(missing_ok=True)
        shutil.rmtree(folder / WORK, ignore_errors=True)
    elif (folder / RECORD).exists():
        return _finished(experiment, config, folder)
    require("matplotlib", extra="report")  # before hours of work, not after
    try:
        (folder / WORK).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write into {folder}: {error.strerror}") from None
    shown = sys.stderr.isatty() if progress is None else progress
    started = time.perf_counter()
    result = experiment.run(config, folder / WORK, shown)
    _write(experiment, preset, result, folder, time.perf_counter() - started)
    shutil.rmtree(folder / WORK, ignore_errors=True)
    return Outcome(*load(folder), folder, reused=False)


def load(folder: str | os.PathLike[str]) -> tuple[Result, dict[str, Any]]:
    """The result in a folder, and the rest of its record."""
    where = Path(folder)
    record = _record(where)
    if not (where / ARRAYS).exists():
        raise FileError(f"there is no {where / ARRAYS}: the result is not complete, make it again with --overwrite")
    _, arrays = read_npz(where / ARRAYS, KIND)
    record["claims"] = tuple(Claim(**claim) for claim in record["claims"])
    record["notes"] = tuple(record["notes"])
    names = {each.name for each in dataclasses.fields(Result)} - {"arrays"}
    result = Result(**{name: record.pop(name) for name in names}, arrays=arrays)
    return result, record


def announce(text: str, shown: bool) -> None:
    """What comes next, on standard error."""
    if shown:
        sys.stderr.write(f"{text}\n")


def as_data(config: Any) -> dict[str, Any]:
    """Settings as they are in a file."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def _record(folder: Path) -> dict[str, Any]:
    path = folder / RECORD
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        raise FileError(f"there is no {path}") from None
    except ValueError:
        record = None
    if not isinstance(record, dict) or not {"experiment", "config", "claims", "finished"} <= set(record):
        raise InvalidValueError(f"{path} was not written by uqprism reproduce, or was changed since")
    return record


def _finished(experiment: Experiment[Any], config: Any, folder: Path) -> Outcome:
    """What is in the folder, if it is what was asked for."""
    there, wanted = _record(folder), as_data(config)
    way_out = "choose another folder with --out, or replace it with --overwrite"
    if there["experiment"] != experiment.name:
        raise ArgumentError(f"{folder} holds the experiment {there['experiment']!r}, not {experiment.name!r}; {way_out}")
    if there["config"] != wanted:
        names = [name for name in {**wanted, **there["config"]} if there["config"].get(name) != wanted.get(name)]
        different = ", ".join(f"{name} is {there['config'].get(name)} there and {wanted.get(name)} here" for name in names)
        raise ArgumentError(f"{folder} holds a result of other settings ({different}); {way_out}")
    return Outcome(*load(folder), folder, reused=True)


def _write(experiment: Experiment[Any], preset: str, result: Result, folder: Path, seconds: float) -> None:
    from uqprism.report.drawing import save

    record = {
        "experiment": experiment.name,
        "preset": preset,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "versions": versions(),
        "hardware": hardware(),
        **{each.name: getattr(result, each.name) for each in dataclasses.fields(Result) if each.name != "arrays"},
    }
    record["claims"] = [dataclasses.asdict(claim) for claim in result.claims]
    write_npz(folder / ARRAYS, KIND, {"experiment": experiment.name}, dict(result.arrays))
    pictures = experiment.draw(result)
    for name, picture in pictures.items():
        save(picture.figure, folder / name)
    captions = {name: picture.caption for name, picture in pictures.items()}
    write_text(folder / REPORT, page(experiment, result, record, captions))
    write_text(folder / RECORD, json.dumps(_without_nan(record), indent=2, allow_nan=False) + "\n")


def _without_nan(value: Any) -> Any:
    """The same with null for what JSON has no word for: a finished run must not be lost to one number."""
    if isinstance(value, Mapping):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """Of this package, Python and what the numbers depend on."""
    found = {"uqprism": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """The processor, how many cores, and the device that PyTorch has used, if it was loaded."""
    torch = sys.modules.get("torch")
    device = torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else "none"
    return {"processor": _processor(), "cores": os.cpu_count(), "accelerator": device}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
