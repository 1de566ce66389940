"""The report that most tests look at, and pages as data; `python -m tests.report.pages` writes the golden files anew."""

from __future__ import annotations

import json
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism.report.page import Report

GOLDEN, SENTENCES = (Path(__file__).parent / "golden" / name for name in ("page.txt", "sentences.txt"))
RESAMPLES = 20
PAIR, TOTAL = ("crps.bayes.members", "crps.excess.members.members"), "crps.total.members.members"
KNOWN, Y = ensemble(150)
OOD = {"near": ensemble(60, shift=1.0, seed=2)[0], "far": ensemble(50, shift=3.0, seed=3)[0]}
VOID = {"meta", "br", "hr", "img", "input", "link"}
BLOCKS = dict.fromkeys(("figcaption", "p", "dt", "pre", "button"), "")
BLOCKS |= {"h1": "# ", "h2": "## ", "h3": "### ", "summary": "### ", "li": "- ", "dd": "    ", "tr": "| "}


def frame(n: int = 40, **how: Any) -> pd.DataFrame:
    """Columns id, mean_0 ... mean_9, variance_0 ... variance_9, y: what a user of any model has."""
    ens, y = ensemble(n, **how)
    members = {"mean": ens.members.mean, "variance": ens.members.variance}
    columns = {f"{name}_{i}": row for name, rows in members.items() for i, row in enumerate(rows)}
    return pd.DataFrame({"id": [f"trip {i}" for i in range(n)], **columns, "y": y})


def write(path: Path) -> Report:
    """A report with all sections."""
    return up.write_report(KNOWN, path, target=Y, ood=OOD, unit="minutes", resamples=RESAMPLES)


class Page(HTMLParser):
    """What a page holds; fails where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.lines: list[str] = []
        self.source = text
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if tag in BLOCKS or tag == "div":
            self.lines.append(BLOCKS.get(tag, ""))
        elif self.lines:
            self.lines[-1] += " "

    def handle_startendtag(self, tag, attrs) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag
        if tag in {"td", "th"}:
            self.lines[-1] += " | "

    def handle_data(self, data) -> None:
        if self.open and self.open[-1] not in {"style", "script"}:
            self.words.append(data)
            if self.lines and "svg" not in self.open and "title" not in self.open:
                self.lines[-1] += plain(data) if data.strip() else " "

    @property
    def text(self) -> str:
        """All words."""
        return " ".join(plain(" ".join(self.words)).split())

    @property
    def dots(self) -> dict[str, Any]:
        """The data of the first scatter plot."""
        return json.loads(re.findall(r"data-dots>(.*?)</script>", self.source)[0])

    @property
    def outline(self) -> str:
        """A line for each heading, paragraph and row of a table, without drawings and versions."""
        lines = (" ".join(line.split()) for line in self.lines)
        text = "\n".join(line for line in lines if line.strip("|# -"))
        return re.sub(r"^uqprism [\d.]+.*|(?<=version = )\S+", "(versions)", text, flags=re.MULTILINE) + "\n"


def plain(text: str) -> str:
    """The text with ordinary spaces."""
    return text.replace("\u00a0", " ")


def table(report: Report, caption: str) -> list[list[str]]:
    """The cells of the table of this caption, its headings first."""
    found = re.search(rf'<table aria-label="{re.escape(caption)}">(.*?)</table>', report.path.read_text(), flags=re.DOTALL)
    assert found, caption
    rows = re.findall(r"<tr>(.*?)</tr>", found[1], flags=re.DOTALL)
    return [[plain(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL)] for row in rows]


if __name__ == "__main__":
    from tests.report.test_sentences import every

    with tempfile.TemporaryDirectory() as folder:
        GOLDEN.write_text(Page(write(Path(folder) / "report.html").path.read_text()).outline)
    SENTENCES.write_text(every())
