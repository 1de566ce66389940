"""Damaged and crafted files give one error that names them, before they take memory or time."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from uqprism.errors import BadFileError, FileError, MissingExtraError, ShapeError
from uqprism.support.reading import MOST_ARRAYS, loading, npz_arrays, parse_json, read_json, reading
from uqprism.support.storage import write_npz

ONE = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"


def npy(header: bytes = ONE, data: bytes = bytes(8), magic: bytes = b"\x93NUMPY\x01\x00") -> bytes:
    """The bytes of an array with this header."""
    return magic + len(header).to_bytes(2, "little") + header + data


def archive(path: Path, *entries: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """A zip file with these entries, also with two of one name."""
    with zipfile.ZipFile(path, "w", compression) as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # of names that appear twice
        for name, data in entries:
            file.writestr(name, data)
    return path


ARRAYS = {
    "numbers": np.arange(12.0).reshape(3, 4),
    "by column": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "a scalar": np.float32(3.0),
    "none": np.zeros((0, 5)),
    "text": np.array(["a", "bcd"]),
    "dates": np.array(["2020-01-01"], dtype="M8[ns]"),
    "of another machine": np.arange(5, dtype=">i4"),
    "half": np.ones(3, np.float16),
    "truths": np.array([True, False]),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_what_numpy_wrote(tmp_path: Path, save) -> None:
    save(tmp_path / "a.npz", **ARRAYS)
    found = npz_arrays(tmp_path / "a.npz")
    assert list(found) == list(ARRAYS)
    for name, values in ARRAYS.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values, strict=True)
        assert found[name].flags.writeable


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(ONE.replace(b"(1,)", b"(9,)")), r"array 'a' of shape \(9,\) needs 72 bytes, but has 8"),
        (npy(ONE.replace(b"(1,)", b"(0,)")), "needs 0 bytes, but has 8"),
        (npy(ONE.replace(b"(1,)", b"(-1,)")), "has no valid header"),
        (npy(ONE.replace(b"(1,)", b"(" + b"9" * 5000 + b",)")), "has no valid header"),
        (npy(ONE.replace(b"(1,)", b"(" + b"(" * 3000 + b")")), "has no valid header"),
        (npy(ONE.replace(b"(1,)", b"(999999999999999999, 999999999999999999)")), "needs 7,9"),
        (npy(ONE.replace(b"(1,)", b"(1,,)")), "has no valid header"),
        (npy(ONE.replace(b"(1,)", b"(1)")), "has no valid header"),
        (npy(ONE.replace(b"(1,)", b"(1, 01)")), "has no valid header"),
        (npy(ONE.replace(b"(1,)", b"'1'")), "has no valid header"),
        (npy(ONE.replace(b"False", b"(0,)")), "has no valid header"),
        (npy(ONE.replace(b", 'shape'", b" 'shape'")), "has no valid header"),
        (npy(ONE.replace(b"False", b"exit()")), "has no valid header"),
        (npy(ONE.replace(b"'shape'", b"'descr'")), "has no valid header"),
        (npy(b"{}"), "has no valid header"),
        (npy(b"\xff" * 40), "has no valid header"),
        (npy(ONE.replace(b"'<f8'", b"[('a', '<f8')]")), "is structured"),
        (npy(ONE.replace(b"<f8", b"|O")), "holds Python objects"),
        (npy(ONE.replace(b"<f8", b"|V8")), r"has type \|V8; store plain numbers"),
        (npy(ONE.replace(b"<f8", b"<U0")), "store plain numbers"),
        (npy(ONE.replace(b"<f8", b"<f7")), "cannot be read: data type '<f7' not understood"),
        (npy(magic=b"\x93NUMPY\x09\x00"), "does not begin as arrays of NumPy do"),
        (b"", "does not begin as arrays of NumPy do"),
        (npy()[:20], "has no valid header"),
    ],
)
def test_an_array_is_compared_with_its_entry_before_it_is_made(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(BadFileError, match=rf"a\.npz: .*{message}"), reading(tmp_path / "a.npz"):
        npz_arrays(archive(tmp_path / "a.npz", ("a.npy", data)))


def test_archives_that_are_bombs_are_refused_by_what_they_declare(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", ("a.npy", npy(data=bytes(1 << 27))), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(BadFileError, match=r"its 130,\d{3} bytes unpack to 134,217,7\d\d, more than 200 to 1"):
        npz_arrays(path)
    assert npz_arrays(path, []) == {}
    with pytest.raises(BadFileError, match=r"holds 10,001 arrays, more than 10,000 are not read"):
        npz_arrays(archive(path, *((f"{i}.npy", b"") for i in range(MOST_ARRAYS + 1))))
    with pytest.raises(BadFileError, match="holds two arrays of one name"):
        npz_arrays(archive(path, ("a.npy", npy()), ("a.npy", npy())))


def test_no_byte_of_an_archive_changes_a_number(tmp_path: Path) -> None:
    """Whatever byte is flipped, the arrays are the same, or there is one error."""
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(3.0))
    whole, path = stream.getvalue(), tmp_path / "a.npz"
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            with reading(path):
                found = npz_arrays(path)
        except BadFileError:
            continue
        assert all(np.array_equal(each, np.arange(3.0)) for each in found.values()), place


HEADERS = {
    "[]": "its header must be a JSON object, got list",
    "{": "its header is not JSON: Expecting property name",
    "[" * 100_000: "its header is not JSON: maximum recursion depth",
    f'{{"a": {"9" * 5000}}}': r"its header is not JSON: Exceeds the limit \(4300 digits\)",
    "\ud800": "its header is not JSON",
}


@pytest.mark.parametrize(("text", "message"), HEADERS.items(), ids=range(len(HEADERS)))
def test_json_that_is_none_is_one_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadFileError, match=rf"^a\.npz: {message}"):
        parse_json(text.encode("utf-8", "surrogatepass"), "a.npz")
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(BadFileError, match=rf"a\.json: {message.replace('header', 'text')}"):
        read_json(tmp_path / "a.json")


def test_what_goes_wrong_while_loading_is_a_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, "uqprism.Kind", {"x": 1}, {"a": np.arange(3)})
    with loading(path, "uqprism.Kind") as (header, arrays):
        assert header["x"] == 1
        assert list(arrays) == ["a"]
    lacking = r"a\.npz: does not hold what Kind\.save writes: it lacks 'y'"
    with pytest.raises(BadFileError, match=lacking), loading(path, "uqprism.Kind") as (header, _):
        header["y"]
    with pytest.raises(BadFileError, match=r"a\.npz: axes"), loading(path, "uqprism.Kind"):
        raise ShapeError("axes")
    with pytest.raises(BadFileError, match=r"a\.npz: was not written by Other\.save"), loading(path, "uqprism.Other"):
        pass
    with pytest.raises(BadFileError, match=r"none: is not a readable \.npz file: No such file"), loading(tmp_path / "none", "x"):
        pass
    for error, kind in [(MissingExtraError("torch", "deep"), MissingExtraError), (MemoryError(), FileError)]:
        with pytest.raises(kind), reading(path):
            raise error
