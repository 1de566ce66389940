"""PyTorch modules as members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.data import DataLoader, Dataset

import uqprism as up


class Parts(NamedTuple):
    mean: torch.Tensor
    log_variance: torch.Tensor


class Returns(nn.Module):
    """A network that returns its mean and variance in one of several ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer, self.drop, self.how = nn.Linear(3, 2), nn.Dropout(0.5), how

    def forward(self, x: torch.Tensor) -> object:
        mean, raw = self.layer(self.drop(x)).split(1, dim=-1)
        variance = raw.exp()
        return {
            "tuple": lambda: (mean, variance),
            "flat tuple": lambda: (mean[:, 0], variance[:, 0]),
            "tensor": lambda: torch.cat([mean, variance], -1),
            "dictionary": lambda: {"mean": mean, "scale": variance.sqrt()},
            "normal": lambda: torch.distributions.Normal(mean, variance.sqrt()),
            "independent": lambda: torch.distributions.Independent(torch.distributions.Normal(mean, variance.sqrt()), 1),
            "laplace": lambda: torch.distributions.Laplace(mean, variance.sqrt()),
            "raw": lambda: torch.cat([mean, raw], -1),
            "mean": lambda: mean,
            "keys": lambda: {"loc": mean, "logvar": raw},
            "logistic": lambda: {"location": mean, "scale": variance.sqrt()},
            "named tuple": lambda: Parts(mean, raw),
            "natural": lambda: (mean / variance, -0.5 / variance),
            "uneven": lambda: (mean, variance[:1, 0]),
            "one noise": lambda: (mean, variance[0, 0]),
            "several": lambda: torch.stack([mean + i for i in range(3)], 1),
            "gumbel": lambda: torch.distributions.Gumbel(mean, variance),
        }[self.how]()


X = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
NAMED = {  # how a network may return its numbers, and what must be said of it
    "tuple": {"outputs": "mean, variance"},
    "flat tuple": {"outputs": ["mean", "variance"]},
    "tensor": {"outputs": "mean,variance"},
    "raw": {"outputs": "mean, log_variance"},
    "keys": {"outputs": {"mean": "loc", "log_variance": "logvar"}},
    "natural": {"outputs": "eta1, eta2"},
    "named tuple": {},
    "dictionary": {},
    "normal": {},
    "independent": {},
    "laplace": {},
    "logistic": {"family": "logistic"},
}
STACKABLE = ["tuple", "tensor", "raw", "keys", "dictionary"]


def three(how: str) -> list[Returns]:
    torch.manual_seed(1)
    return [Returns(how) for _ in range(3)]


@pytest.mark.parametrize("how", NAMED)
@pytest.mark.parametrize("rows", [1, 7])
def test_modules_are_members(how: str, rows: int) -> None:
    """In a list, from a generator or with stacked parameters, all rows at once or few."""
    networks, x, said = three(how), X[:rows], NAMED[how]
    ens = up.from_torch(networks, x, **said)
    mean = torch.stack([n.layer(x)[:, 0] for n in networks]).detach()
    variance = torch.stack([n.layer(x)[:, 1].exp() for n in networks]).detach()
    if how in {"laplace", "logistic"}:
        assert ens.members.name == how
        assert_close(ens.members.location, mean)
        assert_close(ens.members.scale, variance.sqrt())
    else:
        assert_close(ens.members.mean, mean)
        assert_close(ens.members.variance, variance)
    assert not ens.members.centre.requires_grad
    assert all(n.training and n.drop.training for n in networks)  # as they were
    assert_close(up.from_torch(networks, x, rows_at_once=2, **said).matched.mean, ens.matched.mean)
    for kept, read in zip(ens.members.arrays(), up.from_torch((n for n in networks), x, **said).members.arrays(), strict=True):
        assert_close(read, kept)
    if how in STACKABLE:
        parameters, buffers = torch.func.stack_module_state(networks)
        stacked = up.from_torch(networks[0], x, parameters=parameters, buffers=buffers, **said)
        assert_close(stacked.members.mean, mean)
        assert_close(stacked.members.variance, variance)


