"""What a report is about: rows with their measures, and whatever else is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.origin import UNKNOWN_KIND
from uqprism.errors import InvalidValueError
from uqprism.families.quadrature import Exactness
from uqprism.measures import Measure
from uqprism.measures.vocabulary import is_square
from uqprism.plots.words import ErrorWords
from uqprism.tasks.audit.result import Audit

MeasureColumns = Mapping[str, np.ndarray]

LONGEST_NAME = 40  # characters of a name in a sentence


@dataclass(frozen=True)
class MeasurePair:
    """The two measures that divide the uncertainty of a row.

    Attributes:
        rule: the rule of both.
        bayes: the name of the Bayes risk (noise).
        excess: the name of the excess risk (disagreement).
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
        """The approximation of the prediction."""
        return self.excess.split(".")[-2]

    @property
    def of_average(self) -> str | None:
        """The name of the total of predicting with the mixture; None unless the pair has members in both roles."""
        return f"{self.rule}.total.mixture.members" if self == MeasurePair.of(self.rule) else None

    @classmethod
    def of(cls, rule: str) -> MeasurePair:
        """The pair with members in both roles."""
        return cls(rule, f"{rule}.bayes.members", f"{rule}.excess.members.members")

    @classmethod
    def among(cls, names: Sequence[str], rule: str, where: str) -> MeasurePair:
        """The pair of this rule among these names, or else of any other rule; errors begin with `where`."""
        # A file may have been scored under other rules.
        for each in dict.fromkeys([rule, *(name.split(".")[0] for name in names)]):
            for excess in sorted(name for name in names if name.startswith(f"{each}.excess.")):
                measure = Measure.parse(excess)
                bayes = f"{each}.bayes.{measure.truth}"
                if bayes in names and measure.shows_disagreement:
                    wanted = cls.of(each)  # preferred: it compares the models with each other
                    return wanted if {wanted.bayes, wanted.excess} <= set(names) else cls(each, bayes, excess)
        raise InvalidValueError(
            f"{where}: a report needs a Bayes and an excess risk under one rule, such as {rule}.bayes.members and "
            f"{rule}.excess.members.members; score the file with both (uqprism score), or give the members"
        )


def cut(value: Any, length: int) -> str:
    """A value as text on one line, cut where it is longer than this."""
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


@dataclass(frozen=True, eq=False)  # arrays have no single truth, so two of these cannot be compared by ==
class Rows:
    """Rows with their measures.

    Attributes:
        measures: by name, (rows,).
        pair: the two that divide the uncertainty.
        numbers: the places of the rows in what was given, (rows,).
    """

    measures: MeasureColumns
    pair: MeasurePair
    numbers: np.ndarray

    @property
    def bayes(self) -> np.ndarray:
        """The Bayes risk of each row."""
        return self.measures[self.pair.bayes]

    @property
    def excess(self) -> np.ndarray:
        """The excess risk of each row."""
        return self.measures[self.pair.excess]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    @property
    def has_pair(self) -> bool:
        """Whether both measures of the pair are known; a scored file of unfamiliar inputs may lack them."""
        return {self.pair.bayes, self.pair.excess} <= set(self.measures)

    @property
    def shown_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Noise and disagreement as the page shows them: roots where they are squares of the target's unit."""
        return self.shown(self.bayes), self.shown(self.excess)

    def shown(self, risks: Any) -> Any:
        """Risks of the pair's rule as the page shows them."""
        return np.sqrt(np.maximum(risks, 0.0)) if is_square(self.pair.rule) else risks

    def names_of(self, places: Sequence[int] | np.ndarray) -> list[str]:
        """What the rows at these places are called in a sentence."""
        return [f"{self.numbers[place]}" for place in places]

    def called(self, places: Sequence[int] | np.ndarray) -> str:
        """The rows at these places in a sentence: `rows 3, 14 and 15`, or their identifiers."""
        *first, last = self.names_of(places)
        many = f"{', '.join(first)} and {last}" if first else last
        return f"row{'s' if first else ''} {self.before_name(last)}{many}"

    def before_name(self, name: str) -> str:
        """What tells an identifier from the number of a row."""
        return ""

    @classmethod
    def of(cls, measures: MeasureColumns, pair: MeasurePair) -> Rows:
        """All rows of a table."""
        return cls(measures, pair, np.arange(len(next(iter(measures.values())))))

    @property
    def complete(self) -> np.ndarray:
        """Whether each row has all numbers, (rows,)."""
        return ~np.any(np.isnan(list(self.measures.values())), axis=0)

    def without_missing(self) -> Rows:
        """The same without rows in which a number is missing."""
        good = self.complete
        return replace(self, measures={name: x[good] for name, x in self.measures.items()}, numbers=self.numbers[good])


