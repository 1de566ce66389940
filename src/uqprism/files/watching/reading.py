"""One run of a watch: what is new in files goes through it, and is kept with what was read."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from uqprism.errors import BadFileError
from uqprism.files.paths import PathLike, Span
from uqprism.files.read import open_input
from uqprism.files.state import blaming
from uqprism.files.stream import default_threads, overlapped
from uqprism.files.watching.logs import Log
from uqprism.files.watching.place import STATE, Place, Progress, after, seen_state
from uqprism.files.watching.rows import FileReader
from uqprism.support.progress import ProgressBar
from uqprism.tasks.watch import Alarm, Update, Watch
from uqprism.tasks.watch.rows import Rows

OFTEN = 2.0  # seconds from one state on disk to the next


class Run:
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
            self.watch.save(self.folder / STATE, beside=self.place.record())
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
