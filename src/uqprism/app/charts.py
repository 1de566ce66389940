"""Figures in Altair, which Streamlit draws in the colours of the reader's theme."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from uqprism.app import show
from uqprism.app.inputs import PARTS
from uqprism.app.overview import Shown
from uqprism.app.posterior import GRID, Change, Densities
from uqprism.app.scored import RetentionByPart
from uqprism.report.formatting import amount, number

# Near Okabe and Ito's blue, vermilion and green: visible on white and on black, also to the colour-blind.
BLUE, ORANGE, GREEN, GREY = "#2F8AC4", "#E0660A", "#009E73", "#8A8A8A"
PART_COLOURS = {"total": BLUE, "noise": GREEN, "disagreement": ORANGE}
STEEP = 30.0  # the highest over the median: beyond it, linear axes would heap most points in a corner
DRAWN = 3000  # points in a figure: more would lie on top of each other, and take seconds to draw
EXTREMES = 300  # of them, the highest of each part


def drawn_rows(frame: Any, most: int = DRAWN) -> np.ndarray:
    """The places of the rows to draw, sorted: all, or the highest of each part and others at random."""
    count = len(frame)
    if count <= most:
        return np.arange(count)
    extreme = min(EXTREMES, most // (2 * len(PARTS)))
    highest = np.unique([np.argsort(-frame[part].to_numpy(), kind="stable")[:extreme] for part in PARTS])
    others = np.setdiff1d(np.arange(count), highest)
    # The same rows each time: Streamlit draws the page again after every change.
    picked = np.random.default_rng(0).choice(others, size=most - len(highest), replace=False)
    return np.sort(np.concatenate([highest, picked]))


def points(shown: Shown, flagged: np.ndarray) -> Any:
    """The rows to draw, with texts to show when one is pointed at."""
    rows, overview, choice = shown.scored.frame, shown.overview, shown.choice
    frame = pd.DataFrame({part: choice.shown(rows[part].to_numpy()) for part in PARTS}, index=rows.index)
    names = rows[overview.identifier] if overview.identifier else rows.index
    return frame.assign(row=[show.name(name) for name in names], kind=np.where(flagged, "to check", "others"))


def scatter(frame: Any, *, logarithmic: bool, unit: str) -> Any:
    """Noise against the disagreement, a dot for each row; flagged rows in another colour and shape."""
    scale = alt.Scale(type="log" if logarithmic else "linear", zero=False, nice=not logarithmic)
    axis = alt.Axis(tickCount=5, labelFlush=False)
    texts = {part: [amount(value, unit) for value in frame[part]] for part in PARTS}
    frame = frame.assign(**{f"{part} text": text for part, text in texts.items()})
    about = [alt.Tooltip("row:N", title="row"), *(alt.Tooltip(f"{part} text:N", title=part) for part in PARTS)]
    kinds = alt.Scale(domain=["to check", "others"], range=[ORANGE, BLUE])
    return (
        alt.Chart(frame)
        .mark_point(filled=True, opacity=0.75)
        .encode(
            x=alt.X("noise:Q", scale=scale, axis=axis, title=titled("noise", unit)),
            y=alt.Y("disagreement:Q", scale=scale, axis=axis, title=titled("disagreement", unit)),
            color=alt.Color("kind:N", scale=kinds, title=None, legend=alt.Legend(orient="top")),
            # Shape and size say the same as the colour, to those who do not see it.
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=["to check", "others"], range=["diamond", "circle"]), title=None),
            size=alt.Size("kind:N", scale=alt.Scale(domain=["to check", "others"], range=[60, 28]), title=None),
            tooltip=about,
        )
        .properties(height=400)
    )


def titled(what: str, unit: str) -> str:
    """The title of an axis."""
    return f"{what} ({unit})" if unit else what


def suits_logarithms(frame: Any) -> bool:
    """Whether noise and disagreement fit on logarithmic axes: all are above zero."""
    return bool((frame[["noise", "disagreement"]] > 0.0).all().all())


def wants_logarithms(frame: Any) -> bool:
    """Whether logarithmic axes show the rows better."""
    steep = [frame[part].max() > STEEP * frame[part].median() for part in ("noise", "disagreement")]
    return suits_logarithms(frame) and any(steep)


def retention(found: RetentionByPart, *, unit: str) -> Any:
    """The typical error of the rows kept, a line for each part, between the best order and a random one."""
    names = {part: f"by {part}" for part in PARTS} | {"oracle order": "best possible", "random order": "at random"}
    lines = pd.concat(
        pd.DataFrame({"kept": found.kept, "error": curve, "order": names[name], "shown": [amount(each, unit) for each in curve]})
        for name, curve in found.curves.items()
    )
    domain = list(names.values())  # in this order, so that colours belong to parts
    return (
        alt.Chart(lines)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("kept:Q", title="rows kept, the most certain first (%)", scale=alt.Scale(domain=[0, 100])),
            y=alt.Y("error:Q", title=titled("typical error of the rows kept", unit)),
            color=alt.Color(
                "order:N",
                scale=alt.Scale(domain=domain, range=[*PART_COLOURS.values(), GREY, GREY]),
                title=None,
                legend=alt.Legend(orient="top", columns=2),
            ),
            strokeDash=alt.StrokeDash(
                "order:N", scale=alt.Scale(domain=domain, range=[[1, 0], [1, 0], [1, 0], [2, 2], [7, 4]]), title=None
            ),
            tooltip=[
                alt.Tooltip("order:N"),
                alt.Tooltip("kept:Q", title="kept (%)"),
                alt.Tooltip("shown:N", title="typical error"),
            ],
        )
        .properties(height=400)
    )


def densities(found: Densities) -> Any:
    """The densities of some members, thin; the average of all, thick; the average before the change, dashed."""
    thin = pd.DataFrame({"value": np.tile(GRID, len(found.members)), "density": found.members.ravel()})
    thin["member"] = np.repeat(np.arange(len(found.members)), len(GRID))
    names = ("average of all models", "the same before the change")
    thick = pd.concat(
        pd.DataFrame({"value": GRID, "density": curve, "curve": name})
        for name, curve in zip(names, (found.average, found.average_before), strict=True)
    )
    x = alt.X("value:Q", title="target", scale=alt.Scale(domain=[GRID[0], GRID[-1]], nice=False))
    y = alt.Y("density:Q", title="density", scale=alt.Scale(domain=[0.0, max(0.6, float(found.members.max()))]))
    members = alt.Chart(thin).mark_line(strokeWidth=1, opacity=0.7, color=BLUE, clip=True).encode(x=x, y=y, detail="member:N")
    looks = {
        "color": alt.Color(
            "curve:N",
            scale=alt.Scale(domain=names, range=[ORANGE, GREY]),
            title=None,
            legend=alt.Legend(orient="top", columns=1, labelLimit=300),
        ),
        "strokeDash": alt.StrokeDash("curve:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 4]]), title=None),
    }
    average = alt.Chart(thick).mark_line(strokeWidth=3, clip=True).encode(x=x, y=y, **looks)
    return (members + average).properties(height=320)


def bars(changes: dict[str, Change], title: str) -> Any:
    """Total, noise and disagreement of one rule as bars, with a stroke at the value before."""
    frame = pd.DataFrame(
        {"part": list(changes), "before": [a.before for a in changes.values()], "now": [a.after for a in changes.values()]}
    )
    x = alt.X("part:N", sort=None, title=None, axis=alt.Axis(labelAngle=0))  # otherwise sorted by the alphabet
    colour = alt.Color("part:N", scale=alt.Scale(domain=list(PART_COLOURS), range=list(PART_COLOURS.values())), legend=None)
    frame = frame.assign(**{f"{name} text": [number(each) for each in frame[name]] for name in ("before", "now")})
    about = [alt.Tooltip("part:N"), *(alt.Tooltip(f"{name} text:N", title=name) for name in ("before", "now"))]
    now = alt.Chart(frame).mark_bar(size=28).encode(x=x, y=alt.Y("now:Q", title=None), color=colour, tooltip=about)
    before = alt.Chart(frame).mark_tick(thickness=3, size=44, color=GREY).encode(x=x, y="before:Q", tooltip=about)
    return (now + before).properties(height=190, title=title)
