"""What the page is given: a file of predictions, and the choices of how to score it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from uqprism.ensemble.columns import Columns
from uqprism.errors import UqprismError
from uqprism.files.options import OnBad
from uqprism.measures.vocabulary import rule_words
from uqprism.rules import PAPER

RULES = {rule: rule_words(rule).title for rule in PAPER}
PARTS = {
    "total": "total: the expected penalty",
    "noise": "noise: what more data would not reduce",
    "disagreement": "disagreement: what more data could reduce, according to these models",
}


@dataclass(frozen=True)
class Upload:
    """A file of predictions in memory.

    Attributes:
        name: without folders.
        content: its bytes.
        given: the path it was given by; empty for a file from the browser, which does not tell its folder.
    """

    name: str
    content: bytes = field(repr=False)
    given: str = ""

    @property
    def path(self) -> str:
        """The path to use in a command."""
        return self.given or self.name

    @cached_property
    def digest(self) -> str:
        """A hash of name and contents, to cache results by."""
        return hashlib.sha256(self.name.encode() + b"\0" + self.content).hexdigest()  # messages have the name, so it counts

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """Write the file to a temporary folder under its own name, and remove it at the end.

        Errors name the file without that folder, as in a command that runs in the folder of the file.
        """
        with TemporaryDirectory(prefix="uqprism-app-") as folder:
            path = Path(folder, Path(self.name).name)  # a name from a browser is not to be trusted with folders
            path.write_bytes(self.content)
            try:
                yield path
            except UqprismError as error:
                error.args = (str(error).replace(f"{folder}{os.sep}", ""),)
                raise


@dataclass(frozen=True)
class ScoringChoice:
    """How to score a file.

    Attributes:
        rule: the scoring rule, which says what a wrong prediction costs.
        prediction: the approximation of the prediction.
        truth: the approximation of the truth.
        on_bad: `error` refuses rows with bad members, `drop` leaves them out.
        mean_columns: the columns of the means, a pattern or names; None for `mean_{i}`.
        variance_columns: the same for variances; None for `variance_{i}`.
        scale_columns: the same for standard deviations; None for `scale_{i}`.
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
        """The names of the measures, by part."""
        return {
            "total": f"{self.rule}.total.{self.prediction}.{self.truth}",
            "noise": f"{self.rule}.bayes.{self.truth}",
            "disagreement": f"{self.rule}.excess.{self.prediction}.{self.truth}",
        }

    @property
    def columns(self) -> Columns:
        """The columns of the members."""
        return Columns(self.mean_columns, self.variance_columns, self.scale_columns)

    @property
    def named_columns(self) -> dict[str, str]:
        """The arguments that say which columns hold the members, without those left at their defaults."""
        given = {name: getattr(self, name) for name in ("mean_columns", "variance_columns", "scale_columns")}
        return {name: text for name, text in given.items() if text is not None}
