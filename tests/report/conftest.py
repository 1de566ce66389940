"""What tests of the report share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Pages without their drawings, which take most of the time, for tests that look at the rest."""
    monkeypatch.setattr("uqprism.report.charts.render", lambda *_, **__: ("<svg></svg>", None))
    monkeypatch.setattr("uqprism.report.charts.places", lambda _, x, __: np.zeros((len(x), 2)))
