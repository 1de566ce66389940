"""The report: a page that shows how uncertain predictions are, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqprism.report.page import Report, write_report

__all__ = ["Report", "write_report"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from uqprism.report import page

        return getattr(page, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
