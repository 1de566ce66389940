"""What comes from a file is shown as text: no call of Streamlit reads it as Markdown."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import uqprism as up

pytest.importorskip("streamlit", reason="Streamlit is not installed (extra app)")
from uqprism.app import show

SOURCES = [
    path
    for path in sorted((Path(up.__file__).parent / "app").glob("*.py"))
    if "import streamlit as st" in path.read_text(encoding="utf-8")
]
# Functions of Streamlit that read their first argument as Markdown, or do more with it.
MARKDOWN = {
    *(
        "markdown",
        "write",
        "write_stream",
        "caption",
        "title",
        "header",
        "subheader",
        "text",
        "latex",
        "badge",
        "error",
        "warning",
    ),
    *("info", "success", "toast", "exception", "metric", "expander", "popover", "tabs", "status", "spinner", "dialog", "radio"),
    *("pills", "segmented_control", "checkbox", "toggle", "button", "download_button", "link_button", "page_link", "selectbox"),
    *("multiselect", "select_slider", "slider", "text_input", "text_area", "number_input", "file_uploader", "chat_message"),
    *("data_editor", "json", "table", "image", "html"),
}
ALWAYS_MARKDOWN = ("label", "help", "captions")


def is_ours(value: ast.expr, constants: set[str]) -> bool:
    """Whether an expression can only be a text of the program: literals, constants, and parts of them."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Name):
        return value.id.isupper() or value.id in constants
    if isinstance(value, ast.Attribute):
        return value.attr.isupper()
    if isinstance(value, ast.List | ast.Tuple):
        return all(is_ours(each, constants) for each in value.elts)
    return isinstance(value, ast.Subscript) and is_ours(value.value, constants)


def over_constants(tree: ast.AST) -> set[str]:
    """The variables of loops over constants, such as `for name, label in LABELS.items()`."""
    loops = [each for each in ast.walk(tree) if isinstance(each, ast.For | ast.comprehension)]
    found = set()
    for loop in loops:
        names = [each for each in ast.walk(loop.iter) if isinstance(each, ast.Name)]
        if names and all(each.id.isupper() for each in names):
            found |= {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    return found


def offences(source: str) -> list[str]:
    """The calls whose texts may be those of a user."""
    tree = ast.parse(source)
    constants, found = over_constants(tree), []
    modules = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("uqprism")]
    ours = {name.asname or name.name for each in modules for name in each.names} - {"show"}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) in ours:
            continue
        texts = [keyword.value for keyword in call.keywords if keyword.arg in ALWAYS_MARKDOWN]
        if call.func.attr in MARKDOWN:
            texts += call.args[:1]
        found += [ast.unparse(call) for text in texts if not is_ours(text, constants)]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_text_that_streamlit_formats_is_our_own(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if path.stem == "show":  # the one place that makes HTML
        assert source.count("st.html(") == 2
        return
    assert offences(source) == []
    assert "Markup" not in source
    assert "unsafe_allow" not in source


@pytest.mark.parametrize(
    "line",
    [
        *("st.markdown(f'**{name}**')", "st.error(str(error))", "column.metric('Rows', help=name)", "st.tabs([name])"),
        *("st.download_button(name, data)", "show.write('<p>' + name)", "[st.button(each) for each in names]"),
    ],
)
def test_the_check_finds_texts_of_users(line: str) -> None:
    assert offences(line)


def test_values_are_escaped_and_cut_and_can_be_sent() -> None:
    page = show.filled("<p>{text}</p>", text="<img src=x onerror=y> & {braces}\ud800\n" + 5_000 * "long ")
    assert page.startswith("<p>&lt;img src=x onerror=y&gt; &amp; {braces}? long")
    assert len(page) < 2_000
    assert show.joined("<li>{}</li>", ["<a>", 2]) == "<li>&lt;a&gt;</li><li>2</li>"
    page.encode()
    assert show.clean("$\xa040,520 \n on\taverage") == "$\xa040,520 on average"  # an amount is not broken across lines


@pytest.mark.parametrize("given", ["../../etc/passwd", 'a"b\r\nSet-Cookie: x', "", "\u202egnp.exe", 500 * "x", "..."])
def test_names_to_download_under_are_plain(given: str) -> None:
    name = show.file_name(given)
    assert 0 < len(name) <= show.LONGEST_NAME
    assert not {*name} & {*'/\\"\r\n\u202e'}
    assert not name.startswith(".")
