"""What explains the numbers, in paragraphs that are written from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.cells import CONSTANT, NEAR, Cells, of_risk, slip
from uqprism.paper.experiments.ood.claims import Rows


def notes(ours: Rows, papers: Mapping[str, published.Table], records: Mapping[int, Any]) -> tuple[str, ...]:
    """The paper's slip, what is new in our table, how far we are off and how training went."""
    found = [slip("AUROC"), f"{CONSTANT} Their AUROC is 0.5.", _trained(records)]
    if papers:
        found += [_near(ours, papers), *_by_risk(ours, papers)]
    return tuple(found)


def _trained(records: Mapping[int, Any]) -> str:
    best = np.concatenate([record["best epochs"] for record in records.values()])
    errors = np.mean([record["error"] for record in records.values()])
    spread = np.mean([record["spread of targets"] for record in records.values()])
    restarts = sum(record["restarts"] for record in records.values())
    return (
        f"Members stopped with the weights of epoch {np.median(best):.0f} (median; {best.min()} to {best.max()}); the "
        f"mixture's mean is off by {errors:.0f} (root mean square) on the known test mosaics, whose targets have a standard "
        f"deviation of {spread:.0f}; {restarts} members diverged and were started again."
    )


def _near(ours: Rows, papers: Mapping[str, published.Table]) -> str:
    """The aim: excess cells of the rows with outliers in all quadrants."""
    differences = {
        (row, name): ours.rows[row][published.printed_as(name)] - papers[row][name].value
        for row in ours.whole
        for name in of_risk("excess")
        if name in papers[row]
    }
    far = {key: each for key, each in differences.items() if abs(each) > NEAR}
    worst = max(differences, key=lambda key: abs(differences[key]))
    text = (
        f"Of the {len(differences)} excess cells of the rows with outliers in all quadrants, {len(differences) - len(far)} are "
        f"within {NEAR:g} of the paper's; the farthest is {worst[1]} on {worst[0]}, {differences[worst]:+.3f}"
    )
    listed = ", ".join(f"{name} on {row} {each:+.3f}" for (row, name), each in far.items())
    return f"{text}. Not within: {listed}." if far else f"{text}."


def _by_risk(ours: Rows, papers: Mapping[str, published.Table]) -> list[str]:
    """Mean differences by risk: a shift of all Bayes columns means longer or shorter training, not another measure."""
    told = []
    for rows, where in ((ours.whole, "in all quadrants"), (ours.single, "in one quadrant")):
        means = [
            f"{_mean_difference(ours.rows, papers, rows, risk):+.3f} for {risk} risks" for risk in ("total", "bayes", "excess")
        ]
        told.append(f"Mean difference from the paper with outliers {where}: {', '.join(means)}.")
    return told


def _mean_difference(ours: Mapping[str, Cells], papers: Mapping[str, published.Table], rows: tuple[str, ...], risk: str) -> float:
    pairs = [(ours[row][published.printed_as(name)], papers[row][name].value) for row in rows for name in of_risk(risk)]
    return float(np.mean([a - b for a, b in pairs]))
