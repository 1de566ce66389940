"""The text of CSV files that are packed, unpacked block by block as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uqprism.errors import BadFileError
from uqprism.files.paths import packing
from uqprism.support.optional import require
from uqprism.support.reading import reason

pa = require("pyarrow", extra="cli")

NAMES = {"gzip": "gzip", "bz2": "bzip2", "zstd": "Zstandard"}
CUT = "Truncated compressed stream"  # what Arrow says
NO_BEGINNING = ("incorrect header check", "unknown compression method", "no magic header", "Unknown frame descriptor")


def opened(path: Path) -> tuple[Any, Any]:
    """Arrow's streams of the bytes on disk and of the text in them, which are the same if the file is not packed."""
    stored, codec = pa.OSFile(str(path)), packing(path)
    return stored, stored if codec is None else pa.CompressedInputStream(stored, codec)


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Turn what Arrow says of a packed file that cannot be unpacked into one line."""
    codec = packing(path)
    try:
        yield
    except OSError as error:
        if codec is None or error.strerror or isinstance(error, BadFileError):
            raise
        text, kind = reason(error), NAMES[codec]
        if CUT in text:
            problem = f"is cut off: the {kind} data in it has no end; copy or write it again"
        elif any(words in text for words in NO_BEGINNING):
            problem = f"is not {kind} data throughout, as its name says; rename it if it is plain text, else write it again"
        else:
            problem = f"is damaged: {text}; copy or write it again"
        raise BadFileError(path, problem) from None
