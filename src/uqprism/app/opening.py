"""Which file the page shows: one that was dropped on it, one given on the command line, or the example."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from uqprism.app import example, show
from uqprism.app.inputs import Upload
from uqprism.app.launch import check_file
from uqprism.errors import FileError

UPLOAD = "A file of predictions: CSV, Parquet or NPZ"
UPLOAD_HELP = (
    "A row for each prediction; columns mean_0, mean_1, ... and variance_0, variance_1, ... (or scale_0, ... for standard "
    "deviations), one pair for each model; or quantiles q05_0, q50_0, ..., or the parameters of another distribution. Other "
    "columns are kept."
)
EMPTY = (
    "<h1>How uncertain is each prediction, and why?</h1><p>Drop a file with a row for each prediction and what each model says "
    "of it, in columns mean_0, variance_0, mean_1, variance_1 and so on. The file stays on this machine.</p>"
)
TRY = "Try the example: 600 deliveries"
CHOSEN = "example chosen"


def chosen(given: str | None) -> Upload | None:
    """The file to show; None, with a page that asks for one, if there is none yet."""
    if given is None and not st.session_state.get(CHOSEN) and st.session_state.get("file") is None:
        show.write(EMPTY)
        _uploader()
        st.button(TRY, on_click=_choose_example, type="primary", key="example")
        return None
    dropped = st.session_state.get("file")
    if dropped is not None:
        return from_browser(dropped)
    return example.deliveries() if given is None or st.session_state.get(CHOSEN) else _from_command_line(given)


def another() -> None:
    """Draw what opens another file."""
    _uploader()
    if st.session_state.get("file") is None:
        st.button(TRY, on_click=_choose_example, key="example")
    content = example.deliveries().content
    st.download_button("Download the example", content, example.NAME, "text/csv", icon=":material/download:", on_click="ignore")


def _uploader() -> None:
    st.file_uploader(UPLOAD, help=UPLOAD_HELP, key="file")


def _choose_example() -> None:
    st.session_state[CHOSEN] = True


def from_browser(file: Any, where: str = "dropped") -> Upload:
    """The file that was dropped on the page; `where` tells the two places apart."""
    return _once(where, file.file_id, lambda: Upload(show.clean(file.name), file.getvalue()))


def _from_command_line(path: str) -> Upload:
    """The file given on the command line, as it is now."""
    check_file(path)
    try:
        state = os.stat(path)
        return _once(
            "file", (path, state.st_mtime_ns, state.st_size), lambda: Upload(Path(path).name, Path(path).read_bytes(), path)
        )
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error


def _once(key: str, state: Any, read: Callable[[], Upload]) -> Upload:
    """The file that was read in this state before, or is read now."""
    key = f"read {key}"  # differs from the keys of all widgets
    kept = st.session_state.get(key)
    if kept is None or kept[0] != state:
        kept = st.session_state[key] = (state, read())
    upload: Upload = kept[1]
    return upload
