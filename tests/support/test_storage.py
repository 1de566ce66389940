"""Files are complete or absent, have the permissions of the user, and are read without pickle."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from uqprism.errors import ArgumentError, BadFileError, FileError
from uqprism.plots.style import new_figure, save_as
from uqprism.support.reading import npz_arrays, reading
from uqprism.support.storage import TEMPORARY, atomic, atomic_path, check_writable, locked, save_arrays, sweep, write_text
from uqprism.training.checkpoints import write_tensors


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


def test_a_check_before_long_work_sweeps_what_a_killed_process_left(tmp_path: Path) -> None:
    name = f"{TEMPORARY}{'a' * 12}-{'b' * 8}-"
    old, young, other = (tmp_path / f"{name[:-2]}{i}-{of}.tmp" for i, of in enumerate(["out.html", "out.html", "in.html"]))
    for path in (old, young, other):
        path.write_bytes(b"half")
    for path in (old, other):
        os.utime(path, (0, 0))
    check_writable(tmp_path / "out.html")
    assert sorted(tmp_path.iterdir()) == [young, other]


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


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path: Path) -> None:
    """Temporary names are longer than the names of files, which must not matter."""
    path = tmp_path / f"{'x' * 251}.txt"
    write_text(path, "x")
    assert path.read_text() == "x"
    with atomic_path(path, "a" * 12) as temporary:
        temporary.touch()
        (tmp_path / "left.txt").touch()
        os.link(temporary, tmp_path / "copy")
    (tmp_path / "copy").rename(temporary)  # as after a kill
    sweep(path, "a" * 12)
    assert not temporary.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_is_found_full_at_the_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    write_text(tmp_path / "out.txt", "old")

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(FileError, match=f"cannot write .*out.txt: {os.strerror(number)}"):
        write_text(tmp_path / "out.txt", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out.txt": "old"}


def test_devices_and_folders_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match=r"pipe: it is no regular file; name a file"):
        write_text(tmp_path / "pipe", "x")
    with pytest.raises(FileError, match=r"it is a folder; name a file"):
        write_text(tmp_path, "x")


def test_names_that_are_not_unicode_become_replacement_characters(tmp_path: Path) -> None:
    write_text(tmp_path / "out.txt", "caf\udce9 café")
    assert (tmp_path / "out.txt").read_text() == "caf\ufffd café"


ENS = up.EnsemblePrediction.gaussian(mean=[[0.0, 1.0, 3.0], [1.0, 2.0, 5.0]], variance=[[1.0, 1.0, 2.0], [1.0, 2.0, 1.0]])
SAVING = {
    "predictions": (ENS.save, ".npz"),
    "measures": (lambda path: up.evaluate(ENS, "usual").save(path), ".npz"),
    "result": (lambda path: up.selective_prediction(up.evaluate(ENS, "usual"), error=[1, 2, 3], resamples=0).save(path), ".npz"),
    "result as JSON": (
        lambda path: up.selective_prediction(up.evaluate(ENS, "usual"), error=[1, 2, 3], resamples=0).to_json(path),
        ".json",
    ),
    "ranks": (lambda path: up.rank_correlation(up.evaluate(ENS, "usual")).save(path), ".npz"),
    "ranks as JSON": (lambda path: up.rank_correlation(up.evaluate(ENS, "usual")).to_json(path), ".json"),
    "report": (lambda path: up.write_report(ENS, path, resamples=0), ".html"),
    "tensors": (lambda path: write_tensors(path, "x", {}, {}), ".safetensors"),
    "picture": (lambda path: save_as(new_figure(1.0)[0], path), ".png"),
}


@pytest.mark.parametrize(("save", "usual"), SAVING.values(), ids=list(SAVING))
@pytest.mark.usefixtures("undrawn")
def test_the_ending_says_what_is_written_and_others_are_refused(
    save: Callable[[Path], object], usual: str, tmp_path: Path
) -> None:
    for ending in {".csv", ".parquet", ".docx", ".npz", ".json", ".html"} - {usual}:
        with pytest.raises(ArgumentError, match=rf"must end in .*\{usual}"):
            save(tmp_path / f"x{ending}")
    assert not list(tmp_path.iterdir())
    for name in (f"x{usual}", f"X{usual.upper()}", "x"):
        save(tmp_path / name)
    assert len({(tmp_path / name).read_bytes()[:4] for name in (f"x{usual}", f"X{usual.upper()}", "x")}) == 1


HOLDER = """
import os, signal, sys
from uqprism.support.storage import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_lock_is_waited_for_and_freed_when_its_holder_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, tmp_path / "lock"]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    taken = threading.Event()

    def take() -> None:
        with locked(tmp_path / "lock"):
            taken.set()

    waiting = threading.Thread(target=take)
    waiting.start()
    assert not taken.wait(0.1)
    holder.communicate()
    waiting.join()
    assert holder.returncode == -signal.SIGKILL
    assert taken.is_set()
