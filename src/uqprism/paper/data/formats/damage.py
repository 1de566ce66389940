"""What parsers raise on damaged files, as one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uqprism.errors import FileError, UqprismError

AGAIN = "delete it and fetch it again"


@contextmanager
def reading(source: object, what: str) -> Iterator[None]:
    """A block in which anything that a parser raises becomes a `FileError`: `source` is `what`.

    On damaged bytes the standard library's own parsers raise whatever they stumble over: `zipfile` alone has `ValueError`,
    `OSError`, `RuntimeError`, `NotImplementedError` and `struct.error` for a flipped bit.
    """
    try:
        yield
    except (UqprismError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # it was not even opened
            raise FileError(f"cannot read {source}: {error.strerror}") from None
        raise FileError(f"{source} is {what}: {str(error) or type(error).__name__}; {AGAIN}") from None
