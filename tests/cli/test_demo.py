"""The demo trains, writes and tells; the README shows what it tells."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from uqprism.cli import demo_trained

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_readme_shows_what_the_trained_demo_tells(tmp_path: Path) -> None:
    """The words, since numbers of trained networks differ in the last digits from machine to machine."""
    told = str(demo_trained.run(tmp_path / "demo" / "report.html", measures=None))
    told = told.replace(f"{tmp_path}/", "")
    (shown,) = re.findall(r"\$ make demo [^\n]*\n(\d.*?)```", README.read_text(), flags=re.DOTALL)
    assert _words(told) == _words(shown)
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"report.html", "predictions.csv", "left.csv", "right.csv"}
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "uqprism report" in page
    numbers = [float(number) for number in re.findall(r"AUROC\s+([\d.]+)", told)]
    assert min(numbers) > 0.9, "points outside of the training data are noticed"


def _words(text: str) -> str:
    plain = re.sub(r"\d[\d,.]*", "#", text.replace("\u00a0", " "))
    return " ".join(plain.split())


def test_without_torch_the_demo_names_the_extra_and_the_one_that_needs_none() -> None:
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['uqprism', 'demo']; from uqprism.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'uqprism[deep]'" in result.stderr
    assert "uqprism demo deliveries" in result.stderr


def test_an_unknown_demo_is_refused() -> None:
    result = subprocess.run([sys.executable, "-m", "uqprism", "demo", "delivery"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "did you mean 'deliveries'" in result.stderr
