"""Pictures and pages that show what measures and tasks found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqprism.report.page import Report, write_report

__all__ = ["Report", "write_report"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from uqprism.report import page  # which needs matplotlib

        return getattr(page, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
