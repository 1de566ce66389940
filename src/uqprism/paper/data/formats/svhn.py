"""SVHN's cropped digits: MATLAB files with X (32, 32, 3, n) and y (n, 1), where 10 stands for zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats import matlab

Array = Any


def read(path: Path) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32) and digits 0 to 9 (n,), both uint8."""
    content = matlab.read(path)
    if not {"X", "y"} <= set(content):
        raise FileError(f"{path} must hold X and y, got {sorted(content)}")
    images, labels = content["X"], content["y"].ravel()
    if images.dtype != np.uint8 or images.shape != (32, 32, 3, len(labels)):
        raise FileError(f"{path} must have X of uint8 and shape (32, 32, 3, {len(labels)}), got {images.dtype}, {images.shape}")
    if not np.isin(labels, np.arange(11)).all():
        raise FileError(f"{path} must have digits y of 0 to 10, got {labels.min()} to {labels.max()}")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), (labels % 10).astype(np.uint8)
