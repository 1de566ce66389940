"""Sets of small pictures are read from their official formats and compact copies, or refused with the reason."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.images import parse_idx, read_cifar, read_emnist, read_idx, read_images, read_svhn

ARRAY = np.arange(12, dtype="u1").reshape(3, 4)
IDX = files.idx(ARRAY)
LETTERS = np.zeros((3, 28, 28), np.uint8), np.ones(3, np.uint8)
IMAGES, LABELS = files.letters(*LETTERS)
BATCH = "cifar-10-batches-bin/test_batch.bin"
ROWS = np.random.default_rng(1).integers(0, 256, (4, 3, 32, 32), dtype=np.uint8), np.array([3, 0, 9, 1], np.uint8)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0, 5)])
@pytest.mark.parametrize("write", [files.idx, files.idx_gz])
def test_idx_arrays_come_back(shape: tuple[int, ...], write, tmp_path: Path, rng) -> None:
    array = rng.integers(0, 256, shape, dtype=np.uint8)
    read = read_idx(files.put(tmp_path, "a", write(array)), len(shape))
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no IDX file"),
        (b"\0\0\x08", "no IDX file"),
        (b"PK\x03\x04" + IDX, "no IDX file.*50 4b 03 04"),
        (b"\0\0\x0d" + IDX[3:], "no IDX file of uint8"),
        (files.idx(ARRAY[0]), "no IDX file of uint8 with 2 axes"),
        (IDX[:-1], r"must have 24 bytes for an array of shape \(3, 4\), got 23"),
        (IDX + b"x", "must have 24 bytes"),
        (IDX[:9], "must have"),
        (gzip.compress(IDX, mtime=0)[:-9], "no complete gzip file"),
        (gzip.compress(IDX, mtime=0)[:6] + b"\xff" * 30, "no complete gzip file"),
    ],
)
def test_damaged_idx_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(FileError, match=f"train-images.*{message}"):
        parse_idx(data, 2, "train-images")


def test_letters_are_upright(tmp_path: Path, rng) -> None:
    upright = rng.integers(0, 256, (3, 28, 28), dtype=np.uint8)
    stored = np.stack([image.T for image in upright])
    members = {**files.letters(stored, np.array([1, 26, 5], np.uint8)), "gzip/emnist-mnist-test": b"x"}
    images, labels = read_emnist(files.put(tmp_path, "gzip.zip", files.zipped(members)))
    np.testing.assert_array_equal(images, upright)
    assert labels.tolist() == [1, 26, 5]


def test_damaged_archives_of_letters_are_refused(tmp_path: Path) -> None:
    members = files.letters(*LETTERS)
    whole = files.zipped(members)
    at = 30 + len(IMAGES) + 5  # within the first member
    corrupt = whole[:at] + bytes(255 - byte for byte in whole[at : at + 4]) + whole[at + 4 :]
    for data, message in (
        (whole[:-30], "damaged or of another kind"),
        (corrupt, "damaged or of another kind"),
        (b"<html>", "damaged or of another kind"),
        (files.zipped({**members, IMAGES: members[IMAGES][:-12]}), "no complete gzip file"),
        (files.zipped({IMAGES: members[IMAGES]}), r"must hold one file emnist-letters-test-labels.*, got 0 among 1"),
        (files.zipped({**members, LABELS: files.idx_gz(LETTERS[1][:2])}), "an image per label"),
    ):
        with pytest.raises(FileError, match=message):
            read_emnist(files.put(tmp_path, "g.zip", data))


def test_cifar_images_and_labels_come_back(tmp_path: Path) -> None:
    path = files.put(tmp_path, "c.tar.gz", files.tarred({"readme.html": b"hello", BATCH: files.cifar(*ROWS)}))
    images, labels = read_cifar(path)
    np.testing.assert_array_equal(images, ROWS[0])
    np.testing.assert_array_equal(labels, ROWS[1])


def test_damaged_cifar_archives_are_refused(tmp_path: Path) -> None:
    whole = files.tarred({BATCH: files.cifar(*ROWS)})
    for data, message in (
        (files.tarred({BATCH: files.cifar(*ROWS)[:-5]}), "whole records of 3073 bytes, got 12,287"),
        (files.tarred({BATCH: b""}), "whole records"),
        (files.tarred({BATCH: bytes([200]) * 3073}), "labels 0 to 9, got 200"),
        (files.tarred({"test_batch": b""}), r"must hold one file test_batch\.bin, got 0 among 1 members"),
        (whole[: len(whole) // 2], "damaged or of another kind"),
        (b"no archive at all", "damaged or of another kind"),
        (whole[:40] + b"\0" * 60 + whole[100:], "damaged or of another kind"),
    ):
        with pytest.raises(FileError, match=message):
            read_cifar(files.put(tmp_path, "c.tar.gz", data))


def svhn(path: Path, data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Read this file as if it were the official one."""
    path.write_bytes(data)
    return read_svhn(path, hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("compressed", [True, False])
def test_house_numbers_come_back(compressed: bool, tmp_path: Path, rng) -> None:
    images = rng.integers(0, 256, (5, 3, 32, 32), dtype=np.uint8)
    labels = np.array([[1], [10], [9], [10], [4]], np.uint8)
    data = files.matlab({"X": images.transpose(2, 3, 1, 0), "y": labels}, compressed=compressed)
    read, digits = svhn(tmp_path / "t.mat", data)
    np.testing.assert_array_equal(read, images)
    assert digits.tolist() == [1, 0, 9, 0, 4]


def test_house_numbers_with_another_checksum_do_not_reach_scipy(tmp_path: Path, monkeypatch) -> None:
    data = files.matlab({"X": np.zeros((32, 32, 3, 5), np.uint8), "y": np.ones((5, 1), np.uint8)})
    expected = hashlib.sha256(data).hexdigest()
    monkeypatch.setattr("scipy.io.loadmat", lambda *_, **__: pytest.fail("the file was parsed"))
    for damaged in (data[:-20], data[:100], b"", b"<html>not found</html>" * 20, data[:-1] + b"\xff"):
        path = files.put(tmp_path, "t.mat", damaged)
        with pytest.raises(FileError, match=f"{path} is damaged or .* official file is {expected}; delete it and fetch it again"):
            read_svhn(path, expected)


def test_matlab_files_without_house_numbers_are_refused(tmp_path: Path) -> None:
    images = np.zeros((32, 32, 3, 5), np.uint8)
    for arrays, message in (
        ({"X": images}, r"must hold X and y, got \['X'\]"),
        ({"X": images[..., :4], "y": np.ones((5, 1))}, r"shape \(32, 32, 3, 5\), got uint8, \(32, 32, 3, 4\)"),
        ({"X": images[..., :2], "y": np.array([[1.0], [np.nan]])}, "digits y of 0 to 10"),
    ):
        with pytest.raises(FileError, match=message):
            svhn(tmp_path / "t.mat", files.matlab(arrays))
    with pytest.raises(FileError, match="no complete MATLAB file"):
        svhn(tmp_path / "t.mat", b"<html>" * 40)


def test_compact_images_have_their_channels_first(tmp_path: Path, rng) -> None:
    images, labels = rng.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8), np.arange(4, dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x=images, y=labels, x_train=images[..., 0], y_train=labels)
    read, numbers = read_images(tmp_path / "a.npz")
    assert read.shape == (4, 3, 5, 6)
    for channel in range(3):
        np.testing.assert_array_equal(read[:, channel], images[..., channel])
    np.testing.assert_array_equal(numbers, labels)
    np.testing.assert_array_equal(read_images(tmp_path / "a.npz", ("x_train", "y_train"))[0], images[..., 0])
    np.savez(tmp_path / "a.npz", x=np.arange(1000), y=labels)
    with pytest.raises(FileError, match="an image of uint8 per label"):
        read_images(tmp_path / "a.npz")
