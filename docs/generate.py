"""Write the pages that follow from the code; with --check, fail if they are not up to date."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import uqprism as up

PAGE = Path(__file__).parent / "catalogue.md"


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


def main() -> None:
    """Write, or check."""
    page = catalogue_page()
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        sys.exit(f"{PAGE.name} is out of date; run: python docs/generate.py")


if __name__ == "__main__":
    main()
