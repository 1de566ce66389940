"""SVHN's cropped digits: MATLAB files with X (32, 32, 3, n) and y (n, 1), where 10 stands for zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError

Array = Any


def read(path: Path) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32) and digits 0 to 9 (n,), both uint8."""
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=("X", "y"))
    except Exception as error:  # on a damaged file it raises whatever its parser stumbles over
        raise FileError(f"{path} is no complete MATLAB 5 file: {error}") from None
    if not {"X", "y"} <= set(content):
        raise FileError(f"{path} must hold X and y, got {sorted(key for key in content if not key.startswith('__'))}")
    images, labels = content["X"], content["y"].ravel()
    if images.dtype != np.uint8 or images.shape != (32, 32, 3, len(labels)):
        raise FileError(f"{path} must have X of uint8 and shape (32, 32, 3, {len(labels)}), got {images.dtype}, {images.shape}")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), (labels % 10).astype(np.uint8)
