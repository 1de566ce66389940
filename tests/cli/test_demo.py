"""The demos print what the README shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import run
from uqprism.cli import demo_trained

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
def test_the_readme_shows_what_the_trained_demo_prints(tmp_path: Path) -> None:
    """The words, since numbers of trained networks differ in the last digits from machine to machine."""
    printed = str(demo_trained.run(tmp_path / "demo" / "report.html", measures=None)).replace(f"{tmp_path}/", "")
    (shown,) = re.findall(r"\$ make demo [^\n]*\n(\d.*?)```", README.read_text(), flags=re.DOTALL)
    assert _words(printed) == _words(shown)
    tables = {"predictions.csv", "left.csv", "right.csv"}
    beside = {f"_{name}.json" for name in tables}  # what is known of the members
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"report.html"} | tables | beside
    assert "uqprism report" in (tmp_path / "demo" / "report.html").read_text()
    assert min(map(float, re.findall(r"AUROC\s+([\d.]+)", printed))) > 0.9, "unfamiliar inputs are noticed"


def _words(text: str) -> list[str]:
    return re.sub(r"\d[\d,.]*", "#", text.replace("\u00a0", " ")).split()


def test_deliveries_are_a_row_for_each_rule_and_trip() -> None:
    printed = run("demo", "deliveries").stdout
    assert printed in README.read_text()
    rows = [line for line in printed.splitlines() if line.endswith(tuple("0123456789")) and "." in line]
    assert len(rows) == 16
    for row in rows:
        total, noise, disagreement = (float(x) for x in row.split()[-3:])
        assert abs(total - noise - disagreement) < 0.0016


def test_an_unknown_demo_is_refused() -> None:
    result = run("demo", "delivery")
    assert result.returncode == 2
    assert "did you mean 'deliveries'" in result.stderr


def test_a_quiet_demo_prints_only_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_trained, "run", lambda output, **_: demo_trained.Demo(output, (), demo_trained.Sizes()))
    assert run("demo", "-q", "-o", "page.html").stdout == "page.html\n"
