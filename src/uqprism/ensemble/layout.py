"""Which columns of a table hold the members, and what they hold: the one description of a table of predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.ensemble.widths import have_widths, too_narrow
from uqprism.errors import ArgumentError, InvalidValueError, UqprismError, warn
from uqprism.families import Family, Gaussian, Histogram, Mixture, families
from uqprism.families.base import NARROWEST
from uqprism.families.mixture import WEIGHTS
from uqprism.registry import unknown

Matrix = np.ndarray[Any, Any]
MIXTURE = Mixture.name
SHARES = "shares"  # the columns of the weights of a mixture's components


@dataclass(frozen=True)
class Layout:
    """The member columns of one table.

    Attributes:
        family: the name of the members' family.
        columns: for each parameter its columns, member by member, within a member of quantiles level by level and of mixtures
            component by component.
        n_members: how many members.
        options: further arguments of the family, such as the levels of quantiles, or the family of a mixture's components.
        shared: arrays that all members and rows have in common, such as edges.
        lists: whether a cell holds several numbers: all draws, bars, quantiles or components of a member.
    """

    family: str
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    n_members: int
    options: tuple[tuple[str, Any], ...] = ()
    shared: tuple[tuple[str, tuple[float, ...]], ...] = ()
    lists: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All member columns."""
        return tuple(name for _, names in self.columns for name in names)

    @property
    def by_parameter(self) -> dict[str, tuple[str, ...]]:
        """The columns of each parameter."""
        return dict(self.columns)

    @property
    def centres(self) -> tuple[str, ...]:
        """The columns of the means of Gaussian members; none of others."""
        return self.by_parameter["mean"] if self.family == "gaussian" else ()

    @property
    def shape(self) -> str:
        """What the members are given by, in words."""
        words = " and ".join(name for name, _ in self.columns)
        words = words if self.family != MIXTURE else f"{words} of {self.components.family} components in a"
        return words if self.family == "gaussian" else f"{words} of {self.family}"

    @property
    def components(self) -> Layout:
        """That of the components of mixtures."""
        inner = tuple(each for each in self.columns if each[0] != SHARES)
        options = {"components": "gaussian", **dict(self.options)}
        family = options.pop("components")
        return Layout(family, inner, self.n_members, tuple(options.items()), self.shared, self.lists)

    def kind(self, parameter: str) -> str:
        """Which values a parameter may have: a key of `families.base.BOUNDS`, or "shape"."""
        if self.family == MIXTURE:  # shares may be zero
            return "location" if parameter == SHARES else self.components.kind(parameter)
        kinds = {"mean": "location", "variance": "variance", "scale": "scale"}
        return kinds[parameter] if self.family == "gaussian" else families.get(self.family).arguments().get(parameter, "location")

    def record(self) -> dict[str, Any]:
        """The description as JSON values."""
        about = {"family": self.family, **{name: list(names) for name, names in self.columns}}
        about |= {name: list(x) if isinstance(x, tuple) else x for name, x in self.options}
        return about | {name: list(values) for name, values in self.shared}

    def arrays(self, read: Callable[[str], Matrix], dtype: Any = None, crossed: list[int] | None = None) -> dict[str, Matrix]:
        """The arrays of each parameter, (members, rows), or (draws, bars, levels or components, members, rows).

        Args:
            read: gives a column as numbers (rows,), or (rows, numbers of a cell).
            dtype: of the arrays; by default that of the columns together.
            crossed: gets the number of predictions whose quantiles crossed and were sorted; by default a warning says it.
        """
        found = {parameter: self._array(names, read, dtype) for parameter, names in self.columns}
        if self.family == "quantiles":
            count = _uncross(found["values"])
            if crossed is not None:
                crossed.append(count)
            elif count:
                warn(crossing(count, found["values"][0].size))
        return found

    def _array(self, names: Sequence[str], read: Callable[[str], Matrix], dtype: Any) -> Matrix:
        values = [read(name) for name in names]
        found = np.empty((len(names), *values[0].shape), dtype or np.result_type(*values))
        for row, name, own in zip(found, names, values, strict=True):
            if own.shape != row.shape:
                raise InvalidValueError(
                    f"column {name!r} has {own.shape[-1]} numbers in a cell, and {names[0]!r} {row.shape[-1]}"
                )
            row[...] = own
        if self.lists and found.ndim < 3:
            raise InvalidValueError(
                f"column {names[0]!r} holds one value in a cell, and {self.family} members in such a column need a list of "
                "numbers, which CSV files cannot hold; write the table as Parquet"
            )
        if self.lists:  # (members, rows, numbers)
            return np.ascontiguousarray(found.transpose(2, 0, 1))
        if len(names) > self.n_members or self.family == MIXTURE:  # member by member, its levels or components
            return np.ascontiguousarray(found.reshape(self.n_members, -1, *found.shape[1:]).swapaxes(0, 1))
        return found

    def members(self, arrays: Mapping[str, Matrix], *, check: bool = True) -> Family:
        """The distributions, (members, rows)."""
        if self.family == "gaussian":
            return Gaussian(**arrays, check=check)
        if self.family == MIXTURE:
            components = self.components.members({name: x for name, x in arrays.items() if name != SHARES}, check=check)
            return Mixture(components, arrays.get(SHARES), check=check)
        shared = {name: np.asarray(values)[:, None, None] for name, values in self.shared}
        kind = families.get(self.family)
        order = [name for name in kind.arguments() if name in arrays or name in shared]
        given = {**arrays, **shared}
        if self.family == "draws" and "weights" not in given:
            return kind(**given, check=check)
        try:
            return kind.restored({name: given[name] for name in order or given}, dict(self.options), check=check)
        except UqprismError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError):  # options come from files and commands
            raise ArgumentError(
                f"{self.family} members do not take these options, or not with these values: "
                f"{', '.join(f'{name}={value}' for name, value in self.options)}"
            ) from None

    def good(self, arrays: Mapping[str, Matrix], *, dense: bool = False) -> Matrix | None:
        """Which rows are distributions of the family, and with `dense` have a density; None if all are."""
        good = None
        for parameter, values in arrays.items():
            fine = self._good_values(parameter, values)
            good = fine if good is None else good if fine is None else good & fine
        if self.family == "gaussian":
            return self._wide_enough(arrays, good)
        rows = next(iter(arrays.values())).shape[-1]
        mask = np.ones(rows, dtype=bool) if good is None else good
        self._refuse(arrays, mask, np.flatnonzero(mask))
        mask = mask if (wide := self._wide_enough(arrays, mask)) is None else wide
        if dense:
            mask[mask] = ~self._without_density(arrays, mask)
        return None if mask.all() else mask

    def _wide_enough(self, arrays: Mapping[str, Matrix], good: Matrix | None) -> Matrix | None:
        """Which of the good rows have no member too narrow to be squared in the unit of the row; None if all have none."""
        if not have_widths(families.get(self.family)) or (good is not None and not good.any()):
            return good
        narrow = self._narrow(arrays if good is None else _at(arrays, good))
        if narrow is None:
            return good
        found = np.ones(len(narrow), dtype=bool) if good is None else good.copy()
        found[found] = ~narrow
        return found

    def _narrow(self, arrays: Mapping[str, Matrix]) -> Matrix | None:
        """The rows with a member that is too narrow; None if there are none."""
        if self.family == "gaussian":
            return too_narrow(
                arrays["mean"], arrays["variance" if "variance" in arrays else "scale"], squared="variance" in arrays
            )
        members = self.members(arrays, check=False)
        return too_narrow(members.centre, members.spread)

    def _good_values(self, parameter: str, values: Matrix) -> Matrix | None:
        """Which rows have numbers of a size to compute with; None if all do, which the extremes show."""
        if not values.size:
            return None
        limits = self._limits(parameter)
        least, most = limits.least, min(limits.most, float(np.finfo(values.dtype).max)) if limits.finite else np.inf
        # A NaN anywhere makes the extremes NaN; unlike a mask, they need no memory.
        low, high = float(values.min()), float(values.max())
        if high <= most and (low >= -most if limits.signed else low > 0 and low >= least):
            return None
        fine = abs(values) <= most
        if not limits.signed:
            fine &= (values > 0) & (values >= least)
        return np.asarray(fine.all(axis=tuple(range(values.ndim - 1))))

    def _limits(self, parameter: str) -> _Limits:
        kind, family = self.kind(parameter), families.get(self.family)
        signed = kind in {"location", "bound"} or parameter in family.in_lists
        return _Limits(signed, kind != "bound", SMALLEST.get(kind, 0.0), LARGEST.get(kind, np.inf))

    def _refuse(self, arrays: Mapping[str, Matrix], mask: Matrix, rows: Matrix) -> None:
        """Mark the rows that the family refuses, which are found by halving."""
        if not len(rows):
            return
        try:
            self.members(_at(arrays, rows))
        except InvalidValueError:
            if len(rows) == 1:
                mask[rows] = False
                return
            for half in np.array_split(rows, 2):
                self._refuse(arrays, mask, half)

    def _without_density(self, arrays: Mapping[str, Matrix], mask: Matrix) -> Matrix:
        members = self.members(_at(arrays, mask), check=False)
        lost = members.without_density() if isinstance(members, Histogram) else np.zeros(members.batch_shape, dtype=bool)
        return np.asarray(lost.any(axis=0))

    def complaint(self, arrays: Mapping[str, Matrix], row: int) -> tuple[str, str]:
        """The column in which the values of a bad row are wrong, or the first one, and what they must be."""
        for parameter, names in self.columns:
            for name, value in zip(names, self._by_column(arrays[parameter], row), strict=True):
                if wanted := self._limits(parameter).complaint(value.astype(np.float64)):
                    return name, wanted
        one = _at(arrays, slice(row, row + 1))
        try:
            self.members(one)
        except InvalidValueError as error:
            return self.by_parameter.get(SHARES, self.names)[0], f"of {self.family} members ({error})"
        if self._wide_enough(one, None) is not None:
            return self._narrowest(one), TOO_NARROW
        return self.names[0], f"of {self.family} with a density, which needs values that differ"

    def _narrowest(self, one: Mapping[str, Matrix]) -> str:
        """The column of the least scale of a row."""
        parameter, names = next((each for each in self.columns if self.kind(each[0]) in SMALLEST), self.columns[0])
        return names[int(np.argmin(one[parameter][:, 0]))]

    def _by_column(self, values: Matrix, row: int) -> list[Matrix]:
        """The numbers of a row, for each column."""
        if self.lists:
            return list(values[..., row].T)
        return list(np.atleast_1d(values[..., row].T.ravel()))


