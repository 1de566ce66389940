"""Text on the page. Streamlit reads its texts as Markdown; what comes from a file is shown here as the text it is.

Names, cells and messages reach the page by `write`, as a cell or an option that Streamlit shows as it is, or in `st.code`; never
in a label. `tests/app/test_show.py` checks every call of Streamlit.
"""

from __future__ import annotations

import re
from typing import Any

import streamlit as st
from markupsafe import Markup

LONGEST, LONGEST_NAME = 1_500, 80  # characters of a message and of a name
STYLE = """<style>
.uq {overflow-wrap: anywhere; line-height: 1.5}
.uq p {margin: 0 0 .5rem} .uq p:last-child {margin: 0}
.uq h1 {font-size: 1.5rem; line-height: 1.35; font-weight: 600; padding: 0; margin: 0; text-wrap: pretty; max-width: 62rem}
.uq h2 {font-size: 1.15rem; font-weight: 600; padding: .75rem 0 0; margin: 0; border-top: 1px solid}
.uq h2 {border-color: color-mix(in srgb, currentColor 15%, transparent)}
.uq .quiet {opacity: .75; font-size: .875rem} .uq .file {font-weight: 600}
.uq .noise {background: #009E73} .uq .disagreement {background: #E0660A}
.uq .split {display: flex; gap: 2px; height: 1.5rem; border-radius: .3rem; overflow: hidden; margin: .25rem 0 .6rem}
.uq .split i {min-width: 2px}
.uq .parts {display: flex; gap: .5rem 2.5rem; margin: 0; padding: 0}
.uq .parts dt {font-size: .875rem; font-weight: 400}
.uq .parts dd {margin: 0; font-size: 1.35rem; line-height: 1.3; font-weight: 600}
.uq .parts dd.quiet {font-size: .875rem; font-weight: 400}
.uq .parts b {display: inline-block; width: .7em; height: .7em; border-radius: 2px; margin-right: .4em}
.uq .actions {margin: 0; padding-left: 1.4rem; max-width: 62rem}
.uq .actions li {margin: 0 0 .4rem; padding-left: .25rem; font-size: 1rem}
.uq .problem {border-left: 4px solid #D55E00; padding: .5rem .9rem; background: color-mix(in srgb, #D55E00 9%, transparent)}
[data-testid="stMainBlockContainer"] {padding-top: 4rem; padding-bottom: 4rem; max-width: 80rem}
@media (max-width: 640px) {.uq h1 {font-size: 1.2rem} .uq .parts {gap: .5rem 1.25rem}}
</style>"""


def style() -> None:
    """Write the style of the page; once for each run."""
    st.html(STYLE)


def write(template: str, **values: Any) -> None:
    """Write HTML of ours with these values in its placeholders; what is no `Markup` is escaped."""
    st.html(str(Markup('<div class="uq">{}</div>').format(filled(template, **values))))


def filled(template: str, **values: Any) -> Markup:
    """HTML of ours with these values in its placeholders; what is no `Markup` is escaped."""
    texts = {name: value if isinstance(value, Markup) else clean(value) for name, value in values.items()}
    return Markup(template).format(**texts)  # noqa: S704 (the template is ours)


def joined(template: str, values: Any) -> Markup:
    """The same for each of the values, one after the other; the placeholder is `{}`."""
    return Markup("").join(filled(template.replace("{}", "{value}"), value=value) for value in values)


def problem(title: str, message: str = "") -> None:
    """Write that something is wrong, and what."""
    write('<div class="problem" role="alert"><p><b>{title}</b></p><p>{message}</p></div>', title=title, message=message)


def clean(value: Any, longest: int = LONGEST) -> str:
    """A value as text on one line that can be sent to a browser."""
    text = value if isinstance(value, str) else str(value)
    text = text.encode("utf-8", "replace").decode()  # names of files may hold bytes that are no text
    text = re.sub(r"[^\S\xa0]+", " ", text[: 4 * longest]).strip(" ")  # spaces at which lines do not break stay
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def name(text: object) -> str:
    """A name of a file or a column, shortened."""
    return clean(text, LONGEST_NAME)


def file_name(text: str) -> str:
    """A name to download a file under, of letters and digits alone."""
    return re.sub(r"[^\w.()+-]+", "_", clean(text, LONGEST_NAME)).strip("._") or "predictions"