def test_a_log_variance_is_never_read_as_a_variance() -> None:
    """Positive as it may be: what a tuple or a tensor means must be said."""
    networks = three("raw")
    for network in networks:
        network.layer.bias.data += 9.0  # all log-variances are positive
    assert (networks[0].layer(X) > 0).all()
    for given in (networks, networks[0], nn.ModuleList(networks)):
        with pytest.raises(up.UqprismError, match=r"say what the network's outputs mean.*mean, log_variance"):
            up.from_model(given, X)
    said = up.from_model(networks, X, outputs="mean, log_variance")
    assert_close(said.members.variance, torch.stack([n.layer(X)[:, 1].exp() for n in networks]).detach())


def test_heads_read_raw_outputs() -> None:
    networks = three("raw")
    ens = up.from_torch(networks, X, head="natural")
    raw = networks[1].layer(X).detach()
    precision = nn.functional.softplus(raw[:, 1]) + 1e-8
    assert_close(ens.members.mean[1], raw[:, 0] / precision)
    assert_close(ens.members.variance[1], 1 / precision)
    assert up.from_torch(networks, X, head="laplace").members.name == "laplace"


def test_gradients_reach_the_networks_if_asked() -> None:
    networks = three("dictionary")
    ens = up.from_torch(nn.ModuleList(networks), X, gradients=True)
    up.decompose(ens, rule="crps").excess.sum().backward()
    assert all(n.layer.weight.grad.abs().sum() > 0 for n in networks)


def test_from_model_takes_modules() -> None:
    """Alone, in a list or stacked, with the options of from_torch."""
    networks = three("raw")
    expected = up.from_torch(networks, X, head="natural").members.mean
    for given in (networks, tuple(networks), nn.ModuleList(networks)):
        assert_close(up.from_model(given, X, head="natural", rows_at_once=4).members.mean, expected)
    assert_close(up.from_model(networks[1], X, head="natural").members.mean, expected[1:2])
    parameters, buffers = torch.func.stack_module_state(networks)
    stacked = up.from_model(networks[0], X, head="natural", parameters=parameters, buffers=buffers)
    assert_close(stacked.members.mean, expected)
    with pytest.raises(up.UqprismError, match=r"n_members is for .*Gaussian processes"):
        up.from_model(networks, X, n_members=3)


def test_means_alone_take_the_variance_of_the_noise() -> None:
    """One for all or one per member; also where a network has several members, as TabM has."""
    networks = three("mean")
    ens = up.from_torch(networks, X, outputs="mean", variance=[0.1, 0.2, 0.3])
    assert_close(ens.members.mean, torch.stack([n.layer(X)[:, 0] for n in networks]).detach())
    assert_close(ens.members.variance, torch.tensor([[0.1], [0.2], [0.3]]).expand(3, 7))
    several = up.from_torch(three("several")[:1], X, outputs="mean", variance=0.5, member_axis=1)
    assert_close(several.members.mean, ens.members.mean[:1] + torch.tensor([[0.0], [1.0], [2.0]]))
    one_noise = up.from_torch(three("one noise"), X, outputs="mean, variance").members
    assert_close(one_noise.variance, torch.stack([n.layer(X)[:1, 1].exp() for n in networks]).detach().expand(3, 7))


def test_passes_with_dropout_are_members() -> None:
    """Dropout is on and batch norm is not; the seed decides, and PyTorch's own generator goes on undisturbed."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    network[1].running_mean += 3.0
    first, second = (up.from_model(network, X, outputs="mean, log_variance", passes=40, seed=s) for s in (1, 1))
    assert first.n_members == 40
    assert_close(first.members.mean, second.members.mean)
    assert len(torch.unique(first.members.mean[:, 0])) > 10
    assert network.training
    before = torch.get_rng_state()
    up.from_torch([network], X, outputs="mean, log_variance", passes=3, seed=5)
    assert_close(torch.get_rng_state(), before)
    network[2].p = 0.0
    with pytest.raises(up.UqprismError, match="all passes predict the same"):
        up.from_torch([network], X, outputs="mean, log_variance", passes=3)


def test_attention_drops_too() -> None:
    """In evaluation mode PyTorch computes these layers on a path of their own, without dropout."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Unflatten(1, (1, 3)), nn.TransformerEncoderLayer(3, 1, 8, 0.3, batch_first=True), nn.Linear(3, 1))
    ens = up.from_torch([network], X, outputs="mean", variance=1.0, passes=5, seed=0)
    assert len(torch.unique(ens.members.mean[:, 0])) == 5


