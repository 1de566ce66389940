"""Files are complete or absent, have the permissions of the user, and are read without pickle."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from uqprism.errors import BadFileError, FileError
from uqprism.support.reading import npz_arrays, reading
from uqprism.support.storage import TEMPORARY, atomic, atomic_path, save_arrays, sweep, write_text


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    write_text(target, "old")
    with atomic(target) as file:
        file.write(b"new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    with pytest.raises(TypeError), atomic(target) as file:
        file.writelines([b"half", None])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out.txt": "new"}


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_follow_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "out.txt", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "out.txt").stat().st_mode & 0o777 == 0o666 & ~mask


def test_the_contents_are_on_the_disk_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: steps.append("sync") or sync(handle))
    monkeypatch.setattr(os, "replace", lambda *names: steps.append("rename") or replace(*names))
    write_text(tmp_path / "out.txt", "x")
    assert steps == ["sync", "rename", "sync"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot write .*nowhere/out\.txt: No such file or directory"):
        write_text(tmp_path / "nowhere" / "out.txt", "x")


def test_leftovers_of_a_run_are_swept(tmp_path: Path) -> None:
    """Those of a given run, or those that are old, for a folder or for one file."""
    folder = tmp_path / "out"
    folder.mkdir()
    for run, name in [("a" * 12, "x"), ("b" * 12, "x"), ("b" * 12, "y")]:
        with atomic_path(tmp_path / name, run) as temporary:
            temporary.touch()
            (folder / temporary.name).touch()  # as after a kill

    def left() -> list[str]:
        return sorted(f"{path.name[len(TEMPORARY)]}{path.stem[-1]}" for path in folder.iterdir())

    sweep(folder)
    assert left() == ["ax", "bx", "by"]  # too young: they may be another run's
    sweep(folder, "a" * 12)
    assert left() == ["bx", "by"]
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    sweep(folder / "y")
    assert left() == ["bx"]
    sweep(tmp_path)
    assert left() == []


def test_arrays_of_any_name_are_saved_and_their_checksums_compared(tmp_path: Path) -> None:
    """`file` is an argument of `numpy.savez`; `numpy.load` does not notice an array whose header was cut short."""
    given = {"file": np.arange(100.0), "allow_pickle": np.array(["a", "bc"])}
    with atomic(tmp_path / "in.npz") as file:
        save_arrays(file, given)
    found = npz_arrays(tmp_path / "in.npz")
    assert list(found) == list(given)
    for name, values in given.items():
        np.testing.assert_array_equal(found[name], values)
    assert list(npz_arrays(tmp_path / "in.npz", ["file", "other"])) == ["file"]
    data = (tmp_path / "in.npz").read_bytes()
    (tmp_path / "in.npz").write_bytes(data.replace(b"(100,)", b"(50,) "))
    with pytest.raises(BadFileError, match=r"in\.npz: cannot be read: Bad CRC-32"), reading(tmp_path / "in.npz"):
        npz_arrays(tmp_path / "in.npz")
    with atomic(tmp_path / "in.npz") as file, pytest.raises(ValueError, match="Object arrays cannot be saved"):
        save_arrays(file, {"x": np.array([None])})
