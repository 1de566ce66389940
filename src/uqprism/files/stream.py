"""Streaming the rows of input files through the measures into one output file, with few batches in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from uqprism.ensemble.layout import Layout, crossing
from uqprism.errors import BadFileError, InvalidValueError, warn
from uqprism.files.claim import Claim
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import Part, Span, ending
from uqprism.files.read import Batch, InputFile, naming, open_input, pa, pq, row_group_sizes
from uqprism.files.rows import ScoredBatch, Scorer
from uqprism.files.state import FileState, blaming, state_of, unchanged
from uqprism.files.write import OutputFile, describe_output, open_output
from uqprism.support.parallel import threads
from uqprism.support.storage import atomic_path
from uqprism.support.versions import __version__

Item = TypeVar("Item")
Result = TypeVar("Result")
Tick = Callable[[int, float], None]  # rows and bytes done
MOST_THREADS = 4  # reading and writing cannot feed more


@dataclass(frozen=True)
class FinishedPart:
    """A part that is complete, and its record: how it was made, from what, and how many rows were read and were bad."""

    part: Part
    record: dict[str, Any]

    @property
    def rows(self) -> int:
        """The rows read, good and bad."""
        return self.record["rows"]

    @property
    def bad_rows(self) -> int:
        """How many of the rows were bad."""
        return self.record["bad_rows"]


def default_threads() -> int:
    """How many batches to compute at a time on this machine."""
    return min(MOST_THREADS, threads())


def write_part(part: Part, options: ScoreOptions, claim: Claim, *, threads: int, tick: Tick = lambda *_: None) -> FinishedPart:
    """Write one part, atomically, if the output is still the run's own then.

    Raises:
        BadFileError: an input that cannot be scored, or that changed while it was read. The part is not written.
        BusyError: another run has taken the output.
    """
    with naming(part.target, "written"):
        part.target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(part.target, claim.run) as temporary, closing(_PartWriter(part, options, tick)) as file:
            for span in part.spans:
                file.add(temporary, span, threads)
            record = file.finish()
            claim.check()
    describe_output(part.target, file.schema)
    pa.default_memory_pool().release_unused()  # Arrow keeps freed memory until asked
    return FinishedPart(part, record)


class _PartWriter:
    """The output file of one part, opened with the first input, and the number of its rows."""

    def __init__(self, part: Part, options: ScoreOptions, tick: Tick) -> None:
        self.part, self.options, self.tick = part, options, tick
        self.output: OutputFile | None = None
        self.schema: Any = None
        self.layout: Layout | None = None
        self.sources: list[dict[str, Any]] = []
        self.rows = self.bad_rows = self.crossed = 0

    def add(self, path: Path, span: Span, threads: int) -> None:
        """Append the rows of one input; `path` is the file to open with the first."""
        with unchanged(span.path, span.state) as state, blaming(span.path):
            with closing(open_input(span, self.options.columns, as_text=ending(self.part.target) == ".csv")) as source:
                scorer, before = Scorer(source, self.options), self.rows
                self._begin(path, source, scorer)
                _stream(span, state, source, scorer, self._write, threads=threads)
            read, expected = self.rows - before, source.expected_rows
            if expected not in (None, read):
                raise BadFileError(span.path, f"holds {read:,} rows, but its footer says {expected:,}; it is damaged")
        self.sources.append({**span.record(state), "rows": read})

    def _begin(self, path: Path, source: InputFile, scorer: Scorer) -> None:
        if self.output is None:
            self.schema, self.layout = scorer.schema, source.layout
            self.output = open_output(path, ending(self.part.target), self.schema, source.layout, self.options)
            self.output.write(pa.RecordBatch.from_pylist([], schema=self.schema))  # a file without rows has its columns too
        elif not scorer.schema.equals(self.schema):
            first = self.part.spans[0].path
            raise BadFileError(source.path, f"its columns are not those of {first}; name a folder for the output")

    def _write(self, scored: ScoredBatch, size: float) -> None:
        self._opened().write(scored.batch)
        self.rows += scored.rows
        self.bad_rows += scored.bad
        self.crossed += scored.crossed
        self.tick(scored.rows, size)

    def finish(self) -> dict[str, Any]:
        """Complete the file, and return the record that was stored in it if its format can hold one."""
        record = {
            "version": __version__,
            "options": self.options.record(),
            "members": None if self.layout is None else self.layout.record(),
            "sources": self.sources,
            "rows": self.rows,
            "bad_rows": self.bad_rows,
        }
        self._opened().finish(record)
        if self.crossed and self.layout is not None:
            warn(f"{self.part.target}: {crossing(self.crossed, self.rows * self.layout.n_members)}")
        return record

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self.output is not None:
            self.output.close()

    def _opened(self) -> OutputFile:
        if self.output is None:
            raise InvalidValueError(f"{self.part.target}: has no input")
        return self.output


def _stream(
    span: Span,
    state: FileState,
    source: InputFile,
    scorer: Scorer,
    write: Callable[[ScoredBatch, float], None],
    *,
    threads: int,
) -> None:
    """Score the rows of one input and write them; `write` also gets the number of bytes read for them."""

    def numbered() -> Iterator[tuple[Batch, int, float]]:
        row, before = span.first_row, 0.0
        for batch, fraction in source.batches(scorer.batch_rows):
            yield batch, row, state.size * (fraction - before)
            row, before = row + batch.num_rows, fraction

    def compute(item: tuple[Batch, int, float]) -> tuple[ScoredBatch, float]:
        batch, row, read = item
        return scorer(batch, row), read

    overlapped(numbered(), compute, lambda result: write(*result), threads=threads)


def overlapped(
    items: Iterator[Item], compute: Callable[[Item], Result], write: Callable[[Result], None], *, threads: int
) -> None:
    """Compute every item and write the results in their order.

    At most one item is being read, `threads` are computed and one is written at any time, with one more waiting before each step.
    An error in any step is raised here once the running steps have ended.
    """
    # Threads suffice: Arrow and NumPy, and the compiled code of measures, release the lock of Python.
    reader, writer, workers = ThreadPoolExecutor(1), ThreadPoolExecutor(1), ThreadPoolExecutor(threads)
    computing: deque[Future[Result]] = deque()
    writing: Future[None] | None = None

    def pass_on() -> None:
        nonlocal writing
        result = computing.popleft().result()  # the oldest first, which keeps the order
        if writing is not None:
            writing.result()
        writing = writer.submit(write, result)

    try:
        reading = reader.submit(next, items, None)
        while (item := reading.result()) is not None:
            reading = reader.submit(next, items, None)  # the next one is read while this one is computed
            computing.append(workers.submit(compute, item))
            if len(computing) > threads:  # reading must not run ahead, or memory would grow with the file
                pass_on()
        while computing:
            pass_on()
        if writing is not None:
            writing.result()
    finally:
        for pool in (reader, workers, writer):
            pool.shutdown(wait=True, cancel_futures=True)  # no step may still use a file that the caller closes


def cut_at_row_groups(part: Part, rows: int) -> list[Part]:
    """Cut a part with one Parquet file at row groups into parts of about this many rows; a smaller one stays as it is.

    Raises:
        BadFileError: a file that cannot be read.
    """
    span = part.spans[0]
    if len(part.spans) > 1 or ending(span.path) not in (".parquet", ".pq"):
        return [part]
    state = state_of(span.path)  # all parts of one file must come from one version of it
    with blaming(span.path), naming(span.path, "read"), closing(pq.ParquetFile(span.path)) as file:
        counts = row_group_sizes(file)
    found: list[Span] = []
    groups: list[int] = []
    first = 0
    for group, count in enumerate(counts):
        if groups and sum(counts[i] for i in groups) + count > rows:
            found.append(Span(span.path, span.name, tuple(groups), first, state))
            first, groups = first + sum(counts[i] for i in groups), []
        groups.append(group)
    if not found:
        return [part]
    found.append(Span(span.path, span.name, tuple(groups), first, state))
    stem = part.target.stem
    return [Part(part.target.with_name(f"{stem}-{i:05d}.parquet"), (one,)) for i, one in enumerate(found)]
