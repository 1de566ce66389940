"""Where the toy experiment writes its log, and which tests are slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.paper.toy import LOG

RUNS = {"outcome", "detected", "selected", "large"}  # fixtures that train networks


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG, str(tmp_path / "log"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and RUNS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
