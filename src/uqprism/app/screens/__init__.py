"""What the page shows, in Streamlit; `main.py` is the script that it runs."""
