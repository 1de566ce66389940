"""Gradients of values that a kernel computed: those of the reference, in chunks of points."""

from __future__ import annotations

import pytest

import uqprism as up
from uqprism.backends import reference

torch = pytest.importorskip("torch")

from uqprism.backends.triton.gradients import differentiable  # noqa: E402 (imports PyTorch, not Triton)

WANTED = ["crps.excess.members.members", "log.bayes.mixture"]


def bars(parameters: list) -> up.EnsemblePrediction:
    """Bars whose edges all members and points share."""
    steps, logits = parameters
    edges = torch.cat([torch.zeros(1, dtype=torch.float64), torch.cumsum(torch.exp(steps), 0)])
    return up.EnsemblePrediction.histogram(edges=edges, probabilities=torch.softmax(logits, 1))


def mixtures(parameters: list) -> up.EnsemblePrediction:
    """Mixtures of two Gaussians."""
    mean, scale = parameters
    return up.EnsemblePrediction.gaussian_mixture(mean=mean, scale=torch.exp(scale))


SHAPES = {"bars": (bars, [(5,), (3, 5, 7)]), "mixtures": (mixtures, [(3, 2, 7), (3, 2, 7)])}


@pytest.mark.parametrize("kind", SHAPES)
def test_gradients_in_chunks_are_those_of_all_points(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, shapes = SHAPES[kind]
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in shapes]
    measures = [m for m in up.catalogue() if m.name in WANTED]
    found = []
    for chunked in (False, True):
        parameters = [x.clone().requires_grad_() for x in start]
        ensemble = build(parameters)
        values = list(reference.Reference().compute(ensemble, measures).values.values())
        if chunked:
            monkeypatch.setattr(reference, "ELEMENTS", 4_000)  # a few points in each
            values = differentiable(ensemble, measures, [value.detach() for value in values])
        loss = sum((value * torch.arange(1.0, 8.0)).sum() for value in values)
        found.append(torch.autograd.grad(loss, parameters))
    for whole, chunks in zip(*found, strict=True):
        torch.testing.assert_close(chunks, whole, rtol=1e-7, atol=1e-10)
