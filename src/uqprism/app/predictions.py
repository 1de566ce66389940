"""The tab for files of predictions: what they say first, then the rows, the downloads and the code; and what is cached."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from uqprism.app import charts, example, opening, settings, show
from uqprism.app import overview as overviews
from uqprism.app import scored as scoring
from uqprism.app.downloads import show_downloads
from uqprism.app.inputs import ScoringChoice, Upload
from uqprism.app.overview import Overview, Shown
from uqprism.app.problems import guarded, report
from uqprism.app.rows import show_rows
from uqprism.app.scored import RetentionByPart, ScoredFile
from uqprism.errors import InvalidValueError
from uqprism.report.formatting import amounts, count, percent
from uqprism.report.sentences import amounts_of
from uqprism.tasks.flagging import Flagged

SLOW = "Computing. The first large file after installing takes some ten seconds longer."
# Cached without the copies of `st.cache_data`: nothing changes these objects.
BY_CONTENT: dict[str, Any] = {"max_entries": 24, "show_spinner": SLOW, "hash_funcs": {Upload: lambda upload: upload.digest}}
UNUSABLE = "This file cannot be used as it is."
SPLIT = (
    '<div class="split" role="img" aria-label="{spoken}"><i class="noise" style="flex: {noise}"></i>'
    '<i class="disagreement" style="flex: {disagreement}"></i></div>'
    '<dl class="parts"><div><dt><b class="noise"></b>Noise, {noise_share}</dt><dd>{noise_amount}</dd>'
    '<dd class="quiet">what the models take for chance</dd></div>'
    '<div><dt><b class="disagreement"></b>Disagreement, {disagreement_share}</dt><dd>{disagreement_amount}</dd>'
    '<dd class="quiet">what the models differ about</dd></div></dl>'
)
NOTE = '<p class="quiet">{text}</p>'
ALL_BAD = "every row lacks a mean or a variance, or has a variance that is not above zero"


def show_tab(given: str | None) -> None:
    """Draw the tab; `given` is the path given on the command line, or None."""
    with guarded(UNUSABLE):
        upload = opening.chosen(given)
        if upload is None:
            return
        title, buttons = st.columns([3, 2], vertical_alignment="center")
        with buttons, st.container(horizontal=True, horizontal_alignment="right"):
            with st.popover("Another file", icon=":material/folder_open:"):
                opening.another()
            with st.popover("Settings", icon=":material/tune:"):
                choice = settings.scoring()
                compared = st.container()
        shown = _loaded(upload, choice, compared, title)
        if shown is not None:
            _results(shown)


def _loaded(upload: Upload, choice: ScoringChoice, compared: Any, title: Any) -> Shown | None:
    """Everything that is computed of the file, or None where the page says why it cannot be."""
    try:
        scored = _score(upload, choice)
        if not len(scored.frame):
            raise InvalidValueError(f"{upload.name}: {ALL_BAD}")
        found = _target(upload, choice)
        with compared:
            comparison = settings.comparison(upload.digest, scored.targets, found)
        overview = _overview(upload, choice, comparison.target, comparison.unit)
    except Exception as error:  # the page says what is wrong
        with title:
            show.write('<span class="file">{name}</span>', name=show.name(upload.name))
        report(UNUSABLE, error)
        return None
    facts = [count(len(scored.frame), "row"), count(scored.n_models, "model")]
    facts += [f"{count(scored.bad_rows, 'bad row')} left out"] if scored.bad_rows else []
    facts += [f"target “{show.name(comparison.target)}”"] if comparison.target is not None else []
    with title:
        about = " · ".join(facts)
        show.write(
            '<span class="file">{name}</span> <span class="quiet">{about}</span>', name=show.name(upload.name), about=about
        )
    return Shown(upload, choice, scored, comparison, overview)


def _results(shown: Shown) -> None:
    _first_screen(shown)
    flagged = show_rows(shown)
    _pictures(shown, flagged)
    show_downloads(shown, flagged)


def _first_screen(shown: Shown) -> None:
    overview = shown.overview
    show.write("<h1>{headline}</h1>", headline=overview.headline)
    if (parts := overview.parts) is not None:
        (noise, disagreement), (noise_amount, disagreement_amount) = parts.shares, amounts_of(parts)
        show.write(
            SPLIT,
            spoken=f"Noise {percent(noise)}, disagreement {percent(disagreement)}",
            noise=f"{noise:.4f}",
            disagreement=f"{disagreement:.4f}",
            noise_share=percent(noise),
            noise_amount=noise_amount,
            disagreement_share=percent(disagreement),
            disagreement_amount=disagreement_amount,
        )
    if overview.actions:
        listed = show.filled("").join(show.filled("<li><b>{do}.</b> {why}</li>", do=do, why=why) for do, why in overview.actions)
        show.write('<ol class="actions">{listed}</ol>', listed=listed)
    if overview.claim:
        show.write("<p>{claim}</p>", claim=overview.claim)
    if shown.upload is example.deliveries():
        show.write(NOTE, text=f"The example: {example.ABOUT}")


def _pictures(shown: Shown, flagged: Flagged) -> None:
    # Without a column that may hold the target there is nothing to compare with.
    left, *right = st.columns(2 if shown.scored.targets else 1, gap="large")
    with left, guarded("This picture cannot be drawn."):
        _scatter(shown, flagged.rows)
    for place in right:
        with place, guarded("The errors cannot be shown."):
            _errors(shown)


def _scatter(shown: Shown, flagged: np.ndarray) -> None:
    show.write("<h2>Noise and disagreement of each row</h2>")
    frame = charts.points(shown, flagged)
    logarithmic = charts.wants_logarithms(frame)
    if charts.suits_logarithms(frame):
        logarithmic = st.toggle("Logarithmic axes", value=logarithmic, key=f"logarithmic {shown.upload.digest}")
    drawn = charts.drawn_rows(frame)
    st.altair_chart(charts.scatter(frame.iloc[drawn], logarithmic=logarithmic, unit=shown.overview.unit), width="stretch")
    if len(drawn) < len(frame):
        text = f"{len(drawn):,} of {count(len(frame), 'row')} are drawn: the highest of each part, and others at random."
        show.write(NOTE, text=text)


def _errors(shown: Shown) -> None:
    show.write("<h2>Does the uncertainty find the errors?</h2>")
    target = shown.comparison.target
    if target is None:
        show.write("<p>Choose the column of the target under Settings, if the file has one.</p>")
        return
    found = _retention_curves(shown.upload, shown.choice, target)
    unit = shown.overview.target_unit
    st.altair_chart(charts.retention(found, unit=unit), width="stretch")
    by_total = found.curves["total"]
    whole, less = amounts([by_total[-1], by_total[np.searchsorted(found.kept, 90.0)]], unit)
    text = f"The typical error (root mean squared) is {whole}; without the tenth of the rows with the highest total it is {less}."
    if found.without_target:
        text += f" {count(found.without_target, 'row')} without a target {'is' if found.without_target == 1 else 'are'} left out."
    show.write(NOTE, text=text)


# What is computed is kept for the contents of a file and the choices.


@st.cache_resource(**BY_CONTENT)
def _score(upload: Upload, choice: ScoringChoice) -> ScoredFile:
    return scoring.score(upload, choice)


@st.cache_resource(**BY_CONTENT)
def _target(upload: Upload, choice: ScoringChoice) -> str | None:
    return overviews.target_of(upload, _score(upload, choice), choice)


@st.cache_resource(**BY_CONTENT)
def _overview(upload: Upload, choice: ScoringChoice, target: str | None, unit: str | None) -> Overview:
    return overviews.overview(upload, _score(upload, choice), choice, target, unit)


@st.cache_resource(**BY_CONTENT)
def _retention_curves(upload: Upload, choice: ScoringChoice, target: str) -> RetentionByPart:
    return scoring.retention(_score(upload, choice), scoring.error(upload, choice, target))
