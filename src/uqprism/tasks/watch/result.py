"""What a watch reports: alarms, and what each update found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from uqprism.tasks.watch.penalty import Estimate
from uqprism.tasks.watch.words import advice, alarm_sentence, evidence_in_words, test_in_words, what

LARGEST = 300.0  # the power of ten up to which evidence is written as a number


@dataclass(frozen=True)
class Row:
    """A row of the stream.

    Attributes:
        source: the file or batch that it came in.
        row: its place there, from 0.
    """

    source: str
    row: int

    def __str__(self) -> str:
        return f"{self.source}, row {self.row:,}"


@dataclass(frozen=True)
class Alarm:
    """A change that was found.

    Attributes:
        test: which test found it, such as `excess` or `bayes[north]`.
        group: whose rows, or None for all.
        kind: what has changed: `noise`, `unfamiliar` (inputs), `agreement`, `penalty` or `calibration`.
        direction: how the ranks of the test moved: `higher`, `lower`, `spread`, `narrowed` or `gathered`.
        window: the window in which the alarm was raised.
        since: the window in which the change began, as far as can be told.
        began: the first row of that window.
        earlier: whether it may have begun before that, which is not remembered.
        evidence: how many times the money of a gambler against "nothing has changed" grew.
        level: of this test: the probability of ever raising this alarm if nothing changes.
        rows: the most extreme rows since the change.
        moved: by how much the mean ranks of noise, disagreement and the share of the latter have moved, from -0.5 to 0.5.
    """

    test: str
    group: str | None
    kind: str
    direction: str
    window: int
    since: int
    began: Row
    earlier: bool
    evidence: float
    level: float
    rows: tuple[Row, ...]
    moved: Mapping[str, float] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """What has changed, and since when."""
        return alarm_sentence(self)

    @property
    def brief(self) -> str:
        """What has changed, as part of a sentence."""
        return what(self.kind, self.direction) + ("" if self.group is None else f" (group {self.group})")

    @property
    def title(self) -> str:
        """What has changed, as a heading, with the test that found it."""
        return f"{self.brief[0].upper()}{self.brief[1:]} (found by the test of {test_in_words(self.test)})"

    @property
    def advice(self) -> str:
        """What to do."""
        return advice(self.kind, self.direction)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**asdict(self), "moved": dict(self.moved), "sentence": self.sentence, "advice": self.advice}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Alarm:
        """The alarm of what `to_dict` gave."""
        known = {name: value for name, value in stored.items() if name not in {"sentence", "advice"}}
        rows = tuple(Row(str(each["source"]), int(each["row"])) for each in known["rows"])
        began = Row(str(known["began"]["source"]), int(known["began"]["row"]))
        return cls(**{**known, "rows": rows, "began": began})

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Update:
    """What an update found.

    Attributes:
        windows: the windows that were completed, a dictionary each: `window` (its number), `rows`, `bad` rows, the mean `bayes`
            and `excess`, the `estimate` of the mean penalty with `low` and `high`, the mean `penalty` of the rows with outcomes
            and how many these are (`labelled`), and the `evidence` of each test as a power of ten. NaN is what is not known.
        alarms: all alarms so far.
        new: those of this update.
        evidence: by test, how many times the money of a gambler against "nothing has changed" has grown.
        thresholds: by test, the evidence that raises an alarm.
        estimate: the mean penalty in the latest window, or None before the first.
        waiting: rows that wait for their window to be full.
    """

    windows: tuple[dict[str, Any], ...]
    alarms: tuple[Alarm, ...]
    new: tuple[Alarm, ...]
    evidence: Mapping[str, float]
    thresholds: Mapping[str, float]
    estimate: Estimate | None
    waiting: int

    def __bool__(self) -> bool:
        """Whether there is an alarm."""
        return bool(self.alarms)

    def __str__(self) -> str:
        if self.alarms:
            return "\n".join(each.sentence for each in self.alarms)
        most = max(self.evidence, key=lambda name: self.evidence[name] / self.thresholds[name])
        return (
            f"No alarm. The most evidence of a change is {evidence_in_words(self.evidence[most])} ({test_in_words(most)}); "
            f"an alarm takes {self.thresholds[most]:.3g}."
        )


def power(log: float) -> float:
    """The number with this natural logarithm, as large as a number can be."""
    return 10.0 ** min(log / math.log(10.0), LARGEST)