class Rows(Dataset):
    """A data set whose batches are what `kind` says."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> object:
        pair = X[i], X[i].sum()
        return {"inputs": X[i], "pair": pair, "triple": (*pair, 0), "dictionary": {"x": X[i]}}[self.kind]


@pytest.mark.parametrize("kind", ["inputs", "pair"])
def test_a_loader_gives_what_the_tensor_gives(kind: str) -> None:
    networks = three("tuple")
    expected = up.from_torch(networks, X, outputs="mean, variance").members
    ens = up.from_model(networks, DataLoader(Rows(kind), batch_size=3), outputs="mean, variance")
    assert_close(ens.members.mean, expected.mean)
    assert_close(ens.members.variance, expected.variance)
    assert not ens.members.mean.requires_grad
    plain = up.from_torch(networks, (batch for batch in X.split(2)), outputs="mean, variance")
    assert_close(plain.members.mean, expected.mean)
    array = up.from_torch(networks, X.double().numpy(), outputs="mean, variance")
    assert array.members.mean.dtype == torch.float32
    assert_close(array.members.mean, expected.mean)


def loaded(kind: str = "pair", **options: object) -> object:
    return up.from_torch(three("tuple"), DataLoader(Rows(kind), **options), outputs="mean, variance")


BAD = {
    "shuffled": (lambda: loaded(shuffle=True), "not be in the order of its data set"),
    "sampled": (lambda: loaded(sampler=[0, 3, 1]), "not be in the order of its data set"),
    "own batches": (lambda: loaded(batch_sampler=[[0, 3], [1]]), "not be in the order of its data set"),
    "last rows": (lambda: loaded(batch_size=3, drop_last=True), "leaves out the last rows"),
    "triple": (lambda: loaded("triple"), "a pair of inputs and targets, got 3 parts"),
    "dictionaries": (lambda: loaded("dictionary"), "does not take a batch that is a dictionary of x"),
    "rows of a loader": (lambda: up.from_torch(three("tuple"), [X], rows_at_once=3), "has a batch_size"),
    "no batch": (lambda: up.from_torch(three("tuple"), [], outputs="mean, variance"), "at least one batch"),
    "text": (lambda: up.from_torch([Returns("tuple")], 3.0), "inputs must be a torch tensor, a NumPy array or a DataLoader"),
    "unnamed tuple": (lambda: up.from_torch([Returns("tuple")], X), "say what the network's outputs mean"),
    "unnamed tensor": (lambda: up.from_torch([Returns("tensor")], X), r"returned shape \(7, 2\)"),
    "unnamed family": (lambda: up.from_torch([Returns("logistic")], X), "family='laplace' or family='logistic'"),
    "keys": (lambda: up.from_torch([Returns("keys")], X), "loc, logvar are not the parameters of a family"),
    "other keys": (lambda: up.from_torch([Returns("keys")], X, outputs="mean, variance"), "a dictionary of loc, logvar"),
    "three names": (lambda: up.from_torch([Returns("tuple")], X, outputs="location,scale,df"), "names 3 parameters.*tuple of 2"),
    "twice": (lambda: up.from_torch([Returns("tuple")], X, outputs="mean, mean"), "each parameter once"),
    "both": (lambda: up.from_torch([Returns("tuple")], X, outputs="variance, log_variance"), "given twice"),
    "no family": (lambda: up.from_torch([Returns("tuple")], X, outputs="mean, df"), "not the parameters of a family"),
    "other family": (
        lambda: up.from_torch([Returns("tuple")], X, outputs="mean, variance", family="laplace"),
        "laplace members need location, scale",
    ),
    "uneven": (lambda: up.from_torch([Returns("uneven")], X, outputs="mean, variance"), r"one shape, got \(1,\) and \(7,\)"),
    "named distribution": (lambda: up.from_torch([Returns("normal")], X, outputs="mean, scale"), "returns a distribution"),
    "means": (lambda: up.from_torch([Returns("mean")], X, outputs="mean"), "means without noise"),
    "variance": (lambda: up.from_torch([Returns("tuple")], X, outputs="mean, variance", variance=1.0), "means without noise"),
    "variances": (lambda: up.from_torch([Returns("mean")], X, outputs="mean", variance=[1.0, 2.0]), "each of the 1 members"),
    "none": (lambda: up.from_torch([], X), "at least one module"),
    "one": (lambda: up.from_torch(Returns("tuple"), X), "must be a list of modules"),
    "gumbel": (lambda: up.from_torch([Returns("gumbel")], X), "the distribution Gumbel has no family"),
    "mixed": (lambda: up.from_torch([Returns("normal"), Returns("laplace")], X), "must all predict the same parameters"),
    "head": (lambda: up.from_torch([Returns("mean")], X, head="natural"), r"reads tensors \(rows, 2\)"),
    "head and outputs": (lambda: up.from_torch([Returns("raw")], X, head="natural", outputs="mean"), "leave out outputs"),
    "evidential": (lambda: up.from_torch([Returns("raw")], X, head="evidential"), "no ensemble yet"),
    "list with parameters": (lambda: up.from_torch([nn.Linear(3, 2)], X, parameters={}), "the one module"),
    "negative axis": (lambda: up.from_torch([Returns("several")], X, outputs="mean", variance=1.0, member_axis=-1), "front"),
    "no axis": (lambda: up.from_torch([Returns("tuple")], X, outputs="mean, scale", member_axis=2), "not an axis"),
    "no passes": (lambda: up.from_torch([Returns("normal")], X, passes=0), "passes must be at least 1"),
    "no rows": (lambda: up.from_model(Returns("normal")), "needs X, the rows that Returns shall predict"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_networks_are_refused(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(up.UqprismError, match=message):
        call()


class Components(nn.Module):
    """A mixture density network of three components, which returns them in one of several forms."""

    def __init__(self, how: str, seed: int) -> None:
        super().__init__()
        self.how, generator = how, torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(3, 3, 3, generator=generator))

    def forward(self, x: torch.Tensor) -> object:
        logits, mean, raw = (x @ weight for weight in self.weight)
        return {
            "tuple": lambda: (logits, mean, raw),
            "tensor": lambda: torch.stack([logits, mean, raw], -1),
            "dictionary": lambda: {"shares": logits.softmax(-1), "mean": mean, "scale": raw.exp()},
            "distribution": lambda: torch.distributions.MixtureSameFamily(
                torch.distributions.Categorical(logits=logits), torch.distributions.Normal(mean, raw.exp())
            ),
        }[self.how]()


@pytest.mark.parametrize("how", ["tuple", "tensor", "dictionary", "distribution"])
def test_mixture_density_networks(how: str) -> None:
    """Their log densities are those of the mixtures of PyTorch, whatever they return and in batches."""
    options = {"outputs": "logits, mean, log_scale"} if how in {"tuple", "tensor"} else {}
    ens = up.from_model([Components(how, seed) for seed in range(2)], X, rows_at_once=4, **options)
    assert (ens.members.name, ens.n_members, ens.points_shape) == ("mixture", 2, (7,))
    y = torch.linspace(-2.0, 2.0, 7)
    for seed in range(2):
        with torch.no_grad():
            own = Components("distribution", seed)(X).log_prob(y)
        assert_close(ens.members.log_density(y)[seed], own)
    one = up.from_torch([lambda x: (x[:, :1], x[:, :1], x[:, :1].exp())], X, outputs="logits, mean, scale")
    assert_close(one.members.mean[0], X[:, 0])


def test_networks_that_predict_quantiles() -> None:
    levels = [0.9, 0.1, 0.5]
    ens = up.from_torch([lambda x: x.sort(-1).values[:, [2, 0, 1]]] * 2, X, outputs="quantiles", levels=levels)
    assert ens.members.levels == (0.1, 0.5, 0.9)
    assert_close(ens.members.values[:, 1].T, X.sort(-1).values)
    for options, message in (
        ({"outputs": "quantiles"}, "levels= is for outputs='quantiles', and needed there"),
        ({"outputs": "mean, scale", "levels": levels}, "levels= is for outputs='quantiles'"),
    ):
        with pytest.raises(up.UqprismError, match=message):
            up.from_torch([lambda x: x], X, **options)


class Functional(nn.Module):
    """A network that drops by a function, as many do, and knows whether it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.rate = 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.layer(x), self.rate, training=self.training)


