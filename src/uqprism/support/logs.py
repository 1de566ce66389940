"""Log files: what a run does, a line with its time for each step."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from uqprism.errors import FileError

# Without a handler, Python would print warnings on standard error.
logging.getLogger("uqprism").addHandler(logging.NullHandler())


class _LogFile(logging.FileHandler):
    """A log file; a line that cannot be written is lost, because the work does not fail for it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (a name of `logging`)
        """Ignore the error."""


class _Format(logging.Formatter):
    """One line for each event, with the time in UTC."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """The event as one line."""
        return super().format(record).replace("\r", "\\r").replace("\n", "\\n")  # names of files may hold line breaks


@contextmanager
def log_to(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Append what the loggers under `uqprism` report during the block to this file; with None, do nothing."""
    if path is None:
        yield
        return
    try:
        handler = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise FileError(f"log file {os.fspath(path)}: cannot be written: {error.strerror}") from None
    handler.setFormatter(_Format("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"))
    logger = logging.getLogger("uqprism")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        handler.close()
