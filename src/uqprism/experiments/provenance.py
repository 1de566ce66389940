"""On what machine a result was made."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any


def hardware() -> dict[str, Any]:
    """The processor, how many cores, and the device that PyTorch has used, if it was loaded."""
    return {"processor": _processor(), "cores": os.cpu_count(), "accelerator": accelerator()}


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
