"""The page of `uqprism app`: `page`, `predictions`, `explorer` and `charts` show, with Streamlit; the other modules compute."""
