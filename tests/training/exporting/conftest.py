"""Small models, trained and exported once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch

import uqprism as up
from uqprism.training.exporting import Exported

torch.set_num_threads(1)
QUICK: dict[str, Any] = {
    "hidden": (12,),
    "max_epochs": 3,
    "random_state": 0,
    "device": "cpu",
    "progress": False,
    "patience": None,
}


def targets(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, 50.0 + np.sin(2.0 * x[:, 0]) + 0.2 * (2.0 + x[:, 1]) * rng.normal(size=n)


def table(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, booleans with gaps, categories with gaps of which some are rare, and a column called like an output."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"mean": rng.normal(size=n), "age (years)": rng.integers(18, 90, n).astype(float)})
    frame.loc[rng.random(n) < 0.1, "age (years)"] = np.nan
    frame["on"] = np.where(rng.random(n) < 0.1, None, rng.random(n) < 0.5)
    frame["city"] = rng.choice(["Oslo", "Köln", "rare"], n, p=[0.5, 0.49, 0.01])
    frame.loc[rng.random(n) < 0.1, "city"] = None
    frame["size"] = pd.Categorical(rng.choice([1, 2, 3], n))
    return frame


@dataclass(frozen=True)
class Ready:
    """A model, its file, and what the file says."""

    model: Any
    exported: Exported

    def run(self, X: Any) -> dict[str, np.ndarray]:
        session = onnxruntime.InferenceSession(self.exported.path, providers=["CPUExecutionProvider"])
        return dict(zip([each.name for each in session.get_outputs()], session.run(None, self.exported.feed(X)), strict=True))


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ready]:
    """Train and export by head and rule, each once."""
    known: dict[tuple[str, str], Ready] = {}
    folder = tmp_path_factory.mktemp("exported")

    def make(head: str, rule: str) -> Ready:
        if (head, rule) not in known:
            model = up.DeepEnsembleRegressor(n_members=4, head=head, **QUICK).fit(*targets())
            known[head, rule] = Ready(model, model.export(folder / f"{head}-{rule}.onnx", rule=rule))
        return known[head, rule]

    return make
