"""The command line: thin commands over the library, a file for each kind."""

from uqprism.cli import (  # noqa: F401 (each adds its commands)
    active,
    audit,
    demo,
    export,
    flag,
    recalibrate,
    report,
    reproduce,
    score,
    tasks,
    watch,
)
from uqprism.cli.application import app

__all__ = ["app"]
