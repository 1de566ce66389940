"""Words that figures and the report share: errors with their units, the two parts of the uncertainty, names of data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.measures.vocabulary import rule_words, unit_in_words

UNNAMED = "unfamiliar inputs"  # stands for the name of a single data set in memory
NOISE, DISAGREEMENT = "noise (aleatoric)", "disagreement (epistemic)"


@dataclass(frozen=True)
class ErrorWords:
    """The name and unit of the mean of errors of one kind.

    Attributes:
        name: of the mean, in a sentence.
        unit: what it is in, empty if it has none.
        root: whether the root of the mean is shown, which is in the target's units where the mean is not.
    """

    name: str
    unit: str
    root: bool = False

    @classmethod
    def of(cls, kind: str, unit: str = "") -> ErrorWords:
        """The words for `squared`, `absolute`, `nll` or `crps`; any other name stands for itself."""
        known = {
            "squared": cls("root mean squared error", unit, root=True),
            "absolute": cls("mean absolute error", unit),
            "crps": cls("mean CRPS", unit),
            "nll": cls("mean negative log-likelihood", "nats"),
        }
        return known.get(kind) or cls.named(kind)

    @classmethod
    def named(cls, name: str) -> ErrorWords:
        """The words for an error of which only the name is known, also if it is the name of a kind."""
        return cls(f"mean {name}", "")

    @property
    def axis(self) -> str:
        """The label of an axis."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def shown(self, mean: Any) -> Any:
        """The number that goes with the name, from the mean of the errors."""
        return np.sqrt(np.maximum(mean, 0.0)) if self.root else mean


def from_set(name: str) -> str:
    """Where unfamiliar rows are from, by the name of their data set."""
    return f"with {UNNAMED}" if name == UNNAMED else f"from “{name}”"


def quantity(rule: str, unit: str = "") -> str:
    """The rule and the unit of its risks, for an axis: `CRPS, minutes`."""
    return ", ".join(filter(None, (rule_words(rule).name, unit_in_words(rule, unit))))
