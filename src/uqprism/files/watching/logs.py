"""What a watch writes for programs: a line of JSON for each window, and numbers for Prometheus."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uqprism.errors import FileError, warn
from uqprism.support.storage import writing
from uqprism.tasks.watch import Watch


@dataclass
class Log:
    """A file with a line for each window.

    Attributes:
        path: the file.
        size: how many bytes of it belong to the state.
        waiting: lines that are not written yet.
    """

    path: Path
    size: int
    waiting: list[str] = field(default_factory=list)

    @classmethod
    def opened(cls, path: Path, before: tuple[str, int] | None) -> Log:
        """The log, without the lines that a killed run wrote after its last state; lines of other watches before stay."""
        there = path.stat().st_size if path.exists() else 0
        if before is None or before[0] != os.path.realpath(path):
            return cls(path, there)
        if there < before[1]:
            warn(f"{path}: lines of earlier runs are missing, {before[1] - there:,} bytes")
            return cls(path, there)
        with writing(path):
            os.truncate(path, before[1]) if there > before[1] else None
        return cls(path, before[1])

    def add(self, windows: Iterable[Mapping[str, Any]]) -> None:
        """Add windows."""
        self.waiting += [json.dumps(_plain(window)) for window in windows]

    def commit(self) -> tuple[str, int]:
        """Write the lines that wait, and return the path with the bytes that belong to the state now."""
        if self.waiting:
            with writing(self.path), self.path.open("ab") as file:
                if file.tell() != self.size:
                    raise FileError(f"{self.path}: another program writes to it; name another log")
                file.write("".join(f"{line}\n" for line in self.waiting).encode())
                file.flush()
                os.fsync(file.fileno())
                self.size = file.tell()
            self.waiting = []
        return os.path.realpath(self.path), self.size


def _plain(window: Mapping[str, Any]) -> dict[str, Any]:
    """The window with null in place of NaN, which JSON does not have."""
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in window.items()}


def prometheus_text(watch: Watch) -> str:
    """The state of a watch in the text format of Prometheus."""
    labels = {track.name: _labels(test=track.quantity, group=track.group or "") for track in watch.tests}
    raised = {alarm.test for alarm in watch.alarms}
    logs = {track.name: track.evidence.log / math.log(10.0) for track in watch.tests}
    estimate = watch.estimate
    metrics: list[tuple[str, str, str, dict[str, float]]] = [
        ("rows_total", "counter", "Rows in windows that were tested.", {"": watch.rows}),
        ("windows_total", "counter", "Windows that were tested.", {"": watch.windows}),
        ("evidence_log10", "gauge", "Evidence of a change, as a power of ten.", {labels[test]: logs[test] for test in labels}),
        ("threshold_log10", "gauge", "Evidence that raises an alarm, as a power of ten.", {
            labels[test]: math.log10(threshold) for test, threshold in watch.thresholds.items()
        }),
        ("alarm", "gauge", "1 where there is an alarm.", {labels[test]: float(test in raised) for test in labels}),
    ]  # fmt: skip
    if estimate is not None:
        about = "in the latest window"
        metrics += [
            ("penalty", "gauge", f"Estimate of the mean penalty {about}.", {"": estimate.value}),
            ("penalty_low", "gauge", f"Lower end of its 95 % interval {about}.", {"": estimate.low}),
            ("penalty_high", "gauge", f"Upper end of its 95 % interval {about}.", {"": estimate.high}),
        ]
    lines = []
    for name, kind, words, values in metrics:
        lines += [f"# HELP uqprism_watch_{name} {words}", f"# TYPE uqprism_watch_{name} {kind}"]
        lines += [f"uqprism_watch_{name}{label} {_number(value)}" for label, value in values.items()]
    return "\n".join([*lines, ""])


def _labels(**labels: str) -> str:
    escaped = {name: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, text in labels.items()}
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped.items()) + "}"


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)
