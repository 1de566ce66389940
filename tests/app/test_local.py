"""The served page answers its own requests alone, whatever the user's configuration of Streamlit says."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.app.browser import served
from uqprism.app.local import LocalRequests

CARELESS = """
[server]
enableXsrfProtection = false
enableCORS = false
corsAllowedOrigins = ["http://evil.example"]
allowedHosts = ["*"]
address = "0.0.0.0"
baseUrlPath = "elsewhere"
[browser]
gatherUsageStats = true
serverPort = 99
[global]
developmentMode = true
"""
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
}
PLACES = {"page": ("GET", "/", {}), "health": ("GET", "/_stcore/health", {}), "websocket": ("GET", "/_stcore/stream", UPGRADE)}


def headers(**given: str) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in given.items()]


@pytest.mark.parametrize(
    "host", ["localhost:8501", "127.0.0.1:8501", "LOCALHOST:8501", "localhost.:8501", "localhost", "[::1]:8501", "[0:0::1]:8501"]
)
def test_names_of_this_machine_are_answered(host: str) -> None:
    page = LocalRequests(None)
    assert page.allows(headers(host=host))
    assert page.allows(headers(host=host, origin=f"http://{host}"))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8501", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example@localhost"),
        *("localhost@evil.example", "localhost:port", "localhost/evil", "", "0.0.0.0:8501", "192.168.0.7:8501", "2130706433"),
    ],
)
def test_other_hosts_are_refused(host: str) -> None:
    assert not LocalRequests(None).allows(headers(host=host))


def test_other_origins_are_refused_and_so_are_doubled_headers() -> None:
    page = LocalRequests(None)
    for origin in (
        "http://evil.example",
        "null",
        "http://localhost:3000",
        "http://localhost",
        "https://localhost:8501.evil.example",
    ):
        assert not page.allows(headers(host="localhost:8501", origin=origin)), origin
    assert not page.allows([])
    assert not page.allows(headers(host="localhost") + headers(host="evil.example"))


def test_a_chosen_address_is_answered_and_all_addresses_take_any_name() -> None:
    assert LocalRequests(None, {"192.168.0.7"}).allows(headers(host="192.168.0.7:8501"))
    assert not LocalRequests(None, {"192.168.0.7"}).allows(headers(host="evil.example"))
    assert LocalRequests(None, None).allows(headers(host="my-machine:8501", origin="http://my-machine:8501"))
    assert not LocalRequests(None, None).allows(headers(host="my-machine:8501", origin="http://evil.example"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The host and port of a page served for a user with a careless configuration."""
    pytest.importorskip("streamlit", reason="Streamlit is not installed (extra app)")
    home = tmp_path_factory.mktemp("home")
    (home / ".streamlit").mkdir()
    (home / ".streamlit" / "config.toml").write_text(CARELESS)
    careless = {"STREAMLIT_SERVER_ENABLE_CORS": "false", "STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "false"}
    with served(folder=Path(home), HOME=str(home), **careless) as url:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        yield parts.hostname, parts.port


def status(place: tuple[str, int], method: str, path: str, **given: str) -> int:
    connection = HTTPConnection("127.0.0.1", place[1], timeout=10)
    try:
        connection.request(method, path, headers={"Host": f"localhost:{place[1]}", **given})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("name", PLACES)
def test_the_page_answers_its_own_address_alone(place: tuple[str, int], name: str) -> None:
    method, path, needed = PLACES[name]
    answered = 101 if name == "websocket" else 200
    assert status(place, method, path, **needed) == answered
    assert status(place, method, path, **needed, Origin=f"http://localhost:{place[1]}") == answered
    for given in (
        {"Host": "evil.example"},
        {"Host": f"evil.example:{place[1]}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ):
        assert status(place, method, path, **needed, **given) == 403, given


def test_an_upload_without_its_token_is_refused_and_so_are_other_interfaces(place: tuple[str, int]) -> None:
    assert status(place, "PUT", "/_stcore/upload_file/session/file") == 403
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", place[1]), timeout=5):  # noqa: PT011 (refused or unreachable)
        pass
