"""What a run of `score` has done: its report, and its summary as JSON, also while it fails."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqprism.errors import ArgumentError, BadFileError, BadFilesError, BadRowsError, ExitCode, FileError, UqprismError
from uqprism.files.options import ScoreOptions, Tolerance
from uqprism.files.paths import ENDINGS, Part, PathLike, Span, is_readable
from uqprism.support.storage import check_writable, write_text
from uqprism.support.versions import versions

if TYPE_CHECKING:
    from uqprism.files.stream import FinishedPart

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BadFile:
    """An input that could not be scored, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class ScoreReport:
    """The result of `score`.

    Attributes:
        rows: the rows read for all of the output, good and bad.
        bad_rows: how many of them had invalid members.
        seconds: the duration of the run.
        parts: the files written, or found complete when resuming.
        output: the file or folder as given.
        resumed_rows: how many of `rows` an earlier run had written.
        bad_files: the inputs that could not be scored, with the reasons; the output has none of their rows.
        removed: parts of an earlier run that were removed, because their inputs are gone, were bad, or were cut otherwise.
        inputs: the number of input files.
        locked: whether the file system of the output has locks. If not, start no second run into the same output.
    """

    rows: int
    bad_rows: int
    seconds: float
    parts: tuple[Path, ...]
    output: Path
    resumed_rows: int = 0
    bad_files: tuple[BadFile, ...] = ()
    removed: tuple[Path, ...] = ()
    inputs: int = 0
    locked: bool = True

    @property
    def rows_per_second(self) -> float:
        """The rows of this run per second."""
        return (self.rows - self.resumed_rows) / max(self.seconds, 1e-9)

    def __str__(self) -> str:
        new = self.rows - self.resumed_rows
        kept = f", {self.resumed_rows:,} rows kept from an earlier run" if self.resumed_rows else ""
        kept += f", {_counted(len(self.removed), 'old part')} removed" if self.removed else ""
        bad = f", {self.bad_rows:,} bad" if self.bad_rows else ", none bad"
        return f"scored {new:,} rows in {self.seconds:.1f} s ({self.rows_per_second:,.0f} rows/s){kept}{bad}: {self.output}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@dataclass
