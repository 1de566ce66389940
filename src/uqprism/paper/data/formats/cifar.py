"""CIFAR-10 in its binary version, records of a label and 32x32 red, green, blue values; the Python version would need pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats.archives import tar_member

Array = Any
SIZE, CHANNELS, CLASSES = 32, 3, 10
RECORD = 1 + CHANNELS * SIZE * SIZE
TEST = "test_batch.bin"


def read(path: Path, batch: str = TEST) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32) and labels (n,), both uint8, of one batch in cifar-10-binary.tar.gz."""
    return parse(tar_member(path, batch), f"{batch} in {path}")


def parse(data: bytes, name: str) -> tuple[Array, Array]:
    """The same from the bytes of a batch; `name` is for errors."""
    if not data or len(data) % RECORD:
        raise FileError(f"{name} must be whole records of {RECORD} bytes, got {len(data):,} bytes")
    records = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    if (largest := int(records[:, 0].max())) >= CLASSES:
        raise FileError(f"{name} must have labels 0 to {CLASSES - 1}, got {largest}: it is no CIFAR-10 batch")
    return records[:, 1:].reshape(-1, CHANNELS, SIZE, SIZE).copy(), records[:, 0].copy()
