"""What the documentation says is true: its code runs, its output is what the program prints, every command is in it."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import uqprism as up

ROOT = Path(__file__).parent.parent
GALLERY = "docs/gallery.md"  # its code is that of the examples, which have tests of their own
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
PAGES.remove(GALLERY)
SHELL_PAGES = ["README.md", "CONTRIBUTING.md", "docs/index.md", "docs/quickstart.md"]
TOO_LONG = {"demo", "reproduce", "app", "export"}  # for this test: others run them; here their options are checked


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


def shell_lines(page: str) -> list[str]:
    """The commands that a page tells people to type, without comments."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.join(shlex.split(line[2:], comments=True)) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages' commands read."""
    path = tmp_path_factory.mktemp("shell")
    rng = np.random.default_rng(0)
    columns = {"y": rng.normal(size=60)}
    for i in range(3):
        columns |= {f"mean_{i}": rng.normal(size=60), f"variance_{i}": np.exp(rng.normal(size=60))}
    frame = pd.DataFrame(columns)
    frame.to_csv(path / "predictions.csv", index=False)
    for name in ("predictions", "reference"):
        frame.to_parquet(path / f"{name}.parquet")
    (path / "new").mkdir()
    frame.to_parquet(path / "new" / "today.parquet")
    return path


@pytest.mark.parametrize(
    ("page", "line"), [(page, line) for page in SHELL_PAGES for line in shell_lines(page) if line.startswith("uqprism ")]
)
def test_the_commands_of_a_page_work(page: str, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each does its work on a small file and writes what it says; long ones are asked for help with the same options."""
    from uqprism.cli import app

    monkeypatch.chdir(folder)
    _, *words = shlex.split(line)
    named = re.findall(r"(?:-o|--output|--plot) (\S+)", line)
    for name in named:
        (folder / name).unlink(missing_ok=True)
    result = CliRunner().invoke(app, [*words, "--help"] if words[0] in TOO_LONG else words)
    assert result.exit_code == 0, result.output
    if words[0] in TOO_LONG:
        assert all(option in result.output for option in words if option.startswith("--"))
    else:
        assert all((folder / name).stat().st_size > 0 for name in named)


@pytest.mark.parametrize("page", SHELL_PAGES)
def test_other_shell_lines_name_targets_and_extras_that_exist(page: str) -> None:
    """What is not ours to run is held against the Makefile and the list of extras."""
    import tomllib

    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for line in shell_lines(page):
        program, *words = shlex.split(line)
        assert program in {"uqprism", "make", "pip", "python"}, line
        if program == "make":
            assert set(words) <= set(targets), line
        if program == "pip":
            assert set(re.findall(r"\[([\w,]+)\]", line)[0].split(",")) <= set(extras), line
        if program == "python":
            assert (ROOT / words[0]).exists(), line


def test_every_command_and_every_option_is_documented() -> None:
    """The page that is written from the commands' own words leaves nothing out that they understand."""
    from typer.main import get_command

    from uqprism.cli import app

    page = (ROOT / "docs" / "command_line.md").read_text()
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        section = page.split(f"## uqprism {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            for option in getattr(parameter, "opts", []):
                assert option in section or not option.startswith("-"), (name, option)


def test_every_public_name_is_in_the_reference() -> None:
    """The pages of the reference leave out nothing that `import uqprism` offers."""
    import inspect

    described = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    kinds = {name: getattr(up, name) for name in dir(up)}
    public = {name for name, what in kinds.items() if inspect.isclass(what) or inspect.isroutine(what)}
    assert {name for name in public if f".{name}\n" not in described} == set()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_local_link_leads_somewhere(page: str) -> None:
    """The site's own links are checked when it is built."""
    for target in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / page).read_text()):
        assert (ROOT / target).exists(), target


def test_the_page_on_architecture_names_what_is_there() -> None:
    """Every path of the package that it mentions exists."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    paths = [path for path in re.findall(r"`([a-z_]+/[\w/]*(?:\.py)?)`", text) if not path.endswith("NAME")]
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / "src" / "uqprism" / path.removesuffix("/NAME")).exists()] == []


def test_the_readme_leads_to_every_page() -> None:
    """Every page but the reference and the results' own."""
    readme = (ROOT / "README.md").read_text()
    missing = [page for page in PAGES[1:] if f"({page})" not in readme]
    assert missing == []