class Run:
    """A run of `score`, and what it has done so far."""

    output: Path
    given: dict[str, Any]  # the arguments, for the summary
    options: ScoreOptions | None = None
    tolerance: Tolerance = field(default_factory=Tolerance)
    inputs: Sequence[Span] = ()
    kept: list[FinishedPart] = field(default_factory=list)
    made: list[FinishedPart] = field(default_factory=list)
    bad: dict[Path, BadFileError] = field(default_factory=dict)
    removed: list[Path] = field(default_factory=list)
    locked: bool = True
    started: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)

    def without_bad(self, part: Part) -> Part | None:
        """The part without the inputs that turned out bad; None if none is left."""
        spans = tuple(span for span in part.spans if span.path not in self.bad)
        return Part(part.target, spans) if spans else None

    def add(self, one: FinishedPart) -> None:
        """Note a part as written."""
        self.made.append(one)
        log.info("wrote %s: %d rows, %d bad", one.part.target, one.rows, one.bad_rows)
        self._drop_parts_of_bad_files()

    def set_aside(self, error: BadFileError) -> None:
        """Note an input as bad, and remove what was made of it; raises if the run is to stop for it."""
        path = Path(error.path)
        self.bad[path] = error
        log.error("bad file: %s", str(error).encode(errors="backslashreplace").decode())  # for handlers that write UTF-8
        self._drop_parts_of_bad_files()
        if self.tolerance.on_bad_file == "fail" or len(self.inputs) == 1:
            raise error

    def _drop_parts_of_bad_files(self) -> None:
        """Remove the parts of a file that was cut into several, if another of them showed it to be bad."""
        for found in (self.kept, self.made):
            for one in [
                one for one in found if any(span.path in self.bad for span in one.part.spans) and len(one.part.spans) == 1
            ]:
                one.part.target.unlink(missing_ok=True)
                found.remove(one)

    def report(self) -> ScoreReport:
        """The report of what has been done so far."""
        done = [*self.kept, *self.made]
        return ScoreReport(
            rows=sum(one.rows for one in done),
            bad_rows=sum(one.bad_rows for one in done),
            seconds=time.perf_counter() - self.clock,
            parts=tuple(sorted(one.part.target for one in done)),
            output=self.output,
            resumed_rows=sum(one.rows for one in self.kept),
            bad_files=tuple(BadFile(path, error.reason) for path, error in sorted(self.bad.items())),
            removed=tuple(sorted(self.removed)),
            inputs=len(self.inputs),
            locked=self.locked,
        )

    def conclude(self) -> ScoreReport:
        """The report of the finished run; raises for bad files and for too many bad rows."""
        report = self.report()
        named = bad_files_text(report) if report.bad_files else f"{report.output}: the output is complete"
        if self.tolerance.exceeded(report.bad_rows, report.rows):  # graver than bad files: what is there may be wrong
            too_many = f"{report.bad_rows:,} of {report.rows:,} rows were bad, more than {self.tolerance} (--max-bad)"
            raise BadRowsError(f"{named}\n{too_many}" if report.bad_files else f"{named}, but {too_many}", report)
        if report.bad_files and (self.tolerance.on_bad_file == "name" or not report.parts):  # no output at all is never fine
            raise BadFilesError(named, report)
        return report

    @contextmanager
    def summarised(self, path: PathLike | None) -> Iterator[None]:
        """Write the summary of the run to this file when the block ends, also if it fails."""
        target = None if path is None else _checked(Path(path), self.output)
        code: int = ExitCode.DONE
        error: str | None = None
        log.info("start: output %s, %s", self.output, json.dumps(self.given, default=str))
        try:
            yield
        except BaseException as failure:
            code, error = _code(failure), str(failure) or type(failure).__name__
            raise
        finally:
            report = self.report()
            log.info("end: exit code %d, %s", code, error if error is not None else report)
            if target is not None:
                try:
                    write_text(target, json.dumps(self._summary(report, code, error), indent=1) + "\n")
                except OSError as problem:
                    log.error("summary: %s", problem)
                    if error is None:  # else the first error tells more
                        raise

    def _summary(self, report: ScoreReport, code: int, error: str | None) -> dict[str, Any]:
        sources = [source for one in (*self.kept, *self.made) for source in one.record["sources"]]
        return {
            "exit_code": code,
            "error": error,
            "started": datetime.fromtimestamp(self.started, UTC).isoformat(timespec="seconds"),
            "seconds": round(report.seconds, 3),
            "output": os.fspath(self.output),
            "options": self.given if self.options is None else {**self.given, **self.options.record()},
            "inputs": len(self.inputs),
            "scored": sorted({source["name"] for source in sources}),
            "rows": report.rows,
            "resumed_rows": report.resumed_rows,
            "bad_rows": report.bad_rows,
            "bad_files": [{"path": os.fspath(one.path), "reason": one.reason} for one in report.bad_files],
            "parts": [os.fspath(path) for path in report.parts],
            "removed_parts": [os.fspath(path) for path in report.removed],
            "locked": report.locked,
            "versions": versions(),
        }


def bad_files_text(report: ScoreReport) -> str:
    """All bad files, each on a line with its reason."""
    rest = "the others are scored" if report.parts else "nothing is scored"
    lines = [
        f"{len(report.bad_files)} of {report.inputs} input files are bad, {rest}:",
        *(f"  {one}" for one in report.bad_files),
    ]
    return "\n".join([*lines, "deliver these files again, then run again with --resume"])


def _checked(path: Path, output: Path) -> Path:
    """Refuse a summary that could not be written, or that a later run would take for something else."""
    if path.suffix != ".json":
        raise ArgumentError(f"summary (--summary) {path}: must end in .json")
    _check_beside(path, output, "summary (--summary)")
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise FileError(f"summary (--summary) {path}: {what}; name a file in an existing folder")
    check_writable(path)
    return path


def check_log_file(path: PathLike, output: PathLike) -> None:
    """Refuse a log file that would be appended to a file of predictions or be taken for a part."""
    if is_readable(Path(path)):
        raise ArgumentError(f"log file (--log-file) {os.fspath(path)}: must not end in {ENDINGS}")
    _check_beside(Path(path), Path(output), "log file (--log-file)")


def _check_beside(path: Path, output: Path, what: str) -> None:
    """Refuse a file in the output folder, where only parts may be."""
    if path.resolve().is_relative_to(output.resolve()):
        raise ArgumentError(f"{what} {path}: lies in the output {output}; name a place beside it")


def _code(failure: BaseException) -> int:
    """The exit code of the command that this ends."""
    if isinstance(failure, UqprismError):
        return failure.exit_code
    if isinstance(failure, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(failure, SystemExit) and isinstance(failure.code, int):
        return failure.code  # of a signal
    return ExitCode.ERROR
