"""JPEG and PNG pictures through Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats.damage import reading
from uqprism.support.optional import require

Array = Any


def decode(data: bytes, source: object) -> Array:
    """The picture (3, height, width), uint8, in the bytes of a file; `source` is for errors."""
    return np.asarray(_opened(data, source).convert("RGB")).transpose(2, 0, 1)


def read_picture(path: Path) -> Array:
    """The picture (3, height, width), uint8."""
    return decode(_bytes(path), path)


def read_labels(path: Path) -> Array:
    """The numbers (height, width), uint8, of a picture with one channel of 8 bits."""
    image = _opened(_bytes(path), path)
    if image.mode not in {"L", "P"}:
        raise FileError(f"{path} must have one channel of 8 bits with label numbers, got {image.mode}")
    return np.asarray(image)


def _bytes(path: Path) -> bytes:
    with reading(path, "unreadable"):
        return path.read_bytes()


def _opened(data: bytes, source: object) -> Any:
    require("PIL", extra="deep")
    from PIL import Image

    with reading(source, "no complete picture"):
        Image.open(io.BytesIO(data)).verify()  # the checksums of a PNG, not all of which loading compares
        image = Image.open(io.BytesIO(data))
        image.load()  # now, so that what is cut off is noticed here
    return image
