"""Results to draw, and how to read what was drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism.tasks import TaskResult, ood_detection, prediction_error, selective_prediction
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation

PRR_TITLE = "PRR: the paper's prediction rejection ratio, 0: oracle, 1: random (lower is better)"
DEFAULT, PAIRWISE = "crps.total.members.members", "log.excess.members.members"


@pytest.fixture(scope="package")
def table() -> up.MeasureTable:
    return up.evaluate(ensemble(300)[0])


@pytest.fixture(scope="package")
def selective(table: up.MeasureTable) -> TaskResult:
    return selective_prediction(table, error=prediction_error(*ensemble(300)), resamples=50)


@pytest.fixture(scope="package")
def detection(table: up.MeasureTable) -> TaskResult:
    return ood_detection(table, up.evaluate(ensemble(200, shift=1.0, seed=2)[0]), resamples=50)


@pytest.fixture(scope="package")
def correlation(table: up.MeasureTable) -> RankCorrelation:
    return rank_correlation(table)


@pytest.fixture
def learning() -> TaskResult:
    labelled = np.array([20, 40, 60])
    means = {f"a{i}": np.array([3.0, 2.0, 1.0]) + 0.1 * i for i in range(7)} | {"random": np.array([4.0, 3.5, 3.0])}
    curves = {"labelled": labelled, **means, "a0 spread": np.array([0.5, 0.4, 0.3])}
    measured = {name: float(mean.mean()) for name, mean in means.items()}
    return TaskResult("active_learning", "nll", False, measured, curves=curves, figure="learning_curves")


def lines(ax: Any) -> dict[str, Any]:
    """Lines by the first word of their label."""
    return {line.get_label().split(" ")[0]: line for line in ax.get_lines()}


def legend(ax: Any) -> list[str]:
    """The first lines; below a measure's name stands what it is in words."""
    return [text.get_text().split("\n")[0] for text in ax.get_legend().get_texts()]
