"""Small files in the formats of public data sets, written from their specifications."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from uqprism.paper.data import images
from uqprism.paper.data.root import Remote
from uqprism.paper.data.sets.tables import SOURCES

if TYPE_CHECKING:
    import pytest

REMOTES = [*images.REMOTES, *(source.remote for source in SOURCES)]


def official(folder: str) -> list[Remote]:
    """The official files in this folder of a root."""
    return [remote for remote in REMOTES if remote.folder == folder]


def put(root: Path, place: str, data: bytes) -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def put_official(root: Path, folder: str, *contents: bytes) -> list[Path]:
    """Write the official files of this folder, in their order."""
    return [put(root, f"{folder}/{each.name}", data) for each, data in zip(official(folder), contents, strict=False)]


def trust(monkeypatch: pytest.MonkeyPatch, folder: str, data: bytes) -> None:
    """Expect these contents of the official file of a set of images."""
    sha256 = hashlib.sha256(data).hexdigest()
    changed = (dataclasses.replace(each, sha256=sha256) if each.folder == folder else each for each in images.REMOTES)
    monkeypatch.setattr(images, "REMOTES", tuple(changed))


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def idx_gz(array: np.ndarray) -> bytes:
    return gzip.compress(idx(array), mtime=0)  # the same array, the same file


def put_ood(root: Path, monkeypatch: pytest.MonkeyPatch, images: dict[str, np.ndarray], labels: np.ndarray) -> None:
    """Write the official files of the sets that OOD mosaics are made of, each of images (rows, 3, 32, 32)."""
    put_official(root, "cifar10", tarred({"test_batch.bin": cifar(images["cifar10"], labels)}))
    svhn = matlab({"X": images["svhn"].transpose(2, 3, 1, 0), "y": labels[:, None]})
    trust(monkeypatch, "svhn", svhn)
    put_official(root, "svhn", svhn)
    put_official(root, "fashion_mnist", idx_gz(images["fashion_mnist"][:, 0, :28, :28]))
    put_official(root, "emnist", zipped(letters(images["emnist"][:, 0, :28, :28], labels)))


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def cifar(images: np.ndarray, labels: np.ndarray) -> bytes:
    return b"".join(bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True))


def letters(images: np.ndarray, labels: np.ndarray) -> dict[str, bytes]:
    """The members of EMNIST's archive that hold the test letters; the images are transposed."""
    parts = {"images-idx3": images, "labels-idx1": labels}
    return {f"gzip/emnist-letters-test-{name}-ubyte.gz": idx_gz(array) for name, array in parts.items()}


def matlab(arrays: dict[str, np.ndarray], *, compressed: bool = False) -> bytes:
    from scipy.io import savemat

    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=compressed)
    return buffer.getvalue()


def xlsx(rows: list[list[object]]) -> bytes:
    from openpyxl import Workbook

    book, buffer = Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.create_sheet().append(["another sheet"])
    book.save(buffer)
    return buffer.getvalue()


def csv(values: np.ndarray, header: list[str] | None = None, first: list[str] | None = None) -> bytes:
    lines = [] if header is None else [",".join(header)]
    for i, row in enumerate(values):
        lines.append(",".join([*([first[i]] if first else []), *(repr(float(cell)) for cell in row)]))
    return ("\n".join(lines) + "\n").encode()


def picture(array: np.ndarray, kind: str) -> bytes:
    """A PNG or JPEG, grey (height, width) or in colour (height, width, 3)."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, kind)
    return buffer.getvalue()


def scenes(part: str, pictures: list[np.ndarray], labels: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a part in the compact copy of CamVid."""
    encoded = [picture(each, "JPEG") for each in pictures]
    offsets = np.cumsum([0, *map(len, encoded)])
    return {f"{part}_jpeg": np.frombuffer(b"".join(encoded), np.uint8), f"{part}_offsets": offsets, f"{part}_labels": labels}
