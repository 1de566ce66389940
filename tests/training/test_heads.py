"""Heads against SciPy and this package's rules; losses where naive forms break."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

import uqprism as up
from uqprism.rules import CRPS
from uqprism.training import (
    MLP,
    BetaNLL,
    Evidential,
    HistogramHead,
    MeanVariance,
    MixtureHead,
    QuantileHead,
    WarmUp,
    heads,
    train,
    train_many,
)
from uqprism.training.heads.evidential import student_nll
from uqprism.training.heads.gaussian import natural_nll

from .problems import FAST, waves

ZERO = torch.zeros(1)


TARGETS = torch.linspace(-2.0, 2.0, 101, dtype=torch.float64)  # for heads that take settings from them


def raw_and_target(outputs: int = 2, n: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(n, outputs + 1, generator=generator, dtype=torch.float64) * 2.0
    return draws[:, :outputs], draws[:, outputs]


def test_natural_loss_keeps_its_digits_in_float32() -> None:
    """The paper's form gives -515.7 here."""
    precision = torch.tensor(1e4)
    loss = natural_nll(1000.0 * precision, precision, torch.tensor(1000.01))
    exact = -stats.norm.logpdf(float(torch.tensor(1000.01)), 1000.0, 0.01)
    assert_allclose(float(loss), exact, rtol=1e-4)
    assert_allclose(float(loss), -3.19, atol=0.01)


def test_natural_head_has_natural_parameters() -> None:
    raw = raw_and_target()[0]
    given = heads.resolve("natural").parameters(raw)
    eta2 = -0.5 * (torch.nn.functional.softplus(raw[:, 1]) + 1e-8)
    expected = up.EnsemblePrediction.natural(eta1=raw[None, :, 0], eta2=eta2[None]).members
    assert_allclose(given["mean"], expected.mean[0], rtol=1e-12)
    assert_allclose(given["variance"], expected.variance[0], rtol=1e-12)


