"""Measures: every (rule, risk, prediction, truth) by one name, and tables of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from uqprism.arrays import Array, to_numpy
from uqprism.ensemble.approximations import Candidates, CentredEnsemble, approximations
from uqprism.errors import ArgumentError, InvalidValueError, UnknownNameError
from uqprism.families.quadrature import Exactness
from uqprism.registry import unknown
from uqprism.rules import PAPER, Rule, rules
from uqprism.support.optional import require
from uqprism.support.storage import read_npz, write_npz
from uqprism.support.tables import data_frame

FORMAT = "uqprism.MeasureTable"
RISKS = ("total", "bayes", "excess")
APPROXIMATIONS = ("members", "mixture", "matched", "pooled")
PAPER_INDEX = {"members": "1", "mixture": "2", "matched": "3a", "pooled": "3b"}

Order = Literal["prediction,truth", "truth,prediction"]
ORDERS: tuple[Order, ...] = get_args(Order)
RuleLike = str | Rule | type[Rule]
ApproximationLike = str | Callable[[CentredEnsemble], Candidates]


def resolve_rule(rule: RuleLike) -> Rule:
    """The rule of this name, or the rule itself."""
    if isinstance(rule, type) and issubclass(rule, Rule):
        rule = rule()
    if isinstance(rule, Rule):
        if "." in rule.name:
            raise InvalidValueError(f"rule names must have no dots, got {rule.name!r}; pass another name=")
        return rule
    return rules.get(rule)()


def resolve_approximation(approximation: ApproximationLike) -> str:
    """The name under which this approximation is registered."""
    if isinstance(approximation, str):
        approximations.get(approximation)
        return approximation
    name = approximations.name_of(approximation)
    if name is None:
        raise ArgumentError(f"{approximation!r} is no approximation; register the function with @approximations.register(name)")
    return name


def is_measure(name: str) -> bool:
    """Whether this is the name of a measure, under a rule and with approximations that are registered."""
    rule, risk, *roles = [*name.split("."), "", ""]
    named = [role for role in roles if role]
    right = len(named) == (1 if risk == "bayes" else 2) and all(role in approximations for role in named)
    return rule in rules and risk in RISKS and right


@dataclass(frozen=True, order=True)
class Measure:
    """One number per point: a risk under a rule, with a stand-in for the prediction and one for the truth.

    A Bayes risk has no prediction: it is None. `str(measure)` is the name, `rule.risk.prediction.truth` or `rule.bayes.truth`.
    """

    rule: str
    risk: str
    prediction: str | None
    truth: str
    scorer: Rule | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.risk not in RISKS:
            raise unknown("risk", self.risk, RISKS)
        if (self.prediction is None) != (self.risk == "bayes"):
            wanted = "no prediction" if self.risk == "bayes" else "a prediction"
            raise ArgumentError(f"{self.risk} risks have {wanted}, got {self.prediction!r}")

    @classmethod
    def parse(cls, name: str) -> Measure:
        """The measure of this name; an unknown part raises and suggests the nearest."""
        parts = name.split(".")
        if len(parts) < 2 or len(parts) != (3 if parts[1] == "bayes" else 4):
            raise UnknownNameError(
                f"unknown measure {name!r}; measures are named rule.risk.prediction.truth, or rule.bayes.truth, for example "
                "crps.excess.members.members"
            )
        scorer = resolve_rule(parts[0])
        if parts[1] not in RISKS:
            raise unknown("risk", parts[1], RISKS)
        roles = [resolve_approximation(role) for role in parts[2:]]
        return cls(parts[0], parts[1], None if parts[1] == "bayes" else roles[0], roles[-1], scorer)

    @cached_property
    def name(self) -> str:
        """The one name of this measure."""
        return ".".join(part for part in (self.rule, self.risk, self.prediction, self.truth) if part is not None)

    def __str__(self) -> str:
        return self.name

    def resolved(self) -> Rule:
        """The rule itself."""
        return self.scorer if self.scorer is not None else resolve_rule(self.rule)

    def paper_label(self, *, order: Order) -> str:
        """The paper's superscript, such as R_exc^{1,3a}.

        Its appendix orders the indices (prediction, truth), its tables and experiments (truth, prediction), so there is no
        default.
        """
        if order not in ORDERS:
            raise unknown("order", order, ORDERS)
        symbol = {"total": "tot", "bayes": "Bayes", "excess": "exc"}[self.risk]
        roles = [self.truth] if self.prediction is None else [self.prediction, self.truth]
        if order == "truth,prediction":
            roles.reverse()
        return f"R_{symbol}^{{{','.join(PAPER_INDEX.get(role, role) for role in roles)}}}"


def catalogue(rules: Iterable[RuleLike] = PAPER) -> list[Measure]:
    """All measures of these rules: 16 totals, 4 Bayes risks and 16 excesses each; by default the paper's four rules, 144."""
    found = []
    for rule in map(resolve_rule, [rules] if isinstance(rules, str | Rule) else rules):
        pairs = [(prediction, truth) for prediction in APPROXIMATIONS for truth in APPROXIMATIONS]
        found += [Measure(rule.name, "total", *pair, rule) for pair in pairs]
        found += [Measure(rule.name, "bayes", None, truth, rule) for truth in APPROXIMATIONS]
        found += [Measure(rule.name, "excess", *pair, rule) for pair in pairs]
    return found


