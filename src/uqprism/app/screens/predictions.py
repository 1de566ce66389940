"""The tab for files: from predictions to rows to look at, step by step."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from uqprism.app import commands, example, findings
from uqprism.app.choices import PARTS, RULES, Choice
from uqprism.app.paged import report
from uqprism.app.scored import Scored, scored_file
from uqprism.app.screens import charts, remembered
from uqprism.app.uploads import Upload
from uqprism.ensemble.approximations import approximations
from uqprism.errors import UqprismError
from uqprism.measures.vocabulary import rule_words
from uqprism.tasks.flagging import flag

ROWS_SHOWN = 500
METRIC = 150  # pixels
DOWNLOAD: dict[str, Any] = {"icon": ":material/download:", "on_click": "ignore", "width": "stretch"}
UPLOAD = "Drop a file of predictions: CSV, Parquet or NPZ"
OUTSIDE = "For the report: predictions for inputs from outside, if you have some"
OUTSIDE_HELP = (
    "A file like the other, of inputs that the models were not made for: another season, another machine. The report then says "
    "whether the uncertainty notices them."
)
UPLOAD_HELP = (
    "A row for each prediction; columns mean_0, mean_1, ... and variance_0, variance_1, ... (or scale_0, ... for standard "
    "deviations), one pair for each model. Other columns are kept. The file stays on this machine."
)
RULE_HELP = "A scoring rule says what a prediction costs once you see what happened. The lower, the better."
PREDICTION_HELP = "The penalty is for a prediction; which one will you make? By default each model's own, in turn."
TRUTH_HELP = "Nobody knows the truth, so something stands in for it. By default each model in turn, as if it were right."
BAD_HELP = "A row is bad if a mean or variance is missing or infinite, or a variance is not above zero."
TARGET_HELP = (
    "The column with what really happened, if the file has one. It shows whether uncertain rows are really the wrong ones."
)
PERCENT_HELP = "That share of the rows, rounded up; rows as high as the last of them are flagged, too."
REPORT_HELP = "One HTML file that explains these predictions to somebody else; it takes some seconds to write."
COLUMNS_HELP = "A pattern with {i} for the number of the model, such as mu{i}; or the names themselves, with commas between."


def show(given: str | None) -> None:
    """The whole tab; `given` is the path of the command line, if there was one."""
    try:
        upload = _upload(given)
        choice = _choice()
        scored = remembered.score(upload, choice)
    except UqprismError as error:
        st.error("This file cannot be scored as it is:", icon=":material/error:")
        st.code(str(error), language=None, wrap_lines=True)
        return
    if not len(scored.frame):
        st.warning(f"All {scored.rows:,} rows are bad, so there is nothing to show.")
        return
    _summary(upload, scored, choice)
    by, percent = _flagging()
    found = flag(scored.frame[by].to_numpy(), percent / 100)
    flagged = found.rows
    st.caption(findings.flagged_told(found))
    target = _pictures(upload, scored, choice, flagged)
    _rows(scored, flagged, by)
    keep_members, outside = _downloads(upload, scored, choice, flagged, target)
    st.markdown("The same from the shell, and in Python with the flags:")
    shell = commands.shell(upload.path, choice, target, outside.path if outside else None, keep_members=keep_members)
    st.code(shell, language="bash", wrap_lines=True)
    python = commands.python(upload.path, choice, scored, by=by, percent=percent, target=target)
    st.code(python, language="python", wrap_lines=True)


def _upload(given: str | None) -> Upload:
    first, second = st.columns([3, 2])
    with first:
        dropped = st.file_uploader(UPLOAD, help=UPLOAD_HELP, key="file")
    standing = remembered.file(given) if given else example.deliveries()
    upload = standing if dropped is None else remembered.dropped(dropped)
    with second:
        if dropped is not None or given:
            st.markdown(f"**Shown below: `{upload.name}`**")
        else:
            st.markdown(f"**Shown below: an example.** {example.ABOUT}")
        content = example.deliveries().content
        st.download_button("Example file", content, example.NAME, "text/csv", icon=":material/download:", on_click="ignore")
    return upload


def _choice() -> Choice:
    first, second, third = st.columns(3)
    rule = first.selectbox("What a wrong prediction costs", list(RULES), format_func=RULES.get, help=RULE_HELP, key="rule")
    roles = {"options": list(approximations), "format_func": lambda role: approximations.get(role).label}
    prediction = second.selectbox("Stands in for the prediction", **roles, help=PREDICTION_HELP, key="prediction")
    truth = third.selectbox("Stands in for the truth", **roles, help=TRUTH_HELP, key="truth")
    meaning = {role: approximations.get(role).meaning for role in (prediction, truth)}
    st.caption(f"{RULES[rule]}: {rule_words(rule).cost}. Prediction: {meaning[prediction]}. Truth: {meaning[truth]}.")
    with st.expander("Bad rows, and columns with other names"):
        drop = st.checkbox("Leave bad rows out", help=BAD_HELP, key="drop")
        columns = st.columns(3)
        labels = {"mean": "Columns of means", "variance": "Columns of variances", "scale": "Columns of standard deviations"}
        texts = {
            f"{name}_columns": column.text_input(label, placeholder=f"{name}_{{i}}", help=COLUMNS_HELP, key=name).strip() or None
            for column, (name, label) in zip(columns, labels.items(), strict=True)
        }
    return Choice(rule, prediction, truth, "drop" if drop else "error", **texts)


def _summary(upload: Upload, scored: Scored, choice: Choice) -> None:
    st.subheader("How the penalty divides", divider="gray")
    st.markdown(findings.summary(scored, choice))
    bad = f"{scored.bad_rows:,} bad left out" if scored.bad_rows else "none bad"
    with st.container(horizontal=True):  # wraps on a phone
        st.metric("Rows", f"{len(scored.frame):,}", bad, delta_color="off", delta_arrow="off", width=METRIC)
        for part, name in choice.measures.items():
            unseen = part == "removable" and scored.n_models == 1
            value = "unseen" if unseen else f"{scored.frame[part].mean():.4g}"
            st.metric(f"Mean {part}", value, help=f"{PARTS[part]}. Measure: `{name}`", width=METRIC)
    names = ", ".join(f"{part} `{name}`" for part, name in choice.measures.items())
    st.caption(
        f"{scored.n_models} model{'s' if scored.n_models > 1 else ''} in `{upload.name}`, which names call members. "
        f"Measures by their names: {names}."
    )


def _flagging() -> tuple[str, int]:
    st.subheader("Which rows to look at", divider="gray")
    first, second = st.columns(2)
    by = first.selectbox(
        "Flag the rows with the highest",
        list(PARTS),
        format_func=PARTS.get,
        help="Total finds likely errors; removable finds inputs that the models do not know.",
        key="by",
    )
    percent = second.slider("How many rows to flag (%)", 1, 50, 10, help=PERCENT_HELP, key="percent")
    return by, percent


def _pictures(upload: Upload, scored: Scored, choice: Choice, flagged: np.ndarray) -> str | None:
    left, right = st.columns(2)
    with left:
        st.markdown("**Noise against what more data would remove**")
        frame = scored.frame[list(PARTS)].assign(row=scored.frame.index, kind=np.where(flagged, "flagged", "others"))
        logarithmic = st.checkbox(
            "Logarithmic axes",
            value=charts.wants_logarithms(frame),
            disabled=not charts.suits_logarithms(frame),
            help="Each step along an axis multiplies. Needs numbers above zero.",
        )
        drawn = findings.drawn_rows(scored)
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


def _retention(upload: Upload, scored: Scored, choice: Choice) -> str | None:
    nothing = "none"
    while nothing in scored.targets:
        nothing = f"({nothing})"
    options = [nothing, *scored.targets]
    index = options.index(scored.usual_target) if scored.usual_target else 0
    chosen = st.selectbox("What happened", options, index=index, help=TARGET_HELP, key=f"target of {upload.name}")
    if chosen == nothing:
        st.info("Choose the column with what happened to see how the error falls as the most uncertain rows are handed on.")
        return None
    try:
        found = remembered.retention(upload, choice, chosen)
    except UqprismError as error:
        st.code(str(error), language=None, wrap_lines=True)
        return None
    st.altair_chart(charts.retention(found), width="stretch")
    ratios = ", ".join(f"{part} {ratio:.3f}" for part, ratio in found.ratios.items())
    missing = f" {found.without_target:,} rows without a target are left out." if found.without_target else ""
    st.caption(
        "The mean squared error of the rows you keep when the most uncertain ones are handed to somebody else. The paper's "
        f"prediction rejection ratio (0: the best order, 1: chance, so lower is better): {ratios}.{missing}"
    )
    return chosen


def _rows(scored: Scored, flagged: np.ndarray, by: str) -> None:
    frame = scored.frame.assign(flagged=flagged)
    others = [name for name in scored.frame.columns if name not in PARTS]
    kinds = {f"Flagged ({flagged.sum():,})": frame[flagged], f"All rows ({len(frame):,})": frame}
    which = st.radio("Rows", list(kinds), horizontal=True, label_visibility="collapsed")
    rows = kinds[which].sort_values(by, ascending=False, kind="stable")[["flagged", *PARTS, *others]]
    numbers = {part: st.column_config.NumberColumn(part, format="%.4g", help=PARTS[part]) for part in PARTS}
    st.dataframe(rows.head(ROWS_SHOWN).rename_axis("row"), column_config=numbers, height=320, width="stretch")
    shown = f"the {ROWS_SHOWN} highest of {len(rows):,} rows" if len(rows) > ROWS_SHOWN else f"{len(rows):,} rows"
    st.caption(f"Shown: {shown}, sorted by {PARTS[by]}. Rows are counted from 0. A click on a heading sorts by that column.")


def _downloads(
    upload: Upload, scored: Scored, choice: Choice, flagged: np.ndarray, target: str | None
) -> tuple[bool, Upload | None]:
    """The buttons; whether the models' columns are kept, and the file from outside, if there is one."""
    st.subheader("Take it with you", divider="gray")
    keep_members = st.checkbox("Keep the models' columns", help="The means and variances, beside the measures.", key="keep")
    outside = _outside(replace(choice, on_bad=commands.on_bad(choice, target)))
    kinds = {".csv": ("Scored file as CSV", "text/csv"), ".parquet": ("Scored file as Parquet", "application/octet-stream")}
    stem = upload.name.rsplit(".", 1)[0]
    *others, last = st.columns(3)
    for column, (ending, (label, kind)) in zip(others, kinds.items(), strict=True):
        make = partial(scored_file, upload, choice, flagged, ending, keep_members=keep_members)  # when it is asked for
        refusal = scored.refusal(ending)
        with column:
            st.download_button(label, make, f"{stem}_scored{ending}", kind, disabled=refusal is not None, **DOWNLOAD)
            if refusal is not None:
                st.caption(f"Not as {ending}: {refusal}.")
    make = partial(report, upload, choice, target, outside)
    last.download_button("Report as a page", make, f"{stem}_report.html", "text/html", help=REPORT_HELP, **DOWNLOAD)
    return keep_members, outside


def _outside(choice: Choice) -> Upload | None:
    """The file from outside, if there is one that can be scored."""
    dropped = st.file_uploader(OUTSIDE, help=OUTSIDE_HELP, key="outside")
    if dropped is None:
        return None
    upload = remembered.dropped(dropped, "outside")
    try:
        refusal = None if len(remembered.score(upload, choice).frame) else f"{upload.name}: all its rows are bad"
    except UqprismError as error:
        refusal = str(error)
    if refusal is None:
        return upload
    st.error("This file is left out of the report:", icon=":material/error:")
    st.code(refusal, language=None, wrap_lines=True)
    return None
