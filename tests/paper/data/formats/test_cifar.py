"""CIFAR-10's binary batches are read out of their archive, record by record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import cifar

MEMBER = "cifar-10-batches-bin/test_batch.bin"


@pytest.fixture
def batch(rng) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(0, 256, (4, 3, 32, 32), dtype=np.uint8), np.array([3, 0, 9, 1], np.uint8)


def test_images_and_labels_come_back(batch, tmp_path: Path) -> None:
    path = files.put(tmp_path, "c.tar.gz", files.tarred({"readme.html": b"hello", MEMBER: files.cifar(*batch)}))
    images, labels = cifar.read(path)
    np.testing.assert_array_equal(images, batch[0])
    np.testing.assert_array_equal(labels, batch[1])


def test_cut_records_are_refused(batch, tmp_path: Path) -> None:
    path = files.put(tmp_path, "c.tar.gz", files.tarred({MEMBER: files.cifar(*batch)[:-5]}))
    with pytest.raises(FileError, match="whole records of 3073 bytes, got 12,287"):
        cifar.read(path)


def test_bytes_that_are_no_batch_are_refused() -> None:
    with pytest.raises(FileError, match="labels 0 to 9, got 200"):
        cifar.parse(bytes([200]) * 3073, "b")
    with pytest.raises(FileError, match="whole records"):
        cifar.parse(b"", "b")


def test_archives_that_are_cut_corrupt_or_other_are_refused(batch, tmp_path: Path) -> None:
    whole = files.tarred({MEMBER: files.cifar(*batch)})
    for data in (whole[: len(whole) // 2], b"no archive at all", whole[:40] + b"\0" * 60 + whole[100:]):
        with pytest.raises(FileError, match="damaged or of another kind"):
            cifar.read(files.put(tmp_path, "c.tar.gz", data))
    with pytest.raises(FileError, match=r"must hold one file test_batch\.bin, got 0 among 1 members"):
        cifar.read(files.put(tmp_path, "c.tar.gz", files.tarred({"test_batch": b""})))
