"""The version of this package, and of what a result was made with."""

from __future__ import annotations

import platform

__version__ = "0.1.0"
PACKAGES = ("numpy", "scipy", "numba", "torch", "matplotlib")


def versions() -> dict[str, str]:
    """The versions of this package, of Python and of the packages that the numbers depend on."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and rarely needed

    found = {"uqprism": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
