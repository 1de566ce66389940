"""What happened beside what was expected: the penalty once the targets are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqprism.report.sentences import Parts
from uqprism.report.words import amounts

if TYPE_CHECKING:
    import numpy as np

STANDARD_ERRORS = 2.0  # that chance makes, 95 times in 100


@dataclass(frozen=True)
class Happened:
    """A penalty as it was expected and as it came.

    Attributes:
        expected: mean over the rows.
        came: likewise.
        error: the standard error of the difference, if the rows are independent of each other.
    """

    expected: float
    came: float
    error: float

    @classmethod
    def of(cls, expected: np.ndarray, came: np.ndarray) -> Happened:
        """From those of each row."""
        spread = float((came - expected).std(ddof=1))
        return cls(float(expected.mean()), float(came.mean()), spread / len(came) ** 0.5)

    @property
    def beyond_chance(self) -> bool:
        """Whether the two differ by more than chance would make them, 95 times in 100."""
        return abs(self.came - self.expected) > STANDARD_ERRORS * self.error


def as_expected(found: Happened, parts: Parts) -> str:
    """Whether the penalty came as it was expected."""
    who = "the model" if parts.n_members == 1 else "the average of the models"
    expected, came = amounts([found.expected, found.came], parts.risk_unit)
    head = f"What happened: {who} cost {came} a row on average, where {expected} was expected"
    if not found.beyond_chance:
        return f"{head}: as far as these rows can tell, as expected."
    meaning = "more than chance explains, so the predictions are surer than they should be, or off"
    less = "less than chance explains, so the predictions are less sure than they could be"
    return f"{head}: {meaning if found.came > found.expected else less}."
