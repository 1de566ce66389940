"""The command line: thin commands over the library, a file for each kind."""

from uqprism.cli import active, audit, demo, export, flag, recalibrate, report, reproduce, score, tasks  # noqa: F401 (each adds its commands)
from uqprism.cli.application import app

__all__ = ["app"]
