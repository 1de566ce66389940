"""Run a command in this process, as a script sees it."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from typer.testing import CliRunner

from uqprism.__main__ import main
from uqprism.cli import app


def run(*arguments: object) -> CompletedProcess[str]:
    """What `uqprism` prints with these arguments, and its exit code."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with patch.object(sys, "argv", ["uqprism", *map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def printed(*arguments: object) -> str:
    """What `uqprism` prints with these arguments; errors are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
