"""The entry point, which works far enough without the extra `cli` to say that it is missing."""

from __future__ import annotations

import sys

from uqprism.errors import ArgumentError, UqprismError
from uqprism.support.optional import require


def main() -> None:
    """Run the command line; errors of this package become one line on standard error and exit code 1, or 2 for wrong usage."""
    try:
        require("typer", extra="cli")
        from uqprism.cli import app

        app()
    except UqprismError as error:
        print(f"uqprism: {error}", file=sys.stderr)  # noqa: T201 (a program speaks)
        sys.exit(2 if isinstance(error, ArgumentError) else 1)


if __name__ == "__main__":
    main()
