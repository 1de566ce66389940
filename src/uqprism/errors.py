"""The exceptions: all under `UqprismError`, and each also the built-in error a caller would expect."""

from __future__ import annotations

import os


class UqprismError(Exception):
    """Anything this package raises on purpose."""


class InvalidValueError(UqprismError, ValueError):
    """A value outside the domain of its argument: a negative variance, a NaN mean, weights that do not sum to one."""


class ShapeError(UqprismError, ValueError):
    """Arrays whose axes do not fit together."""


class ArrayTypeError(UqprismError, TypeError):
    """An array of the wrong kind: complex or object dtype, mixed libraries, different devices."""


class ArgumentError(UqprismError, TypeError):
    """Arguments that contradict each other, or one that is missing."""


class UnknownNameError(UqprismError, ValueError, KeyError):
    """A rule, risk, approximation or measure that is not registered."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would quote it


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


class ClusterError(UqprismError, OSError):
    """A cluster that cannot be reached, or could not do its work."""


class MissingExtraError(UqprismError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; it comes with: pip install 'uqprism[{extra}]'")
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)  # so that a worker can send it


class TrainingError(UqprismError, RuntimeError):
    """Training that cannot go on: a member diverged from every start."""


class JobError(UqprismError, RuntimeError):
    """Jobs of an experiment that failed; what the others found is kept."""
