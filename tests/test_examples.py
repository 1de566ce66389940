"""The examples run, at a small size, and the pages show what they give."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws(path: Path) -> None:
    """Every panel shows something, and says what its axes are."""
    figure = runpy.run_path(str(path))["draw"](quick=True)
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    assert all(axes.has_data() for axes in panels)
    assert any(axes.get_xlabel() or axes.get_xticklabels() for axes in panels)
    figure.canvas.draw()  # whatever only fails when it is laid out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_in_the_gallery(path: Path) -> None:
    code = path.read_text()
    assert len(code.splitlines()) < 60
    picture = ROOT / "docs" / "pictures" / f"gallery_{path.stem.removeprefix('plot_')}.png"
    assert picture.stat().st_size < 60_000
    gallery = (ROOT / "docs" / "gallery.md").read_text()
    assert f"pictures/{picture.name}" in gallery
    assert path.name in gallery


def test_an_example_saves_its_picture_where_it_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "plot_rules_disagree.py"), "picture.png"]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_page_of_the_nightly_job_shows_the_night() -> None:
    """Twenty shards, one cut off, one without a column, one late, and a machine that goes down in the middle."""
    page = (ROOT / "docs" / "nightly.md").read_text()
    assert f"```sh\n{(ROOT / 'examples' / 'nightly.sh').read_text()}```" in page
    command = [sys.executable, str(ROOT / "examples" / "nightly.py")]
    session = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"```console\n{session}```" in page


def test_many_models_are_scored_and_watched_by_site(tmp_path: Path) -> None:
    """The page shows both nights; the changed site alone raises an alarm, and a night that is done again is the same."""
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "many_models.py")]
    session = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"$ python examples/many_models.py\n{session}```" in (ROOT / "docs" / "nightly.md").read_text()
    assert [line.split()[0] for line in session.splitlines() if line.endswith("unfamiliar")] == ["site-3"]
    code = runpy.run_path(str(ROOT / "examples" / "many_models.py"))
    for number in range(2):
        code["deploy"](tmp_path / f"site-{number}", number)
        code["measured"](40, number, 1.0 + number)[0].to_parquet(tmp_path / f"site-{number}" / "landing.parquet")
    first = code["tonight"](tmp_path, "monday", scheduler="synchronous")
    assert first["rows"].tolist() == [40, 40]
    assert set(first["alarm"]) == {"none"}
    assert code["tonight"](tmp_path, "tuesday", scheduler="threads")["flagged"].tolist() == first["flagged"].tolist()