class MeasureTable(Mapping[str, Array]):
    """Measures by name, each an array (*points), with how exact each is.

    Attributes:
        exactness: `Exactness(method, tolerance)` by measure name.
        measures: the `Measure`s in this table, with the rules they were computed by.
    """

    def __init__(
        self, values: Mapping[str, Array], exactness: Mapping[str, Exactness], measures: Sequence[Measure] | None = None
    ) -> None:
        shapes = {tuple(x.shape) for x in values.values()}
        if len(shapes) > 1:
            raise InvalidValueError(f"measures must have one shape, got {sorted(shapes)}")
        self._values, self.exactness = dict(values), dict(exactness)
        self.measures = [_named(name) for name in values] if measures is None else list(measures)

    def __getitem__(self, measure: str | Measure) -> Array:
        name = str(measure)
        if name not in self._values:
            raise unknown("measure in this table", name, _near(name, list(self._values)))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, measure: object) -> bool:
        return str(measure) in self._values

    def to_pandas(self, index: Any = None) -> Any:
        """A `pandas.DataFrame` with a column per measure and a row per point, with this index if there is one."""
        return data_frame(self._values, index)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with a column per measure and a row per point."""
        pyarrow = require("pyarrow", extra="cli")
        return pyarrow.table({name: to_numpy(x).reshape(-1) for name, x in self._values.items()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header, whole or not at all; read it back with `load`."""
        header = {name: list(exactness) for name, exactness in self.exactness.items()}
        write_npz(path, FORMAT, {"exactness": header}, {name: to_numpy(x) for name, x in self._values.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MeasureTable:
        """Read what `save` wrote, as NumPy arrays."""
        header, arrays = read_npz(path, FORMAT)
        return cls(arrays, {name: Exactness(*entry) for name, entry in header["exactness"].items()})

    def __repr__(self) -> str:
        shape = next((tuple(x.shape) for x in self._values.values()), ())
        return f"<MeasureTable: {len(self)} measures, points {shape}>"


def _named(name: str) -> Measure:
    rule, risk, *roles = name.split(".")
    return Measure(rule, risk, None if risk == "bayes" else roles[0], roles[-1])


def _near(name: str, known: list[str]) -> list[str]:
    """Of the known names those that may be meant: of the same rule and risk, if there are any, with as many roles as that has."""
    rule, _, rest = name.lower().partition(".")
    risk, *roles = rest.split(".")
    if risk in RISKS:
        meant = ".".join([rule, risk, *roles[-1:]] if risk == "bayes" else [rule, risk, *roles, *roles][:4])
        same = [each for each in known if each.startswith(f"{rule}.{risk}.")]
        return [meant] if meant in known else same or known
    return known