def _at(arrays: Mapping[str, Matrix], rows: Any) -> dict[str, Matrix]:
    """Some rows of each array."""
    return {name: x[..., rows] for name, x in arrays.items()}


LARGEST = {"location": 1e150, "scale": 1e150, "variance": 1e300}  # the square of a larger distance is infinite
SMALLEST = {"scale": 1e-150, "variance": 1e-300}  # the square of a smaller scale is zero
TOO_NARROW = f"wider: a scale is at least {NARROWEST:.0e} of the others and of the distances between means"


@dataclass(frozen=True)
class _Limits:
    """What the numbers of a parameter may be: of any sign or not, finite or not, and of which size."""

    signed: bool
    finite: bool
    least: float
    most: float

    def complaint(self, values: Matrix) -> str | None:
        """What these must be; None if they are."""
        if np.isnan(values).any() or (self.finite and np.isinf(values).any()) or not (self.signed or (values > 0).all()):
            found = "finite" if self.finite else "a number or infinite"
            return found if self.signed else f"{found} and greater than zero"
        if self.finite and (abs(values) > self.most).any():
            return f"at most {self.most:.0e} in size"
        return f"at least {self.least:.0e}" if not self.signed and (values < self.least).any() else None


def _uncross(values: Matrix) -> int:
    """Sort quantiles (levels, members, rows) in place where they cross; returns in how many predictions."""
    crossed = (values[1:] < values[:-1]).any(axis=0)
    if not crossed.any():
        return 0
    crossed &= np.isfinite(values).all(axis=0)  # others are bad rows, whose numbers keep their places
    values[:, crossed] = np.sort(values[:, crossed], axis=0)
    return int(crossed.sum())


