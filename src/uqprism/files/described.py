"""What files say of their members beside the columns: family, weights and origin; of a CSV file in a small file beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.columns import checked_header
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import BadFileError
from uqprism.support.reading import parse_json, read_json
from uqprism.support.storage import write_text

ENDS = 1 << 16  # bytes of the beginning and of the end of a CSV file that tell whether it is still the same
FILE = "file"
ATTRIBUTES = b"PANDAS_ATTRS"  # where pandas keeps the `attrs` of a frame in Parquet


def as_metadata(header: Mapping[str, Any], weights: tuple[float, ...] | None) -> dict[bytes, bytes] | None:
    """The metadata of an Arrow schema that says this; None if there is nothing to say."""
    if not header and weights is None:
        return None
    whole = {"family": "gaussian", **header, "weights": None if weights is None else list(weights)}
    return {FORMAT.encode(): json.dumps(whole).encode()}


def described_arrays(header: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """What an .npz file says of its members, as the arrays that `EnsemblePrediction.save` writes."""
    about = {"format": FORMAT, **header}
    weights = about.pop("weights", None)
    found = {"header": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}
    return found if weights is None else {**found, "member_weights": np.array(weights, dtype=np.float64)}


def in_metadata(metadata: Mapping[bytes, bytes] | None, path: Path) -> dict[str, Any]:
    """What the metadata of an Arrow schema says; empty if nothing."""
    found = parse_json((metadata or {}).get(FORMAT.encode(), b"{}"), path) or _of_frame(metadata).get(FORMAT)
    return checked_header(found, path) if found else {}


def without_members(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    """The metadata without what they say of members."""
    found = {key: value for key, value in (metadata or {}).items() if key != FORMAT.encode()}
    attributes = _of_frame(metadata)
    if attributes.pop(FORMAT, None) is not None:
        found[ATTRIBUTES] = json.dumps(attributes).encode()
    return found


def _of_frame(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """The `attrs` of the data frame that pandas wrote."""
    with suppress(ValueError, RecursionError):
        found = json.loads((metadata or {}).get(ATTRIBUTES, b"{}"))
        return found if isinstance(found, dict) else {}
    return {}


def beside(path: Path) -> Path:
    """The file that describes a CSV file. Programs that read folders ignore it, because its name begins with `_`."""
    return path.with_name(f"_{path.name}.json")


def describe(path: Path, schema: Any) -> None:
    """Write beside a finished CSV file what the metadata of its schema say, and remove what is said of an earlier one.

    CSV has no place of its own for it: other programs would take a line of comment for the names of the columns.
    """
    header = in_metadata(schema.metadata, path)
    if header.get("weights") is None and not header.get("origin") and header.get("family", "gaussian") == "gaussian":
        if _described(path):
            beside(path).unlink(missing_ok=True)
        return
    write_text(beside(path), json.dumps({"format": FORMAT, FILE: _fingerprint(path), **header}, indent=1) + "\n")


def described(path: Path) -> dict[str, Any]:
    """What is said beside a CSV file; nothing if that is about another state of the file, or not about predictions."""
    found = _described(path)
    return checked_header(found, beside(path)) if found and found.pop(FILE, None) == _fingerprint(path) else {}


def _described(path: Path) -> dict[str, Any]:
    """What the file beside says, if `describe` wrote it."""
    with suppress(BadFileError, OSError):
        found = read_json(beside(path)) if beside(path).is_file() else {}
        return found if found.pop("format", None) == FORMAT else {}
    return {}


def _fingerprint(path: Path) -> dict[str, Any]:
    """The size of a file, and a digest of its beginning and its end."""
    size, digest = path.stat().st_size, hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(size - ENDS, 0))
        digest.update(file.read(ENDS))
    return {"size": size, "sha256": digest.hexdigest()}
