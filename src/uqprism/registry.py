"""One way to find things by name: rules, families, approximations, heads, adapters, tasks, experiments, data sets."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from uqprism.errors import InvalidValueError, UnknownNameError
from uqprism.synonyms import meant, normal

T = TypeVar("T")
SHOWN = 24  # names in an error message
LONGEST = 80  # characters of the unknown one


def unknown(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for `name`, with what is meant by it, the nearest known name or, failing both, all of them."""
    names, shown = sorted(known), _brief(name)
    if synonym := meant(kind, name, names):
        return UnknownNameError(f"unknown {kind} {shown}; did you mean {synonym}?")
    near = difflib.get_close_matches(normal(name), names, n=1, cutoff=0.5)
    near = names if len(names) == 1 else near  # then no other name can be meant
    listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {listed}"
    return UnknownNameError(f"unknown {kind} {shown}; {hint}")


def _brief(name: object) -> str:
    """The name on one line, also if it is an array in the place of a name."""
    text = " ".join(repr(name).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


class Registry(Generic[T]):
    """Things of one kind by name, in the order they were registered.

    Args:
        kind: what they are, for error messages.
        package: where they live, one file each: its modules are imported the first time a name is looked up, so that a new file
            is found without being listed anywhere.
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, T] = {}
        self.changes = 0  # so that what was looked up can be kept until there are more

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that files what it decorates under `name`.

        Raises:
            InvalidValueError: another entry has this name.
        """

        def add(entry: T) -> T:
            # Registering the same entry again is harmless.
            taken = self._entries.setdefault(name, entry)
            self.changes += 1
            if taken is not entry:
                raise InvalidValueError(
                    f"the {self.kind} name {name!r} is taken by {taken!r}; choose another, or remove it first"
                )
            return entry

        return add

    def remove(self, name: str) -> None:
        """Forget the entry called `name`, so that another can have its name."""
        self.get(name)
        del self._entries[name]
        self.changes += 1

    def get(self, name: str) -> T:
        """The entry called `name`; an unknown name raises and suggests the nearest."""
        self.discover()
        try:
            return self._entries[name]
        except (KeyError, TypeError):  # TypeError: a name that cannot be hashed
            raise unknown(self.kind, name, self._entries) from None

    def name_of(self, entry: object) -> str | None:
        """The name under which this very entry is registered, or None."""
        return next((name for name, known in self.items() if known is entry), None)

    def names(self) -> list[str]:
        """All registered names."""
        return [name for name, _ in self.items()]

    def items(self) -> list[tuple[str, T]]:
        """All names with their entries."""
        self.discover()
        return list(self._entries.items())

    def __contains__(self, name: object) -> bool:
        self.discover()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def discover(self) -> None:
        """Import the modules of the package, if that has not been done yet."""
        # Cleared before the imports: a module that looks up a name while it is imported must not start another discovery.
        package, self._package = self._package, None
        if package is not None:
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
                importlib.import_module(module.name)
