"""Which columns of a table hold the members: found by patterns or names, for files and tables in memory alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.registry import unknown

Kind = Literal["variance", "scale"]
ColumnsLike = str | Sequence[str] | None


LIKELY = {  # what members' columns are often called
    "mean": ("mean", "mu", "pred", "prediction", "loc", "yhat"),
    "variance": ("variance", "var", "sigma2", "sigma_squared"),
    "scale": ("scale", "std", "sigma", "sd", "stdev", "standard_deviation"),
}


class NoMembersError(InvalidValueError):
    """No columns that are, or look like, those of members."""


@dataclass(frozen=True)
class Columns:
    """Which columns hold the members: each a pattern with `{i}`, names with commas between, or a list; None is the default.

    The defaults are `mean_{i}` with `variance_{i}` or `scale_{i}`, whichever there are.
    """

    mean: ColumnsLike = None
    variance: ColumnsLike = None
    scale: ColumnsLike = None

    def __post_init__(self) -> None:
        if self.variance is not None and self.scale is not None:
            raise ArgumentError("give one of variance_columns and scale_columns (--variance-columns, --scale-columns), not both")


@dataclass(frozen=True)
class Layout:
    """The member columns of one table, in the order of the members."""

    mean: tuple[str, ...]
    spread: tuple[str, ...]
    kind: Kind


def resolve(columns: Columns, names: Sequence[str], where: object) -> Layout:
    """The member columns among these names; errors begin with `where`, the file they are in."""
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InvalidValueError(f"{where}: column {twice[0]!r} appears twice; rename one")
    mean = _found(columns.mean or "mean_{i}", names, where)
    if not mean:
        hint = _hint(names, "mean", "variance", *([] if _likely(names, "variance") else ["scale"]))
        raise (InvalidValueError if hint else NoMembersError)(
            f"{where}: no columns like {columns.mean or 'mean_{i}'}, the columns are {_listed(names)}; "
            + (hint or "say which hold the members' means with mean_columns (--mean-columns)")
        )
    kind, spread = _spread(columns, names, where)
    if isinstance(mean, dict) and isinstance(spread, dict) and mean.keys() != spread.keys():
        lonely = sorted(mean.keys() ^ spread.keys())[0]
        there, missing = ("mean", kind) if lonely in mean else (kind, "mean")
        raise InvalidValueError(f"{where}: member {lonely} has a {there} but no {missing} column; every member needs both")
    if len(mean) != len(spread):
        raise InvalidValueError(f"{where}: {len(mean)} mean columns but {len(spread)} {kind} columns; every member needs both")
    layout = Layout(_ordered(mean), _ordered(spread), kind)
    if both := set(layout.mean) & set(layout.spread):
        raise InvalidValueError(f"{where}: column {min(both)!r} is both a mean and a {kind}; name other columns")
    return layout


Found = dict[int, str] | list[str]


def _found(choice: str | Sequence[str], names: Sequence[str], where: object) -> Found:
    """The columns of a pattern by their number, or those of a list."""
    if isinstance(choice, str) and "{i}" in choice:
        before, after = choice.split("{i}", 1)
        pattern = re.compile(re.escape(before) + r"(-?\d+)" + re.escape(after))
        matches = [(int(match[1]), name) for name in names if (match := pattern.fullmatch(str(name)))]
        found = dict(matches)
        if len(found) < len(matches):
            number = next(i for i, name in matches if found[i] != name)
            raise InvalidValueError(f"{where}: two columns match {choice} with number {number}; rename one or list the columns")
        return found
    listed = [name.strip() for name in choice.split(",")] if isinstance(choice, str) else list(choice)
    for name in listed:
        if name not in names:
            raise InvalidValueError(f"{where}: {unknown('column', name, names)}")
    return listed


def _spread(columns: Columns, names: Sequence[str], where: object) -> tuple[Kind, Found]:
    chosen: dict[Kind, str | Sequence[str]] = {"variance": columns.variance or "", "scale": columns.scale or ""}
    if not any(chosen.values()):
        chosen = {"variance": "variance_{i}", "scale": "scale_{i}"}
    found: dict[Kind, Found] = {kind: _found(choice, names, where) for kind, choice in chosen.items() if choice}
    there = [kind for kind in found if found[kind]]
    if not there:
        raise InvalidValueError(
            f"{where}: no columns like {' or '.join(str(c) for c in chosen.values() if c)}; "
            + (_hint(names, "variance") or _hint(names, "scale") or NO_SPREAD)
        )
    if len(there) > 1:
        raise InvalidValueError(
            f"{where}: both variance_{{i}} and scale_{{i}} columns; choose with variance_columns or scale_columns "
            "(--variance-columns, --scale-columns)"
        )
    return there[0], found[there[0]]


NO_SPREAD = (
    "each member needs a variance or a standard deviation, in columns that variance_columns or scale_columns "
    "(--variance-columns, --scale-columns) may name; for models that give means only, take each model's mean "
    "squared error on validation data as its variance (docs/models.md)"
)


def _hint(names: Sequence[str], *kinds: str) -> str:
    """The options that name columns which look like these, if there are some of the first kind."""
    likely = {kind: pattern for kind in kinds if (pattern := _likely(names, kind))}
    if kinds[0] not in likely:
        return ""
    arguments = ", ".join(f"{kind}_columns={pattern!r}" for kind, pattern in likely.items())
    return f"did you mean {arguments} ({' '.join(f'--{kind}-columns {pattern!r}' for kind, pattern in likely.items())})?"


def _likely(names: Sequence[str], kind: str) -> str | None:
    """A pattern of numbered columns whose name is usual for this kind, but not the one that is found by itself."""
    numbered = (re.fullmatch(r"(.*?)\d+(\D*)", str(name)) for name in names)
    for before, after in dict.fromkeys((match[1], match[2]) for match in numbered if match):
        pattern = f"{before}{{i}}{after}"
        if (before + after).lower().strip("_-. []()") in LIKELY[kind] and pattern != f"{kind}_{{i}}":
            return pattern
    return None


def _ordered(found: Found) -> tuple[str, ...]:
    return tuple(found[i] for i in sorted(found)) if isinstance(found, dict) else tuple(found)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "") or "none"