def log_score(y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return -stats.norm.logpdf(y, mean, np.sqrt(variance))


def closed_crps(y: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    z = (y - mean) / scale
    return scale * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


SCORES = {
    **dict.fromkeys(["natural", "mean_variance", "warm_up", "beta_nll"], log_score),
    "crps": closed_crps,
    "laplace": lambda y, location, scale: -stats.laplace.logpdf(y, location, scale),
}


@pytest.mark.parametrize("name", SCORES)
def test_validation_losses_are_scores(name: str) -> None:
    """The head's score by SciPy; without weights and warm-up the training loss is the same."""
    head = heads.resolve(name)
    raw, target = raw_and_target()
    expected = SCORES[name](target.numpy(), **{key: value.numpy() for key, value in head.parameters(raw).items()})
    assert_allclose(head.validation_loss(raw, target), expected, rtol=1e-9 if name == "crps" else 1e-12)
    if name not in {"warm_up", "beta_nll"}:
        assert_allclose(head.loss(raw, target, ZERO), head.validation_loss(raw, target))


def test_evidential_loss_is_student_t_and_a_penalty() -> None:
    head = Evidential(weight=0.3)
    raw, target = raw_and_target(4)
    given = {key: value.numpy() for key, value in head.parameters(raw).items()}
    scale = np.sqrt(given["beta"] * (1 + given["nu"]) / (given["nu"] * given["alpha"]))
    nll = -stats.t.logpdf(target.numpy(), 2 * given["alpha"], given["gamma"], scale)
    assert_allclose(student_nll(**head.parameters(raw), target=target), nll, rtol=1e-9)
    penalty = np.abs(target.numpy() - given["gamma"]) * (2 * given["nu"] + given["alpha"])
    assert_allclose(head.loss(raw, target, ZERO), nll + 0.3 * penalty, rtol=1e-9)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_beta_nll_weights_the_gradient_by_a_power_of_the_variance(beta: float) -> None:
    """Seitzer et al.: for beta = 1 the mean's gradient is that of the squared error."""
    raw, target = raw_and_target()
    raw.requires_grad_()
    head, plain = BetaNLL(beta=beta), MeanVariance()
    (weighted,) = torch.autograd.grad(head.loss(raw, target, ZERO).sum(), raw)
    (ordinary,) = torch.autograd.grad(plain.loss(raw, target, ZERO).sum(), raw)
    variance = plain.parameters(raw)["variance"].detach()
    assert_allclose(weighted, ordinary * variance[:, None] ** beta, rtol=1e-9)
    if beta == 1.0:
        assert_allclose(weighted[:, 0], (raw[:, 0] - target).detach(), rtol=1e-9)


def test_warm_up_leaves_the_variance_alone_until_it_ends() -> None:
    head = WarmUp(epochs=3)
    raw, target = raw_and_target()
    raw.requires_grad_()
    ages = torch.tensor([[0.0], [2.0], [3.0]])
    losses = head.loss(raw.expand(3, *raw.shape), target.expand(3, -1), ages)
    assert_allclose(losses[0].detach(), 0.5 * (raw[:, 0] - target).detach() ** 2)
    (gradient,) = torch.autograd.grad(losses[1].sum(), raw, retain_graph=True)
    assert not gradient[:, 1].any()
    assert_allclose(losses[2].detach(), head.validation_loss(raw, target).detach())


@pytest.mark.parametrize("name", heads.heads.names())
def test_losses_and_gradients_are_finite_for_large_values(name: str) -> None:
    """Raw outputs and targets of a hundred, in float32."""
    head = heads.resolve(name).fitted(TARGETS)
    values = torch.tensor([-100.0, -10.0, 0.0, 10.0, 100.0])
    few = head.n_outputs <= 4
    chosen = torch.randint(5, (500, head.n_outputs), generator=torch.Generator().manual_seed(0))
    raw = (torch.cartesian_prod(*[values] * head.n_outputs) if few else values[chosen]).requires_grad_()
    for target in (-100.0, 0.0, 100.0):
        loss = head.loss(raw, torch.full((len(raw),), target), ZERO)
        (gradient,) = torch.autograd.grad(loss.sum(), raw)
        assert torch.isfinite(loss).all()
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", heads.heads.names())
def test_parameters_follow_a_change_of_units_and_heads_convert_to_plain_data_and_back(name: str) -> None:
    """In units of mean + scale * y, the likelihood of a target moves by log(scale) and nothing else."""
    head = heads.resolve(name).fitted(TARGETS)
    raw, target = raw_and_target(head.n_outputs)
    given = head.parameters(raw)
    moved = head.to_units(given, torch.tensor(1e3), torch.tensor(2.5))
    if head.family == "evidential":
        before, after = (up.EvidentialPrediction(**{k: v.numpy() for k, v in p.items()}).predictive for p in (given, moved))
        scores = [up.rules.Log().score(p, t) for p, t in ((before, target.numpy()), (after, 1e3 + 2.5 * target.numpy()))]
    else:
        there = [head.distribution(p) for p in (given, moved)]
        assert {each.name for each in there} == {head.family}
        scores = [up.rules.Log().score(p, t) for p, t in zip(there, (target, 1e3 + 2.5 * target), strict=True)]
    assert_allclose(scores[1] - scores[0], np.log(2.5), rtol=1e-9)
    assert heads.from_dict(heads.to_dict(head)) == head


@pytest.mark.parametrize("kind", [MixtureHead, HistogramHead])
@pytest.mark.parametrize("rule", ["log", "crps", "quadratic"])
def test_losses_of_lists_are_scores_of_the_rule(kind: type, rule: str) -> None:
    """By this package's rules, whose own tests have oracles; also where targets lie beyond the outermost edges."""
    head = kind(rule=rule).fitted(TARGETS)
    raw, target = raw_and_target(head.n_outputs)
    expected = up.rules.rules.get(rule)().score(head.distribution(head.parameters(raw)), target)
    assert_allclose(head.loss(raw, target, ZERO), expected, rtol=1e-9, atol=1e-12)
    assert (target.abs() > 2.0).any()


def test_the_loss_of_both_rules_is_their_sum() -> None:
    raw, target = raw_and_target(9)
    log, crps, both = (MixtureHead(rule=rule).loss(raw, target, ZERO) for rule in ("log", "crps", "log+crps"))
    assert_allclose(both, log + 5.0 * crps, rtol=1e-12)
    assert MixtureHead() == MixtureHead(rule="log+crps")


def test_pinball_loss_is_the_crps_of_many_levels() -> None:
    head = QuantileHead(levels=tuple((np.arange(400) + 0.5) / 400))
    raw, target = raw_and_target(head.n_outputs)
    expected = up.rules.CRPS().score(head.distribution(head.parameters(raw)), target)
    assert_allclose(head.loss(raw, target, ZERO), expected, rtol=0.01)
    values = head.parameters(raw)["values"]
    assert (values[:, 1:] > values[:, :-1]).all()


def test_outputs_of_zero_are_a_standard_gaussian() -> None:
    """Where training begins."""
    quantiles = QuantileHead()
    found = quantiles.parameters(torch.zeros(1, quantiles.n_outputs, dtype=torch.float64))["values"][0]
    assert_allclose(found, stats.norm.ppf(quantiles.levels), atol=1e-4)
    mixture = MixtureHead(components=4)
    start = mixture.distribution(mixture.parameters(torch.zeros(1, 12, dtype=torch.float64)))
    assert_allclose(start.mean, [0.0], atol=1e-12)
    assert 1.0 < float(start.variance[0]) < 1.5


def test_bars_come_from_the_targets() -> None:
    targets = -torch.linspace(0.001, 0.999, 1000, dtype=torch.float64).log()
    edges = torch.tensor(HistogramHead(bars=20).fitted(targets).edges)
    assert len(edges) == 21
    counts = torch.histogram(targets, edges[1:-1].double()).hist
    assert_allclose(counts, 50.0, atol=1.5)  # as many in each bar
    grades = torch.tensor([3.0, 4.0, 5.0]).repeat(100)
    assert HistogramHead().fitted(grades).edges == (2.5, 3.5, 4.5, 5.5)
    assert len(HistogramHead().fitted(torch.zeros(30)).edges) == 5
    assert HistogramHead().fitted(targets[:45]).n_outputs == 4  # ten rows for each


def test_several_training_sets_need_bars_in_common() -> None:
    x, y = waves(40)
    rows = np.arange(40).reshape(2, 20)
    with pytest.raises(up.UqprismError, match=r"give HistogramHead\(edges=...\)"):
        train_many(x, y, rows, **FAST, head="histogram")
    assert len(train_many(x, y, rows, **FAST, head=HistogramHead(edges=(-1.0, 0.0, 1.0)))) == 2


def test_unknown_heads_suggest_the_nearest() -> None:
    with pytest.raises(up.UqprismError, match="did you mean 'natural'"):
        heads.resolve("natral")
    with pytest.raises(up.UqprismError, match=r"head must be one of .*natural"):
        heads.resolve(3)


BAD = {
    "beta": (lambda: BetaNLL(beta=1.5), "beta must lie in"),
    "epochs": (lambda: WarmUp(epochs=-1), "epochs must not be negative"),
    "weight": (lambda: Evidential(weight=-1.0), "weight must not be negative"),
    "members": (lambda: Evidential(n_members=0), "n_members must be at least 1"),
    "rule": (lambda: MixtureHead(rule="crsp"), "did you mean 'crps'"),
    "components": (lambda: MixtureHead(components=0), "components must be a positive integer"),
    "edges": (lambda: HistogramHead(edges=(0.0, 2.0, 1.0)), "edges must be at least three increasing"),
    "levels": (lambda: QuantileHead(levels=(0.5, 0.1)), "levels must be at least two increasing"),
    "tails": (lambda: QuantileHead(tails="gauss"), "did you mean 'gaussian'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_refused(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(up.UqprismError, match=message):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("head", heads.heads.names())
def test_every_head_learns_mean_and_noise(head: str) -> None:
    """Noise of scale 0.1 to the left and 0.5 to the right of a line."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(400, 1))
    y = 2.0 * x[:, 0] + np.where(x[:, 0] > 0, 0.5, 0.1) * rng.normal(size=400)
    settings = {**FAST, "max_epochs": 120, "patience": None, "learning_rate": 0.02, "network": MLP((16,), "silu")}
    ens = train(x, y, head=head, **settings).predict_ensemble(np.array([[-0.5], [0.5]]))
    assert_allclose(ens.matched.mean, [-1.0, 1.0], atol=0.25)
    # One network's evidence does not say what is noise and what is ignorance (Meinert et al. 2023); their sum it does.
    spread = ens.matched.scale if head == "evidential" else ens.pooled.scale
    assert 0.03 < spread[0] < 0.25
    assert 0.3 < spread[1] < 0.8


def test_the_loss_of_a_mixture_is_the_rules_own_score_and_gradient() -> None:
    head = MixtureHead(components=3, rule="crps")
    raw = torch.randn(2, 7, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    y = torch.linspace(-2.0, 2.0, 14, dtype=torch.float64).view(2, 7)
    losses = [head.loss(raw, y, torch.zeros(1)), CRPS().score(head.distribution(head.parameters(raw)), y)]
    gradients = [torch.autograd.grad(loss.sum(), raw)[0] for loss in losses]
    assert_allclose(losses[0].detach(), losses[1].detach(), rtol=1e-10)
    assert_allclose(gradients[0], gradients[1], rtol=1e-8, atol=1e-12)
