"""What `score` computes, and what it does with bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import Measure, select_measures
from uqprism.registry import unknown

OnBad = Literal["error", "null", "drop"]
OnBadFile = Literal["name", "skip", "fail"]
COMPRESSIONS = ("snappy", "zstd", "lz4", "gzip", "brotli", "none")


@dataclass(frozen=True)
class ScoreOptions:
    """The options that determine the contents of a scored file."""

    measures: tuple[Measure, ...]
    columns: Columns = field(default_factory=Columns)
    weights: tuple[float, ...] | None = None
    on_bad: OnBad = "error"
    keep_members: bool = False
    compression: str = "snappy"

    def __post_init__(self) -> None:
        if self.on_bad not in get_args(OnBad):
            raise ArgumentError(str(unknown("on_bad (--on-bad)", self.on_bad, get_args(OnBad))))
        if self.compression not in COMPRESSIONS:
            raise ArgumentError(str(unknown("compression", self.compression, COMPRESSIONS)))

    @property
    def names(self) -> list[str]:
        """The names of the measures, which are also the names of their columns."""
        return [measure.name for measure in self.measures]

    def record(self) -> dict[str, Any]:
        """The options as JSON values, to compare a finished part with the current run."""
        columns = {name: list(x) if isinstance(x, tuple) else x for name, x in self.columns.arguments.items()}
        weights = None if self.weights is None else list(self.weights)
        return {
            "measures": self.names,
            **columns,
            "weights": weights,
            "on_bad": self.on_bad,  # makes a difference only if a part has bad rows, see `manifest`
            "keep_members": self.keep_members,
            "compression": self.compression,
        }


@dataclass(frozen=True)
class Tolerance:
    """What a run does about bad files, and how many bad rows it accepts.

    Attributes:
        on_bad_file: "name" scores the other files and raises at the end; "skip" does not raise; "fail" stops at the first.
        max_bad: how many bad rows are accepted in all, or which share of the rows; None accepts any number.
    """

    on_bad_file: OnBadFile = "name"
    max_bad: int | float | None = None

    @classmethod
    def of(cls, on_bad_file: OnBadFile, max_bad: int | float | str | None, on_bad: OnBad) -> Tolerance:
        """The tolerance that these arguments of `score` describe."""
        if on_bad_file not in get_args(OnBadFile):
            raise ArgumentError(str(unknown("on_bad_file (--on-bad-file)", on_bad_file, get_args(OnBadFile))))
        if max_bad is not None and on_bad == "error":
            raise ArgumentError(
                "max_bad (--max-bad) needs on_bad (--on-bad) null or drop, because under error the first bad row fails its file"
            )
        return cls(on_bad_file, None if max_bad is None else _count_or_share(max_bad))

    def exceeded(self, bad: int, rows: int) -> bool:
        """Whether so many bad rows among these are too many."""
        if self.max_bad is None:
            return False
        return bad > (self.max_bad if isinstance(self.max_bad, int) else self.max_bad * rows)

    def __str__(self) -> str:
        return f"{self.max_bad:,}" if isinstance(self.max_bad, int) else f"{self.max_bad:.4g} of them"


def _count_or_share(given: int | float | str) -> int | float:
    """100 and "100" are counts; 0.01, "0.01" and "1%" are shares."""
    text = str(given).strip().replace("_", "")
    try:
        value: int | float = int(text) if text.isdecimal() else float(text.removesuffix("%")) / (100 if "%" in text else 1)
    except ValueError:
        value = -1
    if isinstance(given, bool) or not (value >= 0 and (isinstance(value, int) or value <= 1)):
        raise ArgumentError(
            f"max_bad (--max-bad) must be a number of rows, such as 100, or a share, such as 1% or 0.01, got {given!r}"
        )
    return value


def matching(patterns: Sequence[str], names: Sequence[str], where: object) -> list[str]:
    """The names that are given, match a pattern such as "crps.*", or are in "usual" or "all"; errors begin with `where`."""
    found: dict[str, None] = {}
    for pattern in patterns:
        usual = {measure.name for measure in select_measures("usual")} if pattern == "usual" else set()
        matches = [name for name in names if pattern in {name, "all"} or name in usual or fnmatchcase(name, pattern)]
        if not matches:
            raise InvalidValueError(f"{where}: {unknown('measure or column', pattern, names)}")
        found |= dict.fromkeys(matches)
    return list(found)
