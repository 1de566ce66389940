"""A file that came through the browser: in memory, and on disk for as long as something reads it there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from uqprism.errors import UqprismError


@dataclass(frozen=True)
class Upload:
    """A file.

    Attributes:
        name: without folders.
        content: its bytes.
        given: the path it was given by, empty if the browser sent it: that tells no folders.
    """

    name: str
    content: bytes = field(repr=False)
    given: str = ""

    @property
    def path(self) -> str:
        """What a command calls it."""
        return self.given or self.name

    @cached_property
    def digest(self) -> str:
        """What tells contents and name apart from all others, to remember results by."""
        return hashlib.sha256(self.name.encode() + b"\0" + self.content).hexdigest()

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """Its path, under its own name in a folder of its own that is removed at the end.

        Errors tell the name as it was given, as a command does that is started in the folder of the file.
        """
        with TemporaryDirectory(prefix="uqprism-app-") as folder:
            path = Path(folder, Path(self.name).name)
            path.write_bytes(self.content)
            try:
                yield path
            except UqprismError as error:
                error.args = (str(error).replace(f"{folder}{os.sep}", ""),)
                raise
