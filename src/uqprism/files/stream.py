"""Streaming the rows of input files through the measures into one output file, with few batches in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from uqprism.errors import InvalidValueError
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import Part, Span
from uqprism.files.read import Batch, InputFile, naming, open_input, pa, pq, row_group_sizes
from uqprism.files.rows import ScoredBatch, Scorer
from uqprism.files.write import OutputFile, open_output
from uqprism.support.parallel import threads
from uqprism.support.storage import atomic_path
from uqprism.support.versions import __version__

Item = TypeVar("Item")
Result = TypeVar("Result")
Tick = Callable[[int, float], None]  # rows and bytes done
MOST_THREADS = 4  # reading and writing cannot feed more


@dataclass(frozen=True)
class FinishedPart:
    """A part that is complete: the rows read, and how many of them were bad."""

    part: Part
    rows: int
    bad_rows: int


def default_threads() -> int:
    """How many batches to compute at a time on this machine."""
    return min(MOST_THREADS, threads())


def part_record(part: Part, options: ScoreOptions) -> dict[str, Any]:
    """How a part is made, to be stored in it and compared when a run is resumed."""
    return {"version": __version__, "options": options.record(), "sources": [span.record() for span in part.spans]}


def write_part(part: Part, options: ScoreOptions, *, run: str, threads: int, tick: Tick = lambda *_: None) -> FinishedPart:
    """Write one part, atomically."""
    record = part_record(part, options)  # before reading, so that a file that changes meanwhile is noticed
    with naming(part.target, "written"):
        part.target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(part.target, run) as temporary, closing(_PartWriter(part, options, tick)) as file:
            for span in part.spans:
                with closing(open_input(span, options.columns, as_text=part.target.suffix == ".csv")) as source:
                    scorer = Scorer(source, options)
                    file.begin(temporary, source, scorer)
                    _stream(span, source, scorer, file.write, threads=threads)
            file.finish(record)
    pa.default_memory_pool().release_unused()  # Arrow keeps freed memory until asked
    return FinishedPart(part, file.rows, file.bad_rows)


class _PartWriter:
    """The output file of one part, opened with the first input, and the number of its rows."""

    def __init__(self, part: Part, options: ScoreOptions, tick: Tick) -> None:
        self.part, self.options, self.tick = part, options, tick
        self.output: OutputFile | None = None
        self.schema: Any = None
        self.rows = self.bad_rows = 0

    def begin(self, path: Path, source: InputFile, scorer: Scorer) -> None:
        """Open the file for the first input; the others must have its columns."""
        if self.output is None:
            self.schema = scorer.schema
            self.output = open_output(path, self.part.target.suffix, self.schema, source.layout, self.options)
            self.output.write(pa.RecordBatch.from_pylist([], schema=self.schema))  # a file without rows has its columns too
        elif not scorer.schema.equals(self.schema):
            first = self.part.spans[0].path
            raise InvalidValueError(f"{source.path}: its columns are not those of {first}; name a folder for the output")

    def write(self, scored: ScoredBatch, size: float) -> None:
        """Append scored rows, for which `size` bytes of the input were read."""
        self._opened().write(scored.batch)
        self.rows += scored.rows
        self.bad_rows += scored.bad
        self.tick(scored.rows, size)

    def finish(self, record: dict[str, Any]) -> None:
        """Complete the file."""
        self._opened().finish({**record, "rows": self.rows, "bad_rows": self.bad_rows})

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self.output is not None:
            self.output.close()

    def _opened(self) -> OutputFile:
        if self.output is None:
            raise InvalidValueError(f"{self.part.target}: has no input")
        return self.output


def _stream(span: Span, source: InputFile, scorer: Scorer, write: Callable[[ScoredBatch, float], None], *, threads: int) -> None:
    """Score the rows of one input and write them; `write` also gets the number of bytes read for them."""
    size = span.path.stat().st_size

    def numbered() -> Iterator[tuple[Batch, int, float]]:
        row, before = span.first_row, 0.0
        for batch, fraction in source.batches(scorer.batch_rows):
            yield batch, row, size * (fraction - before)
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
    """Cut a part with one Parquet file at row groups into parts of about this many rows; a smaller one stays as it is."""
    span = part.spans[0]
    if len(part.spans) > 1 or span.path.suffix not in (".parquet", ".pq"):
        return [part]
    with naming(span.path, "read"), closing(pq.ParquetFile(span.path)) as file:
        counts = row_group_sizes(file)
    found: list[Span] = []
    groups: list[int] = []
    first = 0
    for group, count in enumerate(counts):
        if groups and sum(counts[i] for i in groups) + count > rows:
            found.append(Span(span.path, span.name, tuple(groups), first))
            first, groups = first + sum(counts[i] for i in groups), []
        groups.append(group)
    if not found:
        return [part]
    found.append(Span(span.path, span.name, tuple(groups), first))
    stem = part.target.stem
    return [Part(part.target.with_name(f"{stem}-{i:05d}.parquet"), (one,)) for i, one in enumerate(found)]
