"""What went wrong, in a sentence for a person who sees a page, not a terminal."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from uqprism.app import show
from uqprism.errors import UqprismError

logger = logging.getLogger(__name__)

COLUMNS = "Under Settings, say which columns hold the means, and which the variances or standard deviations"
REMEDIES = {  # what to do on the page, by what the message says to do in the shell or in Python
    "mean_columns": COLUMNS,
    "variance_columns": COLUMNS,
    "scale_columns": COLUMNS,
    "measures": "rename that column in the file",
    "family": "Under Settings, choose the kind of distribution",
}
CODE = re.compile(
    r"--[a-z][a-z-]+|\b[a-z]+_[a-z_]+=|\b(?:measures|family|on_bad|(?:mean|variance|scale)_columns)\b"
    r"|pip install|`|\(docs/|\bup\.[a-z]"
)
IN_WORDS = {
    "mean_columns": "columns of means",
    "variance_columns": "columns of variances",
    "scale_columns": "columns of standard deviations",
}
FLAGS = re.compile(r" ?\((?:--[a-z-]+(?:, )?)+\)")
UNEXPECTED = (
    "The app made a mistake here; the terminal that it runs in has the details. Reload the page, or try another file or setting."
)


def explained(error: Exception) -> str:
    """The message of an error, with what to do on the page in place of options and code."""
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Close other programs, or use a smaller file."
    if not isinstance(error, UqprismError):
        return UNEXPECTED if not isinstance(error, OSError) or not error.strerror else f"The system says: {error.strerror}."
    said: list[str] = []
    remedies: list[str] = []
    for clause in re.split(r";\s+", str(error)):
        if not CODE.search(clause) or not said:
            said.append(clause)
            continue
        options = {option.replace("-", "_") for option in re.findall(r"[a-z]+(?:[_-][a-z]+)*", clause)}
        remedies += [remedy for option, remedy in REMEDIES.items() if option in options]
    text = FLAGS.sub("", "; ".join(said)).rstrip(" .;,")
    for option, words in IN_WORDS.items():
        text = text.replace(option, words)
    return ". ".join([text, *(f"{each[0].upper()}{each[1:]}" for each in dict.fromkeys(remedies))]) + "."


@contextmanager
def guarded(title: str = "This does not work.") -> Iterator[None]:
    """Show any error as a sentence; unexpected ones are logged with their traceback."""
    try:
        yield
    except Exception as error:  # a traceback is for the terminal
        report(title, error)


def report(title: str, error: Exception) -> None:
    """Show an error as a sentence."""
    if not isinstance(error, UqprismError):
        logger.exception("unexpected error")
    show.problem(title, explained(error))
