"""Write the pages that follow from the code; with --check, fail if they are not up to date."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import uqprism as up
from uqprism.experiments.overview import overview

DOCS = Path(__file__).parent


def catalogue_page() -> str:
    """Every measure of the paper's rules, how it is computed for Gaussian members, and its labels."""
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=np.array([[0.0], [1.0]]), scale=np.ones((2, 1))))
    rows = []
    for measure in up.catalogue():
        first, second = (measure.paper_label(order=order) for order in ("prediction,truth", "truth,prediction"))
        method, tolerance = table.exactness[measure.name]
        rows.append(f"| `{measure.name}` | {first} | {second} | {method} | {tolerance:.0e} |")
    return "\n".join(
        [
            "# All measures",
            "",
            "The measures of the paper's four rules, with their labels in the paper in both orders of its indices (see the",
            "[glossary](glossary.md)), and how they are computed for Gaussian members in double precision. Every other rule",
            "adds the same 36.",
            "",
            "| measure | label by (prediction, truth) | label by (truth, prediction) | method | relative tolerance |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def results_page() -> str:
    """What came out of the experiments whose results are stored here."""
    return overview(sorted(path.parent for path in DOCS.glob("results/*/result.json")))


PAGES = {"catalogue.md": catalogue_page, "results/README.md": results_page}


def main() -> None:
    """Write, or check."""
    for name, write in PAGES.items():
        page, path = write(), DOCS / name
        if "--check" not in sys.argv:
            path.write_text(page)
        elif not path.exists() or path.read_text() != page:
            sys.exit(f"{name} is out of date; run: python docs/generate.py")


if __name__ == "__main__":
    main()
