"""What the page tells of a scored file: the parts in a sentence, rows to flag, points to draw, the retention curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.app.choices import PARTS, Choice
from uqprism.app.scored import Scored
from uqprism.ensemble.approximations import approximations
from uqprism.measures.vocabulary import ONE_MODEL, has_shares, told_unit
from uqprism.tasks.flagging import Flagged
from uqprism.tasks.retention import GRID
from uqprism.tasks.selective_prediction import selective_prediction

DRAWN = 3000  # points in a picture: more would only lie on top of each other, and take seconds to draw
EXTREMES = 300  # of them, the highest of each part, which a reader looks for


def summary(scored: Scored, choice: Choice) -> str:
    """The mean penalty, of which prediction it is, and its parts, in sentences."""
    if scored.n_models == 1:
        mean = float(scored.frame["total"].mean())
        unit = told_unit(choice.rule)
        return f"On average the expected penalty of predicting with the model is {mean:.4g} (in {unit}), {ONE_MODEL}"
    total, noise, removable = (float(scored.frame[part].mean()) for part in PARTS)
    whose = f"predicting with {approximations.get(choice.prediction).prediction}"
    whose += "," if "," in whose else ""
    begin = f"On average the expected penalty of {whose} is {total:.4g} (in {told_unit(choice.rule)}): "
    if not has_shares(choice.rule, scored.frame["noise"].to_numpy()) or total <= 0.0:
        return begin + f"{noise:.4g} is noise, and {removable:.4g} is what more data would remove."
    mostly = scored.frame["removable"].to_numpy() > scored.frame["noise"].to_numpy()
    return (
        f"{begin}{noise / total:.0%} of it is noise, and more data would remove {removable / total:.0%}. "
        f"In {mostly.sum():,} of {len(mostly):,} rows the removable part is the larger one."
    )


def flagged_told(found: Flagged) -> str:
    """How many rows are flagged, from which value on, and why more than were asked for."""
    told = f"{found.count:,} of {len(found.rows):,} rows ({found.share:.1%}) are flagged: those at {found.shortest} or above."
    ties = " Rows that share their value are flagged together, so fewer are not possible."
    return told + (ties if found.tied else "")


def drawn_rows(scored: Scored, most: int = DRAWN) -> np.ndarray:
    """Places of the rows to draw, sorted: all, or the highest of each part and a random choice of the others."""
    count = len(scored.frame)
    if count <= most:
        return np.arange(count)
    extreme = min(EXTREMES, most // (2 * len(PARTS)))
    highest = np.unique([np.argsort(-scored.frame[part].to_numpy(), kind="stable")[:extreme] for part in PARTS])
    others = np.setdiff1d(np.arange(count), highest)
    picked = np.random.default_rng(0).choice(others, size=most - len(highest), replace=False)
    return np.sort(np.concatenate([highest, picked]))


@dataclass(frozen=True)
class Retention:
    """How the error falls as the most uncertain rows are handed on.

    Attributes:
        kept: percentages of the rows.
        curves: the mean squared error of the rows kept, by part, and for the best and a random order.
        ratios: the prediction rejection ratio by part: 0 if all large errors go first, 1 if no better than chance.
        rows: how many rows it is made from.
        without_target: how many rows have no target.
    """

    kept: np.ndarray
    curves: dict[str, np.ndarray]
    ratios: dict[str, float]
    rows: int
    without_target: int


def retention(scored: Scored, error: np.ndarray) -> Retention:
    """The curve of each part; what `uqprism selective` finds.

    Args:
        scored: the scored file.
        error: of each row of the file, NaN where there is none.
    """
    here: Any = error[scored.frame.index.to_numpy()]
    known = np.isfinite(here)
    columns = {part: scored.frame[part].to_numpy()[known] for part in PARTS}
    result = selective_prediction(columns, error=here[known], resamples=0)
    names = {**dict.fromkeys(PARTS), "oracle order": None, "random order": None}
    curves = {name: np.asarray(result.curves[name]) for name in names}
    return Retention(100.0 * GRID, curves, {part: result[part] for part in PARTS}, int(known.sum()), int((~known).sum()))
