"""The folder of data files is the given one, else the environment's, else a cache; downloads are complete or leave nothing."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.root import Remote, Root

CONTENT = b"some numbers\n" * 300_000  # more than one block


@pytest.fixture
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
    (home / "data").mkdir(parents=True)
    assert Root.of("~/data").path == home / "data"


def test_the_error_for_a_missing_folder_says_who_named_it(monkeypatch, tmp_path: Path, home: Path) -> None:
    with pytest.raises(FileError, match=rf"root \(.*--data\) must be a folder, and there is none called {tmp_path / 'none'}"):
        Root.of(tmp_path / "none")
    monkeypatch.setenv("UQPRISM_DATA", str(tmp_path / "none"))
    with pytest.raises(FileError, match="UQPRISM_DATA must be a folder"):
        Root.of()


def test_official_files_are_found_compressed_or_not_in_their_own_folder_only(tmp_path: Path) -> None:
    root, remote = Root(tmp_path, downloads=False), Remote("set", "http://127.0.0.1:9/a.gz", "0" * 64)
    files.put(tmp_path, "a.gz", b"")
    with pytest.raises(FileError):
        root.official(remote)
    for name in ("a", "a.gz"):
        path = files.put(tmp_path, f"set/{name}", b"")
        assert root.official(remote) == path
    assert root.compact("a.gz") == tmp_path / "a.gz"
    assert root.compact("set") is None


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path != "/data/file.zip":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch) -> Iterator[tuple[str, list[str]]]:
    """The address of a server on this machine, and the paths that were requested."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Handler,), {"asked": asked})) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/data/", asked
        running.shutdown()
        thread.join()


def remote(url: str, content: bytes = CONTENT) -> Remote:
    return Remote("folder", url, hashlib.sha256(content).hexdigest(), len(content))


def test_a_missing_file_is_downloaded_once(server, tmp_path: Path) -> None:
    address, asked = server
    root = Root(tmp_path / "new" / "root")
    path = root.official(remote(address + "file.zip"))
    assert path == tmp_path / "new" / "root" / "folder" / "file.zip"
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == path.parent.stat().st_mode & 0o666
    assert root.official(remote(address + "file.zip")) == path
    assert asked == ["/data/file.zip"]


def test_a_file_with_another_checksum_is_not_kept(server, tmp_path: Path) -> None:
    wanted = remote(server[0] + "file.zip", b"other numbers")
    with pytest.raises(FileError, match=r"could not be downloaded: SHA256 hash .* does not match") as error:
        Root(tmp_path).official(wanted)
    assert hashlib.sha256(CONTENT).hexdigest() in str(error.value)
    assert wanted.sha256 in str(error.value)
    assert list((tmp_path / "folder").iterdir()) == []


def test_without_a_network_the_error_says_what_to_put_where(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    wanted = remote("http://127.0.0.1:9/data/file.zip")  # no server listens there
    with pytest.raises(FileError) as error:
        Root(tmp_path).official(wanted)
    for part in ("file.zip", str(tmp_path / "folder"), wanted.url, wanted.sha256, "3,900,000 bytes", "refused"):
        assert part in str(error.value)
    for way in ("root= in Python", "--data or UQPRISM_DATA for the command"):
        assert way in str(error.value)
    assert list((tmp_path / "folder").iterdir()) == []


def test_other_failures_are_file_errors_with_their_reason(server, tmp_path: Path) -> None:
    address, asked = server
    with pytest.raises(FileError, match="could not be downloaded: 404"):
        Root(tmp_path).official(remote(address + "gone.zip"))
    with pytest.raises(FileError, match="downloads are off"):
        Root(tmp_path, downloads=False).official(remote(address + "file.zip"))
    assert asked == ["/data/gone.zip"]
    (tmp_path / "blocked").mkdir()
    files.put(tmp_path, "blocked/folder", b"a file in place of the folder")
    with pytest.raises(FileError, match=r"could not be downloaded: .*(File exists|Not a directory)"):
        Root(tmp_path / "blocked").official(remote(address + "file.zip"))


def test_progress_is_shown_on_a_terminal(server, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert Root(tmp_path).official(remote(server[0] + "file.zip")).read_bytes() == CONTENT
    shown = capsys.readouterr().err
    assert "file.zip" in shown
    assert "4 MB" in shown


def test_the_official_files_have_addresses_and_checksums() -> None:
    assert len(files.REMOTES) == 15
    assert len({(each.folder, each.name) for each in files.REMOTES}) == 15
    assert len({each.sha256 for each in files.REMOTES}) == 15
    for each in files.REMOTES:
        assert re.fullmatch("[0-9a-f]{64}", each.sha256)
        assert re.match("https?://", each.url)
        assert each.size is None or each.size > 0
