"""Arrays of numbers in MATLAB 5 files come back as SciPy writes them, whatever their type, and other variables are left out."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import matlab


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("compressed", [True, False])
def test_arrays_of_every_type_come_back(dtype: str, compressed: bool, tmp_path: Path, rng) -> None:
    arrays = {"longer_name": rng.integers(0, 100, (2, 3, 4)).astype(dtype), "a": np.array([[7]], dtype), "none": np.zeros((0, 2))}
    savemat(tmp_path / "t.mat", {**arrays, "text": "hello", "complex": np.array([1j])}, do_compression=compressed)
    found = matlab.read(tmp_path / "t.mat")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def big_endian(values: list[int], shape: tuple[int, int], stored: int = 2) -> bytes:
    """A file of a machine that stores the high byte first: a matrix of class double, whose small numbers are stored as bytes."""

    def element(kind: int, contents: bytes) -> bytes:
        return struct.pack(">II", kind, len(contents)) + contents + b"\0" * (-len(contents) % 8)

    parts = (
        element(6, struct.pack(">II", 6, 0)),
        element(5, struct.pack(">ii", *shape)),
        element(1, b"y"),
        element(stored, bytes(values)),
    )
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI" + element(14, b"".join(parts))


def test_files_of_machines_with_the_high_byte_first_are_read(tmp_path: Path) -> None:
    found = matlab.read(files.put(tmp_path, "t.mat", big_endian([1, 10, 9, 4, 5, 6], (3, 2))))
    assert found["y"].dtype == np.float64
    assert found["y"].tolist() == [[1, 4], [10, 5], [9, 6]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (big_endian([1, 2, 3], (2, 2)), r"an array of shape \(2, 2\) has 3 numbers"),
        (big_endian([1, 2, 3, 4], (-2, -2)), r"an array of shape \(-2, -2\) has 4 numbers"),
        (big_endian([1, 2, 3, 4], (2, 2), stored=99), "99"),
        (big_endian([1, 2, 3, 4], (2, 2))[:-8], "an element of 64 bytes is cut off"),
        (b"<html>" * 40, "its header must end with IM or MI"),
    ],
)
def test_what_does_not_fit_together_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=rf"no complete MATLAB 5 file: .*{message}"):
        matlab.read(files.put(tmp_path, "t.mat", data))
