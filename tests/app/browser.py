"""A served page and a real browser to look at it with."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
PATIENCE = 60_000  # milliseconds: a slow machine shared with others


def found_browser() -> str | None:
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(*arguments: str, folder: Path | None = None, **environment: str) -> Iterator[str]:
    """The address of a page that `uqprism app` serves; `environment` is added to that of this process."""
    command = [sys.executable, "-m", "uqprism", "app", "--no-browser", "--port", str(free_port()), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=os.environ | environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()  # told when the page answers; empty if it ended
            assert line.startswith("uqprism app: http://localhost:"), line
            yield line.split()[2]
        finally:
            process.terminate()
            process.wait(timeout=30)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found_browser(), args=FLAGS)
        try:
            yield chromium
        finally:
            chromium.close()


def finished(page: Any) -> None:
    """Wait until everything that a change set off is computed: buttons of before would lead nowhere."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


@contextmanager
def page_in(chromium: Any, **looks: Any) -> Iterator[Any]:
    """An empty page of its own; `looks` as in Playwright's `new_context`."""
    with chromium.new_context(**looks) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        yield page
