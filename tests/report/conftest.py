"""Reports that tests look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import uqprism as up
from tests.report.pages import Page, write
from uqprism.report.page import Report


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> Report:
    """The report that most tests look at."""
    return write(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def made(undrawn: None, tmp_path: Path) -> Callable[..., tuple[Report, Page]]:
    """Write a report without drawings, and read its page."""

    def make(source: object, **how: object) -> tuple[Report, Page]:
        found = up.write_report(source, tmp_path / "page", **{"resamples": 0} | how)
        return found, Page(found.path.read_text())

    return make
