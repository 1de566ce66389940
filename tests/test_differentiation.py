"""Gradients: right, and finite everywhere, also where members coincide."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from tests.conftest import ORACLE, as_array, error_of, is_hard

torch = pytest.importorskip("torch")


def gradient_of(value, tensor):
    """The gradient, or None where the measure does not depend on the tensor at all."""
    if not value.requires_grad:
        return None
    return torch.autograd.grad(value.sum(), tensor, retain_graph=True, allow_unused=True)[0]


def total_of_all(mean, scale):
    """The sum of all 144 measures, each weighted differently so that no gradient cancels another."""
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale))
    return sum((1.0 + 0.01 * i) * table[name].sum() for i, name in enumerate(table))


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-4, 0.3, 3.0, 30.0])
def test_torch_gradients_are_finite(spread: float) -> None:
    """Every measure on its own, from coinciding to far apart members."""
    offsets = torch.tensor([[-1.0, 0.5], [0.2, 0.5], [1.0, 0.5]], dtype=torch.float64)
    mean = (spread * offsets).requires_grad_()
    scale = torch.exp(min(spread, 1.0) * offsets.flip(0)).requires_grad_()
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale))
    for name in table:
        gradients = torch.autograd.grad(table[name].sum(), (mean, scale), retain_graph=True, allow_unused=True)
        for gradient in gradients:
            assert gradient is None or torch.isfinite(gradient).all(), name


@pytest.mark.parametrize("spread", [0.05, 0.3, 3.0])
def test_torch_gradients_are_right(spread: float) -> None:
    """Against central differences of the exact values, measure by measure."""
    rng = np.random.default_rng(3)
    mean, scale = spread * rng.normal(size=(3, 1)), np.exp(0.3 * min(spread, 1.0) * rng.normal(size=(3, 1)))
    tensors = [torch.tensor(x, requires_grad=True) for x in (mean, scale)]
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=tensors[0], scale=tensors[1]))
    step = 1e-5
    for which in (0, 1):
        moved = []
        for sign in (1.0, -1.0):
            arrays = [mean.copy(), scale.copy()]
            arrays[which][1, 0] += sign * step
            moved.append(up.evaluate(up.EnsemblePrediction.gaussian(mean=arrays[0], scale=arrays[1])))
        for name in table:
            slope = (moved[0][name] - moved[1][name]) / (2 * step)
            gradient = gradient_of(table[name], tensors[which])
            value = 0.0 if gradient is None else float(gradient[1, 0])
            assert_allclose(value, slope[0], rtol=2e-6, atol=2e-9, err_msg=name)


@pytest.mark.parametrize("rule", [up.rules.GaussianKernel(0.8), up.rules.Quantile(0.3), up.rules.Bregman()], ids=lambda r: r.name)
def test_gradients_of_the_other_rules(rule) -> None:
    rng = np.random.default_rng(4)
    mean, scale = rng.normal(size=(3, 1)), np.exp(0.3 * rng.normal(size=(3, 1)))
    tensor = torch.tensor(mean, requires_grad=True)
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=tensor, scale=torch.tensor(scale)), up.catalogue([rule]))
    shift = np.array([[0.0], [1e-5], [0.0]])
    moved = [
        up.evaluate(up.EnsemblePrediction.gaussian(mean=mean + sign * shift, scale=scale), up.catalogue([rule]))
        for sign in (1, -1)
    ]
    for name in table:
        gradient = gradient_of(table[name], tensor)
        value = 0.0 if gradient is None else float(gradient[1, 0])
        assert_allclose(value, (moved[0][name] - moved[1][name])[0] / 2e-5, rtol=1e-5, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("family", ["laplace", "logistic", "student_t"])
def test_gradients_of_the_other_families(family: str) -> None:
    """Finite everywhere and right for the pairwise excess, also where two members coincide."""
    extra = {"df": 5.0} if family == "student_t" else {}
    location = np.array([[0.0], [0.0], [1.0]])
    make = getattr(up.EnsemblePrediction, family)
    tensor = torch.tensor(location, requires_grad=True)
    table = up.evaluate(make(location=tensor, scale=torch.ones(3, 1, dtype=torch.float64), **extra))
    for name in table:
        gradient = gradient_of(table[name], tensor)
        assert gradient is None or torch.isfinite(gradient).all(), name
    moved = [
        up.decompose(make(location=location + s * np.array([[0.0], [0.0], [1e-5]]), scale=np.ones((3, 1)), **extra))
        for s in (1, -1)
    ]
    gradient = torch.autograd.grad(table["crps.excess.members.members"].sum(), tensor)[0]
    assert_allclose(float(gradient[2, 0]), (moved[0].excess - moved[1].excess)[0] / 2e-5, rtol=1e-6)


BOUNDED = {
    "lognormal": {"log_mean": 0.3, "log_scale": 0.5},
    "gamma": {"shape": 2.3, "scale": 0.5},
    "weibull": {"shape": 2.3, "scale": 0.5},
    "beta": {"a": 2.3, "b": 3.5},
    "truncated_gaussian": {"location": 0.3, "scale": 1.0, "low": 0.0},
    "censored_gaussian": {"location": 0.3, "scale": 1.0, "high": 1.0},
    "poisson": {"rate": 2.5},
    "negative_binomial": {"rate": 2.5, "size": 3.0},
}


GRADIENTS = [*((family, rule) for family in BOUNDED for rule in ("crps", "log")), ("truncated_gaussian", "quadratic")]


@pytest.mark.parametrize(("family", "rule"), GRADIENTS)
def test_gradients_of_families_with_bounds(family: str, rule: str) -> None:
    """Against central differences, in all parameters but bounds, of which one may be infinite; the last two members coincide."""
    make = getattr(up.EnsemblePrediction, family)
    given = {name: np.array([[1.1 * x], [x], [x]]) for name, x in BOUNDED[family].items() if name not in ("low", "high")}
    bounds = {name: x for name, x in BOUNDED[family].items() if name not in given}
    tensors = {name: torch.tensor(x, requires_grad=True) for name, x in given.items()}
    parts = up.decompose(make(**tensors, **bounds), rule)
    for name, values in given.items():
        step = 1e-5 * np.array([[1.0], [0.0], [0.0]])
        moved = [up.decompose(make(**{**given, name: values + sign * step}, **bounds), rule) for sign in (1.0, -1.0)]
        for part in ("total", "bayes", "excess"):
            gradient = torch.autograd.grad(getattr(parts, part).sum(), tensors[name], retain_graph=True)[0]
            assert torch.isfinite(gradient).all()
            slope = (getattr(moved[0], part) - getattr(moved[1], part))[0] / 2e-5
            assert_allclose(float(gradient[0, 0]), slope, rtol=1e-5, atol=1e-8, err_msg=f"{part} by {name}")


def test_outputs_follow_inputs(library: str) -> None:
    """Kind and precision of the input come back."""
    for dtype in ("float32", "float64"):
        mean = as_array(library, [[0.0, 1.0], [1.0, 2.0]], dtype)
        ens = up.EnsemblePrediction.gaussian(mean=mean, scale=as_array(library, np.ones((2, 2)), dtype))
        value = up.decompose(ens, rule="crps").total
        assert type(value) is type(mean)
        assert value.dtype == mean.dtype
        assert ens.matched.variance.dtype == mean.dtype


@cache
def _jax_slopes() -> Any:
    """`total_of_all` and its gradients, which takes long to compile."""
    import jax

    return jax.jit(jax.value_and_grad(total_of_all, argnums=(0, 1)))


@pytest.mark.slow
def test_jax_jit_and_grad() -> None:
    """Under jit the numbers are those of NumPy, and gradients those of PyTorch: of members apart, near and coinciding."""
    rng = np.random.default_rng(5)
    mean, scale = rng.normal(size=(3, 3)), np.exp(0.3 * rng.normal(size=(3, 3)))
    mean[:, 1] = 0.7 + 1e-3 * mean[:, 1]
    mean[:, 2] = 0.2
    scale[:, 1:] = 1.0
    value, (d_mean, d_scale) = _jax_slopes()(*(as_array("jax", x) for x in (mean, scale)))
    tensors = [torch.tensor(x, requires_grad=True) for x in (mean, scale)]
    ours = total_of_all(*tensors)
    ours.backward()
    assert_allclose(float(value), float(ours.detach()), rtol=1e-11)
    assert_allclose(d_mean, tensors[0].grad.numpy(), rtol=1e-8, atol=1e-10)
    assert_allclose(d_scale, tensors[1].grad.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_jax_gradients_are_finite_where_members_coincide() -> None:
    """Of all measures under jit, and of one without, which takes the same way through the code."""
    import jax

    mean, scale = as_array("jax", np.zeros((3, 3))), as_array("jax", np.ones((3, 3)))
    _, gradients = _jax_slopes()(mean, scale)
    alone = jax.grad(lambda x: up.decompose(up.EnsemblePrediction.gaussian(mean=x, scale=scale[:, :1])).total.sum())(mean[:, :1])
    assert all(np.isfinite(np.asarray(gradient)).all() for gradient in (*gradients, alone))


@pytest.mark.slow
def test_jax_jit_states_a_bound_that_holds() -> None:
    """Under jit the number of panels is fixed; the stated tolerance covers even the widest reference case."""
    import jax

    exactness = {}

    @jax.jit
    def measures(mean, scale):
        table = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale))
        exactness.update(table.exactness)
        return dict(table)

    cases = [case for case in ORACLE if len(case["mu"]) == 5]
    values = measures(*(as_array("jax", np.array([case[key] for case in cases]).T) for key in ("mu", "sigma")))
    for i, case in enumerate(cases):
        ordinary = case["tag"] in ("easy", "near", "counterexample")
        for name, truth in case["values"].items():
            error = error_of(name, values[name][i], truth)
            assert error <= exactness[name].tolerance, (case["name"], name)
            assert not ordinary or error <= (1e-8 if is_hard(name) else 1e-10), (case["name"], name)


def _closed_over() -> dict[str, Any]:
    """Functions of one traced argument, with everything else constant; and that argument."""
    import jax.numpy as jnp

    mean, scale = jnp.asarray([[0.0, 1.0], [0.5, -1.0], [2.0, 0.0]]), jnp.asarray([[1.0, 0.7], [0.8, 1.2], [1.0, 0.9]])
    weights, kinds = jnp.asarray([0.2, 0.3, 0.5]), up.EnsemblePrediction
    how = {"rule": "log", "prediction": "mixture"}
    return {
        "mean": (lambda x: up.decompose(kinds.gaussian(mean=x, scale=scale), **how).excess, mean),
        "scale": (lambda x: up.decompose(kinds.gaussian(mean=mean, scale=x), **how).excess, scale),
        "variance": (lambda x: up.decompose(kinds.gaussian(mean=mean, variance=x), truth="matched").excess, scale),
        "weights": (lambda x: up.decompose(kinds.gaussian(mean=mean, scale=scale, weights=x), **how).excess, weights),
        "location": (lambda x: up.decompose(kinds.student_t(location=x, scale=scale, df=5.0)).excess, mean),
        "draws": (lambda x: up.decompose(kinds.samples(x[:, :, None]), prediction="mixture").excess, mean),
        "bandwidth": (lambda x: up.decompose(kinds.gaussian(mean=mean, scale=scale), up.rules.GaussianKernel(x)).excess, 1.5),
        "level": (
            lambda x: up.decompose(kinds.gaussian(mean=mean, scale=scale), up.rules.Quantile(x), prediction="mixture").excess,
            0.3,
        ),
        "score": (
            lambda x: (
                up.decompose(
                    kinds.gaussian(mean=mean, scale=scale), up.rules.from_score("mine", lambda p, y: x * (y - p.mean) ** 2)
                ).excess
            ),
            1.5,
        ),
    }


@pytest.mark.parametrize("name", ["mean", "scale", "variance", "weights", "location", "draws", "bandwidth", "level", "score"])
def test_jax_transformations_with_constants_closed_over(name: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    function, x = _closed_over()[name]
    plain = function(x)
    (_, value), gradient = jax.jit(jax.value_and_grad(lambda t: (function(t).sum(), function(t)), has_aux=True))(x)
    assert_allclose(value, plain, rtol=1e-5)
    step = 1e-4 * np.cos(np.arange(np.size(x)).reshape(np.shape(x)))
    step = step - step.mean() if name == "weights" else step
    slope = (function(x + step).sum() - function(x - step).sum()) / 2.0
    assert_allclose(np.sum(gradient * step), slope, rtol=1e-3, atol=1e-9)
    many = jax.jit(jax.vmap(function))(np.stack([x, x]))
    assert_allclose(many, [plain, plain], rtol=1e-5)


@pytest.mark.slow
def test_jax_slopes_of_student_t_are_those_of_pytorch() -> None:
    """Which are of panels and of a series, in all three parameters and near, at and far from the centre; and once more."""
    import jax

    jax.config.update("jax_enable_x64", True)
    y, at = np.array([-40.0, -1.0, 0.0, 0.3, 2.0, 9.0, 1e3]), [np.full(7, number) for number in (0.1, 1.3, 3.0)]

    def below(location, scale, df):
        t = up.families.StudentT(location=location, scale=scale, df=df, check=False)
        return (t.cdf(torch.tensor(y) if isinstance(df, torch.Tensor) else jax.numpy.asarray(y)) ** 2).sum()

    tensors = [torch.tensor(x, requires_grad=True) for x in at]
    theirs = torch.autograd.grad(below(*tensors), tensors, create_graph=True)
    ours = jax.jit(jax.grad(below, argnums=(0, 1, 2)))(*at)
    for ours_of, theirs_of in zip(ours, theirs, strict=True):
        assert_allclose(ours_of, theirs_of.detach().numpy(), rtol=1e-10, atol=1e-16)
    twice = jax.jit(jax.grad(lambda *x: sum(each.sum() for each in jax.grad(below, argnums=(0, 1, 2))(*x))))(*at)
    assert_allclose(twice, torch.autograd.grad(sum(each.sum() for each in theirs), tensors[0])[0].numpy(), rtol=1e-9, atol=1e-15)


def test_values_within_jit_cannot_leave_as_numpy() -> None:
    import jax

    table = lambda mean: up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=1.0), "usual").to_pandas()  # noqa: E731
    with pytest.raises(up.UqprismError, match=r"not known within jax\.jit"):
        jax.jit(table)(np.zeros((2, 3)))
