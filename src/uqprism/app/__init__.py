"""The page of `uqprism app`: what it computes is here and knows nothing of Streamlit, what it shows is in `screens`."""
