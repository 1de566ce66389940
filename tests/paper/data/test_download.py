"""Files are fetched whole and with the right checksum, or not at all, and errors say what to put where."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from uqprism.errors import FileError
from uqprism.paper.data import remotes
from uqprism.paper.data.remotes import Remote
from uqprism.paper.data.root import Root

CONTENT = b"some numbers\n" * 300_000  # more than one block


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
def server() -> Iterator[tuple[str, list[str]]]:
    """An address, and what was asked for there."""
    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Handler,), {"asked": asked})) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/data/", asked
        running.shutdown()
        thread.join()


def remote(url: str, content: bytes = CONTENT) -> Remote:
    return Remote("folder", "file.zip", url, hashlib.sha256(content).hexdigest(), len(content))


def test_a_missing_file_is_fetched_once(server, tmp_path: Path) -> None:
    address, asked = server
    root = Root(tmp_path / "new" / "root")
    path = root.file(remote(address + "file.zip"))
    assert path == tmp_path / "new" / "root" / "folder" / "file.zip"
    assert path.read_bytes() == CONTENT
    assert root.file(remote(address + "file.zip")) == path
    assert asked == ["/data/file.zip"]


def test_what_has_another_checksum_is_not_kept(server, tmp_path: Path) -> None:
    wanted = remote(server[0] + "file.zip", b"other numbers")
    with pytest.raises(FileError, match="could not be downloaded: what came, 3,900,000 bytes, has the SHA-256") as error:
        Root(tmp_path).file(wanted)
    assert hashlib.sha256(CONTENT).hexdigest() in str(error.value)
    assert wanted.sha256 in str(error.value)
    assert list((tmp_path / "folder").iterdir()) == []


def test_without_a_network_the_error_says_what_to_put_where(tmp_path: Path) -> None:
    wanted = remote("http://127.0.0.1:9/data/file.zip")  # nobody listens there
    with pytest.raises(FileError) as error:
        Root(tmp_path).file(wanted)
    message = str(error.value)
    for part in ("file.zip", str(tmp_path / "folder"), wanted.url, wanted.sha256, "3,900,000 bytes"):
        assert part in message
    for way in ("root= in Python", "--data or UQPRISM_DATA for the command"):
        assert way in message
    assert "refused" in message
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_missing_page_is_said_to_be_missing(server, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="could not be downloaded: HTTP Error 404"):
        Root(tmp_path).file(remote(server[0] + "gone.zip"))


def test_a_folder_that_cannot_be_written_is_an_error_of_files(server, tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("in the way")
    with pytest.raises(FileError, match=r"could not be downloaded: .*File exists"):
        Root(tmp_path).file(remote(server[0] + "file.zip"))


def test_downloads_may_be_off(server, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="downloads are off"):
        Root(tmp_path, downloads=False).file(remote(server[0] + "file.zip"))
    assert server[1] == []


def test_progress_is_shown_on_a_terminal(server, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for name, rich in (("with", True), ("without", False)):
        if not rich:
            monkeypatch.setitem(sys.modules, "rich.progress", None)
        assert Root(tmp_path / name).file(remote(server[0] + "file.zip")).read_bytes() == CONTENT
        assert "file.zip" in capsys.readouterr().err


REMOTES = [value for value in vars(remotes).values() if isinstance(value, Remote)]


def test_the_table_of_official_files_is_in_order() -> None:
    assert len(REMOTES) == 15
    assert len({(each.folder, each.name) for each in REMOTES}) == len(REMOTES)
    assert len({each.sha256 for each in REMOTES}) == len(REMOTES)
    for each in REMOTES:
        assert re.fullmatch("[0-9a-f]{64}", each.sha256)
        assert re.match("https?://", each.url)
        assert all(isinstance(value, str | int | None) for value in dataclasses.astuple(each))