@dataclass(frozen=True, eq=False)
class Subject(Rows):
    """The rows of a report, with everything that is known of them.

    Attributes:
        title: what they are called: the name of the file.
        n_given: how many rows were given; some may have been left out.
        exactness: of the measures that were computed for the report.
        ensemble: the predictions, if the members are known.
        prediction: of each row, in one number, if known.
        target: of each row, if known.
        error: of each row, if known.
        error_words: what to call the error.
        target_name: what to call the target, without its unit.
        unit: of the target; empty if unknown.
        ood: rows with unfamiliar inputs, by the name of their data set.
        columns_at: a function from places among the rows to further columns there, to show.
        id_name: what the identifiers of the rows are called; empty if rows have numbers only.
        ids_at: a function from places among the rows to their identifiers.
        audit: promised against realised for such models on such data, if known.
        models: what the members are, where that is said beside the predictions; one of `uqprism.ensemble.origin.KINDS`.
    """

    title: str
    n_given: int
    exactness: Mapping[str, Exactness] = field(default_factory=dict)
    ensemble: EnsemblePrediction | None = None
    prediction: np.ndarray | None = None
    target: np.ndarray | None = None
    error: np.ndarray | None = None
    error_words: ErrorWords = field(default_factory=lambda: ErrorWords.of("squared"))
    target_name: str = "target"
    unit: str = ""
    ood: Mapping[str, Rows] = field(default_factory=dict)
    columns_at: Callable[[np.ndarray], Mapping[str, Sequence[Any]]] = lambda _: {}
    id_name: str = ""
    ids_at: Callable[[np.ndarray], Sequence[Any]] = lambda _: ()
    audit: Audit | None = None
    models: str | None = None

    def names_of(self, places: Sequence[int] | np.ndarray) -> list[str]:
        """The identifiers of these rows, or their numbers where there are none."""
        numbers = super().names_of(places)
        if not self.id_name:
            return numbers
        ids = self.ids_at(np.asarray(places, dtype=np.intp))
        return [cut(given, LONGEST_NAME) or number for given, number in zip(ids, numbers, strict=True)]

    def before_name(self, name: str) -> str:
        """What tells an identifier that is a number from the number of a row."""
        return f"with {cut(self.id_name, LONGEST_NAME)} " if self.id_name and name.isdecimal() else ""

    @property
    def n_members(self) -> int | None:
        """How many models there are; None if the members are not known."""
        return None if self.ensemble is None else self.ensemble.n_members

    @property
    def kind(self) -> str:
        """What the members are, one of `uqprism.ensemble.origin.KINDS`."""
        return self.models or (UNKNOWN_KIND if self.ensemble is None else self.ensemble.origin.kind)

    @property
    def ood_pairs(self) -> dict[str, Rows]:
        """The data sets of unfamiliar inputs that have both measures of the pair."""
        return {name: rows for name, rows in self.ood.items() if rows.has_pair}

    @property
    def complete(self) -> np.ndarray:
        """Whether each row has all numbers that are known of others, (rows,)."""
        # What figures and tables draw together is left out together.
        known = [*self.measures.values(), *(x for x in (self.error, self.target, self.prediction) if x is not None)]
        return ~np.any(np.isnan(known), axis=0)

    def without_missing(self) -> Subject:
        """The same without rows in which a number is missing."""
        good = self.complete
        if good.all():
            return self
        if not good.any():
            raise InvalidValueError(f"{self.title}: no row has all numbers; check which columns are empty")
        kept = np.flatnonzero(good)
        return replace(
            self,
            measures={name: column[good] for name, column in self.measures.items()},
            numbers=self.numbers[good],
            columns_at=lambda places: self.columns_at(kept[places]),  # places among the rows that are left
            ids_at=lambda places: self.ids_at(kept[places]),
            ensemble=None if self.ensemble is None else self.ensemble[good],
            error=None if self.error is None else self.error[good],
            target=None if self.target is None else self.target[good],
            prediction=None if self.prediction is None else self.prediction[good],
        )
