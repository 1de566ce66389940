"""`watch`: look at the rows of files that were not seen before, with a state on disk from which any run goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from uqprism.ensemble.columns import Columns
from uqprism.errors import BadFileError
from uqprism.files.claim import claimed
from uqprism.files.paths import PathLike, Span, find_files
from uqprism.files.read import open_input
from uqprism.files.state import blaming
from uqprism.files.stream import default_threads, overlapped
from uqprism.files.watching.logs import Log, prometheus_text
from uqprism.files.watching.place import STATE, Place, Progress, after, fingerprint, resumed, seen_state
from uqprism.files.watching.rows import FileReader
from uqprism.measures import RuleLike
from uqprism.support.progress import ProgressBar, progress_bar
from uqprism.support.storage import check_writable, write_text
from uqprism.tasks.recalibration import Recalibration
from uqprism.tasks.watch import Alarm, Estimate, Update, Watch
from uqprism.tasks.watch.rows import Rows
from uqprism.tasks.watch.stored import save

WINDOW = 1_000  # rows
OFTEN = 2.0  # seconds from one state on disk to the next


@dataclass(frozen=True)
class WatchReport:
    """What a run of `watch` did.

    Attributes:
        watch: the watch, with its alarms and its history.
        rows: how many rows this run read.
        windows: how many windows it completed.
        new: the alarms that it raised.
        bad_files: the files that could not be read, each with the reason.
        seconds: how long it took.
    """

    watch: Watch
    rows: int
    windows: int
    new: tuple[Alarm, ...]
    bad_files: Mapping[str, str]
    seconds: float

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms, also of earlier runs."""
        return self.watch.alarms

    @property
    def estimate(self) -> Estimate | None:
        """The mean penalty in the latest window."""
        return self.watch.estimate

    def __str__(self) -> str:
        waiting = f", {self.watch.waiting:,} rows wait for their window to be full" if self.watch.waiting else ""
        speed = f" ({self.rows / self.seconds:,.0f} rows/s)" if self.seconds else ""
        lines = [f"{self.rows:,} new rows, {self.windows:,} windows in {self.seconds:.1f} s{speed}{waiting}"]
        known = {alarm.test for alarm in self.new}
        lines += [
            f"{'ALARM' if alarm.test in known else 'alarm of before'}: {alarm.sentence} {alarm.advice}" for alarm in self.alarms
        ]
        if not self.alarms:
            lines.append("no alarm")
        return "\n".join(lines)


def watch(
    reference: PathLike | Sequence[PathLike],
    inputs: PathLike | Sequence[PathLike],
    *,
    state: PathLike | None = None,
    rule: RuleLike = "crps",
    level: float = 0.05,
    window: int = WINDOW,
    groups: str | None = None,
    target: str | None = None,
    outcomes: PathLike | Sequence[PathLike] | None = None,
    recalibration: Recalibration | PathLike | None = None,
    columns: Columns | None = None,
    log: PathLike | None = None,
    prometheus: PathLike | None = None,
    progress: bool = False,
) -> WatchReport:
    """Watch Parquet, CSV or NPZ files, whatever their size, for changes since a reference.

    Rows are read in the order of the inputs; a window goes on from one file to the next. With `state`, the next run reads what is
    new since: further files, and further rows of files that have grown. The state is written every two seconds, whole or not at
    all; it has a fixed size but for a line for each file. A run that was killed goes on from there, and its log and its alarms
    are those of a run that was not. Bad rows are left out and counted; bad files are named, and read again by the next run.

    Args:
        reference: files of predictions or of measures for rows as usual, that the models were not trained on.
        inputs: files, folders and patterns of new rows.
        state: a folder for the state; without one, nothing is kept.
        rule: as for `uqprism.Watch`, as are `level` and `recalibration`, which may be a file here.
        level: see `rule`.
        window: rows of a window.
        groups: a column; each group is also tested by itself.
        target: the column of the outcomes, with nulls where they are not known yet.
        outcomes: files of rows that were seen before, whose outcomes have come since.
        recalibration: see `rule`.
        columns: which columns hold the members.
        log: a file that gets a line of JSON for each window.
        prometheus: a file for Prometheus (the text format that its node exporter collects), written at the end of the run.
        progress: whether to draw a bar.

    Raises:
        BusyError: another run has the state.
    """
    for path in (log, prometheus):
        if path is not None:
            check_writable(path)
    began = time.perf_counter()
    if recalibration is not None and not isinstance(recalibration, Recalibration):
        recalibration = Recalibration.load(recalibration)
    folder = None if state is None else Path(state)
    options: dict[str, Any] = {"level": level, "window": window, "groups": groups, "target": target}
    settings = {
        **options,
        "rule": str(getattr(rule, "name", rule)),
        "recalibration": None if recalibration is None else asdict(recalibration),
        "reference": fingerprint(find_files(reference)),
    }
    with nullcontext() if folder is None else claimed(folder, folder=True):
        found = None if folder is None else resumed(folder, settings)
        if found is None:
            found = Watch(reference, rule, recalibration=recalibration, columns=columns, **options), Place(settings)
        run = _Run(*found, folder, log)
        spans = find_files(inputs)
        with progress_bar("watching", len(spans), shown=progress) as bar:
            run.read(spans, bar)
        if outcomes is not None:
            run.read_outcomes(find_files(outcomes))
        run.commit()
        if prometheus is not None:
            write_text(prometheus, prometheus_text(run.watch))
    return WatchReport(run.watch, run.rows, run.windows, tuple(run.new), run.bad, time.perf_counter() - began)


