"""What a person chooses on the page, and what that is called in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from uqprism.ensemble.columns import Columns
from uqprism.files.options import OnBad
from uqprism.measures.vocabulary import rule_words
from uqprism.rules import PAPER

RULES = {rule: rule_words(rule).title for rule in PAPER}
PARTS = {
    "total": "total: the expected penalty",
    "noise": "noise: what no amount of data removes",
    "removable": "removable: what more data would remove",
}


@dataclass(frozen=True)
class Choice:
    """How to score a file.

    Attributes:
        rule: the scoring rule, which says what a wrong prediction costs.
        prediction: what stands in for the prediction.
        truth: what stands in for the truth.
        on_bad: `error` refuses rows with bad members, `drop` leaves them out.
        mean_columns: a pattern or names, None for `mean_{i}`; likewise the other two.
    """

    rule: str = "crps"
    prediction: str = "members"
    truth: str = "members"
    on_bad: OnBad = "error"
    mean_columns: str | None = None
    variance_columns: str | None = None
    scale_columns: str | None = None

    @property
    def measures(self) -> dict[str, str]:
        """The names of the measures by the parts they are."""
        return {
            "total": f"{self.rule}.total.{self.prediction}.{self.truth}",
            "noise": f"{self.rule}.bayes.{self.truth}",
            "removable": f"{self.rule}.excess.{self.prediction}.{self.truth}",
        }

    @property
    def columns(self) -> Columns:
        """The columns of the members."""
        return Columns(self.mean_columns, self.variance_columns, self.scale_columns)

    @property
    def named_columns(self) -> dict[str, str]:
        """The arguments that say which columns hold the members, those that differ from the defaults."""
        given = {name: getattr(self, name) for name in ("mean_columns", "variance_columns", "scale_columns")}
        return {name: text for name, text in given.items() if text is not None}
