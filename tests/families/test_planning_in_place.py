"""Plans of quadratures on a device: tensors of a processor are taken for a device's, and none may come to the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import uqprism as up
from uqprism import arrays
from uqprism.families import student_t
from uqprism.families.base import families
from uqprism.families.mixture import Mixture
from uqprism.families.quadrature import grid_over

FAMILIES = {
    "gaussian": {"mean": "location", "scale": "scale"},
    "laplace": {"location": "location", "scale": "scale"},
    "logistic": {"location": "location", "scale": "scale"},
    "student_t": {"location": "location", "scale": "scale", "df": "df"},
}
WANTED = {"student_t": ["log.*", "crps.bayes.matched"]}  # the distribution functions of a tensor take long
KINDS = ("ordinary", "wide ratios", "nearly agreeing", "needles")


def parameters(family: str, kind: str, rng: np.random.Generator, points: int = 6) -> dict[str, torch.Tensor]:
    centre, width = rng.normal(size=(4, points)), np.exp(0.5 * rng.normal(size=(4, points)))
    if kind == "wide ratios":  # many corners of the mixture's log density
        centre, width = 3.0 * centre, np.exp(2.5 * rng.normal(size=(4, points)))
    elif kind == "nearly agreeing":
        centre, width = 1e-3 * centre, 1.0 + 1e-3 * rng.normal(size=(4, points))
    elif kind == "needles":  # nodes are offsets from them
        centre[0], width[0] = 1.0, 1e-9
    values = {"location": centre, "scale": width, "df": rng.uniform(2.2, 9.0, (4, points))}
    return {name: torch.tensor(values[what], requires_grad=True) for name, what in FAMILIES[family].items()}


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it makes every tensor one of a device, and an error of moving one to the host."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a tensor was moved to the host")

    def force() -> None:
        for module in (arrays, student_t):
            monkeypatch.setattr(module, "on_device", arrays.is_torch)
        for name in ("cpu", "numpy", "tolist", "__array__"):
            monkeypatch.setattr(torch.Tensor, name, refuse)

    return force


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_same_nodes(family: str, kind: str, rng: np.random.Generator, in_place: Callable[[], None]) -> None:
    given = {name: x.detach() for name, x in parameters(family, kind, rng).items()}
    mixture = Mixture(families.get(family)(**given))
    there = grid_over(mixture)
    in_place()
    here = grid_over(mixture)
    assert here.nodes.shape == there.nodes.shape
    # A corner's place and width come from logarithms, of which two libraries may differ in the last bit.
    torch.testing.assert_close(here.nodes, there.nodes, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("family", FAMILIES)
def test_same_measures_and_gradients(family: str, kind: str, rng: np.random.Generator, in_place: Callable[[], None]) -> None:
    """Measures and their gradients, without a tensor leaving its place."""
    given = parameters(family, kind, rng, points=2)
    found = []
    for force in (lambda: None, in_place):
        force()
        ensemble = up.EnsemblePrediction(families.get(family)(**given), [0.1, 0.2, 0.3, 0.4])
        table = up.evaluate(ensemble, WANTED.get(family), backend="reference")
        values = torch.stack([table[name] for name in table])
        found.append([values, *torch.autograd.grad(values.sum(), list(given.values()))])
    for there, here in zip(*found, strict=True):
        torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-11)


def test_many_points_in_parts(rng: np.random.Generator, in_place: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are ordered by difficulty where the points live, and the results put back in order."""
    monkeypatch.setattr("uqprism.backends.reference.ELEMENTS", 2**12)
    given = {name: x.detach() for name, x in parameters("gaussian", "wide ratios", rng, points=40).items()}
    wanted = ["log.excess.mixture.members", "crps.excess.members.members"]
    ensemble = up.EnsemblePrediction.gaussian(**given, weights=[0.5, 0.0, 0.25, 0.25])
    there = up.evaluate(ensemble, wanted, backend="reference")
    in_place()
    here = up.evaluate(ensemble, wanted, backend="reference")
    for name in wanted:
        torch.testing.assert_close(here[name], there[name], rtol=1e-9, atol=1e-12)


def test_quantiles_without_the_host(rng: np.random.Generator, in_place: Callable[[], None]) -> None:
    """SciPy has the quantiles of Student's t for a processor; a device finds them by bisection."""
    t = families.get("student_t")(**{name: x.detach() for name, x in parameters("student_t", "ordinary", rng).items()})
    there = t.quantile(torch.tensor(0.9, dtype=torch.float64))
    in_place()
    torch.testing.assert_close(t.quantile(torch.tensor(0.9, dtype=torch.float64)), there, rtol=1e-12, atol=1e-12)
