"""Which columns of a table hold the members' parameters: found by patterns or names, in files and in tables in memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from uqprism.ensemble.layout import MIXTURE, SHARES, Layout, family_of, no_columns
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.families import families
from uqprism.registry import unknown

Kind = Literal["variance", "scale"]
ColumnsLike = str | Sequence[str] | None


PATTERN = "{parameter}_{{i}}"  # the default columns of a parameter, one per member
LONGEST_NUMBER = 18  # digits of the number of a member
LIKELY = {  # usual names of members' columns
    "mean": ("mean", "mu", "pred", "prediction", "loc", "yhat"),
    "variance": ("variance", "var", "sigma2", "sigma_squared"),
    "scale": ("scale", "std", "sigma", "sd", "stdev", "standard_deviation"),
}


class NoMembersError(InvalidValueError):
    """No columns that are, or look like, those of members."""


@dataclass(frozen=True)
class Columns:
    """Which columns hold the members: each a pattern with `{i}`, names with commas between, or a list; None is the default.

    The defaults are `mean_{i}` with `variance_{i}` or `scale_{i}`, whichever there are, and for another family the names of its
    parameters. `family` names it, perhaps with options as in "quantiles:tails=gaussian"; None recognises it.
    """

    mean: ColumnsLike = None
    variance: ColumnsLike = None
    scale: ColumnsLike = None
    family: str | None = None

    def __post_init__(self) -> None:
        if self.variance is not None and self.scale is not None:
            raise ArgumentError("give one of variance_columns and scale_columns (--variance-columns, --scale-columns), not both")

    @property
    def arguments(self) -> dict[str, Any]:
        """The same as the arguments of functions that read files."""
        columns = {"mean_columns": self.mean, "variance_columns": self.variance, "scale_columns": self.scale}
        return {**columns, "family": self.family}


def checked_header(header: Any, where: object) -> dict[str, Any]:
    """What a table or file says of its members; refuses what describes none, because any program can write one."""
    about = header if isinstance(header, dict) else {"family": header}
    family, options, shared = about.get("family", "gaussian"), about.get("options", {}), about.get("shared", {})
    if not isinstance(family, str) or family not in families:
        raise InvalidValueError(f"{where}: {unknown('family', family, families.names())}")
    fine = isinstance(options, dict) and isinstance(shared, dict)
    if not fine or not all(map(_is_option, options.values())) or not all(map(_is_numbers, shared.values())):
        raise InvalidValueError(f"{where}: its header does not describe {family} members")
    return {**about, "family": family, "options": options, "shared": shared}


def _is_option(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float) or _is_numbers(value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(x, int | float) for x in value)


def column_name(parameter: str, member: int) -> str:
    """The column that holds this parameter of this member, such as `mean_0`."""
    return PATTERN.format(parameter=parameter).format(i=member)


def described(columns: Columns, names: Sequence[str], where: object, header: Mapping[str, Any] | None = None) -> Layout:
    """The family of the members among these columns, and the columns of each of its parameters, in the order of the members.

    Args:
        columns: which columns hold the members, as far as it was said.
        names: all columns of the table.
        where: what errors begin with.
        header: what a table of `EnsemblePrediction.to_arrow` says of its members, see `checked_header`.
    """
    check_unique(names, where)
    gaussian = (columns.mean, columns.variance, columns.scale) != (None, None, None)
    family, options = (None, {}) if columns.family is None else family_of(columns.family)
    shared: Mapping[str, Sequence[float]] = {}
    if family is None and header and not gaussian and header["family"] != "gaussian":
        family, options, shared = header["family"], dict(header["options"]), header["shared"]
    if family is None:
        family = "gaussian" if gaussian else _recognised(names, where)
    if family == MIXTURE and not gaussian:
        return _mixture(names, dict(options), where)
    if family == "gaussian":
        if options:
            raise ArgumentError(f"gaussian members take no options, got {', '.join(options)}")
        mean, kind, spread = resolve(columns, names, where)
        return Layout("gaussian", (("mean", mean), (kind, spread)), len(mean))
    if gaussian:
        raise ArgumentError(
            f"mean_columns, variance_columns and scale_columns are for Gaussian members, not {family} ones, whose columns are "
            f"named {_patterns(families.get(family).arguments() or ('mean', 'scale', SHARES))}; rename the columns"
        )
    if family == "quantiles" and (levels := _levels(names, where)):
        return _quantiles(levels, options, where)
    kind_of_family = families.get(family)
    wanted = [name for name in kind_of_family.in_lists or kind_of_family.arguments() if name not in shared]
    if not wanted:
        raise no_columns(family)
    found = {parameter: _numbered(parameter, names, where) for parameter in wanted}
    if family == "draws" and not found.get("weights"):
        found.pop("weights", None)
    members = set().union(*found.values())
    for parameter, numbered in found.items():
        if not numbered:
            raise InvalidValueError(f"{where}: no columns like {_patterns([parameter])}, which {family} members need")
        if lonely := members - numbered.keys():
            raise InvalidValueError(f"{where}: member {min(lonely)} has no {parameter} column; every member needs one")
    return Layout(
        family,
        tuple((parameter, _ordered(numbered)) for parameter, numbered in found.items()),
        len(members),
        _frozen(options),
        _frozen(shared),
        bool(kind_of_family.in_lists),
    )


def _frozen(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tuple(x) if isinstance(x, list) else x) for name, x in options.items())


LEVEL = re.compile(r"q(\d+(?:\.\d+)?)_(-?\d{1,18})")


def _levels(names: Sequence[str], where: object) -> dict[int, dict[float, str]]:
    """For each member the columns of its quantiles by level: q05_0, q50_0, q97.5_0; digits alone are decimals."""
    found: dict[int, dict[float, str]] = {}
    for name in names:
        if match := LEVEL.fullmatch(str(name)):
            level, number = _level(match[1], name, where), int(match[2])
            own = found.setdefault(number, {})
            if level in own:
                raise InvalidValueError(f"{where}: columns {own[level]!r} and {name!r} both hold the level {level:g}; rename one")
            own[level] = name
    return found


def _level(digits: str, name: str, where: object) -> float:
    if "." in digits:
        value = float(digits)
        level = value if value <= 1.0 else value / 100.0
    elif len(digits) == 1:
        raise InvalidValueError(
            f"{where}: column {name!r} may be of the level 0.0{digits} or 0.{digits}; write q0{digits} or q{digits}0"
        )
    else:
        level = 1.0 if digits == "100" else float(f"0.{digits}")
    if not level <= 1.0:
        raise InvalidValueError(f"{where}: column {name!r} is of no level from 0 to 1, nor of a percentage; rename it")
    return level


def _quantiles(found: Mapping[int, Mapping[float, str]], options: dict[str, Any], where: object) -> Layout:
    levels = sorted(next(iter(found.values())))
    for number, own in found.items():
        if sorted(own) != levels:
            odd = sorted({*own}.symmetric_difference(levels))[0]
            raise InvalidValueError(f"{where}: member {number} must have the levels of the others, and does not at {odd:g}")
    if len(levels) < 2:
        raise InvalidValueError(f"{where}: quantiles need at least two levels, got columns of {levels[0]:g} alone")
    columns = tuple(found[number][level] for number in sorted(found) for level in levels)
    options = {"levels": levels, "tails": "exponential", **{name: x for name, x in options.items() if name != "levels"}}
    return Layout("quantiles", (("values", columns),), len(found), _frozen(options))


LIKE_LEVEL = re.compile(r"(?:quantile|q|p)?_?(\d{2,3}|\d?\d?\.\d+)(?:_-?\d{1,18})?", re.IGNORECASE)


def _level_hint(names: Sequence[str]) -> str:
    """What to do about columns that seem to be quantiles, by other names than those of this package."""
    likely = [str(name) for name in names if LIKE_LEVEL.fullmatch(str(name))]
    if len(likely) < 2:
        return ""
    return f"if {likely[0]!r} and others are quantiles, name them by level and member, such as q05_0, q50_0 and q95_0 of member 0"


COMPONENT = re.compile(r"(.+_-?\d{1,18})_(\d{1,18})")


def _by_component(names: Sequence[str], parameters: Iterable[str] | None = None) -> dict[int, dict[str, str]]:
    """For each component of mixtures the columns by their names without its number: mean_0_1 is mean_0 of component 1."""
    found: dict[int, dict[str, str]] = {}
    for name in names:
        match = COMPONENT.fullmatch(str(name))
        if match and (parameters is None or match[1].rpartition("_")[0] in parameters):
            found.setdefault(int(match[2]), {})[match[1]] = name
    return found


def _mixture(names: Sequence[str], options: dict[str, Any], where: object) -> Layout:
    """Members that are mixtures: a column for each member and component, as mean_0_1, or lists of components."""
    inner, more = options.pop("components", None), [f"{name}={x}" for name, x in options.items()]
    if inner is None:
        stems = next(iter(_by_component(names).values()), names)
        inner = _recognised(
            [name for name in stems if not str(name).startswith(f"{SHARES}_")], where, before="mixture:components="
        )
    if not isinstance(inner, str) or inner not in families or not (kind := families.get(inner)).arguments() or kind.in_lists:
        fitting = [name for name, each in families.items() if each.arguments() and not each.in_lists]
        raise ArgumentError(str(unknown("family of a mixture's components", inner, fitting)))
    parameters = {*kind.arguments(), *(("mean", "variance") if inner == "gaussian" else ()), SHARES}
    columns = Columns(family=":".join([inner, *more]))
    flat = _by_component(names, parameters)
    by_component = flat or {0: {name: name for name in names}}
    first, own = min(by_component), by_component[min(by_component)]
    found = described(columns, list(own), f"{where}: component {first}" if flat else where)
    members = _numbered(found.columns[0][0], list(own), where)
    wanted = [*found.columns, (SHARES, _ordered(shares))] if (shares := _numbered(SHARES, list(own), where)) else found.columns
    if shares and shares.keys() != members.keys():
        lonely = min(shares.keys() ^ members.keys())
        raise InvalidValueError(f"{where}: member {lonely} must have {SHARES} and parameters, like the others")
    for number, stems in by_component.items():
        if lacking := [stem for _, needed in wanted for stem in needed if stem not in stems]:
            raise InvalidValueError(f"{where}: component {number} has no column {lacking[0]}_{number}; every component needs one")
        if further := sorted({*stems} - {stem for _, needed in wanted for stem in needed} if flat else ()):
            raise InvalidValueError(f"{where}: component {first} has no column {further[0]}_{first}, as component {number} has")
    order = sorted(by_component)
    return Layout(
        MIXTURE,
        tuple((parameter, tuple(by_component[k][stem] for stem in stems for k in order)) for parameter, stems in wanted),
        found.n_members,
        (("components", inner), *found.options),
        (),
        not flat,
    )


def check_unique(names: Sequence[str], where: object) -> None:
    """Refuse columns of one name; errors begin with `where`, the file they are in."""
    twice = [name for name, count in Counter(names).items() if count > 1] if len(set(names)) < len(names) else []
    if twice:
        raise InvalidValueError(f"{where}: column {twice[0]!r} appears twice; rename one")


def _recognised(names: Sequence[str], where: object, *, before: str = "") -> str:
    """The family with most parameters among those whose parameters all have columns; Gaussian if there is none.

    What is said of families with the same columns has `before` in front of the one to choose.
    """
    if means := _numbered("mean", names, where):
        return MIXTURE if _numbered(SHARES, names, where).keys() == means.keys() else "gaussian"
    if _by_component(names, ("mean", SHARES)):
        return MIXTURE
    if any(LEVEL.fullmatch(str(name)) for name in names):
        return "quantiles"
    needed = {name: [*(each.in_lists or each.arguments())] for name, each in families.items() if name != "gaussian"}
    needed["draws"] = ["draws"]
    complete = {name: each for name, each in needed.items() if each and all(_numbered(p, names, where) for p in each)}
    # The most parameters, because the columns of a Student t include those of a Laplace and a logistic.
    most = max(map(len, complete.values()), default=0)
    fitting = sorted(name for name, each in complete.items() if len(each) == most)
    if len(fitting) > 1:
        raise InvalidValueError(
            f"{where}: columns {_patterns(complete[fitting[0]])} may be those of {' or '.join(fitting)} members; "
            f"choose with family={before + fitting[0]!r} (--family {before + fitting[0]})"
        )
    return fitting[0] if fitting else "gaussian"


def _numbered(parameter: str, names: Sequence[str], where: object) -> dict[int, str]:
    """The columns of a parameter by the number of the member."""
    return _matches(PATTERN.format(parameter=parameter), names, where)


def _patterns(parameters: Iterable[str]) -> str:
    return ", ".join(PATTERN.format(parameter=parameter) for parameter in parameters)


def resolve(columns: Columns, names: Sequence[str], where: object) -> tuple[tuple[str, ...], Kind, tuple[str, ...]]:
    """The columns of the means of Gaussian members, what their spreads are, and the columns of those."""
    mean = _found(columns.mean or "mean_{i}", names, where)
    if not mean:
        hint = _hint(names, "mean", "variance", *([] if _likely(names, "variance") else ["scale"])) or _level_hint(names)
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
    means, spreads = _ordered(mean), _ordered(spread)
    if both := set(means) & set(spreads):
        raise InvalidValueError(f"{where}: column {min(both)!r} is both a mean and a {kind}; name other columns")
    return means, kind, spreads


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
