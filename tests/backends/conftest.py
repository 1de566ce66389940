"""Checks of the device's kernels are collected where there is a device."""

from __future__ import annotations


def _has_device() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


collect_ignore = [] if _has_device() else ["test_gpu.py"]
