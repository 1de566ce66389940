"""The tab for files of predictions: choices, split, rows to look at, downloads; and what is cached."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from uqprism.app import charts, commands, example
from uqprism.app import scored as scoring
from uqprism.app.inputs import PARTS, RULES, ScoringChoice, Upload
from uqprism.app.launch import check_file
from uqprism.app.scored import RetentionByPart, ScoredFile
from uqprism.ensemble.approximations import approximations
from uqprism.errors import UqprismError
from uqprism.tasks.flagging import Flagged, flag

ROWS_SHOWN = 500
METRIC = 150  # pixels
# "ignore": a click does not draw the page anew.
DOWNLOAD: dict[str, Any] = {"icon": ":material/download:", "on_click": "ignore", "width": "stretch"}
UPLOAD = "Drop a file of predictions: CSV, Parquet or NPZ"
OOD = "For the report: predictions for unfamiliar inputs, if you have some"
OOD_HELP = (
    "A file with the same columns, of inputs unlike the training data: another season, another machine. The report then says "
    "whether the uncertainty notices them."
)
UPLOAD_HELP = (
    "A row for each prediction; columns mean_0, mean_1, ... and variance_0, variance_1, ... (or scale_0, ... for standard "
    "deviations), one pair for each model. Other columns are kept. The file stays on this machine."
)
RULE_HELP = "A scoring rule says what a prediction costs once the target is known. Lower is better."
PREDICTION_HELP = "The penalty is that of a prediction. By default the prediction of each model in turn."
TRUTH_HELP = "The truth is unknown, so the models take its place. By default each model in turn, as if it were right."
BAD_HELP = "A row is bad if a mean or variance is missing or infinite, or a variance is not above zero."
TARGET_HELP = "The column of the target, if the file has one. It shows whether uncertain rows are the wrong ones."
PERCENT_HELP = "That share of the rows, rounded up; rows that tie with the last of them are flagged, too."
REPORT_HELP = "One HTML file that explains these predictions; it takes some seconds to write."
COLUMNS_HELP = "A pattern with {i} for the number of the model, such as mu{i}; or the names, with commas between."
SLOW = "Computing; the first large file after installing takes some ten seconds longer."
# Cached without the copies of `st.cache_data`: nothing changes these objects.
BY_CONTENT: dict[str, Any] = {"max_entries": 24, "show_spinner": SLOW, "hash_funcs": {Upload: lambda upload: upload.digest}}


def show(given: str | None) -> None:
    """Draw the tab; `given` is the path given on the command line, or None."""
    try:
        upload = _upload(given)
        choice = _choice()
        scored = _score(upload, choice)
    except UqprismError as error:
        st.error("This file cannot be scored as it is:", icon=":material/error:")
        st.code(str(error), language=None, wrap_lines=True)
        return
    if not len(scored.frame):
        st.warning(f"All {scored.n_rows:,} rows are bad, so there is nothing to show.")
        return
    _summary(upload, scored, choice)
    by, percent = _flagging()
    found = flag(scored.frame[by].to_numpy(), percent / 100)
    flagged = found.rows
    st.caption(flagged_sentence(found))
    target = _pictures(upload, scored, choice, flagged)
    _rows(scored, flagged, by)
    keep_members, ood = _downloads(upload, scored, choice, flagged, target)
    st.markdown("The same from the shell, and in Python with the flags:")
    shell = commands.shell(upload.path, choice, target, ood.path if ood else None, keep_members=keep_members)
    st.code(shell, language="bash", wrap_lines=True)
    python = commands.python(upload.path, choice, scored, by=by, percent=percent, target=target)
    st.code(python, language="python", wrap_lines=True)


def _upload(given: str | None) -> Upload:
    first, second = st.columns([3, 2])
    with first:
        dropped = st.file_uploader(UPLOAD, help=UPLOAD_HELP, key="file")
    standing = _given(given) if given else example.deliveries()
    upload = standing if dropped is None else _dropped(dropped)
    with second:
        if dropped is not None or given:
            st.markdown(f"**Shown below: `{upload.name}`**")
        else:
            st.markdown(f"**Shown below: an example.** {example.ABOUT}")
        content = example.deliveries().content
        st.download_button("Example file", content, example.NAME, "text/csv", icon=":material/download:", on_click="ignore")
    return upload


def _choice() -> ScoringChoice:
    first, second, third = st.columns(3)
    rule = first.selectbox("What a wrong prediction costs", list(RULES), format_func=RULES.get, help=RULE_HELP, key="rule")
    roles = {"options": list(approximations), "format_func": lambda role: approximations.get(role).label}
    prediction = second.selectbox("Prediction", **roles, help=PREDICTION_HELP, key="prediction")
    truth = third.selectbox("Truth", **roles, help=TRUTH_HELP, key="truth")
    meaning = {role: approximations.get(role).meaning for role in (prediction, truth)}
    st.caption(f"Prediction: {meaning[prediction]}. Truth: {meaning[truth]}.")
    with st.expander("Bad rows, and columns with other names"):
        drop = st.checkbox("Leave bad rows out", help=BAD_HELP, key="drop")
        columns = st.columns(3)
        labels = {"mean": "Columns of means", "variance": "Columns of variances", "scale": "Columns of standard deviations"}
        texts = {
            f"{name}_columns": column.text_input(label, placeholder=f"{name}_{{i}}", help=COLUMNS_HELP, key=name).strip() or None
            for column, (name, label) in zip(columns, labels.items(), strict=True)
        }
    return ScoringChoice(rule, prediction, truth, "drop" if drop else "error", **texts)


def _summary(upload: Upload, scored: ScoredFile, choice: ScoringChoice) -> None:
    st.subheader("How the penalty divides", divider="gray")
    st.markdown(scoring.summary(scored, choice))
    bad = f"{scored.bad_rows:,} bad left out" if scored.bad_rows else "none bad"
    with st.container(horizontal=True):  # wraps on a phone
        st.metric("Rows", f"{len(scored.frame):,}", bad, delta_color="off", delta_arrow="off", width=METRIC)
        for part, name in choice.measures.items():
            unknown = part == "disagreement" and scored.n_models == 1
            value = "unknown" if unknown else f"{scored.frame[part].mean():.4g}"
            st.metric(f"Mean {part}", value, help=f"{PARTS[part]}. Measure: `{name}`", width=METRIC)
    names = ", ".join(f"{part} `{name}`" for part, name in choice.measures.items())
    st.caption(
        f"{scored.n_models} model{'s' if scored.n_models > 1 else ''} in `{upload.name}`, called members in the names of "
        f"measures. The measures: {names}."
    )


def flagged_sentence(found: Flagged) -> str:
    """How many rows are flagged, from which value on, and why more than were asked for."""
    text = f"{found.count:,} of {len(found.rows):,} rows ({found.share:.1%}) are flagged: those at {found.shortest} or above."
    ties = " Rows that share their value are flagged together, so fewer are not possible."
    return text + (ties if found.tied else "")


def _flagging() -> tuple[str, int]:
    st.subheader("Which rows to look at", divider="gray")
    first, second = st.columns(2)
    by = first.selectbox(
        "Flag the rows with the highest",
        list(PARTS),
        format_func=PARTS.get,
        help="Total finds likely errors; disagreement finds unfamiliar inputs.",
        key="by",
    )
    percent = second.slider("How many rows to flag (%)", 1, 50, 10, help=PERCENT_HELP, key="percent")
    return by, percent


def _pictures(upload: Upload, scored: ScoredFile, choice: ScoringChoice, flagged: np.ndarray) -> str | None:
    left, right = st.columns(2)
    with left:
        st.markdown("**Noise and disagreement of each row**")
        frame = scored.frame[list(PARTS)].assign(row=scored.frame.index, kind=np.where(flagged, "flagged", "others"))
        logarithmic = st.checkbox(
            "Logarithmic axes",
            value=charts.wants_logarithms(frame),
            disabled=not charts.suits_logarithms(frame),
            help="Each step along an axis multiplies. Needs numbers above zero.",
        )
        drawn = charts.drawn_rows(frame)
        picture = charts.scatter(frame.iloc[drawn], logarithmic=logarithmic and charts.suits_logarithms(frame))
        st.altair_chart(picture, width="stretch")
        if len(drawn) < len(frame):
            st.caption(
                f"{len(drawn):,} of {len(frame):,} rows are drawn: the highest of each part, and others at random. "
                "All numbers are from all rows."
            )
    with right:
        st.markdown("**Are uncertain rows the wrong ones?**")
        return _retention(upload, scored, choice)


def _retention(upload: Upload, scored: ScoredFile, choice: ScoringChoice) -> str | None:
    nothing = "none"
    while nothing in scored.targets:  # a column may be called none
        nothing = f"({nothing})"
    options = [nothing, *scored.targets]
    index = options.index(scored.usual_target) if scored.usual_target else 0
    # Another file begins with its own target.
    chosen = st.selectbox("Target", options, index=index, help=TARGET_HELP, key=f"target of {upload.name}")
    if chosen == nothing:
        st.info("Choose the column of the target to see how the error falls as the most uncertain rows are handed over.")
        return None
    try:
        found = _retention_curves(upload, choice, chosen)
    except UqprismError as error:
        st.code(str(error), language=None, wrap_lines=True)
        return None
    st.altair_chart(charts.retention(found), width="stretch")
    ratios = ", ".join(f"{part} {ratio:.3f}" for part, ratio in found.ratios.items())
    missing = f" {found.without_target:,} rows without a target are left out." if found.without_target else ""
    st.caption(
        "The mean squared error of the rows that are kept when the most uncertain ones are handed over. The paper's "
        f"prediction rejection ratio (0: the best order, 1: chance; lower is better): {ratios}.{missing}"
    )
    return chosen


def _rows(scored: ScoredFile, flagged: np.ndarray, by: str) -> None:
    frame = scored.frame.assign(flagged=flagged)
    others = [name for name in scored.frame.columns if name not in PARTS]
    kinds = {f"Flagged ({flagged.sum():,})": frame[flagged], f"All rows ({len(frame):,})": frame}
    which = st.radio("Rows", list(kinds), horizontal=True, label_visibility="collapsed")
    # Ties stay in the order of the file.
    rows = kinds[which].sort_values(by, ascending=False, kind="stable")[["flagged", *PARTS, *others]]
    numbers = {part: st.column_config.NumberColumn(part, format="%.4g", help=PARTS[part]) for part in PARTS}
    st.dataframe(rows.head(ROWS_SHOWN).rename_axis("row"), column_config=numbers, height=320, width="stretch")
    shown = f"the {ROWS_SHOWN} highest of {len(rows):,} rows" if len(rows) > ROWS_SHOWN else f"{len(rows):,} rows"
    st.caption(f"Shown: {shown}, sorted by {PARTS[by]}. Rows are counted from 0. Click on a heading to sort by that column.")


def _downloads(
    upload: Upload, scored: ScoredFile, choice: ScoringChoice, flagged: np.ndarray, target: str | None
) -> tuple[bool, Upload | None]:
    """Draw the buttons; whether the models' columns are kept, and the file of unfamiliar inputs, if there is one."""
    st.subheader("Take it with you", divider="gray")
    keep_members = st.checkbox("Keep the models' columns", help="Keep means and variances beside the measures.", key="keep")
    ood = _ood(replace(choice, on_bad=commands.on_bad(choice, target)))
    kinds = {".csv": ("Scored file as CSV", "text/csv"), ".parquet": ("Scored file as Parquet", "application/octet-stream")}
    stem = upload.name.rsplit(".", 1)[0]
    *others, last = st.columns(3)
    for column, (ending, (label, kind)) in zip(others, kinds.items(), strict=True):
        make = partial(scoring.scored_file, upload, choice, flagged, ending, keep_members=keep_members)  # at the click
        refusal = scored.refusal(ending)
        with column:
            st.download_button(label, make, f"{stem}_scored{ending}", kind, disabled=refusal is not None, **DOWNLOAD)
            if refusal is not None:
                st.caption(f"Not as {ending}: {refusal}.")
    make = partial(commands.report_page, upload, choice, target, ood)
    last.download_button("Report as a page", make, f"{stem}_report.html", "text/html", help=REPORT_HELP, **DOWNLOAD)
    return keep_members, ood


