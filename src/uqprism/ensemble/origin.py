"""Where a prediction came from, which decides how far its disagreement can be trusted to say what more data would bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

UNKNOWN_KIND = "unknown"
KINDS = {  # what the members are, and what they are called in a sentence
    UNKNOWN_KIND: "models",
    "networks": "networks from different seeds",
    "shared": "members of a network that share its weights",
    "resampled": "networks on resampled rows",
    "forest": "trees of a forest",
    "boosting": "boosted models",
    "dropout": "passes of MC dropout",
    "evidential": "draws of an evidential network",
    "process": "draws of a Gaussian process",
    "posterior": "draws of a posterior",
}


@dataclass(frozen=True)
class Origin:
    """What made a prediction.

    Attributes:
        adapter: the name of the adapter of `from_model`, or of this package's class; `unknown` for arrays and bare files.
        kind: what the members are, one of `KINDS`; `unknown` where nothing says so.
        n_members: how many members there were at first; None if unknown.
    """

    adapter: str = UNKNOWN_KIND
    kind: str = UNKNOWN_KIND
    n_members: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether anything is known."""
        return self != UNKNOWN

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the header of a file."""
        return {"adapter": self.adapter, "kind": self.kind, "n_members": self.n_members}

    @classmethod
    def from_dict(cls, data: object) -> Origin:
        """What `to_dict` gave; anything else, such as the header of an older file, is unknown."""
        if not isinstance(data, Mapping):
            return UNKNOWN
        count = data.get("n_members")
        kind = str(data.get("kind", UNKNOWN_KIND))
        return cls(
            str(data.get("adapter", UNKNOWN_KIND)),
            kind if kind in KINDS else UNKNOWN_KIND,
            count if isinstance(count, int) and not isinstance(count, bool) else None,
        )


UNKNOWN = Origin()


def common(origins: Iterable[Origin]) -> Origin:
    """The origin that all have, or unknown."""
    found = set(origins)
    return found.pop() if len(found) == 1 else UNKNOWN


def kind_by_name(name: str) -> str:
    """The kind of model that the name of a class says it is: boosting, a forest, or unknown."""
    lower = name.lower()
    if any(word in lower for word in ("boost", "lgbm", "lightgbm", "xgb")):
        return "boosting"
    return "forest" if any(word in lower for word in ("forest", "decisiontree", "extratree")) else UNKNOWN_KIND
