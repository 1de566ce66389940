"""Collect the GPU tests only if there is a GPU, and run the others with one thread each."""

from __future__ import annotations

import torch

collect_ignore = [] if torch.cuda.is_available() else ["test_gpu.py"]
torch.set_num_threads(1)  # threads of two processes on two cores wait for each other at every small operation
