"""Which columns of a table hold the members' parameters: found by patterns or names, in files and in tables in memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.families import families
from uqprism.registry import unknown

Kind = Literal["variance", "scale"]
ColumnsLike = str | Sequence[str] | None


PATTERN = "{parameter}_{{i}}"  # the default columns of a parameter, one per member
LONGEST_NUMBER = 18  # digits of the number of a member
IN_LISTS = {"draws", "histogram", "mixture", "quantiles"}  # families of more than one number per parameter, member and point
LIKELY = {  # usual names of members' columns
    "mean": ("mean", "mu", "pred", "prediction", "loc", "yhat"),
    "variance": ("variance", "var", "sigma2", "sigma_squared"),
    "scale": ("scale", "std", "sigma", "sd", "stdev", "standard_deviation"),
}


def no_columns(family: str) -> ArgumentError:
    """The error for members of a family that no columns hold."""
    given = {"histogram": "bars", "mixture": "mixtures"}.get(family, family)
    return ArgumentError(f"members given by {given} have no table form; use EnsemblePrediction.save and load")


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


def column_name(parameter: str, member: int) -> str:
    """The column that holds this parameter of this member, such as `mean_0`."""
    return PATTERN.format(parameter=parameter).format(i=member)


def member_columns(
    columns: Columns, family: str | None, names: Sequence[str], where: object
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The family of the members, and the columns of each of its parameters, in the order of the members.

    Args:
        columns: which columns hold Gaussian members.
        family: the family by its name; None recognises it by the columns.
        names: all columns of the table.
        where: what errors begin with.
    """
    check_unique(names, where)
    # Gaussian members may have columns of any name, and draws have no table form.
    known = {name: each.arguments() for name, each in families.items() if name not in {"gaussian", *IN_LISTS}}
    if family is None:
        family = "gaussian" if columns != Columns() else _recognised(known, names, where)
    if family == "gaussian":
        layout = resolve(columns, names, where)
        return family, {"mean": layout.mean, layout.kind: layout.spread}
    if family not in known:
        raise unknown("family", family, ["gaussian", *known]) if family not in IN_LISTS else no_columns(family)
    if columns != Columns():
        raise ArgumentError(
            f"mean_columns, variance_columns and scale_columns are for Gaussian members, not {family} ones, whose columns are "
            f"named {_patterns(known[family])}; rename the columns"
        )
    found = {parameter: _numbered(parameter, names, where) for parameter in known[family]}
    members = set().union(*found.values())
    for parameter, numbered in found.items():
        if not numbered:
            raise InvalidValueError(f"{where}: no columns like {_patterns([parameter])}, which {family} members need")
        if lonely := members - numbered.keys():
            raise InvalidValueError(f"{where}: member {min(lonely)} has no {parameter} column; every member needs one")
    return family, {parameter: _ordered(numbered) for parameter, numbered in found.items()}


def check_unique(names: Sequence[str], where: object) -> None:
    """Refuse columns of one name; errors begin with `where`, the file they are in."""
    twice = [name for name, count in Counter(names).items() if count > 1] if len(set(names)) < len(names) else []
    if twice:
        raise InvalidValueError(f"{where}: column {twice[0]!r} appears twice; rename one")


def _recognised(known: Mapping[str, Iterable[str]], names: Sequence[str], where: object) -> str:
    """The family with most parameters among those whose parameters all have columns; Gaussian if there is none."""
    if _numbered("mean", names, where):
        return "gaussian"
    complete = {name: [*each] for name, each in known.items() if all(_numbered(parameter, names, where) for parameter in each)}
    # The most parameters, because the columns of a Student t include those of a Laplace and a logistic.
    most = max(map(len, complete.values()), default=0)
    fitting = [name for name, each in complete.items() if len(each) == most]
    if len(fitting) > 1:
        raise InvalidValueError(
            f"{where}: columns {_patterns(complete[fitting[0]])} may be those of {' or '.join(fitting)} members; "
            f"choose with family={fitting[0]!r}"
        )
    return fitting[0] if fitting else "gaussian"


def _numbered(parameter: str, names: Sequence[str], where: object) -> dict[int, str]:
    """The columns of a parameter by the number of the member."""
    return _matches(PATTERN.format(parameter=parameter), names, where)


def _patterns(parameters: Iterable[str]) -> str:
    return ", ".join(PATTERN.format(parameter=parameter) for parameter in parameters)


def resolve(columns: Columns, names: Sequence[str], where: object) -> Layout:
    """The member columns among these names; errors begin with `where`, the file they are in."""
    check_unique(names, where)
    mean = _found(columns.mean or "mean_{i}", names, where)
    if not mean:
        hint = _hint(names, "mean", "variance", *([] if _likely(names, "variance") else ["scale"]))
        raise (InvalidValueError if hint else NoMembersError)(
            f"{where}: no columns like {columns.mean or 'mean_{i}'}, the columns are {_listed(names)}; "
            + (hint or "say which hold the members' means with mean_columns (--mean-columns)")
        )
    kind, spread = _spread(columns, names, where)
    # Lists have no numbers to compare; members are then matched by position.
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
        return _matches(choice, names, where)
    listed = [name.strip() for name in choice.split(",")] if isinstance(choice, str) else list(choice)
    for name in listed:
        if name not in names:
            raise InvalidValueError(f"{where}: {unknown('column', name, names)}")
    return listed


def _matches(pattern: str, names: Sequence[str], where: object) -> dict[int, str]:
    """The columns of a pattern by their number."""
    before, after = pattern.split("{i}", 1)
    expression = re.compile(re.escape(before) + r"(-?\d+)" + re.escape(after))
    numbered = [(match[1], name) for name in names if (match := expression.fullmatch(str(name)))]
    if long := next((name for number, name in numbered if len(number) > LONGEST_NUMBER), None):
        raise InvalidValueError(f"{where}: column {long[:40]!r}... has a number of more than {LONGEST_NUMBER} digits; rename it")
    matches = [(int(number), name) for number, name in numbered]
    found = dict(matches)
    if len(found) < len(matches):  # such as mean_1 and mean_01
        number = next(i for i, name in matches if found[i] != name)
        raise InvalidValueError(f"{where}: two columns match {pattern} with number {number}; rename one or list the columns")
    return found


def _spread(columns: Columns, names: Sequence[str], where: object) -> tuple[Kind, Found]:
    chosen: dict[Kind, str | Sequence[str]] = {"variance": columns.variance or "", "scale": columns.scale or ""}
    if not any(chosen.values()):
        chosen = {"variance": "variance_{i}", "scale": "scale_{i}"}
    found: dict[Kind, Found] = {kind: _found(choice, names, where) for kind, choice in chosen.items() if choice}
    # By default both patterns are tried, and only one may match.
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
    short = [name if len(name) <= 40 else f"{name[:40]}..." for name in map(str, names[:8])]
    return ", ".join(short) + (", ..." if len(names) > 8 else "") or "none"
