"""Errors as sentences for a person who sees a page."""

from __future__ import annotations

import pytest

from uqprism.app.problems import COLUMNS, UNEXPECTED, explained
from uqprism.errors import ArgumentError, FileError, InvalidValueError


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "mine.csv: is empty; a CSV file begins with the names of its columns",
            "mine.csv: is empty; a CSV file begins with the names of its columns.",
        ),
        (
            "p.csv: no columns like mean_{i}, there are a, b; say which hold the means with mean_columns (--mean-columns)",
            f"p.csv: no columns like mean_{{i}}, there are a, b. {COLUMNS}.",
        ),
        (
            "p.csv: row 17: variance_1 must be finite, got -1.0; repair it, or leave such rows out with on_bad (--on-bad drop)",
            "p.csv: row 17: variance_1 must be finite, got -1.0.",
        ),
        (
            "p.csv: column 'crps.bayes.members' has the name of a measure; rename it, or choose other measures (--measures)",
            "p.csv: column 'crps.bayes.members' has the name of a measure. Rename that column in the file.",
        ),
        ("pyarrow is not installed; it comes with: pip install 'uqprism[cli]'", "pyarrow is not installed."),
    ],
)
def test_options_and_code_give_way_to_what_the_page_offers(message: str, expected: str) -> None:
    assert explained(InvalidValueError(message)) == expected
    assert explained(FileError(message)) == expected


def test_a_message_that_is_all_code_is_told_in_words() -> None:
    error = ArgumentError("give one of variance_columns and scale_columns (--variance-columns, --scale-columns), not both")
    assert explained(error) == "give one of columns of variances and columns of standard deviations, not both."


def test_what_the_system_refuses_is_told() -> None:
    assert "not enough memory" in explained(MemoryError())
    assert explained(OSError(28, "No space left on device")) == "The system says: No space left on device."


@pytest.mark.parametrize("error", [ZeroDivisionError("x / 0"), KeyError("--x"), OSError("odd")])
def test_unexpected_errors_say_nothing_of_themselves(error: Exception) -> None:
    assert explained(error) == UNEXPECTED
