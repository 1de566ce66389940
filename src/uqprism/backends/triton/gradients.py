"""Gradients of what kernels computed on a device: those of the reference there, one part of the points after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from uqprism.backends.reference import compute_part, split
from uqprism.ensemble import EnsemblePrediction
from uqprism.measures import Measure


def differentiable(ensemble: EnsemblePrediction, measures: Sequence[Measure], values: list[torch.Tensor]) -> list[torch.Tensor]:
    """The values of measures, with gradients if any parameter has one."""
    parameters = list(ensemble.members.stored().values())
    if not any(x.requires_grad for x in parameters):
        return values
    return list(_Differentiable.apply(_Rebuild(ensemble, measures), *parameters, *values))


class _Rebuild:
    """What the reference needs to compute the same measures again, with gradients."""

    def __init__(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> None:
        members = ensemble.members
        self.names, self.family, self.options = list(members.stored()), type(members), members.options()
        self.weights, self.measures = ensemble.weights, measures

    def chunks(self, parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Positions of points, in chunks that the reference takes whole."""
        with torch.no_grad():
            parts, order = split(self.ensemble(parameters))
        sizes = [part.n_points for part in parts]
        everything = torch.arange(sum(sizes)) if order is None else torch.as_tensor(order)
        return list(torch.split(everything.to(parameters[0].device), sizes))

    def ensemble(self, parameters: Sequence[torch.Tensor]) -> EnsemblePrediction:
        """The ensemble with these parameters."""
        members = self.family.restored(dict(zip(self.names, parameters, strict=True)), self.options)
        return EnsemblePrediction(members, self.weights, check=False)

    def values(self, parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The measures of one chunk by the reference."""
        values = compute_part(self.ensemble(parameters), self.measures).values
        return [values[measure.name] for measure in self.measures]


class _Differentiable(torch.autograd.Function):
    """Values from the fused kernel, gradients from the reference: one chunk of points at a time."""

    @staticmethod
    def forward(ctx: Any, build: _Rebuild, *given: torch.Tensor) -> Any:
        """Pass the values on, which come after the parameters."""
        ctx.build, count = build, len(build.names)
        ctx.save_for_backward(*given[:count])
        return tuple(value.clone() for value in given[count:])

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The gradients with respect to the parameters; they can be differentiated again."""
        again = torch.is_grad_enabled()
        parameters = ctx.saved_tensors if again else [x.detach() for x in ctx.saved_tensors]
        chunks, found = ctx.build.chunks(parameters), []
        count = sum(map(len, chunks))
        for at in chunks:
            with torch.enable_grad():
                # Unless a second derivative is asked for, each chunk has its own graph, freed before the next is built.
                ours = [x[..., at] if x.shape[-1] == count else x for x in parameters]
                ours = ours if again else [x.detach().requires_grad_() for x in ours]
                values = ctx.build.values(ours)
                weighted = sum((value * g[at]).sum() for value, g in zip(values, gradients, strict=True))
                parts = torch.autograd.grad(weighted, ours, create_graph=again, allow_unused=True, materialize_grads=True)
            found.append(parts)
        back = torch.argsort(torch.cat(chunks))
        whole = [
            torch.cat(parts, dim=-1)[..., back] if x.shape[-1] == count else sum(parts)  # of edges that all points share
            for x, parts in zip(parameters, zip(*found, strict=True), strict=True)
        ]
        return None, *whole, *(None for _ in gradients)
