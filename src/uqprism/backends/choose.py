"""Choose how measures are computed: by fused kernels where they serve, by the readable reference path otherwise.

The reference path (`risks`) defines the truth. The kernels compute the same risks of Gaussian members in one pass: on the
processor with Numba (`cpu`), on NVIDIA devices with Triton (`gpu`). A kernel may decline points that need more care than it
takes; the reference path serves those.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Literal, Protocol

import numpy as np

from uqprism.arrays import Array, is_torch, is_transformed
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, MissingExtraError
from uqprism.families.gaussian import Gaussian
from uqprism.measures import Measure

Backend = Literal["auto", "fused", "reference"]
MOST_ON_DEVICE = 1000  # members: beyond, one thread has too many pairs, and the reference path spreads them

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


def threads() -> int:
    """How many threads a kernel may use: `limited_to`, UQPRISM_THREADS, or one for each core this process may run on."""
    limit, given = _threads.get(), os.environ.get("UQPRISM_THREADS", "")
    if limit is not None:
        return limit
    if given.isdigit():
        return max(1, int(given))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def limited_to(count: int) -> Iterator[None]:
    """Within, kernels called from this thread use so many threads: for callers that have threads of their own."""
    token = _threads.set(count)
    try:
        yield
    finally:
        _threads.reset(token)


@dataclass(frozen=True)
class Computed:
    """What a kernel computed.

    Attributes:
        values: by measure name, (points,).
        tolerances: by measure name, zero for closed forms.
        declined: positions of points, and the names of the measures that the reference path must serve there; to be asked
            once, and last.
        worked: the precision it computed in.
    """

    values: dict[str, Array]
    tolerances: dict[str, float]
    declined: Iterable[tuple[Array, Sequence[str]]]
    worked: str = "float64"


class Kernel(Protocol):
    """One way to compute measures fast."""

    def covers(self, measure: Measure) -> bool:
        """True if this kernel can compute the measure."""

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure], correction: float | None) -> Computed:
        """Compute measures it covers, for points along one axis."""


def choose(ensemble: EnsemblePrediction, kind: Backend, *, small: bool) -> Kernel | None:
    """The kernel for this ensemble, or None for the reference path.

    With kind "auto" that is the reference path where its time is no matter (`small`), where gradients are asked for on a
    processor, or where no kernel fits; "fused" insists and says why it cannot.
    """
    obstacle = _obstacle(ensemble)
    if kind == "reference" or (kind == "auto" and (small or obstacle)):
        return None
    if obstacle:
        raise ArgumentError(f"kernel='fused' is for Gaussian members in NumPy or PyTorch arrays, {obstacle}; use 'auto'")
    on_device = is_torch(ensemble.members.centre) and ensemble.members.centre.device.type != "cpu"
    package, extra = ("triton", "deep") if on_device else ("numba", "fast")
    if not _installed(package):
        if kind == "fused":
            raise MissingExtraError(package, extra)
        _hint(package, extra)
        return None
    if on_device:
        from uqprism.backends.triton.backend import DeviceKernel

        return DeviceKernel()
    from uqprism.backends.numba.backend import ProcessorKernel

    return ProcessorKernel()


def _obstacle(ensemble: EnsemblePrediction) -> str | None:
    """Why no kernel fits this ensemble, or None."""
    members, weights = ensemble.members, ensemble.weights
    if type(members) is not Gaussian:
        return f"these are {members.name}"
    if isinstance(members.mean, np.ndarray):
        return None
    if not is_torch(members.mean):
        return "these are JAX's"
    return _torch_obstacle(members, weights)


def _torch_obstacle(members: Gaussian, weights: Array) -> str | None:
    mean, device = members.mean, members.mean.device.type
    if str(mean.dtype) not in ("torch.float32", "torch.float64") or device not in ("cpu", "cuda"):
        return f"these are {mean.dtype} on {mean.device}"
    if device == "cuda" and mean.shape[0] > MOST_ON_DEVICE:
        return f"a device takes {MOST_ON_DEVICE} members and these are {mean.shape[0]}"
    parameters = [x for x in (mean, members.scale, members.given_variance) if x is not None]
    if any(is_transformed(x) for x in (*parameters, weights)):
        return "and these are inside a transformation of PyTorch"
    differentiated = device == "cpu" and any(x.requires_grad for x in parameters)
    return "and these need gradients" if differentiated or getattr(weights, "requires_grad", False) else None


@cache
def _installed(package: str) -> bool:
    return find_spec(package) is not None


@cache
def _hint(package: str, extra: str) -> None:
    """Say once what would be faster."""
    warnings.warn(f"{package} is not installed, so this takes the slow path; pip install 'uqprism[{extra}]'", stacklevel=5)
