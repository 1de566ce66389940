"""The synthetic set: from data to verdicts at the smallest size, and verdicts on answers that are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import spearmanr

import uqprism as up
from uqprism.paper.data.synthetic import two_curves, two_curves_truth
from uqprism.paper.experiments.synthetic import EXPERIMENT, TEST_REGIONS, Config, claims, jobs, log_figure
from uqprism.paper.experiments.synthetic.claims import Trials, summarised
from uqprism.paper.runner import Outcome, produce
from uqprism.paper.store import Bundle, Store

TINY = Config(n_trials=2, n_training=150, n_test=90, n_members=3, hidden=(4,), epochs=6, other_rates=(1e-3,))
SMOKE = dataclasses.replace(EXPERIMENT, presets={"tiny": TINY}, draw=lambda result: {"log": log_figure(result)})


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return produce(SMOKE, "tiny", out=tmp_path_factory.mktemp("runs") / "synthetic", progress=False)


def ensemble_of_the_truth(x: np.ndarray) -> up.EnsemblePrediction:
    """Members that know the noise inside and part outside: what the paper describes."""
    weight, means, scale = two_curves_truth(x)
    variance = scale**2 + weight * (1 - weight) * (means[0] - means[1]) ** 2
    centre = weight * means[0] + (1 - weight) * means[1]
    part = 0.01 + np.maximum(np.abs(x) - 4.0, 0.0)
    mean = np.stack([centre - part, centre, centre + part])
    return up.EnsemblePrediction.gaussian(mean=mean, variance=np.broadcast_to(variance, mean.shape).copy())


@pytest.fixture(scope="module")
def ideal() -> Trials:
    x = two_curves(300, 0, regions=TEST_REGIONS)[0][:, 0]
    return Trials.of([summarised(up.evaluate(ensemble_of_the_truth(x)), x)])


def test_every_arrow_is_kept(outcome: Outcome) -> None:
    store = Store(outcome.folder / "_work")
    trial = jobs(TINY)[0].key
    assert store.get(trial.members).n_members == 3
    members = store.get(trial.predictions).members
    assert members.mean.shape == (3, 90)
    expected = np.sqrt(members.variance / np.pi).mean(0)
    np.testing.assert_allclose(store.get(trial.measures)["crps.bayes.members"], expected, rtol=1e-12)
    assert len(list(outcome.folder.glob("_work/members/*.safetensors"))) == 4


def test_trials_differ_in_data_and_networks_and_rates_share_the_data(outcome: Outcome) -> None:
    keys = [job.key for job in jobs(TINY)]
    assert [key.config.learning_rate for key in keys] == [0.01, 0.01, 0.001, 0.001]
    assert keys[0].seeds == keys[2].seeds != keys[1].seeds
    assert len({job.artefact.digest for job in jobs(TINY)}) == 4
    more = jobs(dataclasses.replace(TINY, n_trials=3))
    assert [job.artefact.digest for job in more[:2]] == [job.artefact.digest for job in jobs(TINY)[:2]]
    assert outcome.result.seeds["networks"] == [key.seeds.networks for key in keys[:2]]
    other = jobs(dataclasses.replace(TINY, n_test=50))[0].key  # networks do not depend on what they are asked
    assert other.members.digest == keys[0].members.digest
    assert other.predictions.digest != keys[0].predictions.digest


def test_the_result_is_of_the_stored_measures(outcome: Outcome) -> None:
    arrays = outcome.result.arrays
    x = arrays["test_inputs"]
    again = Trials.of([summarised({name: arrays[name] for name in arrays if name.count(".") in {2, 3}}, x)])
    stored = Store(outcome.folder / "_work").get(jobs(TINY)[0].artefact)
    np.testing.assert_array_equal(again.numbers["outside"][0], stored.arrays["outside"])
    assert len(outcome.result.tables["Every measure, medians over trials"]) == 144
    assert [row["learning rate"] for row in outcome.result.tables["What holds at which learning rate"]] == [0.01, 0.001]
    assert (np.abs(arrays["training_inputs"]) <= 4.0).all()
    assert (np.abs(x) > 4.0).sum() > 10


def test_figures_colour_the_test_inputs_by_the_measure(outcome: Outcome) -> None:
    drawn = EXPERIMENT.draw(outcome.result)
    assert list(drawn) == ["data", "log", "crps_and_squared_error", "quadratic_and_log"]
    names = ("log.total.members.members", "log.bayes.members", "log.excess.members.members")
    for ax, name in zip(drawn["log"].figure.axes, names, strict=False):
        (dots,) = ax.collections
        np.testing.assert_array_equal(dots.get_array(), np.sort(outcome.result.arrays[name]))
    drawn["quadratic_and_log"].figure.draw_without_rendering()
    assert len([ax for ax in drawn["quadratic_and_log"].figure.axes if ax.collections]) == 2 * (4 + 6)


def test_answers_as_the_paper_describes_them_hold(ideal: Trials) -> None:
    found = {claim.name: claim for claim in claims.all_claims(ideal)}
    assert found["excess outside the support"].numbers["outside"] == 1.0
    assert found["Bayes where least determined"].numbers["spearman"] == pytest.approx(1.0)
    assert found["Bayes where both curves are likely"].numbers["peak"] == pytest.approx(0.71, abs=0.1)
    assert found["Bayes where both curves are likely"].numbers["auroc"] == pytest.approx(0.74, abs=0.05)
    for name in list(TURNS)[:4]:
        assert found[name].holds, name


def altered(trials: Trials, kind: str, measure: str, value: float) -> Trials:
    numbers = {name: values.copy() for name, values in trials.numbers.items()}
    numbers[kind][:, trials.measures.index(measure)] = value
    return Trials(trials.measures, numbers)


TURNS = {
    "excess outside the support": ("outside", "log.excess.members.members", 0.95, 0.85),
    "Bayes where least determined": ("noise", "log.bayes.members", 0.6, 0.4),
    "Bayes where both curves are likely": ("mixed", "log.bayes.members", 0.66, 0.62),
    "results support the log score": ("noise", "log.bayes.members", 0.99, 0.95),
    "total where either is high": ("follows", "log.total.members.members", 0.96, 0.9),
    "patterns alike across rules": ("agreement", "quadratic.excess.members.members", 0.9, 0.7),
}


@pytest.mark.parametrize("name", TURNS)
def test_one_number_turns_a_claim(ideal: Trials, name: str) -> None:
    for rule in claims.RULES:
        for risk in (claims.BAYES, claims.EXCESS):
            ideal = altered(ideal, "agreement", f"{rule}.{risk}", 1.0)
    kind, measure, *values = TURNS[name]
    found = [claims.all_claims(altered(ideal, kind, measure, value)) for value in values]
    assert [claim.holds for verdicts in found for claim in verdicts if claim.name == name] == [True, False]


def test_another_rule_that_behaves_otherwise_is_told(ideal: Trials) -> None:
    for rule in claims.RULES:
        ideal = altered(ideal, "mixed", f"{rule}.bayes.members", 0.8)
    assert claims.other_rules(ideal).holds
    assert not claims.other_rules(altered(ideal, "outside", "quadratic.excess.members.members", 0.6)).holds
    assert not claims.other_rules(altered(ideal, "peak", "crps.bayes.members", 3.0)).holds


def test_agreement_is_the_lowest_rank_correlation_with_another_rule() -> None:
    x = np.linspace(-8.0, 8.0, 81)
    table = up.evaluate(ensemble_of_the_truth(x))
    found = summarised(table, x)
    at = found.data["measures"].index("squared_error.excess.members.members")
    mine, *others = (table[f"{rule}.excess.members.members"] for rule in ("squared_error", "crps", "log", "quadratic"))
    assert found.arrays["agreement"][at] == pytest.approx(min(spearmanr(mine, other).statistic for other in others))
    zero = found.data["measures"].index("squared_error.excess.mixture.matched")
    assert np.isnan(found.arrays["agreement"][zero])
    assert found.arrays["outside"][zero] == 0.5


def test_trials_are_summarised_by_their_medians() -> None:
    parts = [Bundle({"measures": ["crps.bayes.members"]}, {"outside": np.array([value])}) for value in (0.1, 0.2, 0.9)]
    trials = Trials.of(parts)
    assert trials.median("outside", "crps.bayes.members") == 0.2
    assert len(trials) == 3


def test_presets_have_the_size_of_the_paper() -> None:
    for config in EXPERIMENT.presets.values():
        assert (config.n_training, config.n_members, config.hidden, config.epochs) == (1200, 10, (8, 8), 100)
