"""Serve the page with Streamlit, on this machine only; nothing is sent anywhere."""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from uqprism.errors import ArgumentError
from uqprism.files.paths import find_files
from uqprism.support.optional import require

ADDRESS, FIRST_PORT, PORTS = "localhost", 8501, 100
PAGE = Path(__file__).parent / "page.py"
SETTINGS = {
    "server.address": ADDRESS,
    "server.headless": "true",  # ask for no e-mail address, and look up no network address
    "server.fileWatcherType": "none",  # an installed page does not change
    "server.maxUploadSize": "1000",  # MB
    "browser.gatherUsageStats": "false",
    "browser.serverAddress": ADDRESS,
    "logger.hideWelcomeMessage": "true",
    "logger.level": "warning",
    "client.toolbarMode": "viewer",
    "client.showErrorLinks": "false",
    "theme.light.primaryColor": "#0072B2",
    "theme.dark.primaryColor": "#56B4E9",
}


def serve(file: str | None = None, *, port: int | None = None, browser: bool = True, say: Callable[[str], None] = print) -> None:
    """Serve the page until interrupted.

    Args:
        file: shown first, in place of the example.
        port: to serve on; by default the first free one from 8501 on.
        browser: open the page in one, if there is a screen.
        say: receives the address once the page answers.
    """
    streamlit = require("streamlit.web.cli", extra="app")
    if file is not None:
        check_file(file)
    chosen = free_port() if port is None else check_port(port)
    threading.Thread(target=_announce, args=(chosen, browser, say), daemon=True).start()  # the server blocks this one
    settings = {**SETTINGS, "server.port": str(chosen)}
    options = [f"--{name}={value}" for name, value in settings.items()]
    # After `--` come the arguments of the page.
    streamlit.main(["run", *options, str(PAGE), "--", *([] if file is None else [file])], standalone_mode=False)


def check_file(file: str) -> None:
    """Refuse anything but a single file, with the errors of the other commands."""
    if len(find_files(file)) > 1 or Path(file).is_dir():
        raise ArgumentError(f"FILE must be one file, {file} stands for several; name one of them")


def free_port() -> int:
    """The first free port from 8501 on."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        if _is_free(port):
            return port
    raise ArgumentError(f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all in use; name a free one with --port")


def check_port(port: int) -> int:
    """The port, if it is free."""
    if not _is_free(port):
        raise ArgumentError(f"port {port} (--port) is in use; name another, or leave it out")
    return port


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of a server that just ended is free
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def _announce(port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Wait until the page answers, then print its address."""
    while not answers(port):
        time.sleep(0.1)
    url = f"http://{ADDRESS}:{port}"
    say(f"uqprism app: {url} (files stay on this machine; Ctrl-C ends it)")
    if browser and has_screen():
        webbrowser.open(url)


def answers(port: int) -> bool:
    """Whether the page on this port is ready; a proxy that the environment names is not asked."""
    connection = HTTPConnection(ADDRESS, port, timeout=5.0)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (HTTPException, OSError):
        return False
    finally:
        connection.close()


def has_screen() -> bool:
    """Whether there is a screen; without one, a text browser would take over the terminal."""
    return platform.system() != "Linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
