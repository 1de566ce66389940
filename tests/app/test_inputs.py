"""Files on the page."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.app.files import TABLE
from uqprism.app.inputs import FOLDER, Upload, remove_leftovers, without_folder


def test_a_file_cannot_leave_its_folder_and_nothing_stays_on_disk() -> None:
    with Upload("../../mine.csv", TABLE.csv()).on_disk() as path:
        assert path.read_bytes() == TABLE.csv()
        assert path.name == "mine.csv"
        assert path.parent.name.startswith("uqprism-app-")
    assert not path.parent.exists()


@pytest.mark.parametrize("name", ["\0a\0.csv", "..", "/", 400 * "long" + ".parquet", "a." + 400 * "b", ""])
def test_any_name_can_be_kept(name: str) -> None:
    with Upload(name, b"x").on_disk() as path:
        assert path.read_bytes() == b"x"
        assert path.parent.name.startswith(FOLDER)
        assert path.suffix == (".parquet" if "parquet" in name else path.suffix)


def test_folders_of_killed_apps_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive, other = (tmp_path / name for name in (f"{FOLDER}{ended.pid}-a", f"{FOLDER}{os.getpid()}-b", "something-else"))
    for folder in (dead, alive, other):
        folder.mkdir()
        (folder / "data.csv").write_text("secret")
    remove_leftovers()
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()


def test_messages_do_not_tell_where_a_file_is_kept() -> None:
    folder = f"{tempfile.gettempdir()}{os.sep}{FOLDER}12-ab{os.sep}"
    assert without_folder(f"{folder}mine.csv: is empty; see {folder}x") == "mine.csv: is empty; see x"
