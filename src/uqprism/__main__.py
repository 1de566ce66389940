"""The entry point of the command line; without the extra `cli` it only says that it is missing."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from uqprism.errors import ExitCode, UqprismError
from uqprism.support.optional import require
from uqprism.support.storage import in_words


def main() -> None:
    """Run the command line. An error is one line on standard error, with the exit code of its kind."""
    _prepare_streams()
    try:
        code = _run()
    except KeyboardInterrupt:  # outside of a command, such as while packages are imported
        code = _failed("interrupted", ExitCode.INTERRUPTED)
    sys.exit(_finish_output() or code)


def _run() -> int:
    try:
        require("typer", extra="cli")
        from uqprism.cli import app

        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except UqprismError as error:
        return _failed(str(error), error.exit_code)
    except MemoryError:
        return _failed("not enough memory; give fewer rows, members or measures at a time", 1)
    except OSError as error:
        return _finish_output() or _failed(in_words(error), 1)
    return 0


def _failed(message: str, code: int) -> int:
    """Print the message, and return the code."""
    with suppress(OSError):  # standard error is full or closed
        # Names of files may hold control characters, which a terminal would obey.
        shown = "".join(c if c.isprintable() or c in "\n\t" or "\udc80" <= c <= "\udcff" else repr(c)[1:-1] for c in message)
        print(f"uqprism: {shown}", file=sys.stderr)  # noqa: T201 (the message of a command)
    return code


class Output(io.TextIOWrapper):
    """Standard output, whose errors say that they are its own."""

    def write(self, text: str) -> int:
        """Write the text."""
        with _named():
            return super().write(text)

    def flush(self) -> None:
        """Write what is waiting."""
        with _named():
            super().flush()


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = "standard output"
        raise


def _prepare_streams() -> None:
    """Replace closed streams, so that no file takes their numbers, and let standard output print names whatever their bytes."""
    if sys.stdout is None:
        # Open for reading only: a command that prints fails, one that writes a file alone does not.
        sys.stdout = _null(os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _null()
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding, lines = sys.stdout.encoding, sys.stdout.line_buffering
        errors = "surrogateescape" if encoding.lower().replace("-", "") == "utf8" else "backslashreplace"
        sys.stdout = Output(sys.stdout.detach(), encoding=encoding, errors=errors, line_buffering=lines)


def _null(mode: int = os.O_WRONLY) -> TextIO:
    """A file that forgets what is written to it."""
    return os.fdopen(os.open(os.devnull, mode), "w")


def _finish_output() -> int:
    """Write what is left to standard output; 1 if that fails, with a message unless its reader is gone."""
    try:
        sys.stdout.flush()
    except OSError as error:
        sys.stdout = _null()  # Python flushes it again when it exits
        return 1 if isinstance(error, BrokenPipeError) else _failed(in_words(error), 1)
    return 0


if __name__ == "__main__":
    main()
