"""Whatever bytes of a file are damaged: it is refused as a file, or read as what it was.

Formats with a checksum of their contents must give the very same data, as where only a date was hit. Those without one cannot
tell a wrong pixel from a right one: there, what is read must have the shape and the type of what was written.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet
from scipy.io import savemat

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import cifar, cityscapes, emnist, idx, svhn
from uqprism.paper.data.formats.archives import tar_member, zip_member
from uqprism.paper.data.formats.compact import read_images, read_parquet, read_scenes
from uqprism.paper.data.formats.pictures import read_picture
from uqprism.paper.data.formats.table import Table, read_csv
from uqprism.paper.data.formats.xlsx import read_xlsx

FLIPS = 150  # files that are tried for each format
RNG = np.random.default_rng(5)
IMAGES, LABELS = RNG.integers(0, 256, (4, 3, 32, 32), dtype=np.uint8), np.array([3, 0, 9, 1], np.uint8)
STRIPES = np.repeat(np.arange(24, dtype=np.uint8)[:, None], 40, axis=1)
NUMBERS = RNG.normal(size=(30, 3)).round(3)
BATCH = {"readme.html": b"hello" * 50, "cifar-10-batches-bin/test_batch.bin": files.cifar(IMAGES, LABELS)}
LETTERS = {
    "gzip/emnist-letters-test-images-idx3-ubyte.gz": files.idx_gz(IMAGES[:, 0]),
    "gzip/emnist-letters-test-labels-idx1-ubyte.gz": files.idx_gz(LABELS),
}


class Case(NamedTuple):
    """The bytes of a file, what reads it, and whether its format has a checksum of the contents."""

    whole: bytes
    read: Callable[[Path], object]
    checked: bool


def written(write: Callable[..., object], *arguments: object, **options: object) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *arguments, **options)
    return buffer.getvalue()


def jpeg(image: np.ndarray) -> bytes:
    return written(Image.fromarray(image.transpose(1, 2, 0)).save, "JPEG")


def scenes() -> bytes:
    pictures = [jpeg(image) for image in IMAGES]
    joined = np.frombuffer(b"".join(pictures), np.uint8)
    offsets = np.cumsum([0, *map(len, pictures)])
    return written(np.savez, val_jpeg=joined, val_offsets=offsets, val_labels=IMAGES[:, 0])


def table(**options: object) -> bytes:
    columns = {name: NUMBERS[:, i] for i, name in enumerate("abc")}
    return written(lambda file: parquet.write_table(pyarrow.table(columns), file, **options))


MATLAB = {"X": IMAGES.transpose(2, 3, 1, 0), "y": LABELS[:, None] + 1}
CSV = "a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in NUMBERS.tolist()) + "\n"
WORKBOOK = files.xlsx([["a", "b", "c"], *NUMBERS.tolist()])
CASES = {
    "CIFAR-10 archive": Case(files.tarred(BATCH), cifar.read, True),
    "gzipped tar": Case(files.tarred(BATCH), lambda path: tar_member(path, "readme.html"), True),
    "zip": Case(files.zipped({"a/b.csv": CSV.encode(), "c": b""}), lambda path: zip_member(path, "b.csv"), True),
    "EMNIST archive": Case(files.zipped(LETTERS), emnist.read, True),
    "gzipped IDX": Case(files.idx_gz(IMAGES[:, 0]), idx.read, True),
    "SVHN, compressed": Case(written(savemat, MATLAB, do_compression=True), svhn.read, True),
    "compact images": Case(written(np.savez, x=IMAGES[:, 0], y=LABELS), read_images, True),
    "compact images, compressed": Case(written(np.savez_compressed, x=IMAGES[:, 0] // 64, y=LABELS), read_images, True),
    "compact scenes": Case(scenes(), lambda path: read_scenes(path, "val"), True),
    "workbook": Case(WORKBOOK, lambda path: read_xlsx(path.read_bytes(), "b.xlsx"), True),
    "PNG": Case(written(Image.fromarray(STRIPES).save, "PNG"), lambda path: cityscapes.read(path, path)[1], True),
    "IDX": Case(files.idx(IMAGES[:, 0]), lambda path: idx.of_bytes(idx.read(path), 3, path), False),
    "SVHN": Case(written(savemat, MATLAB), svhn.read, False),
    "Parquet": Case(table(), read_parquet, False),
    "Parquet with checksums": Case(table(write_page_checksum=True), read_parquet, False),  # not of its footer
    "text": Case(CSV.encode(), lambda path: read_csv(path.read_bytes(), "t.csv"), False),
}


def arrays(value: object) -> list[np.ndarray]:
    """What was read, as arrays."""
    if isinstance(value, Table):
        return [value.values]
    if isinstance(value, bytes):
        return [np.frombuffer(value, np.uint8)]
    return [np.asarray(each) for each in value] if isinstance(value, tuple) else [np.asarray(value)]


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes but for one to four, next to each other or not, one of which is in the last tenth every fourth time."""
    values = np.frombuffer(whole, np.uint8).copy()
    places = rng.integers(len(values), size=rng.integers(1, 5))
    if rng.random() < 0.25:
        places[0] = len(values) - 1 - rng.integers(max(len(values) // 10, 1))
    values[places] ^= rng.integers(1, 256, size=len(places), dtype=np.uint8)
    return values.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_is_refused_or_read_as_it_was(name: str, tmp_path: Path) -> None:
    whole, read, checked = CASES[name]
    expected = arrays(read(files.put(tmp_path, "whole", whole)))
    rng, refused = np.random.default_rng(17), 0
    for _ in range(FLIPS):
        path = files.put(tmp_path, "damaged", damaged(whole, rng))
        try:
            found = arrays(read(path))
        except FileError:
            refused += 1
            continue
        assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in expected]
        if checked:
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    assert not checked or refused > FLIPS // 2


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_flipped_byte_anywhere_in_a_cifar_archive_is_noticed(place: float, tmp_path: Path) -> None:
    values = bytearray(CASES["CIFAR-10 archive"].whole)
    values[int(place * len(values))] ^= 0x10
    path = files.put(tmp_path, "cifar-10-binary.tar.gz", bytes(values))
    with pytest.raises(FileError, match=rf"{path} is damaged or of another kind: .*; delete it and fetch it again"):
        cifar.read(path)


def test_pixels_of_a_cifar_archive_are_held_against_its_checksum(tmp_path: Path) -> None:
    """The pixels are stored as they are, so that nothing but the checksum at the end can tell."""
    whole = gzip.compress(gzip.decompress(files.tarred(BATCH)), compresslevel=0)
    at = whole.index(IMAGES[2].tobytes()[:50]) + 7
    path = files.put(tmp_path, "c.tar.gz", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(FileError, match="CRC check failed"):
        cifar.read(path)


def test_an_array_that_claims_to_be_shorter_is_held_against_its_checksum(tmp_path: Path) -> None:
    whole = written(np.savez, x=IMAGES[:, 0], y=LABELS)
    path = files.put(tmp_path, "a.npz", whole.replace(b"(4, 32, 32)", b"(2, 32, 32)"))
    with pytest.raises(FileError, match=r"no complete \.npz file: Bad CRC-32"):
        read_images(path)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    for read in (cifar.read, emnist.read, idx.read, svhn.read, read_images, read_parquet, read_picture):
        with pytest.raises(FileError, match=rf"cannot read {tmp_path / 'none'}: No such file"):
            read(tmp_path / "none")
