"""Checks that need a GPU are collected where there is one; the others share the cores between test processes."""

from __future__ import annotations

import torch

collect_ignore = [] if torch.cuda.is_available() else ["test_gpu.py"]
torch.set_num_threads(1)  # threads of two processes on two cores wait for each other at every small operation
