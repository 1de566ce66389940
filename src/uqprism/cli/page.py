"""The local page."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from uqprism.cli import application
from uqprism.cli.application import interruptible

FILE = "A Parquet, CSV or NPZ file with columns of members, to begin with. By default an embedded example."
File = Annotated[str | None, typer.Argument(metavar="FILE", help=FILE)]
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="By default the first free one from 8501 on.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address only.")]


@application.app.command()
def app(*, file: File = None, port: Port = None, no_browser: NoBrowser = False) -> None:
    """Open a local page: drop a file of predictions, see its uncertainty split, flag rows, download the scores."""
    from uqprism.support.optional import require

    require("streamlit", extra="app")
    from uqprism.app.launch import serve

    with interruptible("the page is closed"):
        serve(file, port=port, browser=not no_browser, say=partial(print, flush=True))
