"""Refuse requests that other pages or other machines send to the served page.

A server on `localhost` answers every program on the machine, also a browser that shows somebody else's page. Such a page may
reach this machine by a host name of its own (DNS rebinding) or across origins; the headers `Host` and `Origin` show both.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

Send = Callable[[dict[str, Any]], Awaitable[None]]

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
REFUSAL = b"This page answers only to its own address.\n"
POLICY_VIOLATION = 1008  # the code that closes a websocket


class LocalRequests:
    """ASGI middleware that lets requests through whose `Host` is one of the given and whose `Origin`, if any, is that host.

    Args:
        app: the application.
        hosts: names or addresses; None for any.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], hosts: Iterable[str] | None = LOCAL) -> None:
        self.app = app
        self.hosts = None if hosts is None else frozenset(hosts)

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        """Serve the request, or refuse it."""
        if scope["type"] not in {"http", "websocket"} or self.allows(scope["headers"]):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})  # before it is accepted: the answer is 403
        else:
            kind = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(REFUSAL)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": kind})
            await send({"type": "http.response.body", "body": REFUSAL})

    def allows(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether these headers are those of the page's own requests."""
        given = [(name.lower(), value.decode("latin-1")) for name, value in headers]
        hosts = [value for name, value in given if name == b"host"]
        origins = [value for name, value in given if name == b"origin"]
        if len(hosts) != 1 or len(origins) > 1:
            return False
        name = hostname(f"//{hosts[0]}")
        known = name is not None and (self.hosts is None or name in self.hosts)
        # The port counts too: another server on this machine is another origin.
        return known and all(urlsplit(origin).netloc.lower() == hosts[0].lower() for origin in origins)


def hostname(url: str) -> str | None:
    """The host of a URL, in the one way it is written; None where there is none or it has more than a host and a port."""
    try:
        parts = urlsplit(url)
        name, _ = parts.hostname, parts.port  # a port that is no number raises
    except ValueError:
        return None
    if name is None or "@" in parts.netloc or parts.path or parts.query or parts.fragment:
        return None
    try:
        return str(ipaddress.ip_address(name))  # [0:0::1] is ::1
    except ValueError:
        return name.rstrip(".")
