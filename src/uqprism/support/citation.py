"""How to cite the paper and this package."""

from __future__ import annotations

from uqprism.support.versions import __version__

PAPER_TITLE = "Uncertainty Quantification for Regression Using Proper Scoring Rules"
PAPER_VENUE, PAPER_YEAR = "International Conference on Learning Representations", "2026"
PAPER_AUTHORS = (
    ("Alexander", "Fishkov"),
    ("Kajetan", "Schweighofer"),
    ("Mykyta", "Ielanskyi"),
    ("Nikita", "Kotelevskii"),
    ("Mohsen", "Guizani"),
    ("Maxim", "Panov"),
)
SOFTWARE_TITLE = "uqprism: the uncertainty of a regression ensemble, split exactly"
SOFTWARE_AUTHORS = "The uqprism authors"


def citation() -> str:
    """Both as BibTeX: the framework is the paper's, the program is this package."""
    authors = " and ".join(f"{family}, {given}" for given, family in PAPER_AUTHORS)
    paper = {"title": f"{{{PAPER_TITLE}}}", "author": authors, "booktitle": PAPER_VENUE, "year": PAPER_YEAR}
    software = {
        "title": f"{{{SOFTWARE_TITLE}}}",
        "author": f"{{{SOFTWARE_AUTHORS}}}",
        "version": __version__,
        "note": "MIT licence",
    }
    return _entry("inproceedings", "fishkov2026uncertainty", paper) + "\n" + _entry("software", "uqprism", software)


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}", ""])
