"""What a report is asked for, and what of it a kind of source cannot use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError
from uqprism.plots.words import ErrorWords

ERRORS_THERE = "give the errors themselves as error="
COLUMNS_THERE = "rows have numbers only; a file has columns to show"
PREDICTS = "its mean is what is predicted; for another prediction give error= as an array"


@dataclass(frozen=True)
class Request:
    """What a report is asked for; `write_report` describes each."""

    target: Any = None
    prediction: Any = None
    error: Any = "squared"
    error_column: str | None = None
    ood: Any = None
    measures: str | Sequence[str] | None = None
    rule: str = "crps"
    unit: str = ""
    title: str | None = None
    show: Sequence[str] | None = None
    columns: Columns = field(default_factory=Columns)
    on_bad: str = "error"

    @property
    def error_words(self) -> ErrorWords:
        """What to call the error; a column may have any name, also that of a kind it is not."""
        if self.error_column is not None:
            return ErrorWords.named(self.error_column)
        return ErrorWords.of(self.error, self.unit) if isinstance(self.error, str) else ErrorWords.named("error")


def refuse(request: Request, source: str, ways: Mapping[str, str]) -> None:
    """What this kind of source cannot use."""
    for name, way in ways.items():
        if getattr(request, name) is not None:
            raise ArgumentError(f"{name} must be left out for {source}: {way}")


def check_names(request: Request) -> None:
    """Of a file, everything is named."""
    for name in ("target", "prediction", "error"):
        value = getattr(request, name)
        if value is not None and not isinstance(value, str):
            way = "name a column of errors with error_column" if name == "error" else "name a column of the file"
            raise ArgumentError(f"{name} must be text for a file, got {type(value).__name__}; {way}")
