"""Make one part: stream its inputs through the measures into its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.backends.choose import threads
from uqprism.errors import InvalidValueError
from uqprism.files.options import Options
from uqprism.files.paths import Part, Span
from uqprism.files.pipeline import overlapped
from uqprism.files.read import Batch, Source, naming, open_source, pa, pq
from uqprism.files.rows import Scored, Scorer
from uqprism.files.write import Sink, open_sink
from uqprism.support.storage import atomic_path
from uqprism.support.versions import __version__

Tick = Callable[[int, float], None]  # rows and bytes done
MOST_THREADS = 4  # reading and writing cannot feed more


@dataclass(frozen=True)
class Made:
    """A part that is complete: the rows read, and how many of them were bad."""

    part: Part
    rows: int
    bad_rows: int


def default_threads() -> int:
    """How many batches to compute at a time on this machine."""
    return min(MOST_THREADS, threads())


def record(part: Part, options: Options) -> dict[str, Any]:
    """What a part says of itself, to be compared when a run is resumed."""
    return {"version": __version__, "options": options.record(), "sources": [span.record() for span in part.spans]}


def make(part: Part, options: Options, *, run: str, threads: int, tick: Tick = lambda *_: None) -> Made:
    """Write the part, whole or not at all."""
    told = record(part, options)  # before reading, so that a file that changes meanwhile is noticed
    with naming(part.target, "written"):
        part.target.parent.mkdir(parents=True, exist_ok=True)
    with (
        naming(part.target, "written"),
        atomic_path(part.target, run) as temporary,
        closing(_Assembly(part, options, tick)) as file,
    ):
        for span in part.spans:
            with closing(open_source(span, options.columns, as_text=part.target.suffix == ".csv")) as source:
                scorer = Scorer(source, options)
                file.begin(temporary, source, scorer)
                _stream(span, source, scorer, file.write, threads=threads)
        file.finish(told)
    pa.default_memory_pool().release_unused()
    return Made(part, file.rows, file.bad_rows)


@contextmanager
def _file_for(part: Part, run: str) -> Iterator[Path]:
    part.target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(part.target, run) as temporary:
        yield temporary


class _Assembly:
    """The file of one part while it grows: opened with the first input, and counting."""

    def __init__(self, part: Part, options: Options, tick: Tick) -> None:
        self.part, self.options, self.tick = part, options, tick
        self.sink: Sink | None = None
        self.schema: Any = None
        self.rows = self.bad_rows = 0

    def begin(self, path: Path, source: Source, scorer: Scorer) -> None:
        """Open the file for the first input; the others must have its columns."""
        if self.sink is None:
            self.schema = scorer.schema
            self.sink = open_sink(path, self.part.target.suffix, self.schema, source.layout, self.options)
            self.sink.write(pa.RecordBatch.from_pylist([], schema=self.schema))  # a file without rows has its columns too
        elif not scorer.schema.equals(self.schema):
            first = self.part.spans[0].path
            raise InvalidValueError(f"{source.path}: its columns are not those of {first}; name a folder for the output")

    def write(self, scored: Scored, size: float) -> None:
        """Append scored rows, which took so many bytes of the input."""
        self._opened().write(scored.batch)
        self.rows += scored.rows
        self.bad_rows += scored.bad
        self.tick(scored.rows, size)

    def finish(self, told: dict[str, Any]) -> None:
        """Complete the file."""
        self._opened().finish({**told, "rows": self.rows, "bad_rows": self.bad_rows})

    def close(self) -> None:
        """Let go of the file, if there is one."""
        if self.sink is not None:
            self.sink.close()

    def _opened(self) -> Sink:
        if self.sink is None:
            raise InvalidValueError(f"{self.part.target}: has no input")
        return self.sink


def _stream(span: Span, source: Source, scorer: Scorer, write: Callable[[Scored, float], None], *, threads: int) -> None:
    """Score the rows of one input and write them; `write` is also told how many bytes they took."""
    size = span.path.stat().st_size

    def numbered() -> Iterator[tuple[Batch, int, float]]:
        row, before = span.first_row, 0.0
        for batch, fraction in source.batches(scorer.batch_rows):
            yield batch, row, size * (fraction - before)
            row, before = row + batch.num_rows, fraction

    def compute(item: tuple[Batch, int, float]) -> tuple[Scored, float]:
        batch, row, read = item
        return scorer(batch, row), read

    overlapped(numbered(), compute, lambda result: write(*result), threads=threads)


def split(part: Part, rows: int) -> list[Part]:
    """Several parts of about so many rows out of one Parquet file, by its row groups; the part itself if it is smaller."""
    span = part.spans[0]
    if len(part.spans) > 1 or span.path.suffix not in (".parquet", ".pq"):
        return [part]
    with naming(span.path, "read"), closing(pq.ParquetFile(span.path)) as file:
        counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
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
