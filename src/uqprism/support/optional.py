"""Packages that come with an extra and may be missing."""

from __future__ import annotations

import importlib
from typing import Any

from uqprism.errors import MissingExtraError


def require(package: str, *, extra: str) -> Any:
    """The package, or an error that names the extra it comes with."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(package, extra) from None
