"""A task is one file, from whose description the Python function, the command, the report section and the pages follow."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from uqprism.errors import InvalidValueError
from uqprism.tasks import task

ROOT = Path(__file__).parents[2]
CHECK = """
import runpy, sys
import uqprism.tasks
uqprism.tasks.__path__.append(sys.argv[1])
import numpy as np
import uqprism as up
from typer.testing import CliRunner
from uqprism.cli import app

rng = np.random.default_rng(0)
table = {f"crps.{risk}.members{roles}": rng.random(50) for risk, roles in (("bayes", ""), ("excess", ".members"))}
error = rng.random(50)
assert up.worst_case(table, error=error).metric == "hits"
assert "--error-column" in CliRunner().invoke(app, ["worst", "--help"]).output
report = up.write_report(table, sys.argv[1] + "/page.html", error=error, resamples=20)
assert "Are the worst errors found?" in report.path.read_text()
pages = runpy.run_path("docs/generate.py")
assert "## uqprism worst" in pages["command_line_page"]()
"""


@pytest.mark.slow
def test_a_new_file_is_a_function_a_command_a_section_and_a_page_entry(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), flags=re.DOTALL)
    (code,) = (block for block in blocks if 'name="worst_case"' in block)
    (tmp_path / "worst_case.py").write_text(f"import numpy as np\n\n{code}")
    ran = subprocess.run([sys.executable, "-c", CHECK, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_every_task_is_described_for_people_and_has_its_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    for each in task.all_tasks():
        assert each.summary.endswith((".", "?"))
        assert each.help
        assert each.page.split("#")[0] in nav
    assert [each.command for each in task.all_tasks()] == ["select", "selective", "ood", "active", "correlation"]


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
