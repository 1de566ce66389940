"""On what machine, and with what, a result was made."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.support.versions import __version__


def hardware() -> dict[str, Any]:
    """The processor, how many cores, and the device that PyTorch has used, if it was loaded."""
    return {"processor": _processor(), "cores": os.cpu_count(), "accelerator": accelerator()}


def loaded_versions() -> dict[str, str]:
    """Of what numbers made here and now depend on; of PyTorch, and the CUDA it was built for, only where it was loaded."""
    found = {"uqprism": __version__, "python": platform.python_version(), "numpy": np.__version__}
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = str(torch.__version__)
        if torch.version.cuda is not None:
            found["cuda"] = str(torch.version.cuda)
    return found


def distinct_versions(records: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The different sets of versions in the records of artefacts; older records have none and add none."""
    found: list[dict[str, str]] = []
    for record in records:
        if "versions" in record and record["versions"] not in found:
            found.append(record["versions"])
    return sorted(found, key=lambda each: sorted(each.items()))


def accelerator() -> str:
    """The name of the GPU, if PyTorch was loaded here and finds one."""
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else "none"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
