"""The pages of docs/libraries: their code, and what it defines."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "libraries"


def blocks(page: str, language: str = r"\w+") -> list[str]:
    """The blocks of code of a page."""
    return re.findall(rf"```{language}\n(.*?)```", (FOLDER / f"{page}.md").read_text(), flags=re.DOTALL)


@cache
def run(page: str) -> dict[str, Any]:
    """What the page's code defines after that of the index, run from top to bottom in the working folder."""
    names: dict[str, Any] = {}
    for source in ("index", page):
        for number, block in enumerate(blocks(source, "python")):
            exec(compile(block, f"{source}.md, block {number}", "exec"), names)  # noqa: S102 (the documentation's own code)
    assert (Path("report.html").stat().st_size > 10_000) == ("report.html" in "".join(blocks(page)))
    return names


@pytest.fixture
def page(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A function from a page to what its code defines; each page runs once."""
    monkeypatch.chdir(tmp_path_factory.mktemp("page"))
    return run
