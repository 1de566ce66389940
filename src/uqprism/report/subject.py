"""What a report is about: rows with their measures, and whatever else is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import InvalidValueError
from uqprism.families.quadrature import Exactness
from uqprism.measures import Measure, catalogue
from uqprism.plots.words import ErrorWords
from uqprism.rules import PAPER

Table = Mapping[str, np.ndarray]

WITHOUT_DISAGREEMENT = {"mixture", "matched", "pooled"}  # one distribution each: two of them differ in shape alone


@dataclass(frozen=True)
class Split:
    """Which two measures divide the uncertainty of a row.

    Attributes:
        rule: of both.
        bayes: the name of the noise.
        excess: the name of what more data would remove.
    """

    rule: str
    bayes: str
    excess: str

    @property
    def total(self) -> str:
        """The name of the sum."""
        return self.excess.replace(".excess.", ".total.")

    @property
    def prediction(self) -> str:
        """What stands in for the prediction."""
        return self.excess.split(".")[-2]

    @property
    def of_average(self) -> str | None:
        """The name of the total if one predicts with the average of the models, None where the split is another."""
        return f"{self.rule}.total.mixture.members" if self == Split.of(self.rule) else None

    @classmethod
    def of(cls, rule: str) -> Split:
        """With members in both roles."""
        return cls(rule, f"{rule}.bayes.members", f"{rule}.excess.members.members")


@dataclass(frozen=True, eq=False)
class Outside:
    """Rows from outside as far as the split goes: both parts, (rows,), and the numbers of the rows."""

    noise: np.ndarray
    removable: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True, eq=False)
class Subject:
    """The rows of a report, all of them whole.

    Attributes:
        title: what they are called: the name of the file.
        measures: by name, (rows,).
        split: which of them divide the uncertainty.
        exactness: of the measures that were computed for the report.
        numbers: of the rows, as they were given.
        n_given: how many rows there were; some may have been left out.
        ensemble: what was predicted, if the members are known.
        prediction: of each row, in one number, if known.
        target: what happened, if known.
        error: of each row, if known.
        error_words: what to call it.
        target_name: what the target is called.
        unit: of the target; empty if nobody said.
        outside: measures of rows from outside, by the name of their data set.
        outside_numbers: of those rows, where some were left out.
        others: a function from places among the rows to further columns there, to show.
    """

    title: str
    measures: Table
    split: Split
    exactness: Mapping[str, Exactness]
    numbers: np.ndarray
    n_given: int
    ensemble: EnsemblePrediction | None = None
    prediction: np.ndarray | None = None
    target: np.ndarray | None = None
    error: np.ndarray | None = None
    error_words: ErrorWords = field(default_factory=lambda: ErrorWords.of("squared"))
    target_name: str = "target"
    unit: str = ""
    outside: Mapping[str, Table] = field(default_factory=dict)
    outside_numbers: Mapping[str, np.ndarray] = field(default_factory=dict)
    others: Callable[[np.ndarray], Mapping[str, Sequence[Any]]] = lambda _: {}

    @property
    def noise(self) -> np.ndarray:
        """The Bayes risk of each row."""
        return self.measures[self.split.bayes]

    @property
    def removable(self) -> np.ndarray:
        """The excess risk of each row."""
        return self.measures[self.split.excess]

    @property
    def total(self) -> np.ndarray:
        """The sum of the two."""
        return self.noise + self.removable

    @property
    def n_rows(self) -> int:
        """How many rows the numbers are of."""
        return len(self.numbers)

    @cached_property
    def elsewhere(self) -> dict[str, Outside]:
        """The rows from outside, by data set, as far as both parts of them are known."""
        found = {}
        for name, table in self.outside.items():
            if self.split.bayes in table and self.split.excess in table:
                noise, removable = table[self.split.bayes], table[self.split.excess]
                found[name] = Outside(noise, removable, self.outside_numbers.get(name, np.arange(len(noise))))
        return found

    def whole(self) -> Subject:
        """The same without rows in which a number is missing."""
        known = [*self.measures.values(), *(x for x in (self.error, self.target, self.prediction) if x is not None)]
        good = ~np.any(np.isnan(known), axis=0)
        kept_outside = {name: _whole(table) for name, table in self.outside.items()}
        outside = {
            name: {each: column[kept_outside[name]] for each, column in table.items()} for name, table in self.outside.items()
        }
        if good.all():
            return replace(self, outside=outside, outside_numbers=kept_outside)
        if not good.any():
            raise InvalidValueError(f"{self.title}: no row has all numbers; see which columns are empty")
        kept = np.flatnonzero(good)
        return replace(
            self,
            measures={name: column[good] for name, column in self.measures.items()},
            numbers=self.numbers[good],
            ensemble=None if self.ensemble is None else self.ensemble[good],
            others=lambda places: self.others(kept[places]),
            outside=outside,
            outside_numbers=kept_outside,
            error=None if self.error is None else self.error[good],
            target=None if self.target is None else self.target[good],
            prediction=None if self.prediction is None else self.prediction[good],
        )


def _whole(table: Table) -> np.ndarray:
    """The numbers of the rows in which nothing is missing."""
    return np.flatnonzero(~np.any(np.isnan(list(table.values())), axis=0))


def usual(rules: Sequence[str] = PAPER) -> list[str]:
    """The measures of a report unless others are asked for: total, bayes and excess of each rule, with members in both roles."""
    return [m.name for m in catalogue(rules) if m.truth == "members" and m.prediction in ("members", None)]


def split_among(names: Sequence[str], rule: str, where: str) -> Split:
    """The split of this rule, or if the table lacks it, of any other that is there."""
    for each in dict.fromkeys([rule, *(name.split(".")[0] for name in names)]):
        for excess in sorted(name for name in names if name.startswith(f"{each}.excess.")):
            measure = Measure.parse(excess)
            bayes = f"{each}.bayes.{measure.truth}"
            if bayes in names and _sees_disagreement(measure):
                wanted = Split.of(each)
                return wanted if {wanted.bayes, wanted.excess} <= set(names) else Split(each, bayes, excess)
    raise InvalidValueError(
        f"{where}: a report needs a noise and a removable part under one rule, such as {rule}.bayes.members and "
        f"{rule}.excess.members.members; score the file with both (uqprism score), or give the members"
    )


def _sees_disagreement(measure: Measure) -> bool:
    """Whether an excess risk is about the models' disagreement: between equal stand-ins it is zero, however much there is."""
    roles = {measure.prediction, measure.truth}
    return roles == {"members"} or (len(roles) == 2 and not roles <= WITHOUT_DISAGREEMENT)
