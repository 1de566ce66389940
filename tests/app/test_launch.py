"""How `uqprism app` starts, or says why it does not."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from uqprism.app import launch
from uqprism.cli import app
from uqprism.errors import ArgumentError, FileError


@pytest.fixture
def taken():
    with socket.socket() as server:
        server.bind(("localhost", 0))
        server.listen()
        yield server.getsockname()[1]


def refused(*arguments: str) -> BaseException | None:
    return CliRunner().invoke(app, ["app", "--no-browser", *arguments]).exception


def test_a_port_in_use_is_refused(taken: int) -> None:
    told = refused("--port", str(taken))
    assert isinstance(told, ArgumentError)
    assert str(told) == f"port {taken} (--port) is in use; name another, or leave it out"


def test_without_a_port_the_first_free_one_is_taken(taken: int, monkeypatch) -> None:
    monkeypatch.setattr(launch, "FIRST_PORT", taken)
    with launch.listen("127.0.0.1", None) as server:
        assert server.getsockname()[1] > taken
    monkeypatch.setattr(launch, "PORTS", 1)
    with pytest.raises(ArgumentError, match="all in use"):
        launch.listen("127.0.0.1", None)


def test_an_address_of_another_machine_is_refused() -> None:
    for address in ("203.0.113.7", "no-such-machine.invalid"):
        assert str(refused("--address", address)) == f"{address} (--address) is no network address of this machine"


def test_a_missing_file_or_a_folder_is_refused_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mean_0,variance_0\n1,1\n")
    told = refused(str(tmp_path / "nothing.csv"))
    assert isinstance(told, FileError)
    assert str(told) == f"{tmp_path / 'nothing.csv'}: no such file, folder or pattern"
    assert "must be one file" in str(refused(str(tmp_path)))


def test_no_browser_is_opened_where_there_is_no_screen(monkeypatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not launch.has_screen()
    monkeypatch.setenv("DISPLAY", ":0")
    assert launch.has_screen()
