"""The entry point, which works far enough without the extra `cli` to say that it is missing."""

from __future__ import annotations

import sys

from uqprism.errors import UqprismError
from uqprism.storage import require


def main() -> None:
    """Run the command line; errors of this package become one line on standard error and exit code 1."""
    try:
        require("typer", extra="cli")
        from uqprism.cli import app

        app()
    except UqprismError as error:
        sys.exit(f"uqprism: {error}")


if __name__ == "__main__":
    main()
