"""What the documentation says is true: its code runs, its output is what the program prints, every command is in it."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_code_runs(page: str, tmp_path: Path) -> None:
    """Each page's Python blocks run from top to bottom in a fresh interpreter; sessions print what they show."""
    plain = [block for block in blocks(page, "python") if not block.startswith(">>>")]
    if plain:
        script = tmp_path / "page.py"
        script.write_text("\n".join(plain))
        command = [sys.executable, "-W", "error", str(script)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    known: dict[str, object] = {}
    for block in blocks(page, "python"):
        if block.startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(block, known, page, page, 0)
            failed = doctest.DocTestRunner().run(session, clear_globs=False)
            assert failed.failed == 0
            known |= session.globs  # a reader goes on where the last session ended


def test_the_readme_shows_what_the_demo_prints() -> None:
    from uqprism.cli import app

    printed = CliRunner().invoke(app, ["demo", "deliveries"]).output
    assert printed in (ROOT / "README.md").read_text()


def test_the_advice_in_the_documentation_is_what_the_command_prints() -> None:
    from uqprism.cli import app

    printed = CliRunner().invoke(app, ["recommend", "ood_detection"]).output
    assert printed in (ROOT / "docs" / "choose.md").read_text()


def test_every_command_is_documented() -> None:
    from uqprism.cli import app

    quickstart = (ROOT / "docs" / "index.md").read_text()
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"uqprism {command.callback.__name__}" in quickstart


def test_every_local_link_of_the_readme_leads_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
