"""The entry point of the command line; without the extra `cli` it only says that it is missing."""

from __future__ import annotations

import sys

from uqprism.errors import UqprismError
from uqprism.support.optional import require


def main() -> None:
    """Run the command line. An error is one line on standard error, with the exit code of its kind."""
    try:
        require("typer", extra="cli")
        from uqprism.cli import app

        app()
    except UqprismError as error:
        print(f"uqprism: {error}", file=sys.stderr)  # noqa: T201 (the message of a command)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
