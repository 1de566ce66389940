"""The history of a stream of any length in bounded memory: all windows, then every second one, then every fourth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOST = 1024  # windows that are kept
COLUMNS = ("window", "rows", "bad", "unseen", "bayes", "excess", "estimate", "low", "high", "penalty", "labelled")


class Series:
    """Numbers of windows, by column.

    Attributes:
        names: of the columns, the number of the window first.
        stride: every so many windows are kept, beside the first ones with an alarm.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.stride = tuple(names), 1
        self.rows: list[tuple[bool, np.ndarray]] = []  # whether to keep it in any case, and the numbers

    def add(self, record: Mapping[str, Any], *, keep: bool) -> None:
        """Add a window; `keep` it however long the stream becomes."""
        if len(self.rows) > 1 and not self._kept(self.rows[-1]):
            self.rows.pop()  # it stayed as the latest
        self.rows.append((keep, np.array([record[name] for name in self.names], dtype=np.float64)))
        if len(self.rows) > MOST:
            self.stride *= 2
            self.rows = [row for row in self.rows[:-1] if self._kept(row)] + self.rows[-1:]

    def _kept(self, row: tuple[bool, np.ndarray]) -> bool:
        return row[0] or int(row[1][0]) % self.stride == 0

    @property
    def latest(self) -> dict[str, float] | None:
        """The latest window."""
        return dict(zip(self.names, self.rows[-1][1].tolist(), strict=True)) if self.rows else None

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The numbers by column; whole numbers for `window`, `rows`, `bad`, `unseen` and `labelled`."""
        table = np.array([numbers for _, numbers in self.rows]).reshape(-1, len(self.names))
        whole = {"window", "rows", "bad", "unseen", "labelled"}
        return {name: table[:, i].astype(np.int64) if name in whole else table[:, i].copy() for i, name in enumerate(self.names)}
