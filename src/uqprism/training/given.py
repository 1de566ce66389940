"""What users give to the estimators, checked: weights, validation rows, and arrays of text."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.training import heads, networks
from uqprism.training.columns import take_rows
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.networks.shared import SharedMLP


def weighted(inputs: Any, targets: Any, weights: Any) -> tuple[Any, Any, Any]:
    """The rows that count, with their weights: a weight of zero is the same as no row."""
    if weights is None:
        return inputs, targets, None
    found = to_numpy(weights)
    if found.ndim != 1 or len(found) != len(targets):
        raise ShapeError(f"sample_weight must be one number per row, ({len(targets)},), got shape {found.shape}")
    there = np.flatnonzero(found)
    if len(there) == len(found) or not len(there):
        return inputs, targets, found
    return take_rows(inputs, there), take_rows(targets, there), found[there]


def check_validation(given: Any) -> None:
    """Refuse what is no pair of inputs and targets, such as a share of the rows."""
    if given is None or (isinstance(given, tuple | list) and len(given) == 2):
        return
    raise ArgumentError(
        f"validation must be the rows (X, y) for early stopping, got {type(given).__name__}; the share of the rows that "
        "each member keeps is validation_fraction"
    )


def check_continued(start: DeepEnsemble, settings: dict[str, Any]) -> None:
    """Refuse settings of another network, head or transform than those of the ensemble that is trained further."""
    network, found = networks.resolve(settings["network"]), start.network
    if start.shared is not None:
        network = SharedMLP.of(network, start.shared)
    pairs = {
        "network": (networks.to_dict(found), networks.to_dict(network)),
        "head": (start.head.name, heads.resolve(settings["head"]).name),
        "target_transform": (None if start.transform is None else start.transform.name, settings["target_transform"]),
        "shared": (start.shared is not None, settings.get("shared", False)),
    }
    for name, (kept, given) in pairs.items():
        if kept != given:
            raise ArgumentError(
                f"the networks of the last fit are trained further, with {name}={kept!r}, which cannot become {given!r}: set it "
                "back, or fit a clone of this estimator"
            )


def refuse_text(X: Any) -> None:
    """Name the column of an array that holds text."""
    if not is_text(X) or (array := np.asarray(X)).ndim != 2:
        return
    for place, column in enumerate(array.T):
        if (texts := [each for each in column if isinstance(each, str)]) and not _reads_as_number(texts[0]):
            raise InvalidValueError(
                f"inputs must be numbers, got the text {texts[0]!r} in column {place} of the array; give a data frame, whose "
                "columns may be categories, or convert it"
            )


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_text(values: Any) -> bool:
    """Whether an array has text."""
    array = np.asarray(values)
    return array.dtype.kind in "UST" or (array.dtype == object and any(isinstance(each, str) for each in array.flat))
