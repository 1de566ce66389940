"""IDX files are read whole, in any type, or refused with what is wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import idx


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
@pytest.mark.parametrize("write", [files.idx, files.idx_gz])
def test_arrays_of_every_type_come_back(dtype: str, shape: tuple[int, ...], write, tmp_path: Path, rng) -> None:
    array = rng.integers(0, 100, shape).astype(dtype)
    path = files.put(tmp_path, "a", write(array))
    read = idx.read(path)
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


WHOLE = files.idx(np.arange(12, dtype="u1").reshape(3, 4))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no IDX file"),
        (b"\0\0\x08", "no IDX file"),
        (b"PK\x03\x04" + WHOLE, "no IDX file.*got 50 4b 03 04"),
        (b"\0\0\x07" + WHOLE[3:], "known type"),
        (WHOLE[:-1], r"must have 24 bytes for an array of shape \(3, 4\), got 23"),
        (WHOLE + b"x", "must have 24 bytes"),
        (WHOLE[:9], "must have"),
        (gzip.compress(WHOLE, mtime=0)[:-9], "no complete gzip file"),
        (gzip.compress(WHOLE, mtime=0)[:6] + b"\xff" * 30, "no complete gzip file"),
    ],
)
def test_damaged_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(FileError, match=message) as error:
        idx.parse(data, "train-images")
    assert "train-images" in str(error.value)
