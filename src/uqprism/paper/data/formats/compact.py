"""The compact copies: arrays of image sets in .npz files, tables in Parquet files, street scenes as JPEGs in one array."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats.damage import reading
from uqprism.paper.data.formats.pictures import decode
from uqprism.paper.data.formats.table import Table
from uqprism.support.optional import require
from uqprism.support.storage import npz_arrays

Array = Any


def read_npz(path: Path, names: Sequence[str]) -> list[Array]:
    """The arrays of these names."""
    with reading(path, "no complete .npz file"):
        found = npz_arrays(path, names)
        absent = [name for name in names if name not in found]
        if absent:
            raise FileError(f"{path} must hold the arrays {', '.join(names)}, and lacks {', '.join(absent)}")
        return [found[name] for name in names]


def read_images(path: Path, names: tuple[str, str] = ("x", "y")) -> tuple[Array, Array]:
    """Images, (n, height, width) or (n, channels, height, width), and labels (n,), all uint8."""
    images, labels = read_npz(path, names)
    if images.dtype != np.uint8 or images.ndim not in {3, 4} or labels.shape != images.shape[:1]:
        raise FileError(f"{path} must have an image of uint8 per label, got {images.dtype}, {images.shape} and {labels.shape}")
    return (images if images.ndim == 3 else images.transpose(0, 3, 1, 2)), labels


def read_parquet(path: Path, skipped: Collection[str] = ()) -> Table:
    """A table of numbers, without the skipped columns."""
    require("pyarrow", extra="cli")
    from pyarrow.parquet import ParquetFile

    with (
        reading(path, "no complete Parquet table of numbers"),
        path.open("rb") as opened,
        ParquetFile(opened, page_checksum_verification=True) as file,
    ):
        names = [name for name in file.schema_arrow.names if name not in skipped]
        table = file.read(names)
        if table.num_rows != file.metadata.num_rows:
            raise FileError(f"{path} must have the {file.metadata.num_rows:,} rows that its footer names, got {table.num_rows:,}")
        values = np.column_stack([table[name].to_numpy().astype(np.float64) for name in names])
    return Table(str(path), tuple(names), values)


def read_scenes(path: Path, part: str) -> tuple[Array, Array]:
    """Pictures (n, 3, height, width) and pixel labels (n, height, width), uint8, of part `train`, `val` or `test`."""
    jpeg, offsets, labels = read_npz(path, [f"{part}_{field}" for field in ("jpeg", "offsets", "labels")])
    if len(offsets) != len(labels) + 1 or offsets[0] != 0 or offsets[-1] != len(jpeg) or (np.diff(offsets) <= 0).any():
        raise FileError(f"{path} must have offsets from 0 to {len(jpeg)}, one more than its {len(labels)} label images")
    pictures = np.empty((len(labels), 3, *labels.shape[1:]), np.uint8)
    for i, (start, end) in enumerate(pairwise(offsets)):
        picture = decode(jpeg[start:end].tobytes(), f"{part} picture {i} in {path}")
        if picture.shape[1:] != labels.shape[1:]:
            raise FileError(
                f"{part} picture {i} in {path} must be of its labels' size {labels.shape[1:]}, got {picture.shape[1:]}"
            )
        pictures[i] = picture
    return pictures, labels
