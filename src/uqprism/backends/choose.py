"""Choose the backend that computes measures.

The reference is the readable code that the kernels are tested against. Kernels compute the same risks in one pass: on
processors with Numba, for Gaussian members and for those of any family that states a `PointwiseForm`; on NVIDIA devices with
Triton. Members known by draws take one sort of each point, with Numba or in their own array library. The reference computes the
measures that a kernel does not cover, and the points that it declines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Literal, Protocol

import numpy as np

from uqprism.arrays import Array, is_torch, is_transformed
from uqprism.backends.draws import DrawsBackend, is_small, suits_kernel
from uqprism.backends.reference import Computed, Reference, fits_one_part, put
from uqprism.backends.rows import has_two_ends
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, MissingExtraError, install_command, warn
from uqprism.families.base import Family
from uqprism.families.draws import Draws
from uqprism.families.elementwise import stated_form
from uqprism.families.gaussian import Gaussian
from uqprism.families.histogram import Histogram
from uqprism.families.mixture import Mixture
from uqprism.families.quantiles import Quantiles
from uqprism.measures import Measure

BackendName = Literal["auto", "fused", "reference"]
MOST_IN_PAIRS = 1000  # members on a device: beyond, integrals over nodes take less time than all pairs
FEW = 200  # members of all points, of a family without closed forms, that the reference computes before a kernel is loaded
FEW_BETWEEN_BOUNDS = 20  # the same of densities that vary over short lengths next to two bounds, where the reference is slow
FEW_BARS = 20  # the same of members given by bars or quantiles, of which each takes a grid of its own


class Backend(Protocol):
    """One way to compute measures."""

    def covers(self, measure: Measure) -> bool:
        """True if this backend can compute the measure."""

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """Compute measures it covers, for points along one axis."""


def compute(ensemble: EnsemblePrediction, measures: Sequence[Measure], name: BackendName) -> Computed:
    """Compute measures by the backend of this name, and by the reference what that one leaves."""
    if isinstance(ensemble.members, Mixture) and len(ensemble.members.weights) == 1:  # what such mixtures are has closed forms
        ensemble = EnsemblePrediction(ensemble.members.components.map(lambda x: x[0]), ensemble.weights, check=False)
    backend, reference = choose(ensemble, name), Reference()
    covered = [m for m in measures if backend.covers(m)]
    done = backend.compute(ensemble, covered) if covered else Computed({}, {})
    rest = [m for m in measures if m.name not in done.values]
    if rest:
        more = reference.compute(ensemble, rest)
        done = Computed(done.values | more.values, done.exactness | more.exactness, done.declined)
    # Last, because asking for the declined points waits for a device to finish.
    for at, affected in done.declined:
        patch = reference.compute(ensemble[at], [m for m in covered if m.name in affected])
        for measure, repaired in patch.values.items():
            done.values[measure] = put(done.values[measure], at, repaired)
    return done


def choose(ensemble: EnsemblePrediction, name: BackendName) -> Backend:
    """The backend for this ensemble.

    With "auto" that is the reference where its time does not matter, where gradients are asked for on a processor, or where
    no kernel fits; "fused" insists on a kernel and says why there is none.
    """
    if type(ensemble.members) is Draws:
        return _for_draws(ensemble, name)
    if name == "reference":
        return Reference()
    obstacle = _obstacle(ensemble)
    gaussian, bars = type(ensemble.members) is Gaussian, isinstance(ensemble.members, Histogram)
    # For few points the reference is quick enough, and a kernel would have to be loaded first.
    most = FEW_BARS if bars else FEW_BETWEEN_BOUNDS if has_two_ends(ensemble.members) else FEW
    few = fits_one_part(ensemble) if gaussian else ensemble.n_points * ensemble.n_members <= most
    if name == "auto" and (obstacle or few):
        return Reference()
    if obstacle:
        raise ArgumentError(f"backend='fused' is for families with a kernel, in NumPy or PyTorch arrays, {obstacle}; use 'auto'")
    like = ensemble.members.arrays()[0]
    on_device = is_torch(like) and like.device.type != "cpu"
    package, extra = ("triton", "deep") if on_device else ("numba", "fast")
    if not _installed(package):
        if name == "fused":
            raise MissingExtraError(package, extra)
        _hint(package, extra)
        return Reference()
    if bars:
        return _kernel_for_bars(on_device=on_device)
    pairs = gaussian and not (on_device and ensemble.n_members > MOST_IN_PAIRS)
    return _kernels(on_device=on_device, pairs=pairs)


def _kernels(*, on_device: bool, pairs: bool) -> Backend:
    """The backend whose kernels use the closed forms between pairs of Gaussians, or the one for any family."""
    if on_device and pairs:
        from uqprism.backends.triton.backend import TritonBackend

        return TritonBackend()
    if on_device:
        from uqprism.backends.triton.pointwise import TritonPointwiseBackend

        return TritonPointwiseBackend()
    if pairs:
        from uqprism.backends.numba.backend import NumbaBackend

        return NumbaBackend()
    from uqprism.backends.numba.pointwise import PointwiseBackend

    return PointwiseBackend()


def _for_draws(ensemble: EnsemblePrediction, name: BackendName) -> Backend:
    """One sort of each point everywhere: by a kernel for many draws on a processor, elsewhere in the arrays' own library."""
    if name == "reference" or not suits_kernel(ensemble) or (name == "auto" and is_small(ensemble)):
        return DrawsBackend()
    if not _installed("numba"):
        if name == "fused":
            raise MissingExtraError("numba", "fast")
        _hint("numba", "fast")
        return DrawsBackend()
    return DrawsBackend(fused=True)


