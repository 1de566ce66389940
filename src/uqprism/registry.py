"""Named things, found by name: rules, families, approximations. Unknown names suggest the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from uqprism.errors import UnknownNameError

T = TypeVar("T")
SHOWN = 24


def unknown(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for `name`, with the nearest known name or, failing that, all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    near = names if len(names) == 1 else near
    listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {listed}"
    return UnknownNameError(f"unknown {kind} {name!r}; {hint}")


class Registry(Generic[T]):
    """Things of one kind by name, in the order they were registered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that files what it decorates under `name`."""

        def add(entry: T) -> T:
            self._entries[name] = entry
            return entry

        return add

    def get(self, name: str) -> T:
        """The entry called `name`; an unknown name raises and suggests the nearest."""
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            raise unknown(self.kind, name, self._entries) from None

    def name_of(self, entry: object) -> str | None:
        """The name under which this very entry is registered, or None."""
        return next((name for name, known in self._entries.items() if known is entry), None)

    def names(self) -> list[str]:
        """All registered names."""
        return list(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries
