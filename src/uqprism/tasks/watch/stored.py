"""The state of a watch in one file: bounded, atomic, and enough to go on as if there had been no pause."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns
from uqprism.errors import InvalidValueError
from uqprism.measures import resolve_rule
from uqprism.support.reading import loading
from uqprism.support.storage import write_npz
from uqprism.tasks.recalibration import Recalibration
from uqprism.tasks.watch.bets import CELLS
from uqprism.tasks.watch.core import Core
from uqprism.tasks.watch.evidence import Evidence
from uqprism.tasks.watch.penalty import Correction
from uqprism.tasks.watch.pool import Pool
from uqprism.tasks.watch.result import Alarm
from uqprism.tasks.watch.rows import Reader, Rows
from uqprism.tasks.watch.series import Series
from uqprism.tasks.watch.sources import Sources
from uqprism.tasks.watch.track import REMEMBERED, SHOWN, Seen, Track

FORMAT = "uqprism.Watch"
STORED = ("edges", "order", "counts", "money", "history", "windows", "shown", "extreme")  # arrays of a track
COUNTERS = ("level", "window", "seed", "reference", "rows", "windows")


def save(core: Core, path: str | os.PathLike[str], beside: Mapping[str, Any] | None = None) -> None:
    """Write the state, and what a program keeps beside it."""
    reader, series = core.reader, core.series
    header = {
        "watch": {name: getattr(core, name) for name in COUNTERS},
        "rule": reader.rule.name,
        "columns": {"groups": reader.groups, "target": reader.target},
        "members": asdict(reader.columns),
        "recalibration": None if reader.recalibration is None else json.loads(reader.recalibration.to_json()),
        "groups": reader.names,
        "correction": asdict(core.correction),
        "alarms": [alarm.to_dict() for alarm in core.alarms],
        "sources": asdict(core.sources),
        "series": {"names": series.names, "stride": series.stride},
        "tracks": [_about(track) for track in core.tracks],
        "beside": dict(beside or {}),
    }
    arrays: dict[str, Any] = {
        "series": np.array([row for _, row in series.rows]).reshape(-1, len(series.names)),
        "series.kept": np.array([kept for kept, _ in series.rows], dtype=bool),
    }
    waiting = Rows.joined(core.waiting) if core.waiting else None
    arrays |= {f"waiting.{each.name}": getattr(waiting, each.name) if waiting else np.empty(0) for each in fields(Rows)}
    for i, track in enumerate(core.tracks):
        arrays |= {f"{i}.{name}": array for name, array in _arrays(track).items()}
    write_npz(path, FORMAT, header, arrays)


def load(path: str | os.PathLike[str]) -> tuple[Core, dict[str, Any]]:
    """The state of a file, and what a program kept beside it."""
    with loading(path, FORMAT) as (header, arrays):
        core = Core.__new__(Core)
        for name in COUNTERS:
            setattr(core, name, header["watch"][name])
        core.reader = _reader(header)
        core.correction = Correction(**header["correction"])
        core.alarms = [Alarm.of(each) for each in header["alarms"]]
        sources = header["sources"]
        runs = [(int(start), str(name), int(first)) for start, name, first in sources["runs"]]
        core.sources = Sources(int(sources["count"]), runs, int(sources["batches"]))
        core.series = Series(header["series"]["names"])
        core.series.stride = int(header["series"]["stride"])
        core.series.rows = [(bool(kept), row) for kept, row in zip(arrays["series.kept"], arrays["series"], strict=True)]
        waiting = Rows(*(arrays[f"waiting.{each.name}"] for each in fields(Rows)))
        core.waiting = [waiting] if len(waiting) else []
        core.tracks = [_track(about, arrays, i) for i, about in enumerate(header["tracks"])]
        if not core.tests:
            raise InvalidValueError("has no tests")
    return core, header["beside"]


def _reader(header: Mapping[str, Any]) -> Reader:
    stored = header["recalibration"]
    return Reader(
        resolve_rule(header["rule"]),
        groups=header["columns"]["groups"],
        target=header["columns"]["target"],
        recalibration=None if stored is None else Recalibration.from_dict(stored),
        columns=Columns(**header["members"]),
        names=tuple(map(str, header["groups"])),
    )


def _about(track: Track) -> dict[str, Any]:
    return {"quantity": track.quantity, "group": track.group, "level": track.level, "windows": track.evidence.windows}


def _arrays(track: Track) -> dict[str, np.ndarray]:
    """What a track holds; rows that a window lacks are -1."""
    seen = list(track.history)
    shown, extreme = np.full((len(seen), 2, SHOWN), -1, dtype=np.int64), np.zeros((len(seen), 2, SHOWN))
    for i, each in enumerate(seen):
        shown[i, 0, : len(each.low)], shown[i, 1, : len(each.high)] = each.low, each.high
        extreme[i, 0, : len(each.low)], extreme[i, 1, : len(each.high)] = each.lowest, each.highest
    return {
        "edges": track.pool.edges,
        "order": track.pool.order,
        "counts": track.pool.counts,
        "money": track.evidence.money,
        "history": np.array([each.counts for each in seen], dtype=np.int32).reshape(-1, CELLS),
        "windows": np.array([(each.window, each.first) for each in seen], dtype=np.int64).reshape(-1, 2),
        "shown": shown,
        "extreme": extreme,
    }


def _track(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], i: int) -> Track:
    own = {name: arrays[f"{i}.{name}"] for name in STORED}
    seen = []
    for (window, first), counts, shown, extreme in zip(own["windows"], own["history"], own["shown"], own["extreme"], strict=True):
        (low, high), (is_low, is_high) = shown, shown >= 0
        known = low[is_low], high[is_high], extreme[0][is_low], extreme[1][is_high]
        seen.append(Seen(int(window), counts, int(first), *known))
    return Track(
        quantity=str(about["quantity"]),
        group=about["group"],
        level=float(about["level"]),
        pool=Pool(own["edges"], own["order"], own["counts"]),
        evidence=Evidence(own["money"], int(about["windows"])),
        history=deque(seen, maxlen=REMEMBERED),
    )
