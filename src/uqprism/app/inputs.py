"""What the page is given: a file of predictions, and the choices of how to score it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns
from uqprism.errors import FileError, UqprismError
from uqprism.files.options import OnBad
from uqprism.measures.vocabulary import is_square, rule_words
from uqprism.rules import PAPER

FOLDER = "uqprism-app-"  # the beginning of the names of temporary folders
LONGEST_STEM, LONGEST_ENDING = 60, 20
RULES = {rule: rule_words(rule).title for rule in PAPER}
PARTS = {
    "total": "noise and disagreement together: the expected penalty",
    "noise": "what more data would not reduce, according to these models",
    "disagreement": "what more data could reduce, according to these models",
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
        # A name from a browser is not to be trusted with folders, nor with its length.
        name = Path(self.name.replace("\0", "")).name
        name = "predictions" if name in {"", "..", "."} else name
        stem, dot, ending = name.rpartition(".")
        name = f"{(stem or ending)[:LONGEST_STEM]}{dot}{ending[:LONGEST_ENDING]}" if stem else name[:LONGEST_STEM]
        with TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-") as folder:
            try:
                path = Path(folder, name)
                path.write_bytes(self.content)
                yield path
            except UqprismError as error:
                error.args = (without_folder(str(error)), *error.args[1:])
                raise
            except OSError as error:
                raise FileError(f"{self.name}: cannot be kept on disk for a moment: {error.strerror}") from error


def remove_leftovers() -> None:
    """Remove the temporary folders of apps that were killed."""
    for folder in Path(gettempdir()).glob(f"{FOLDER}*-*"):
        number = folder.name.removeprefix(FOLDER).partition("-")[0]
        if os.name == "posix" and number.isdecimal() and not _is_running(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def without_folder(text: str) -> str:
    """A message without the temporary folders of files."""
    return re.sub(rf"[^\s'\"]*{re.escape(os.sep + FOLDER)}[^\s{re.escape(os.sep)}]*{re.escape(os.sep)}", "", text)


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
        family: of the members, as `--family` names it; None recognises it by the columns.
    """

    rule: str = "crps"
    prediction: str = "members"
    truth: str = "members"
    on_bad: OnBad = "error"
    mean_columns: str | None = None
    variance_columns: str | None = None
    scale_columns: str | None = None
    family: str | None = None

    @property
    def measures(self) -> dict[str, str]:
        """The names of the measures, by part."""
        return {
            "total": f"{self.rule}.total.{self.prediction}.{self.truth}",
            "noise": f"{self.rule}.bayes.{self.truth}",
            "disagreement": f"{self.rule}.excess.{self.prediction}.{self.truth}",
        }

    def shown(self, risks: Any) -> Any:
        """Risks as the page shows them: the roots of squares, which are in the unit of the target."""
        return np.sqrt(np.maximum(risks, 0.0)) if is_square(self.rule) else risks

    @property
    def columns(self) -> Columns:
        """The columns of the members."""
        return Columns(self.mean_columns, self.variance_columns, self.scale_columns, self.family)

    @property
    def named_columns(self) -> dict[str, str]:
        """The arguments that say which columns hold the members, and what they hold, without those left at their defaults."""
        given = {name: getattr(self, name) for name in ("mean_columns", "variance_columns", "scale_columns", "family")}
        return {name: text for name, text in given.items() if text is not None}


@dataclass(frozen=True)
class Comparison:
    """What the predictions are compared with.

    Attributes:
        target: the column of the target, None for none.
        unit: of the target, None for that in the name of its column.
    """

    target: str | None = None
    unit: str | None = None
