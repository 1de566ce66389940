"""Ranks of numbers in a file are exact."""

from __future__ import annotations

import numpy as np
import pytest

from uqprism.files import spool
from uqprism.files.spool import Spool

NUMBERS = {
    "of both signs": np.random.default_rng(0).normal(size=1000) * 10.0 ** np.random.default_rng(1).integers(-300, 300, 1000),
    "that repeat": np.random.default_rng(0).integers(-3, 3, 500) / 7.0,
    "with zeros and infinities": np.array([0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.0, np.nan, np.nan]),
    "next to each other": 1.0 + np.arange(300) * 2.3e-16,
    "single": np.array([-2.5]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_every_rank_is_that_of_a_sort(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(spool, "CHUNK", 64)
    values = NUMBERS[name]
    column = Spool(tmp_path / "column.bin")
    for part in np.array_split(values, 7):
        column.append(part)
    column.complete()
    known = np.sort(values[~np.isnan(values)])[::-1]
    assert len(column) == len(known)
    assert column.missing == np.isnan(values).sum()
    for count in {1, 2, len(known) // 3, len(known) // 2, len(known)} - {0}:
        assert column.largest(min(count, len(known))) == known[min(count, len(known)) - 1]
    assert column.median() in {known[len(known) // 2], known[(len(known) - 1) // 2]}
    column.close()
    assert not any(tmp_path.iterdir())
