"""What tests of the report share."""

from __future__ import annotations

import pytest

from tests.report.pages import write
from uqprism.report.page import Report


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> Report:
    """The report that most tests look at."""
    return write(tmp_path_factory.mktemp("report") / "report.html")
