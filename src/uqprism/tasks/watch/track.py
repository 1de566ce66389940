"""One quantity of all rows, or of those of one group: its ranks, the evidence against them, and what is remembered of windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from uqprism.tasks.watch.bets import CELLS, all_bets
from uqprism.tasks.watch.evidence import Evidence
from uqprism.tasks.watch.pool import Pool

REMEMBERED = 256  # windows
SHOWN = 3  # rows with the lowest and with the highest values that are remembered of each window
FAR = 0.1  # a move of the mean rank
MIDDLES = (np.arange(CELLS) + 0.5) / CELLS


@dataclass(frozen=True, eq=False)
class Seen:
    """What is remembered of one window.

    Attributes:
        window: its number.
        counts: how many ranks fell into each cell, (CELLS,).
        first: the number of its first row.
        low: the numbers of the rows with the lowest values, the lowest first.
        high: of those with the highest, the highest first.
        lowest: these lowest values.
        highest: these highest values.
    """

    window: int
    counts: np.ndarray
    first: int
    low: np.ndarray
    high: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


@dataclass(frozen=True)
class Change:
    """The change that explains the ranks best.

    Attributes:
        since: its first window.
        kind: the kind of the best bet: `higher`, `lower`, `spread`, `narrowed` or `gathered`.
        earlier: whether it may have begun before what is remembered.
    """

    since: int
    kind: str
    earlier: bool


@dataclass(eq=False)
class Track:
    """A quantity that is followed; with a level of zero it is not tested, and helps to name what has changed.

    Attributes:
        quantity: `excess`, `bayes`, `penalty`, `calibration` or `share`.
        group: whose rows, or None for all.
        level: of its test.
        pool: all rows so far.
        evidence: against the ranks being uniform.
        history: the latest windows.
    """

    quantity: str
    group: str | None
    level: float
    pool: Pool
    evidence: Evidence = field(default_factory=Evidence)
    history: deque[Seen] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def name(self) -> str:
        """The name of the test: `excess`, `bayes[north]`."""
        return self.quantity if self.group is None else f"{self.quantity}[{self.group}]"

    @property
    def threshold(self) -> float:
        """The logarithm of the evidence that raises an alarm."""
        return float(-np.log(self.level)) if self.level else np.inf

    def look(
        self, values: np.ndarray, rows: np.ndarray, windows: Sequence[int], ends: Sequence[int], seed: Sequence[int]
    ) -> list[Seen]:
        """What the windows that end at these places show; their rows, with these numbers, join the pool."""
        bins = np.empty(len(values), dtype=np.int64)
        drawn = np.empty(len(values))
        start = 0
        for window, end in zip(windows, ends, strict=True):
            # By window, so that a stream that is stopped and goes on has the numbers of one that was not.
            rng = np.random.default_rng([*seed, window])
            drawn[start:end] = rng.random(end - start)
            bins[start:end] = self.pool.places(values[start:end], rng)
            start = end
        ranks = self.pool.ranks(bins, drawn)
        found, start = [], 0
        for window, end in zip(windows, ends, strict=True):
            found.append(_seen(window, ranks[start:end], values[start:end], rows[start:end]))
            start = end
        return found

    def take(self, seen: Seen) -> None:
        """Remember a window, and bet on it if this is tested."""
        self.history.append(seen)
        if self.level:
            self.evidence.update(seen.counts)

    def change(self) -> Change:
        """The beginning and the bet with the most evidence."""
        bets = all_bets()
        gains = np.array([seen.counts for seen in self.history]) @ bets.logs.T
        after = np.cumsum(gains[::-1], axis=0)[::-1] + np.log(bets.stakes)
        at, bet = np.unravel_index(int(np.argmax(after)), after.shape)
        earlier = bool(at == 0 and len(self.history) == REMEMBERED)
        since, kind = self.history[int(at)].window, bets.kinds[int(bet)]
        moved = self.moved(since)
        if kind == "gathered" and abs(moved) >= FAR:  # near one end, which is a move to that side
            kind = "higher" if moved > 0.0 else "lower"
        return Change(since, kind, earlier)

    def since(self, window: int) -> list[Seen]:
        """What is remembered from this window on."""
        return [seen for seen in self.history if seen.window >= window]

    def extremes(self, change: Change, most: int) -> list[int]:
        """The numbers of the most extreme rows since the change, on the side to which ranks moved, or on both."""
        seen, found = self.since(change.since), []
        sides = [change.kind] if change.kind in {"higher", "lower"} else ["higher", "lower"]
        for side in sides:
            upper = side == "higher"
            rows = np.concatenate([each.high if upper else each.low for each in seen])
            values = np.concatenate([each.highest if upper else each.lowest for each in seen])
            order = np.argsort(-values if upper else values, kind="stable")
            found += rows[order][: most // len(sides)].tolist()
        return sorted(found)

    def moved(self, window: int) -> float:
        """How far the mean rank since this window is from the middle, from -1/2 to 1/2."""
        counts = np.sum([seen.counts for seen in self.since(window)], axis=0)
        return float(counts @ MIDDLES / counts.sum() - 0.5) if np.sum(counts) else 0.0


def _seen(window: int, ranks: np.ndarray, values: np.ndarray, rows: np.ndarray) -> Seen:
    counts = np.bincount((ranks * CELLS).astype(np.int64), minlength=CELLS).astype(np.int32)
    first = int(rows[0]) if len(rows) else 0
    shown = min(SHOWN, len(values) // 2)
    ends = np.argpartition(values, (shown - 1, len(values) - shown)) if shown else np.empty(0, dtype=np.int64)
    low, high = ends[:shown], ends[len(ends) - shown :]
    low, high = low[np.argsort(values[low])], high[np.argsort(-values[high])]
    return Seen(window, counts, first, rows[low], rows[high], values[low], values[high])
