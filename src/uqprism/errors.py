"""The exceptions: all under `UqprismError`, and each also the built-in error a caller would expect; and the warning."""

from __future__ import annotations

import json
import os
import sys
import warnings
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What a command of the command line ends with, and what that means."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        """A number with its meaning."""
        code = int.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code

    DONE = 0, "done"
    ERROR = 1, "error: bad data, or a file that cannot be read or written"
    USAGE = 2, "wrong usage, or output that exists already"
    BAD_FILES = 3, "`score` and `watch`: some input files were bad and are named; all others are done"
    BAD_ROWS = 4, "`score` only: more rows were bad than `--max-bad` allows; bad files, if there are any, are named as with 3"
    BUSY = 5, "`score` and `watch`: another run is writing to the output or state, or has changed it"
    ALARM = 6, "`watch` only: there is an alarm; bad files, if there are any, are named as with 3"
    HANG_UP = 129, "ended because its terminal was closed (SIGHUP)"
    INTERRUPTED = 130, "interrupted (Ctrl-C)"
    TERMINATED = 143, "terminated (SIGTERM)"


class UqprismError(Exception):
    """Anything this package raises on purpose."""

    exit_code = ExitCode.ERROR  # of a command that it ends


class UqprismWarning(UserWarning):
    """What this package warns of."""


def warn(message: str) -> None:
    """Warn at the line that called this package, however many of its functions lie between."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "uqprism":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UqprismWarning, stacklevel=level)


class InvalidValueError(UqprismError, ValueError):
    """A value outside the domain of its argument: a negative variance, a NaN mean, weights that do not sum to one."""


class ShapeError(UqprismError, ValueError):
    """Arrays whose axes do not fit together."""


class ArrayTypeError(UqprismError, TypeError):
    """An array of the wrong kind: complex or object dtype, mixed libraries, different devices."""


class ArgumentError(UqprismError, TypeError):
    """Arguments that contradict each other, or one that is missing."""

    exit_code = ExitCode.USAGE


class UnknownNameError(UqprismError, ValueError, KeyError):
    """A rule, risk, approximation or measure that is not registered."""

    exit_code = ExitCode.USAGE

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would quote it


class UnknownAttributeError(UqprismError, AttributeError):
    """An attribute that an object does not have."""


class UnsupportedError(UqprismError, TypeError):
    """A question the distribution cannot answer, such as the density of a set of samples."""


class FileError(UqprismError, OSError):
    """A file that cannot be found, read or written."""


class BadFileError(FileError, InvalidValueError):
    """A file whose contents cannot be used: damaged, cut off, empty, or without the columns that are needed."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(f"{os.fspath(path)}: {reason}")
        self.path, self.reason = path, reason

    def __reduce__(self) -> tuple[type[BadFileError], tuple[str | os.PathLike[str], str]]:
        return type(self), (self.path, self.reason)  # so that a worker can send it


class BadFilesError(FileError, InvalidValueError):
    """Input files of `score` that could not be scored; `report` is what it would have returned without them."""

    exit_code = ExitCode.BAD_FILES

    def __init__(self, message: str, report: Any) -> None:
        super().__init__(message)
        self.report = report
        if not report.parts:
            self.exit_code = ExitCode.ERROR


class BadRowsError(InvalidValueError):
    """More bad rows than `score` was to accept; `report` is what it would have returned."""

    exit_code = ExitCode.BAD_ROWS

    def __init__(self, message: str, report: Any) -> None:
        super().__init__(message)
        self.report = report


class BusyError(UqprismError, OSError):
    """Output that another run of `score` is writing to."""

    exit_code = ExitCode.BUSY


class ClusterError(UqprismError, OSError):
    """A cluster that cannot be reached, or could not do its work."""


def install_command(extra: str) -> str:
    """The command that adds an extra from where this package came from: a checkout, a file, a repository, or else an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and rarely needed
    from urllib.parse import unquote, urlsplit

    try:
        origin = json.loads(distribution("uqprism").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        folder = unquote(urlsplit(url).path)
        place = "." if os.path.abspath(folder) == os.path.abspath("") else folder
        return f"pip install {'-e ' if origin['dir_info'].get('editable') else ''}'{place}[{extra}]'"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info'].get('vcs', 'git')}+{url}@{origin['vcs_info'].get('commit_id', 'HEAD')}"
    return f"pip install 'uqprism[{extra}]{f' @ {url}' if url else ''}'"


class MissingExtraError(UqprismError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; it comes with: {install_command(extra)}")
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)  # so that a worker can send it


class TrainingError(UqprismError, RuntimeError):
    """Training that cannot go on: a member diverged from every start."""


class JobError(UqprismError, RuntimeError):
    """Jobs of an experiment that failed; what the others found is kept."""
