"""Load data sets for jobs, and record in the store which files they were read from.

The digest of an artefact depends on the name, the seed and the options of a data set, not on its files, so that a store can be
copied to a machine without them. The recorded checksums keep a folder from mixing results of different files. They are recorded
when a data set has been loaded, so they include files that were downloaded on the way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from uqprism.errors import FileError
from uqprism.paper import data
from uqprism.paper.data import Dataset
from uqprism.paper.data.inventory import fingerprint
from uqprism.paper.store import Store
from uqprism.support.storage import write_text

Array = Any
Fingerprint = Mapping[str, str]
NOTES = "data"  # folder in a store with a file NAME.json for each data set


def load(store: Store, name: str, *, seed: int, **options: Any) -> Dataset:
    """Load the data set of this name from the store's root folder."""
    found = data.load(name, root=store.data, seed=seed, **options)
    _note(store, name)
    return found


def ood_mosaics(store: Store, name: str, mosaics: Array, *, seed: int) -> Array:
    """Make the OOD mosaics of this name from the store's root folder."""
    found = data.ood_mosaics(name, mosaics, root=store.data, seed=seed)
    _note(store, name)
    return found


def notes(folder: Path, names: Iterable[str]) -> dict[str, Fingerprint]:
    """The recorded files of those of these data sets that were used in the store in this folder."""
    paths = {name: folder / NOTES / f"{name}.json" for name in names}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def refuse_others(noted: Mapping[str, Fingerprint], root: str | os.PathLike[str] | None, folder: Path) -> None:
    """Raise if a file of one of these data sets differs from the file that the results in `folder` were made from."""
    for name, files in noted.items():
        _refuse_other(name, files, fingerprint(name, root), folder)


def _refuse_other(name: str, noted: Fingerprint, there: Fingerprint, folder: Path) -> None:
    # Files that are missing here do not count: a store is used without them.
    others = [file for file, contents in there.items() if noted.get(file) != contents]
    if others:
        raise FileError(
            f"{folder} was made from other files of the data set {name} than are there now ({', '.join(others)}), and results of "
            "both must not be mixed; give another --out, or --overwrite"
        )


def _note(store: Store, name: str) -> None:
    there, noted = fingerprint(name, store.data), notes(store.folder, [name])
    if name in noted:
        _refuse_other(name, noted[name], there, store.folder)  # the files changed since the run began
    elif there:
        path = store.folder / NOTES / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(there, indent=2) + "\n")