def test_passes_switch_on_dropout_by_function_and_nothing_else() -> None:
    """Spectral norm, which takes a step of its own in training, keeps its vectors."""
    torch.manual_seed(0)
    assert up.from_model(Functional().eval(), X, outputs="mean, log_variance", passes=20, seed=0).members.mean[:, 0].std() > 0.0
    normed = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 8))
    network = nn.Sequential(normed, nn.Dropout(0.5), nn.Linear(8, 2))
    before = {name: x.clone() for name, x in network.state_dict().items()}
    up.from_model(network, X, outputs="mean, log_variance", passes=3, seed=0)
    assert all(torch.equal(x, before[name]) for name, x in network.state_dict().items())


class Around(nn.Module):
    """A network that returns what a function makes of its raw outputs."""

    def __init__(self, function: object, outputs: int = 2) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.function = nn.Linear(3, outputs), function

    def forward(self, x: torch.Tensor) -> object:
        return self.function(self.layer(x))


@dataclass
class Named:
    mean: torch.Tensor
    log_variance: torch.Tensor


def test_networks_may_return_dataclasses_and_mixtures_of_any_family() -> None:
    named = up.from_model(Around(lambda raw: Named(*raw.T)), X)
    assert_close(named.members.variance[0], Around(None).layer(X)[:, 1].exp().detach())
    dist = torch.distributions
    for kind in (dist.Normal, dist.Laplace):
        plain = Around(lambda raw, k=kind: dist.MixtureSameFamily(dist.Categorical(logits=raw[:, :3]), k(raw[:, 3:], 0.5)), 6)
        events = Around(
            lambda raw, k=kind: dist.MixtureSameFamily(
                dist.Categorical(logits=raw[:, :3]), dist.Independent(k(raw[:, 3:, None], 0.5), 1)
            ),
            6,
        )
        for network in (plain, events):
            members = up.from_model([network, network], X).members
            assert tuple(members.batch_shape) == (2, 7)
            assert_close(members.log_density(torch.zeros(7))[1], plain(X).log_prob(torch.zeros(7)).detach())


def test_names_of_others_are_told_by_those_used_here() -> None:
    for said, meant in (("mu, sigma", "mean, scale"), ("mean, logvar", "mean, log_variance"), ("mean, std", "mean, scale")):
        with pytest.raises(up.UqprismError, match=f"say outputs='{meant}' if they are these"):
            up.from_model(three("raw"), X, outputs=said)


def test_batches_that_are_dictionaries() -> None:
    """Networks that take dictionaries get them whole; for others the way out is said."""
    loader = torch.utils.data.DataLoader([{"x": x, "y": x[0]} for x in X], batch_size=2)
    networks = [Around(None), Around(None)]
    for network in networks:
        network.forward = lambda batch, layer=network.layer: layer(batch["x"])
    ens = up.from_model(networks, loader, outputs="mean, log_variance")
    assert_close(ens.members.mean[0], networks[0].layer(X)[:, 0].detach())
    with pytest.raises(up.UqprismError, match=r"dictionary of x, y .*\(batch\['x'\] for batch in loader\)"):
        up.from_model(three("raw"), loader, outputs="mean, log_variance")
