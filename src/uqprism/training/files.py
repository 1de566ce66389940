"""Tensors and a JSON header in one safetensors file: written whole or not at all, checked when read, never pickled."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from uqprism.errors import FileError, InvalidValueError
from uqprism.support.optional import require
from uqprism.support.storage import atomic

torch = require("torch", extra="deep")

VERSION = 1  # of the format; files of another are refused
KEY = "uqprism"


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Write the file; what stood at `path` stays until the new one is complete."""
    safetensors = require("safetensors.torch", extra="deep")
    ready = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    text = json.dumps({"format": kind, "version": VERSION, **header}, default=_plain, allow_nan=False)
    metadata = {KEY: text, "checksum": _checksum(text, ready)}
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as file:
            file.write(safetensors.save(ready, metadata))
    except OSError as error:
        raise FileError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from None


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, which JSON knows."""
    return value.tolist()


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the tensors of a file that `write` wrote for this kind."""
    safetensors = require("safetensors.torch", extra="deep")
    where = os.fspath(path)
    try:
        data = Path(path).read_bytes()  # at once: the file may be replaced by a newer one while it is read
        tensors = safetensors.load(data)
    except FileNotFoundError:
        raise FileError(f"there is no file {where}") from None
    except (OSError, require("safetensors", extra="deep").SafetensorError) as error:
        raise InvalidValueError(f"{where} is no readable safetensors file, or is cut off: {error}") from None
    length = int.from_bytes(data[:8], "little")  # of the header that follows, by the format's definition
    metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    header = _header(metadata, where, kind)
    if metadata.get("checksum") != _checksum(metadata[KEY], tensors):
        raise InvalidValueError(f"{where} was changed after it was written: its checksum does not fit")
    return header, tensors


def _header(metadata: dict[str, str], where: str, kind: str) -> dict[str, Any]:
    try:
        header = json.loads(metadata[KEY])
    except (KeyError, json.JSONDecodeError):
        raise InvalidValueError(f"{where} was not written by uqprism: it lacks its header") from None
    if header.get("format") != kind:
        raise InvalidValueError(f"{where} holds a {header.get('format')}, not a {kind}")
    if header.get("version") != VERSION:
        raise InvalidValueError(
            f"{where} has format version {header.get('version')}, this version of uqprism reads {VERSION}; "
            "load it with the uqprism that wrote it, or train again"
        )
    return header


def _checksum(text: str, tensors: dict[str, Any]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(memoryview(value.reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def fingerprint(*parts: Any) -> str:
    """A short name for data and settings, to tell whether a checkpoint belongs to them."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, torch.Tensor):
            digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
            digest.update(memoryview(part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
        else:
            digest.update(json.dumps(part, sort_keys=True, default=str).encode())
    return digest.hexdigest()[:32]
