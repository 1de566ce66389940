"""What names of columns say: the unit of a target, and which column identifies the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

UNIT = re.compile(r"(?P<name>.*\S)[\s_]+(?:\((?P<round>[^()\[\]]{1,12})\)|\[(?P<square>[^()\[\]]{1,12})\])\s*")
NOT_UNITS = {
    "actual",
    "ln",
    "log",
    "log10",
    "mean",
    "median",
    "normalised",
    "normalized",
    "observed",
    "scaled",
    "sqrt",
    "target",
    "true",
}
IDENTIFIER = re.compile(r"(?i:(.*[_\-. ])?(id|uuid|key)|name|index|guid)|.*[a-z](Id|ID|Key)")


def split_unit(column: str) -> tuple[str, str]:
    """The name and the unit of a column such as `price ($)` or `load [kWh]`; the unit is empty if the name has none."""
    found = UNIT.fullmatch(column)
    unit = (found["round"] or found["square"]).strip() if found else ""
    if found is None or not unit or unit.lower() in NOT_UNITS or unit[0].isdigit():
        return column, ""
    return found["name"], unit


def identifier(names: Iterable[str], is_unique: Callable[[str], bool]) -> str:
    """The first column that is named like an identifier and has another value in each row; empty if there is none."""
    return next((name for name in names if IDENTIFIER.fullmatch(name) and is_unique(name)), "")
