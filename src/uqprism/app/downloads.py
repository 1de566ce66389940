"""Files to download, and the commands that make them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from uqprism.app import commands, opening, show
from uqprism.app import scored as scoring
from uqprism.app.inputs import ScoringChoice, Upload
from uqprism.app.overview import Shown
from uqprism.app.problems import guarded, report
from uqprism.errors import InvalidValueError
from uqprism.tasks.flagging import Flagged

# "ignore": a click does not draw the page anew.
BUTTON: dict[str, Any] = {"icon": ":material/download:", "on_click": "ignore"}
KINDS = {".csv": ("Scores as CSV", "text/csv"), ".parquet": ("Scores as Parquet", "application/octet-stream")}
OOD = "Add unfamiliar inputs to the report"
OOD_HELP = (
    "A file with the same columns, of inputs unlike the training data: another season, another machine. The report then says "
    "whether the uncertainty notices them."
)
REPORT_HELP = "One HTML file that explains these predictions; it takes some seconds to write."
KEEP_HELP = "Keep the models' means and variances beside the measures."
NOT_SCORED = "This file is left out of the report."


def show_downloads(shown: Shown, flagged: Flagged) -> None:
    """Draw the buttons, and the code that makes the files."""
    show.write("<h2>Downloads</h2>")
    upload, scored, choice = shown.upload, shown.scored, shown.choice
    buttons = st.container(horizontal=True)
    with st.expander("More choices for the downloads"):
        keep_members = st.checkbox("Keep the models' columns in the scored file", help=KEEP_HELP, key="keep")
        ood = _ood(choice)
    stem = show.file_name(upload.name.rpartition(".")[0] or upload.name)
    with buttons:
        make = partial(commands.report_page, upload, choice, shown.comparison, ood)
        st.download_button("Report", make, f"{stem}_report.html", "text/html", help=REPORT_HELP, type="primary", **BUTTON)
        for ending, (label, kind) in KINDS.items():
            make = partial(scoring.scored_file, upload, choice, flagged.rows, ending, keep_members=keep_members)  # at the click
            refused = scored.refusal(ending) is not None
            st.download_button(label, make, f"{stem}_scored{ending}", kind, disabled=refused, **BUTTON)
    for refusal in dict.fromkeys(filter(None, map(scored.refusal, KINDS))):
        show.write('<p class="quiet">The scores cannot be written: {refusal}.</p>', refusal=refusal)
    with st.expander("The same in a terminal and in Python"), guarded("The code cannot be shown."):
        _code(shown, flagged, ood, keep_members=keep_members)


def _ood(choice: ScoringChoice) -> Upload | None:
    """The file of unfamiliar inputs, if there is one that can be scored."""
    dropped = st.file_uploader(OOD, help=OOD_HELP, key="ood")
    if dropped is None:
        return None
    upload = opening.from_browser(dropped, "ood")
    try:
        if not len(scoring.score(upload, choice).frame):
            raise InvalidValueError(f"{upload.name}: all its rows are bad")
    except Exception as error:  # the page says what is wrong
        report(NOT_SCORED, error)
        return None
    return upload


def _code(shown: Shown, flagged: Flagged, ood: Upload | None, *, keep_members: bool) -> None:
    """Draw the commands and the Python lines that compute what is shown."""
    choice = shown.choice if shown.scored.bad_rows else replace(shown.choice, on_bad="error")
    path, ood_path = (None if each is None else show.clean(each.path) for each in (shown.upload, ood))
    assert path is not None  # noqa: S101 (there is a file)
    shell = commands.shell(path, choice, shown.comparison, ood_path, keep_members=keep_members)
    st.code(shell, language="bash", wrap_lines=True)
    by, percent = st.session_state["by"], round(100 * flagged.asked)
    python = commands.python(path, choice, shown.scored, by=by, percent=percent, target=shown.comparison.target)
    st.code(python, language="python", wrap_lines=True)
