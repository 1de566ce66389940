"""Serve the page with Streamlit, by default on this machine only; nothing is sent anywhere."""

from __future__ import annotations

import errno
import os
import platform
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from uqprism.app.inputs import remove_leftovers
from uqprism.app.local import LOCAL, LocalRequests
from uqprism.errors import ArgumentError
from uqprism.files.paths import find_files
from uqprism.support.optional import require

LOOPBACK, FIRST_PORT, PORTS = "127.0.0.1", 8501, 100
EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 (recognised, not used)
PAGE = Path(__file__).parent / "page.py"
SETTINGS: dict[str, Any] = {
    "global.developmentMode": False,
    "server.headless": True,  # ask for no e-mail address, and look up no network address
    "server.fileWatcherType": "none",  # an installed page does not change
    "server.maxUploadSize": 1000,  # MB
    "browser.gatherUsageStats": False,
    "logger.hideWelcomeMessage": True,
    "logger.level": "warning",
    "client.toolbarMode": "viewer",
    "client.showErrorLinks": False,
    "client.showErrorDetails": "none",
    "theme.light.primaryColor": "#0072B2",
    "theme.dark.primaryColor": "#56B4E9",
}


def serve(
    file: str | None = None,
    *,
    port: int | None = None,
    address: str | None = None,
    browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the page until interrupted.

    Args:
        file: shown first.
        port: to serve on; by default the first free one from 8501 on.
        address: to serve on, in place of this machine alone: one of its network addresses, or 0.0.0.0 for all of them.
        browser: open the page in one, if there is a screen.
        say: receives the address once the page answers.
    """
    streamlit, uvicorn, starlette = (require(name, extra="app") for name in ("streamlit", "uvicorn", "starlette.middleware"))
    if file is not None:
        check_file(file)
    bound = LOOPBACK if address is None else address
    listening = listen(bound, port)
    remove_leftovers()
    configure({**SETTINGS, "server.address": bound, "server.port": listening.getsockname()[1]})
    hosts = None if bound in EVERY_ADDRESS else {*LOCAL, bound.lower()}

    @asynccontextmanager
    async def announced(_app: Any) -> AsyncIterator[None]:
        announce(bound, listening.getsockname()[1], browser=browser, say=say)
        yield

    sys.argv = [str(PAGE), *([] if file is None else [file])]  # the page reads its arguments from there
    page = streamlit.App(PAGE, middleware=[starlette.Middleware(LocalRequests, hosts=hosts)], lifespan=announced)
    with listening:
        uvicorn.Server(uvicorn.Config(page, log_level="warning", access_log=False)).run([listening])


def configure(settings: dict[str, Any]) -> None:
    """Set these options of Streamlit, and give all others their defaults: the user may have switched protections off."""
    from streamlit import config

    with suppress(RuntimeError):  # options of the user that contradict each other; none of them is kept
        config.get_config_options()
    options = config.get_config_options()
    changed = {name: option.default_val for name, option in options.items() if config.is_manually_set(name)}
    for name, value in {**changed, **settings}.items():
        config.set_option(name, value)


def check_file(file: str) -> None:
    """Refuse anything but a single file, with the errors of the other commands."""
    if len(find_files(file)) > 1 or Path(file).is_dir():
        raise ArgumentError(f"FILE must be one file, {file} stands for several; name one of them")


def listen(address: str, port: int | None) -> socket.socket:
    """A socket that listens on this port, or on the first free one from 8501 on."""
    for chosen in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,):
        if (found := _bound(address, chosen)) is not None:
            found.listen()
            return found
    if port is None:
        raise ArgumentError(f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all in use; name a free one with --port")
    raise ArgumentError(f"port {port} (--port) is in use; name another, or leave it out")


def _bound(address: str, port: int) -> socket.socket | None:
    """A socket on this port, None if it is in use."""
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of a server that just ended is free
    try:
        server.bind((address, port))
    except OSError as error:
        server.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ArgumentError(f"{address} (--address) is no network address of this machine") from error
        return None
    return server


def announce(address: str, port: int, *, browser: bool, say: Callable[[str], None]) -> None:
    """Print the address of the page, and open it in a browser if there is a screen."""
    local = address == LOOPBACK
    shown = "localhost" if local or address in EVERY_ADDRESS else f"[{address}]" if ":" in address else address
    url = f"http://{shown}:{port}"
    say(f"uqprism app: {url} ({'files stay on this machine' if local else 'open to the network'}; Ctrl-C ends it)")
    if browser and has_screen():
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()  # some browsers only return when closed


def has_screen() -> bool:
    """Whether there is a screen; without one, a text browser would take over the terminal."""
    return platform.system() != "Linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