def crossing(count: int, total: int) -> str:
    """What is said of quantiles that crossed."""
    return f"quantiles crossed in {count:,} of {total:,} predictions and were sorted"


def family_of(text: str) -> tuple[str, dict[str, Any]]:
    """The family and its options that a text such as "laplace" or "quantiles:tails=gaussian" names."""
    name, _, rest = text.partition(":")
    name = name.strip()
    if name not in families:
        raise unknown("family (--family)", name, families.names())
    options = {}
    for part in filter(None, (piece.strip() for piece in rest.split(":"))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ArgumentError(f"family (--family) must look like quantiles:tails=gaussian, got {text!r}")
        options[key.strip()] = _value(value.strip())
    return name, options


def _value(text: str) -> Any:
    """A number, several with commas between, or text."""
    if "," in text:
        return tuple(_value(part.strip()) for part in text.split(","))
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def no_columns(family: str) -> ArgumentError:
    """The error for members of a family that no columns hold."""
    return ArgumentError(f"{family} members have no table form; use EnsemblePrediction.save and load")


def columns_of(members: Family) -> tuple[dict[str, Matrix], dict[str, Any]]:
    """The columns of a table for members (members, rows), and the header that describes them.

    A cell of a family with bars, draws, quantiles or components is a row of numbers; what all cells share is in the header.
    """
    stored = {name.removeprefix("given_"): to_numpy(x) for name, x in members.stored().items()}
    lists = members.in_lists
    if members.components is not None:
        if members.components.in_lists:
            raise no_columns(f"mixtures of {members.components.name}")
        stored[SHARES] = stored.pop(WEIGHTS)
        lists = tuple(stored)
    columns, shared = {}, {}
    for name, x in stored.items():
        if name in members.in_lists and x.shape[1:] == (1, 1) != members.batch_shape:
            shared[name] = x[:, 0, 0].tolist()
            continue
        wide = np.broadcast_to(x, (*x.shape[: x.ndim - len(members.batch_shape)], *members.batch_shape))
        for i in range(members.batch_shape[0]):
            columns[f"{name}_{i}"] = wide[:, i].T if name in lists else wide[i]
    return columns, {"shared": shared} if shared else {}
