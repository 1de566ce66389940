"""The data root: what is given, else the environment's, else a cache in the user's home."""

from __future__ import annotations

from pathlib import Path

import pytest

from uqprism.errors import FileError
from uqprism.paper.data.remotes import Remote
from uqprism.paper.data.root import Root


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("UQPRISM_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return tmp_path / "home"


def test_the_argument_comes_before_the_environment_and_that_before_the_cache(monkeypatch, tmp_path: Path, home: Path) -> None:
    assert Root.of().path == home / ".cache" / "uqprism"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert Root.of().path == home / ".cache" / "uqprism"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert Root.of().path == tmp_path / "cache" / "uqprism"
    for name in ("variable", "argument"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("UQPRISM_DATA", str(tmp_path / "variable"))
    assert Root.of().path == tmp_path / "variable"
    assert Root.of(tmp_path / "argument").path == tmp_path / "argument"


def test_the_home_may_be_a_tilde(home: Path) -> None:
    (home / "data").mkdir(parents=True)
    assert Root.of("~/data").path == home / "data"


def test_a_folder_that_is_not_there_is_an_error_that_says_who_named_it(monkeypatch, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=rf"root \(.*--data\) must be a folder, and there is none called {tmp_path / 'none'}"):
        Root.of(tmp_path / "none")
    monkeypatch.setenv("UQPRISM_DATA", str(tmp_path / "none"))
    with pytest.raises(FileError, match="UQPRISM_DATA must be a folder"):
        Root.of()


def test_files_are_found_compressed_or_not_in_their_own_folder_only(tmp_path: Path) -> None:
    root, remote = Root(tmp_path, downloads=False), Remote("set", "a.gz", "http://127.0.0.1:9/a.gz", "0" * 64)
    (tmp_path / "a.gz").touch()
    with pytest.raises(FileError):
        root.file(remote)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a").touch()
    assert root.file(remote) == tmp_path / "set" / "a"
    (tmp_path / "set" / "a.gz").touch()
    assert root.file(remote) == tmp_path / "set" / "a.gz"
    assert root.own("a.gz") == tmp_path / "a.gz"
    assert root.own("set") is None
