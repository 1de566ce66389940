"""What is read or computed once for a file's contents and the choices made, and remembered."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from uqprism.app import findings, posterior, scored
from uqprism.app.choices import Choice
from uqprism.app.launch import check_file
from uqprism.app.uploads import Upload

SLOW = "Computing; the first large file after installing takes some ten seconds longer."
# Kept as they are, not copied for each use as `st.cache_data` would: nobody changes them.
BY_CONTENT: dict[str, Any] = {"max_entries": 24, "show_spinner": SLOW, "hash_funcs": {Upload: lambda upload: upload.digest}}


def file(path: str) -> Upload:
    """The file of the command line, as it is now."""
    check_file(path)
    state = os.stat(path)
    return _once("file", (path, state.st_mtime_ns, state.st_size), lambda: Upload(Path(path).name, Path(path).read_bytes(), path))


def dropped(file: Any, where: str = "dropped") -> Upload:
    """The file that was dropped on the page, in the place of this name."""
    return _once(where, file.file_id, lambda: Upload(file.name, file.getvalue()))


def _once(key: str, state: Any, read: Callable[[], Upload]) -> Upload:
    """What was read in this state before, or is read now."""
    key = f"read {key}"  # no widget has such a key
    kept = st.session_state.get(key)
    if kept is None or kept[0] != state:
        kept = st.session_state[key] = (state, read())
    upload: Upload = kept[1]
    return upload


@st.cache_resource(**BY_CONTENT)
def score(upload: Upload, choice: Choice) -> scored.Scored:
    """As `scored.score`."""
    return scored.score(upload, choice)


@st.cache_resource(**BY_CONTENT)
def retention(upload: Upload, choice: Choice, target: str) -> findings.Retention:
    """As `findings.retention`, from the file."""
    return findings.retention(score(upload, choice), scored.error(upload, choice, target))


@st.cache_resource(max_entries=500, show_spinner=False)
def answers(shift: posterior.Shift) -> dict[str, posterior.Answer]:
    """As `posterior.answers`."""
    return posterior.answers(shift)
