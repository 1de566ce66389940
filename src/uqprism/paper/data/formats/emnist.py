"""EMNIST: gzipped IDX files in one zip archive. NIST stores the images transposed; here they are upright."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats import idx
from uqprism.paper.data.formats.archives import zip_member

Array = Any
NAME = "emnist-{}-{}-ubyte.gz"


def read(path: Path, which: str = "letters-test") -> tuple[Array, Array]:
    """Images (n, 28, 28) and labels (n,), uint8, of one part; of letters the labels are 1 to 26."""
    images, labels = (_array(path, NAME.format(which, kind), axes) for kind, axes in (("images-idx3", 3), ("labels-idx1", 1)))
    if labels.shape != images.shape[:1]:
        raise FileError(f"{path} must have an image per label, got images {images.shape} and labels {labels.shape}")
    return np.ascontiguousarray(images.transpose(0, 2, 1)), labels


def _array(path: Path, member: str, axes: int) -> Array:
    name = f"{member} in {path}"
    return idx.of_bytes(idx.parse(zip_member(path, member), name), axes, name)
