"""SVHN's MATLAB files are read, with images first and zero as zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import svhn


@pytest.mark.parametrize("compressed", [True, False])
def test_images_and_digits_come_back(compressed: bool, tmp_path: Path, rng) -> None:
    images = rng.integers(0, 256, (5, 3, 32, 32), dtype=np.uint8)
    labels = np.array([[1], [10], [9], [10], [4]], np.uint8)
    savemat(tmp_path / "t.mat", {"X": images.transpose(2, 3, 1, 0), "y": labels}, do_compression=compressed)
    read, digits = svhn.read(tmp_path / "t.mat")
    np.testing.assert_array_equal(read, images)
    assert digits.tolist() == [1, 0, 9, 0, 4]


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "t.mat", {"X": np.zeros((32, 32, 3, 5), np.uint8), "y": np.ones((5, 1), np.uint8)}, do_compression=True)
    whole = (tmp_path / "t.mat").read_bytes()
    for data in (whole[:-20], whole[:100], b"", b"<html>not found</html>" * 20):
        with pytest.raises(FileError, match="no complete MATLAB 5 file"):
            svhn.read(files.put(tmp_path, "broken.mat", data))


def test_other_variables_and_shapes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.mat"
    savemat(path, {"X": np.zeros((32, 32, 3, 5), np.uint8)})
    with pytest.raises(FileError, match=r"must hold X and y, got \['X'\]"):
        svhn.read(path)
    savemat(path, {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.ones((5, 1))})
    with pytest.raises(FileError, match=r"shape \(32, 32, 3, 5\), got uint8, \(32, 32, 3, 4\)"):
        svhn.read(path)
    savemat(path, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1.0], [np.nan]])})
    with pytest.raises(FileError, match="digits y of 0 to 10"):
        svhn.read(path)
