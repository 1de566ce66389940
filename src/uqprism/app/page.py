"""The page: a tab for files of predictions, one for the posterior explorer."""

from __future__ import annotations

import sys

import streamlit as st

from uqprism.app import explorer, predictions, show

# A prism, as text: Streamlit would fetch its own icons from the network.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32" viewBox="0 0 32 32">'
    '<path d="M16 4 30 28H2Z" fill="none" stroke="#2F8AC4" stroke-width="3" stroke-linejoin="round"/>'
    '<path d="M16 16 31 13" stroke="#E0660A" stroke-width="3"/><path d="M16 16 31 19" stroke="#009E73" stroke-width="3"/></svg>'
)


def main(files: list[str]) -> None:
    """Draw the page; Streamlit calls this after every change."""
    st.set_page_config(page_title="uqprism", page_icon=ICON, layout="wide")
    show.style()
    first, second = st.tabs(["Predictions", "Posterior explorer"])
    with first:
        predictions.show_tab(files[0] if files else None)
    with second:
        explorer.show_tab()


if __name__ == "__main__":
    main(sys.argv[1:])
