"""`watch`: look at the rows of files that were not seen before, with a state on disk from which any run goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.ensemble.columns import Columns
from uqprism.files.claim import claimed
from uqprism.files.paths import PathLike, check_outside, find_files
from uqprism.measures import RuleLike
from uqprism.support.progress import progress_bar
from uqprism.support.storage import check_writable, write_text
from uqprism.tasks.recalibration import Recalibration
from uqprism.tasks.watch import Alarm, Estimate, Watch

WINDOW = 1_000  # rows


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
    from uqprism.files.watching.logs import prometheus_text
    from uqprism.files.watching.place import Place, fingerprint, resumed
    from uqprism.files.watching.reading import Run

    for path in (log, prometheus):
        if path is not None:
            check_writable(path)
    began = time.perf_counter()
    if recalibration is not None and not isinstance(recalibration, Recalibration):
        recalibration = Recalibration.load(recalibration)
    folder = None if state is None else Path(state)
    if folder is not None:
        check_outside(inputs, folder)
    options: dict[str, Any] = {"level": level, "window": window, "groups": groups, "target": target}
    settings = {
        **options,
        "rule": str(getattr(rule, "name", rule)),
        "recalibration": None if recalibration is None else json.loads(recalibration.to_json()),
        "reference": fingerprint(find_files(reference)),
    }
    with nullcontext() if folder is None else claimed(folder, folder=True):
        found = None if folder is None else resumed(folder, settings)
        if found is None:
            found = Watch(reference, rule, recalibration=recalibration, columns=columns, **options), Place(settings)
        run = Run(*found, folder, log)
        spans = find_files(inputs)
        with progress_bar("watching", len(spans), shown=progress) as bar:
            run.read(spans, bar)
        if outcomes is not None:
            run.read_outcomes(find_files(outcomes))
        run.commit()
        if prometheus is not None:
            write_text(prometheus, prometheus_text(run.watch))
    return WatchReport(run.watch, run.rows, run.windows, tuple(run.new), run.bad, time.perf_counter() - began)
