"""What to compute, from which columns, and what to do with bad rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from uqprism.approximations import approximations
from uqprism.errors import ArgumentError, InvalidValueError, UnknownNameError
from uqprism.measures import RISKS, Measure, catalogue
from uqprism.registry import unknown
from uqprism.rules import PAPER, rules

OnBad = Literal["error", "null", "drop"]
Kind = Literal["variance", "scale"]
COMPRESSIONS = ("snappy", "zstd", "lz4", "gzip", "brotli", "none")
MeasuresLike = str | Measure | Sequence[str | Measure] | None
ColumnsLike = str | Sequence[str] | None


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


@dataclass(frozen=True)
class Options:
    """Everything that decides what a scored file holds."""

    measures: tuple[Measure, ...]
    columns: Columns = Columns()
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
        """The names of the measures, which are those of their columns."""
        return [measure.name for measure in self.measures]

    def record(self) -> dict[str, Any]:
        """The same as JSON values, to compare a finished part with what is asked for now."""
        plain = {name: list(x) if isinstance(x, tuple) else x for name, x in asdict(self.columns).items()}
        weights = None if self.weights is None else list(self.weights)
        return {
            "measures": self.names,
            **{f"{name}_columns": x for name, x in plain.items()},
            "weights": weights,
            "on_bad": self.on_bad,
            "keep_members": self.keep_members,
            "compression": self.compression,
        }


def select(measures: MeasuresLike) -> tuple[Measure, ...]:
    """The measures of these names, each once: also `all`, patterns such as `crps.*`, and several with commas between.

    By default total, bayes and excess with members in both roles, under the paper's four rules.
    """
    if measures is None:
        return tuple(m for m in catalogue() if m.prediction in (None, "members") and m.truth == "members")
    found: dict[str, Measure] = {}
    for item in [measures] if isinstance(measures, str | Measure) else measures:
        for measure in [item] if isinstance(item, Measure) else _named(item):
            found.setdefault(measure.name, measure)
    if not found:
        raise ArgumentError("measures must name at least one measure, got none; leave it out for the default")
    return tuple(found.values())


def _named(text: str) -> list[Measure]:
    found: list[Measure] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name.lower() == "all":
            found += catalogue()
        elif re.search(r"[*?[]", name):
            rule = name.split(".")[0]
            if not re.search(r"[*?[]", rule):
                rules.get(rule)  # an unknown one suggests the nearest
            known = catalogue([rule] if rule in rules else PAPER)
            matching = [m for m in known if fnmatchcase(m.name, name)]
            if not matching:
                raise UnknownNameError(f"no measure matches {name!r}; catalogue() (uqprism catalogue) lists them")
            found += matching
        else:
            found.append(Measure.parse(name))
    return found


def is_measure(name: str) -> bool:
    """Whether a column has the name of a measure, of a rule that is known."""
    rule, risk, *roles = [*name.split("."), "", ""]
    named = [role for role in roles if role]
    right = len(named) == (1 if risk == "bayes" else 2) and all(role in approximations for role in named)
    return rule in rules and risk in RISKS and right


def resolve(columns: Columns, names: Sequence[str], where: object) -> Layout:
    """The member columns among these names; errors begin with `where`, the file they are in."""
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InvalidValueError(f"{where}: column {twice[0]!r} appears twice; rename one")
    mean = _found(columns.mean or "mean_{i}", names, where)
    if not mean:
        raise InvalidValueError(
            f"{where}: no columns like {columns.mean or 'mean_{i}'}, the columns are {_listed(names)}; "
            "say which hold the members' means with mean_columns (--mean-columns)"
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
            f"{where}: no columns like {' or '.join(str(c) for c in chosen.values() if c)}; say which hold the members' "
            "variances or standard deviations with variance_columns or scale_columns (--variance-columns, --scale-columns)"
        )
    if len(there) > 1:
        raise InvalidValueError(
            f"{where}: both variance_{{i}} and scale_{{i}} columns; choose with variance_columns or scale_columns "
            "(--variance-columns, --scale-columns)"
        )
    return there[0], found[there[0]]


def _ordered(found: Found) -> tuple[str, ...]:
    return tuple(found[i] for i in sorted(found)) if isinstance(found, dict) else tuple(found)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "") or "none"
