"""What explains the numbers, in paragraphs that are written from them."""

from __future__ import annotations

from collections.abc import Mapping

from uqprism.paper.cells import CONSTANT, Cells, of_risk, slip
from uqprism.paper.experiments.selective.claims import all_claims

SCENES = (
    "The rows street, building, sky, car and vegetation are of CamVid, with a tenth of the pictures of Cityscapes, at a "
    "sixth to an eighth of its resolution; a tile of 90x120 is a quarter of a scene, where 224x224 pixels of Cityscapes are less "
    "than a fortieth. How much of the error a measure finds there need not be what it is in Cityscapes."
)


def notes(mean: Cells, rows: Mapping[str, Cells], scenes: str | None) -> tuple[str, ...]:
    """The paper's slip, other data, and on which data sets each sentence holds by itself."""
    found = [slip("PRR"), f"{CONSTANT} An order of equals is random: PRR 1."]
    if scenes == "camvid":
        found.append(SCENES)
    by_row = {row: all_claims(cells) for row, cells in rows.items()}
    for i, claim in enumerate(all_claims(mean)):
        held = [row for row, claims in by_row.items() if claims[i].holds]
        found.append(f"'{claim.name}' holds on {len(held)} of {len(rows)} data sets by themselves: {', '.join(held) or 'none'}.")
    best = {
        risk: {row: min(cells[name] for name in of_risk(risk)) for row, cells in rows.items()} for risk in ("total", "excess")
    }
    ahead = [row for row in rows if best["excess"][row] < best["total"][row]]
    found.append(f"The best excess risk is ahead of the best total risk on: {', '.join(ahead) or 'no data set'}.")
    return tuple(found)
