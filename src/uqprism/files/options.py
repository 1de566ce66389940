"""What `score` computes, and what it does with bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import Measure, select_measures
from uqprism.registry import unknown

OnBad = Literal["error", "null", "drop"]
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
        plain = {name: list(x) if isinstance(x, tuple) else x for name, x in asdict(self.columns).items()}
        weights = None if self.weights is None else list(self.weights)
        return {
            "measures": self.names,
            **{f"{name}_columns": x for name, x in plain.items()},
            "weights": weights,
            "on_bad": self.on_bad,  # makes a difference only if a part has bad rows, see `manifest`
            "keep_members": self.keep_members,
            "compression": self.compression,
        }


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
