"""Where rows came from: the file or batch of each, and the place in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

MOST = 4_096  # runs that are remembered
FORGOTTEN = "the whole stream"  # in which rows of older runs have their place


@dataclass(eq=False)
class Sources:
    """Names of runs of rows, which are numbered over the whole stream.

    Attributes:
        count: how many rows there were.
        runs: for each run its first number, its name, and the place of its first row there.
        batches: how many had no name.
    """

    count: int = 0
    runs: list[tuple[int, str, int]] = field(default_factory=list)
    batches: int = 0

    def add(self, name: str | None, rows: int, first: int = 0) -> int:
        """Add a run of rows, and return the number of its first."""
        start = self.count
        if name is None:
            name = f"batch {self.batches}"
            self.batches += 1
        if rows:
            last = self.runs[-1] if self.runs else None
            if last is None or last[1] != name or last[2] + start - last[0] != first:  # else it goes on
                self.runs.append((start, name, first))
            self.count += rows
        return start

    def place(self, number: int) -> tuple[str, int]:
        """The name of the run of a row, and its place there."""
        at = bisect_right(self.runs, number, key=lambda run: run[0]) - 1
        if at < 0:
            return FORGOTTEN, number
        start, name, first = self.runs[at]
        return name, first + number - start

    def forget(self, before: int) -> None:
        """Drop the runs that end before this number, and the oldest of too many."""
        keep = bisect_right(self.runs, before, key=lambda run: run[0]) - 1
        del self.runs[: max(keep, len(self.runs) - MOST, 0)]
