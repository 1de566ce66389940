"""Where the toy experiment writes its log, the epochs that are trained, and which tests are slow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.paper.toy import LOG

RUNS = {"outcome", "detected", "selected", "large"}  # fixtures that train networks


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG, str(tmp_path / "log"))


@pytest.fixture
def epochs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """List the epochs that are trained from now on; with `stop`, raise `KeyboardInterrupt` in the one of this number."""

    def listed(stop: int | None = None) -> list[int]:
        from uqprism.training.trainer import Trainer

        real, found = Trainer._epoch, list[int]()

        def counted(run: Trainer) -> None:
            found.append(run.state.epoch)
            if len(found) == stop:
                raise KeyboardInterrupt
            real(run)

        monkeypatch.setattr(Trainer, "_epoch", counted)
        return found

    return listed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and RUNS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