class _Run:
    """One run: what it has read, and what it has found."""

    def __init__(self, watch: Watch, place: Place, folder: Path | None, log: PathLike | None) -> None:
        self.watch, self.place, self.folder = watch, place, folder
        self.log = None if log is None else Log.opened(Path(log), place.log)
        self.rows = self.windows = 0
        self.new: list[Alarm] = []
        self.bad: dict[str, str] = {}
        self.commit()  # before the first line of the log, which a killed run would leave without a state

    def commit(self) -> None:
        """Write the log, then the state that says how much of the log it knows; the next run cuts off what is more."""
        if self.log is not None:
            self.place.log = self.log.commit()
        if self.folder is not None:
            save(self.watch, self.folder / STATE, self.place.record())
        self.committed = time.monotonic()

    def read(self, spans: Sequence[Span], bar: ProgressBar) -> None:
        """Read what is new in these files; those that cannot be read are left for the next run."""
        for span in spans:
            try:
                with blaming(span.path):
                    self._read(span, bar)
            except BadFileError as error:
                self.bad[str(span.path)] = error.reason
            bar.update(advance=1)

    def _read(self, span: Span, bar: ProgressBar) -> None:
        name, seen = os.path.realpath(span.path), seen_state(span.path)
        before = self.place.files.get(name, Progress(0, ""))
        if before.seen == seen:
            return
        span = after(span, self.watch.reader.columns, before.rows)
        end = span.first_row
        with closing(open_input(span, self.watch.reader.columns)) as file:
            reader = FileReader(file, self.watch.reader)

            def take(rows: Rows) -> None:
                nonlocal end
                old = min(max(before.rows - end, 0), len(rows))
                start, end = end + old, end + len(rows)
                if start < end:
                    self._note(self.watch.take(rows[old:], str(span.path), start))
                    self.rows += end - start
                    self.place.files[name] = Progress(end, "")
                bar.update(text=f"{self.rows:,} rows")
                if time.monotonic() - self.committed > OFTEN:
                    self.commit()

            overlapped(reader.batches(), reader.rows, take, threads=default_threads())
        if end < before.rows:
            raise BadFileError(
                span.path, f"has {end:,} rows, but {before.rows:,} were read from it; give other rows another name"
            )
        self.place.files[name] = Progress(end, seen)

    def _note(self, found: Update) -> None:
        self.windows += len(found.windows)
        self.new += found.new
        if self.log is not None:
            self.log.add(found.windows)

    def read_outcomes(self, spans: Sequence[Span]) -> None:
        """Read files of late outcomes that were not read before."""
        for span in spans:
            name, seen = os.path.realpath(span.path), seen_state(span.path)
            if self.place.outcomes.get(name) == seen:
                continue
            with blaming(span.path), closing(open_input(span, self.watch.reader.columns)) as file:
                reader = FileReader(file, self.watch.reader)
                rows = Rows.joined([reader.rows(batch) for batch in reader.batches()])
                self._note(self.watch.take_outcomes(rows, str(span.path)))
            self.place.outcomes[name] = seen
