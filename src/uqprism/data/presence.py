"""Whether the files of a data set are there, without reading or fetching them."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from uqprism.data.catalogue import datasets
from uqprism.data.outliers import changes
from uqprism.data.remotes import Remote
from uqprism.data.root import Root
from uqprism.errors import FileError


class _FoundError(Exception):
    """There is a file, and nothing more is to be known."""


class _AbsentError(Exception):
    """There is none, and this would be fetched."""


@dataclass(frozen=True)
class _Looking(Root):
    """A root that ends a loader at its first file, so that nothing is read."""

    def own(self, name: str) -> Path | None:
        """Nothing, where there is nothing."""
        if super().own(name):
            raise _FoundError
        return None

    def file(self, remote: Remote) -> Path:
        """Never a file."""
        target = self.path / remote.folder / remote.name
        if any(path.is_file() for path in (target, target.with_name(remote.name.removesuffix(".gz")))):
            raise _FoundError
        raise _AbsentError(f"{target} is not there; it would be downloaded from {remote.url}")


def absent(name: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """What the data set or the outliers of this name lack, in a sentence; None if the first file they need is there."""
    try:
        looking = _Looking(Root.of(root).path)
        if name in datasets.names():
            load = datasets.get(name).load
            taken = inspect.signature(load).parameters
            if "root" in taken:  # others are generated
                least = {"seed": 0, "pictures": 2}  # Cityscapes is a folder of pictures, of which two tell enough
                load(root=looking, **{option: value for option, value in least.items() if option in taken})
        else:
            changes.get(name).apply(np.zeros((3, 1, 64, 64), np.uint8), looking, np.random.default_rng(0))
    except _FoundError:
        return None
    except (_AbsentError, FileError) as error:
        return str(error)
    return None