def _ood(choice: ScoringChoice) -> Upload | None:
    """The file of unfamiliar inputs, if there is one that can be scored."""
    dropped = st.file_uploader(OOD, help=OOD_HELP, key="ood")
    if dropped is None:
        return None
    upload = _dropped(dropped, "ood")
    try:
        refusal = None if len(_score(upload, choice).frame) else f"{upload.name}: all its rows are bad"
    except UqprismError as error:
        refusal = str(error)
    if refusal is None:
        return upload
    st.error("This file is left out of the report:", icon=":material/error:")
    st.code(refusal, language=None, wrap_lines=True)
    return None


# What is read or computed is kept for the contents of a file and the choices.


def _given(path: str) -> Upload:
    """The file given on the command line, as it is now."""
    check_file(path)
    state = os.stat(path)
    return _once("file", (path, state.st_mtime_ns, state.st_size), lambda: Upload(Path(path).name, Path(path).read_bytes(), path))


def _dropped(file: Any, where: str = "dropped") -> Upload:
    """The file that was dropped on the page; `where` tells the two places apart."""
    return _once(where, file.file_id, lambda: Upload(file.name, file.getvalue()))


def _once(key: str, state: Any, read: Callable[[], Upload]) -> Upload:
    """The file that was read in this state before, or is read now."""
    key = f"read {key}"  # differs from the keys of all widgets
    kept = st.session_state.get(key)
    if kept is None or kept[0] != state:
        kept = st.session_state[key] = (state, read())
    upload: Upload = kept[1]
    return upload


@st.cache_resource(**BY_CONTENT)
def _score(upload: Upload, choice: ScoringChoice) -> ScoredFile:
    return scoring.score(upload, choice)


@st.cache_resource(**BY_CONTENT)
def _retention_curves(upload: Upload, choice: ScoringChoice, target: str) -> RetentionByPart:
    return scoring.retention(_score(upload, choice), scoring.error(upload, choice, target))
