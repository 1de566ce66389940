"""A model with its calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import uqprism as up

torch.set_num_threads(1)


def visits(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A number, one with gaps, a category, and an outcome whose noise grows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.uniform(-2.0, 2.0, n), "b": rng.normal(size=n), "kind": rng.choice(["x", "y"], n)})
    y = np.sin(2.0 * frame["a"].to_numpy()) + 0.1 * (3.0 + frame["a"].to_numpy()) * rng.normal(size=n)
    frame.loc[rng.random(n) < 0.05, "b"] = np.nan
    return frame, y


@pytest.fixture(scope="session")
def model() -> Any:
    settings: dict[str, Any] = {"hidden": (16,), "max_epochs": 12, "random_state": 0, "device": "cpu", "progress": False}
    return up.DeepEnsembleRegressor(n_members=3, head="natural", learning_rate=0.01, **settings).fit(*visits(600, 0))


@pytest.fixture(scope="session")
def served(model: Any) -> up.Served:
    return up.Served.calibrated(model, *visits(400, 1), coverage=0.9, share=0.1)
