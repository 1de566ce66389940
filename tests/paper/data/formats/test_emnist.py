"""EMNIST's archive is read, and its images are turned upright."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import emnist

IMAGES, LABELS = (f"gzip/emnist-letters-test-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))


def test_letters_are_upright(tmp_path: Path, rng) -> None:
    upright = rng.integers(0, 256, (3, 28, 28), dtype=np.uint8)
    stored = np.stack([image.T for image in upright])
    members = {IMAGES: files.idx_gz(stored), LABELS: files.idx_gz(np.array([1, 26, 5], np.uint8)), "gzip/emnist-mnist-test": b"x"}
    images, labels = emnist.read(files.put(tmp_path, "gzip.zip", files.zipped(members)))
    np.testing.assert_array_equal(images, upright)
    assert labels.tolist() == [1, 26, 5]


def test_corrupt_archives_and_members_are_refused(tmp_path: Path) -> None:
    images, labels = files.idx_gz(np.zeros((3, 28, 28), np.uint8)), files.idx_gz(np.ones(3, np.uint8))
    whole = files.zipped({IMAGES: images, LABELS: labels})
    at = 30 + len(IMAGES) + 5  # within the first member
    corrupt = whole[:at] + bytes(255 - byte for byte in whole[at : at + 4]) + whole[at + 4 :]
    for data in (whole[:-30], corrupt, b"<html>"):
        with pytest.raises(FileError, match="damaged or of another kind"):
            emnist.read(files.put(tmp_path, "g.zip", data))
    with pytest.raises(FileError, match="no complete gzip file"):
        emnist.read(files.put(tmp_path, "g.zip", files.zipped({IMAGES: images[:-12], LABELS: labels})))
    with pytest.raises(FileError, match=r"must hold one file emnist-letters-test-labels.*, got 0 among 1"):
        emnist.read(files.put(tmp_path, "g.zip", files.zipped({IMAGES: images})))
    with pytest.raises(FileError, match="an image per label"):
        emnist.read(files.put(tmp_path, "g.zip", files.zipped({IMAGES: images, LABELS: files.idx_gz(np.ones(2, np.uint8))})))