def _kernel_for_bars(*, on_device: bool) -> Backend:
    if on_device:
        from uqprism.backends.triton.bars import TritonBarsBackend

        return TritonBarsBackend()
    from uqprism.backends.numba.bars_backend import BarsBackend

    return BarsBackend()


def _obstacle_of_bars(ensemble: EnsemblePrediction) -> str | None:
    """Why the kernel for bars and quantiles does not fit these, or None."""
    if type(ensemble.members) not in (Histogram, Quantiles):  # a subclass may have another density
        return f"and {type(ensemble.members).__name__} states no form to compile one from"
    arrays = [x for x in (*ensemble.members.arrays(), ensemble.weights) if x is not None]
    if all(isinstance(x, np.ndarray) for x in arrays):
        return None
    if not all(is_torch(x) for x in arrays):
        return "these are JAX's"
    kinds = {str(x.dtype) for x in arrays} - {"torch.float32", "torch.float64"}
    if kinds or {x.device.type for x in arrays} - {"cpu", "cuda"}:
        return f"these are {', '.join(sorted(kinds or {str(x.device) for x in arrays}))}"
    return _obstacle_of_gradients(ensemble.members, ensemble.weights, on_device=any(x.device.type == "cuda" for x in arrays))


def _obstacle(ensemble: EnsemblePrediction) -> str | None:
    """Why no kernel fits this ensemble, or None."""
    members, weights = ensemble.members, ensemble.weights
    if isinstance(members, Histogram):
        return _obstacle_of_bars(ensemble)
    form = stated_form(members)
    if form is None:
        return f"and {type(members).__name__} states no form to compile one from"
    if isinstance(members.centre, np.ndarray):
        return None
    if not is_torch(members.centre):
        return "these are JAX's"
    return _torch_obstacle(members, weights)


def _torch_obstacle(members: Family, weights: Array) -> str | None:
    centre, device = members.centre, members.centre.device.type
    if str(centre.dtype) not in ("torch.float32", "torch.float64") or device not in ("cpu", "cuda"):
        return f"these are {centre.dtype} on {centre.device}"
    return _obstacle_of_gradients(members, weights, on_device=device == "cuda")


def _obstacle_of_gradients(members: Family, weights: Array, *, on_device: bool) -> str | None:
    parameters = members.arrays()
    if any(is_transformed(x) for x in (*parameters, weights)):
        return "and these are inside a transformation of PyTorch"
    # On a device the kernel gives the values and the reference the gradients; gradients of weights only the reference has.
    differentiated = not on_device and any(x.requires_grad for x in parameters)
    return "and these need gradients" if differentiated or getattr(weights, "requires_grad", False) else None


@cache
def _installed(package: str) -> bool:
    return find_spec(package) is not None


@cache
def _hint(package: str, extra: str) -> None:
    """Warn once that another package would make this faster."""
    warn(f"{package} is not installed, so this is slow; {install_command(extra)}")
