"""What a watch knows, and what a window adds to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.support.parallel import threads
from uqprism.tasks.watch.naming import kind_of
from uqprism.tasks.watch.penalty import Correction, Estimate
from uqprism.tasks.watch.pool import Pool
from uqprism.tasks.watch.result import Alarm, Row, power
from uqprism.tasks.watch.rows import Reader, Rows
from uqprism.tasks.watch.series import COLUMNS, Series
from uqprism.tasks.watch.sources import Sources
from uqprism.tasks.watch.track import Seen, Track

FEWEST = 20  # rows of the reference
MOST_GROUPS = 200
MOST_ROWS = 10  # that an alarm names
LONG = 10_000  # rows that are worth a thread for each quantity
TESTED, OUTCOMES, NAMING = ("excess", "bayes"), ("penalty", "calibration"), ("share",)

Found = tuple[dict[str, Any], list[Alarm]]  # the record of a window, and its new alarms


class Core:
    """The state of a watch.

    Attributes:
        reader: how rows are read.
        level: of all tests together.
        window: rows of a window, or None if those that come together are one.
        seed: of all random numbers.
        correction: of the estimate of the penalty.
        tracks: what is followed.
        alarms: all so far.
        waiting: rows that wait for their window to be full.
        windows: how many windows there were.
        rows: how many rows these had.
        reference: how many rows the reference had.
        sources: where rows came from.
        series: the numbers of windows.
    """

    def __init__(self, reader: Reader, rows: Rows, level: float, window: int | None, seed: int) -> None:
        self.reader, self.level, self.window, self.seed = reader, level, window, seed
        self.reference = int(rows.good.sum())
        if len(reader.names) > MOST_GROUPS:
            raise InvalidValueError(f"groups must be at most {MOST_GROUPS}, got {len(reader.names):,}; join rare ones")
        if self.reference < FEWEST:
            raise InvalidValueError(f"reference must have at least {FEWEST} rows with numbers, got {self.reference}")
        self.correction = Correction.of(reader.expected(rows), rows.penalty)
        self.tracks = self._begin(rows)
        self.alarms: list[Alarm] = []
        self.waiting: list[Rows] = []
        self.windows = self.rows = 0
        self.sources = Sources()
        self.series = Series((*COLUMNS, *(f"evidence.{track.name}" for track in self.tests)))

    def _begin(self, rows: Rows) -> list[Track]:
        found: list[tuple[str, str | None, np.ndarray]] = []
        for place, group in [(None, None), *enumerate(self.reader.names)]:
            own = rows if place is None else rows[rows.group == place]
            for quantity in (*TESTED, *OUTCOMES, *NAMING):
                values = self._values(quantity, own)
                values = values[~np.isnan(values)]
                if len(values) >= (FEWEST if quantity in OUTCOMES else 1):
                    found.append((quantity, group, values))
        level = self.level / sum(quantity not in NAMING for quantity, _, _ in found)
        pools = [Pool.of(values, np.random.default_rng([self.seed, 0, i])) for i, (_, _, values) in enumerate(found)]
        return [
            Track(quantity, group, 0.0 if quantity in NAMING else level, pool)
            for (quantity, group, _), pool in zip(found, pools, strict=True)
        ]

    @property
    def tests(self) -> list[Track]:
        """What is tested."""
        return [track for track in self.tracks if track.level]

    @property
    def estimate(self) -> Estimate | None:
        """The mean penalty in the latest window, or None before the first."""
        latest = self.series.latest
        if latest is None:
            return None
        return Estimate(latest["estimate"], latest["low"], latest["high"], self.correction.rows > 0)

    def take(self, rows: Rows, source: str | None, first: int) -> list[Found]:
        """Look at rows whose first one has this place in its source; those of a window that is not full wait."""
        if len(rows):
            self.waiting.append(self._numbered(rows, source, first))
        count = sum(map(len, self.waiting))
        size = count if self.window is None else self.window
        ends = range(size, count + 1, size) if size else range(0)
        if not ends:
            return []
        rows = Rows.joined(self.waiting)
        self.waiting = [rows[ends[-1] :]] if ends[-1] < count else []
        return self._advance(rows[: ends[-1]], ends, None)

    def take_outcomes(self, rows: Rows, source: str | None) -> list[Found]:
        """Look at the outcomes of these rows alone, as one window."""
        return self._advance(self._numbered(rows, source, 0), [len(rows)], OUTCOMES)

    def _numbered(self, rows: Rows, source: str | None, first: int) -> Rows:
        start = self.sources.add(source, len(rows), first)
        return replace(rows, number=np.arange(start, start + len(rows)))

    def _advance(self, rows: Rows, ends: Sequence[int], only: Sequence[str] | None) -> list[Found]:
        """Test the windows that end at these places; with `only`, by these quantities."""
        with ThreadPoolExecutor(min(threads(), len(self.tracks)) if len(rows) > LONG else 1) as pool:
            seen = list(pool.map(lambda i: self._look(i, rows, ends, only), range(len(self.tracks))))
        found, start = [], 0
        for place, end in enumerate(ends):
            self.windows += 1
            for track, each in zip(self.tracks, seen, strict=True):
                if each[place].counts.any():
                    track.take(each[place])
            new = [self._alarm(track) for track in self.tests if self._is_new(track)]
            self.alarms += new
            found.append((self._record(rows[start:end], new), new))
            start = end
        self.rows += len(rows)
        kept = [track.history[0].first for track in self.tracks if track.history]
        self.sources.forget(min([*kept, *(int(part.number[0]) for part in self.waiting)], default=0))
        return found

    def _look(self, i: int, rows: Rows, ends: Sequence[int], only: Sequence[str] | None) -> list[Seen]:
        track = self.tracks[i]
        values = self._values(track.quantity, rows)
        own = ~np.isnan(values)
        if track.group is not None:
            own &= rows.group == self.reader.names.index(track.group)
        if only is not None and track.quantity not in only:
            own[:] = False
        before = np.concatenate([[0], np.cumsum(own)])[list(ends)]
        windows = range(self.windows + 1, self.windows + len(ends) + 1)
        return track.look(values[own], rows.number[own], windows, before.tolist(), [self.seed, 1, i])

    def _values(self, quantity: str, rows: Rows) -> np.ndarray:
        return self.reader.share(rows) if quantity == "share" else getattr(rows, quantity)

    def _is_new(self, track: Track) -> bool:
        raised = any(alarm.test == track.name for alarm in self.alarms)
        return not raised and track.evidence.log >= track.threshold

    def _alarm(self, track: Track) -> Alarm:
        change = track.change()
        beside = {each.quantity: each for each in self.tracks if each.group == track.group}
        moved = {name: beside[name].moved(change.since) for name in (*TESTED, *NAMING) if name in beside}
        return Alarm(
            test=track.name,
            group=track.group,
            kind=kind_of(track.quantity, change.kind, moved),
            direction=change.kind,
            window=self.windows,
            since=change.since,
            began=self._row(min(seen.first for seen in track.since(change.since))),
            earlier=change.earlier,
            evidence=power(track.evidence.log),
            level=track.level,
            rows=tuple(self._row(number) for number in track.extremes(change, MOST_ROWS)),
            moved=moved,
        )

    def _row(self, number: int) -> Row:
        return Row(*self.sources.place(number))

    def _record(self, rows: Rows, new: list[Alarm]) -> dict[str, Any]:
        good, labelled = rows[rows.good], np.isfinite(rows.penalty)
        unknown = Estimate(math.nan, math.nan, math.nan, False)
        estimate = self.correction.estimate(self.reader.expected(good)) if len(good) else unknown
        record = {
            "window": self.windows,
            "rows": len(rows),
            "bad": len(rows) - len(good),
            "unseen": int((rows.group < 0).sum()) if self.reader.names else 0,
            "bayes": _mean(good.bayes),
            "excess": _mean(good.excess),
            "estimate": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "penalty": _mean(rows.penalty[labelled]),
            "labelled": int(labelled.sum()),
        }
        logs = {track.name: track.evidence.log / math.log(10.0) for track in self.tests}
        self.series.add({**record, **{f"evidence.{name}": log for name, log in logs.items()}}, keep=bool(new))
        began = str(self._row(int(rows.number[0])))
        return {**record, "from": began, "evidence": logs, "alarms": [each.test for each in new]}


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan
