"""Properties that hold of all measures on all ensembles, and the paper's identities by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.rules import PAPER

APPROXIMATIONS = ("members", "mixture", "matched", "pooled")
PAIRS = [(p, t) for p in APPROXIMATIONS for t in APPROXIMATIONS]
DEGREE = {"crps": 1, "log": 0, "quadratic": -1, "squared_error": 2}

settings.register_profile("uqprism", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("uqprism")


@st.composite
def ensembles(draw, weighted: bool = False):
    """Two to six members at three points, from near agreement to wide disagreement."""
    members = draw(st.integers(2, 6))
    unit = arrays(np.float64, (members, 3), elements=st.floats(-1.0, 1.0, allow_subnormal=False, width=32))
    spread, ratio = 10.0 ** draw(st.floats(-6.0, 1.0)), draw(st.floats(0.0, 2.0))
    mean, scale = spread * draw(unit), np.exp(min(spread, 1.0) * ratio * draw(unit))
    weights = None
    if weighted:
        raw = draw(arrays(np.float64, members, elements=st.floats(0.05, 1.0)))
        weights = raw / raw.sum()
    return up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=weights)


def moved(ens: up.EnsemblePrediction, shift: float = 0.0, factor: float = 1.0) -> up.EnsemblePrediction:
    members = ens.members
    return up.EnsemblePrediction.gaussian(mean=members.mean * factor + shift, scale=members.scale * factor, weights=ens.weights)


def size_of(table: up.MeasureTable, name: str) -> np.ndarray:
    """What an error of this measure is relative to; totals that cross zero are sums of terms that do not."""
    size, (rule, risk, *roles) = np.abs(table[name]), name.split(".")
    if rule == "log" and risk != "excess":
        return np.maximum(size, 1.0)
    return np.maximum(size, np.abs(table[f"quadratic.bayes.{roles[-1]}"])) if (rule, risk) == ("quadratic", "total") else size


def close(a: up.MeasureTable, b: up.MeasureTable, rtol: float, names=None, *, scale=1.0, log_shift: float = 0.0) -> None:
    for name in names or a:
        shift = log_shift if name.startswith("log.") and ".excess." not in name else 0.0
        factor = scale ** DEGREE[name.split(".")[0]]
        assert (np.abs(b[name] / factor - shift - a[name]) <= rtol * size_of(a, name) + 1e-300).all(), name


@given(ensembles(weighted=True))
def test_total_is_bayes_plus_excess_and_excess_is_never_negative(ens) -> None:
    table = up.evaluate(ens)
    for rule in PAPER:
        for p, t in PAIRS:
            total, excess = table[f"{rule}.total.{p}.{t}"], table[f"{rule}.excess.{p}.{t}"]
            bayes = table[f"{rule}.bayes.{t}"]
            assert_allclose(total, bayes + excess, rtol=1e-9, atol=1e-12 * (np.abs(bayes) + np.abs(excess)).max())
            assert (excess >= 0.0).all()


@given(ensembles(), st.integers(-40, 40))
def test_translation_changes_nothing(ens, exponent) -> None:
    """A shift that moves every mean exactly leaves every measure as it was."""
    coarse = up.EnsemblePrediction.gaussian(mean=np.round(ens.members.mean * 2.0**20) / 2.0**20, scale=ens.members.scale)
    close(up.evaluate(coarse), up.evaluate(moved(coarse, shift=float(exponent))), 1e-10)


@given(ensembles(), st.sampled_from([-450, -60, 60, 450]))
def test_scale_degrees(ens, exponent) -> None:
    """CRPS scales with y, squared error with its square, quadratic inversely; log totals shift and log excesses stay."""
    factor = 2.0**exponent
    close(up.evaluate(ens), up.evaluate(moved(ens, factor=factor)), 1e-12, scale=factor, log_shift=exponent * np.log(2.0))


def close_to_rounding(a: up.MeasureTable, b: up.MeasureTable) -> None:
    """Third- and higher-order differences of the offsets feel the rounding of the centre."""
    close(a, b, 1e-6, [n for n in a if "mixture" in n and ".excess." in n])
    close(a, b, 1e-9, [n for n in a if not ("mixture" in n and ".excess." in n)])


@given(ensembles(weighted=True), st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(ens, random) -> None:
    order = list(range(ens.n_members))
    random.shuffle(order)
    mean, scale = ens.members.mean[order], ens.members.scale[order]
    shuffled = up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=ens.weights[order])
    close_to_rounding(up.evaluate(ens), up.evaluate(shuffled))


@given(ensembles())
def test_weights_are_repeated_members(ens) -> None:
    """Weights 2/(M+1) on the first member are the ensemble with the first member twice."""
    mean, scale = ens.members.mean, ens.members.scale
    twice = up.EnsemblePrediction.gaussian(mean=np.concatenate([mean[:1], mean]), scale=np.concatenate([scale[:1], scale]))
    weights = np.full(ens.n_members, 1.0) / (ens.n_members + 1)
    weights[0] *= 2.0
    close_to_rounding(up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=weights)), up.evaluate(twice))


@given(ensembles(weighted=True))
def test_bayes_of_members_is_at_most_that_of_the_mixture(ens) -> None:
    table = up.evaluate(ens)
    for rule in PAPER:
        assert (table[f"{rule}.bayes.members"] <= table[f"{rule}.bayes.mixture"]).all()
        slack = 1e-14 * np.abs(table[f"{rule}.bayes.pooled"])
        assert (table[f"{rule}.bayes.members"] <= table[f"{rule}.bayes.pooled"] + slack).all()
        assert (table[f"{rule}.bayes.pooled"] <= table[f"{rule}.bayes.matched"] + slack).all()


@given(ensembles(weighted=True))
def test_identities_of_appendix_d(ens) -> None:
    """Pairwise excess is Bregman information plus its reverse; information is a difference of Bayes risks."""
    table = up.evaluate(ens)
    for rule in PAPER:
        pairs, info = table[f"{rule}.excess.members.members"], table[f"{rule}.excess.mixture.members"]
        reverse = table[f"{rule}.excess.members.mixture"]
        assert_allclose(pairs, info + reverse, rtol=1e-8, atol=1e-300)
        gap = table[f"{rule}.bayes.mixture"] - table[f"{rule}.bayes.members"]
        assert_allclose(gap, info, rtol=1e-9, atol=1e-12 * np.abs(table[f"{rule}.bayes.members"]).max() + 1e-13)
        assert (pairs >= info * (1.0 - 1e-9)).all()
        for g in ("matched", "pooled"):
            with_mixture = info + table[f"{rule}.excess.{g}.mixture"]
            assert_allclose(table[f"{rule}.excess.{g}.members"], with_mixture, rtol=1e-8, atol=1e-300)


@given(ensembles(weighted=True))
def test_symmetric_rules_do_not_tell_prediction_from_truth(ens) -> None:
    table = up.evaluate(ens)
    for rule in ("crps", "quadratic", "squared_error"):
        for p, t in PAIRS:
            assert_allclose(table[f"{rule}.excess.{p}.{t}"], table[f"{rule}.excess.{t}.{p}"], rtol=1e-12)
        assert_allclose(table[f"{rule}.excess.members.members"], 2.0 * table[f"{rule}.excess.mixture.members"], rtol=1e-12)


@given(ensembles(weighted=True))
def test_total_is_linear_in_the_truth(ens) -> None:
    table = up.evaluate(ens)
    for rule in PAPER:
        for p in APPROXIMATIONS:
            assert_allclose(table[f"{rule}.total.{p}.members"], table[f"{rule}.total.{p}.mixture"], rtol=1e-12)


@given(ensembles())
def test_a_total_is_the_mean_expected_score(ens) -> None:
    """The sum of parts is what the definition says, computed by the rules on plain Gaussians, member by member."""
    table = up.evaluate(ens)
    gaussians = [up.Gaussian(mean=m, scale=s) for m, s in zip(ens.members.mean, ens.members.scale, strict=True)]
    for name in PAPER:
        rule = up.rules.rules.get(name)()
        total = np.mean([[rule.expected_score(prediction=p, truth=t) for t in gaussians] for p in gaussians], axis=(0, 1))
        assert_allclose(table[f"{name}.total.members.members"], total, rtol=1e-10, atol=1e-12)
        matched = np.mean([rule.expected_score(prediction=ens.matched, truth=t) for t in gaussians], axis=0)
        assert_allclose(table[f"{name}.total.matched.mixture"], matched, rtol=1e-10, atol=1e-12)


@given(ensembles())
def test_log_bregman_information_is_at_most_log_members(ens) -> None:
    assert (up.evaluate(ens)["log.excess.mixture.members"] <= np.log(ens.n_members) * (1 + 1e-9)).all()


ONE = [[0.1, -3.0, 1e9]], [[0.3, 7.0, 1e-3]]


@pytest.mark.parametrize(("mean", "scale"), [ONE, (np.full((7, 2), 0.1), np.full((7, 2), 0.3))], ids=["one", "equal"])
def test_members_without_disagreement_have_exactly_no_excess(mean: object, scale: object) -> None:
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    table = up.evaluate(ens)
    assert {name for name in table if ".excess." in name and (table[name] != 0.0).any()} == set()
    assert_allclose(table["crps.total.mixture.matched"], ens.members.scale[0] / np.sqrt(np.pi), rtol=1e-14)


def test_excess_is_zero_only_where_candidates_are_equal() -> None:
    """Strictly proper rules see members that differ in the last bit of their scale; the squared error does not."""
    ens = up.EnsemblePrediction.gaussian(mean=np.zeros((2, 1)), scale=np.array([[1.0], [np.nextafter(1.0, 2.0)]]))
    table = up.evaluate(ens)
    for rule in ("crps", "log", "quadratic"):
        assert table[f"{rule}.excess.members.members"] > 0.0
        assert table[f"{rule}.excess.matched.members"] > 0.0
    assert all(table[n] == 0.0 for n in table if n.startswith("squared_error.excess"))


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e150])
def test_extreme_scales(size: float, rng: np.random.Generator) -> None:
    ens = up.EnsemblePrediction.gaussian(mean=size * rng.normal(size=(5, 4)), scale=size * np.exp(rng.normal(size=(5, 4))))
    table = up.evaluate(ens)
    unit = up.evaluate(moved(ens, factor=1.0 / size))
    assert all(np.isfinite(table[name]).all() for name in table)
    close(unit, table, 1e-6, scale=size, log_shift=np.log(size))


def test_a_large_common_offset(rng: np.random.Generator) -> None:
    """An offset of 1e12 scales costs what rounding the means costs and nothing more."""
    mean, scale = np.round(rng.normal(size=(5, 4)) * 1024) / 1024, np.exp(rng.normal(size=(5, 4)))
    near = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale))
    far = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean + 2.0**40, scale=scale))
    close(near, far, 1e-10)


@pytest.mark.parametrize("members", [2, 30])
def test_scale_ratios_of_a_million(members: int, rng: np.random.Generator) -> None:
    scale = 10.0 ** rng.uniform(-6.0, 0.0, size=(members, 4))
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=rng.normal(size=(members, 4)), scale=scale))
    assert all(np.isfinite(table[name]).all() for name in table)


def test_a_thousand_members(rng: np.random.Generator) -> None:
    """M = 1000 runs in bounded memory and agrees with the same members in pairs."""
    mean, scale = rng.normal(size=(500, 2)), np.exp(0.3 * rng.normal(size=(500, 2)))
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=np.tile(mean, (2, 1)), scale=np.tile(scale, (2, 1)), member_axis=0))
    half = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, member_axis=0))
    close(half, table, 1e-9)


def test_unbiased_estimator_leaves_out_the_pairs_with_themselves(rng: np.random.Generator) -> None:
    mean, scale = rng.normal(size=(6, 3)), np.exp(rng.normal(size=(6, 3)))
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    for rule in PAPER:
        plugin, unbiased = (up.decompose(ens, rule=rule, estimator=e) for e in ("plugin", "unbiased"))
        assert_allclose(unbiased.excess, plugin.excess * 6 / 5, rtol=1e-13)
        assert_allclose(unbiased.bayes, plugin.bayes, rtol=1e-13)
        assert_allclose(unbiased.total, unbiased.bayes + unbiased.excess, rtol=1e-12)
    weights = np.array([0.3, 0.1, 0.1, 0.2, 0.2, 0.1])
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=weights)
    plugin, unbiased = (up.decompose(ens, rule="crps", estimator=e) for e in ("plugin", "unbiased"))
    assert_allclose(unbiased.excess, plugin.excess / (1.0 - (weights**2).sum()), rtol=1e-13)


@pytest.mark.parametrize("family", ["laplace", "logistic", "student_t"])
def test_other_families_obey_the_same_identities(family: str, rng: np.random.Generator) -> None:
    extra = {"df": np.full((4, 3), 4.0)} if family == "student_t" else {}
    make = getattr(up.EnsemblePrediction, family)
    ens = make(location=rng.normal(size=(4, 3)), scale=np.exp(0.3 * rng.normal(size=(4, 3))), **extra)
    table = up.evaluate(ens)
    for rule in PAPER:
        info = table[f"{rule}.excess.mixture.members"]
        assert_allclose(
            table[f"{rule}.excess.members.members"], info + table[f"{rule}.excess.members.mixture"], rtol=1e-7, atol=1e-12
        )
        gap = table[f"{rule}.bayes.mixture"] - table[f"{rule}.bayes.members"]
        assert_allclose(gap, info, rtol=1e-7, atol=1e-10)
        direct = up.rules.rules.get(rule)().entropy(ens.mixture)
        assert_allclose(table[f"{rule}.bayes.mixture"], direct, rtol=1e-7, atol=1e-9)
        for g in ("matched", "pooled"):
            both = info + table[f"{rule}.excess.{g}.mixture"]
            assert_allclose(table[f"{rule}.excess.{g}.members"], both, rtol=1e-7, atol=1e-10)


OTHERS = up.rules.GaussianKernel(0.8), up.rules.Quantile(0.3), up.rules.Bregman(lambda t: t**4, lambda t: 4 * t**3)


@pytest.mark.parametrize(
    ("family", "rule"), [*((up.Gaussian, rule) for rule in OTHERS), (up.Laplace, up.rules.CRPS())], ids=lambda each: each.name
)
def test_all_measures_are_those_of_the_rule_on_single_distributions(family, rule, rng: np.random.Generator) -> None:
    centre, scale = rng.normal(size=(3, 2)), np.exp(0.3 * rng.normal(size=(3, 2)))
    singles = [family(**{next(iter(family.parameters)): m, "scale": s}) for m, s in zip(centre, scale, strict=True)]
    ens = up.EnsemblePrediction(family(**{next(iter(family.parameters)): centre, "scale": scale}))
    table = up.evaluate(ens, up.catalogue([rule]))
    candidates = {"members": singles, "mixture": [ens.mixture], "matched": [ens.matched], "pooled": [ens.pooled]}
    for p, t in PAIRS:
        total = np.mean([[rule.expected_score(prediction=a, truth=b) for b in candidates[t]] for a in candidates[p]], axis=(0, 1))
        assert_allclose(table[f"{rule.name}.total.{p}.{t}"], total, rtol=1e-8, err_msg=f"{p} {t}")
        bayes = np.mean([rule.entropy(b) for b in candidates[t]], axis=0)
        assert_allclose(table[f"{rule.name}.bayes.{t}"], bayes, rtol=1e-8, atol=1e-12)
        excess = table[f"{rule.name}.excess.{p}.{t}"]
        assert_allclose(excess, total - bayes, rtol=1e-6, atol=1e-9 * min(1.0, np.abs(total).max()), err_msg=f"{p} {t}")
        assert (excess >= 0.0).all()


def test_infinite_variance_is_said_where_it_matters() -> None:
    ens = up.EnsemblePrediction.student_t(location=np.zeros((2, 3)), scale=np.ones((2, 3)), df=1.5)
    assert np.isfinite(up.decompose(ens, rule="crps").total).all()
    with pytest.raises(up.UqprismError, match="matched needs a positive, finite variance"):
        up.decompose(ens, rule="crps", prediction="matched")


class LogWithTotals(up.rules.Log):
    """The log score with its totals by definition rather than as sums."""

    name = "log_with_totals"
    entropy_cancels = True


def test_totals_of_an_additive_rule_have_the_unit_in_them_however_they_are_computed(rng: np.random.Generator) -> None:
    mean, scale = 1e3 * rng.normal(size=(3, 4)), 1e3 * np.exp(0.3 * rng.normal(size=(3, 4)))
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    table, other = up.evaluate(ens, up.catalogue(["log"])), up.evaluate(ens, up.catalogue([LogWithTotals()]))
    for name in table:
        assert_allclose(other[name.replace("log", "log_with_totals", 1)], table[name], rtol=1e-8, atol=1e-8, err_msg=name)
