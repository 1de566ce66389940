"""A task is one file, from whose description the Python function, the command, the report section and the pages follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from uqprism.errors import InvalidValueError
from uqprism.tasks import task

ROOT = Path(__file__).parents[2]


def test_every_task_is_described_for_people_and_has_its_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    for each in task.all_tasks():
        assert each.summary.endswith((".", "?"))
        assert each.help
        assert each.page.split("#")[0] in nav
    assert [each.command for each in task.all_tasks()] == ["select", "selective", "ood", "active", "audit", "correlation"]


def test_a_taken_name_is_refused() -> None:
    first = task.all_tasks()[0]
    with pytest.raises(InvalidValueError, match="task name 'select_measure' is taken"):
        task.register(task.Task(first.name, "other", print, "Other"))


def test_metrics_have_words_and_a_direction() -> None:
    selective = task.TASKS.get("selective_prediction")
    assert selective.metric("prr").title == "PRR: prediction rejection ratio, 1: oracle, 0: random (higher is better)"
    assert selective.metric("error_at_33").short == "error at 33 %"
    assert task.metric_of("selective_prediction", "unheard_of").title == "unheard of (lower is better)"
    assert task.metric_of("no_task", "x").short == "x"
