"""The page of `uqprism app`: modules that import Streamlit show, the others compute."""
