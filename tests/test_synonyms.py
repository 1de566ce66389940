"""Words that people try are refused in one line that names the right one."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import uqprism as up
from uqprism import synonyms
from uqprism.ensemble.approximations import approximations
from uqprism.measures import RISKS
from uqprism.tasks.prediction_error import ERRORS
from uqprism.training.heads import heads

E = up.EnsemblePrediction
MEAN, SCALE = np.array([[0.0, 1.0], [0.5, 1.5]]), np.ones((2, 2))
ENS = E.gaussian(mean=MEAN, scale=SCALE)

CALLS = {
    "nll": (lambda: up.decompose(ENS, rule="nll"), r"'nll'; did you mean 'log'\?"),
    "mse": (lambda: up.decompose(ENS, rule="MSE"), r"did you mean 'squared_error'\?"),
    "brier": (lambda: up.decompose(ENS, rule="brier"), "did you mean 'quadratic', the Brier score of densities"),
    "energy": (lambda: up.decompose(ENS, rule="energy"), "'crps', the same in one dimension"),
    "rmse": (lambda: up.decompose(ENS, rule="rmse"), "'squared_error', its square"),
    "mae": (lambda: up.decompose(ENS, rule="mae"), "'quantile', which at its default level 0.5 is half"),
    "pinball": (lambda: up.decompose(ENS, rule="pinball"), "'quantile'"),
    "bma": (lambda: up.decompose(ENS, truth="bma"), "'mixture', the average distribution, or 'members'"),
    "ens": (lambda: up.decompose(ENS, truth="ens"), "'mixture'"),
    "mean of models": (lambda: up.decompose(ENS, prediction="mean"), "'mixture'"),
    "index 2": (lambda: up.decompose(ENS, truth=2), "'mixture'"),
    "index 3": (lambda: up.decompose(ENS, truth="3"), "'matched', the paper's 3a; 'pooled' is its 3b"),
    "risk": (lambda: up.evaluate(ENS, "crps.epistemic.members.members"), "unknown risk 'epistemic'; did you mean 'excess'"),
    "a rule for measures": (lambda: up.evaluate(ENS, up.rules.CRPS()), r"got <rule crps>; catalogue\(\[rule\]\) lists a rule's"),
    "nlpd": (lambda: up.prediction_error(ENS, np.ones(2), "nlpd"), "did you mean 'nll'"),
    "bald": (lambda: up.decompose(ENS, rule="bald"), "did you mean 'log'"),
    "kind of error": (lambda: up.prediction_error(ENS, np.ones(2), "mae"), "did you mean 'absolute'"),
    "std=": (lambda: E.gaussian(mean=MEAN, std=SCALE), "no argument 'std'; use scale=, the standard deviation$"),
    "sigma=": (lambda: E.gaussian(mean=MEAN, sigma=SCALE), "use scale=, the standard deviation$"),
    "var=": (lambda: E.gaussian(mean=MEAN, var=SCALE), "no argument 'var'; use variance=$"),
    "mu=": (lambda: E.gaussian(mu=MEAN, scale=SCALE), "use mean=$"),
    "loc=": (lambda: E.laplace(loc=MEAN, scale=SCALE), "use location=$"),
    "laplace std=": (lambda: E.laplace(location=MEAN, std=SCALE), r"use scale=, the standard deviation divided by sqrt\(2\)"),
    "nu=": (lambda: E.student_t(location=MEAN, scale=SCALE, nu=4.0), "use df=$"),
    "axis=": (lambda: E.gaussian(mean=MEAN, scale=SCALE, axis=1), "use member_axis=$"),
    "unheard of": (
        lambda: E.gaussian(mean=MEAN, width=SCALE),
        r"its arguments are EnsemblePrediction.gaussian\(mean=, variance=",
    ),
    "by position": (lambda: E.gaussian(MEAN, SCALE), r"too many positional arguments; the arguments are .*gaussian\(mean="),
    "no mean": (lambda: E.gaussian(scale=SCALE), "missing a required.*'mean'"),
    "the class": (lambda: E(mean=MEAN, variance=SCALE), r"EnsemblePrediction\.gaussian\(mean=, variance=\)"),
    "the class with arrays": (lambda: E(MEAN), r"got ndarray; for arrays use EnsemblePrediction\.gaussian"),
    "posterior std=": (lambda: up.from_posterior(MEAN, std=SCALE), "use scale=, the standard deviation$"),
    "posterior by position": (lambda: up.from_posterior(MEAN, SCALE), r"too many positional.*from_posterior\(mean=, scale="),
    "std_columns=": (lambda: up.from_frame({"mean_0": [0.0]}, std_columns="std_{i}"), "use scale_columns=$"),
    "errors by position": (lambda: up.selective_prediction(ENS, [1.0, 2.0]), r"too many positional.*\(table=, error="),
    "errors=": (lambda: up.select_measure(ENS, errors=[1.0, 2.0]), "use error=$"),
    "arrays for an ensemble": (lambda: up.decompose(MEAN, SCALE), r"got ndarray; for arrays use EnsemblePrediction\.gaussian"),
    "an array for a rule": (lambda: up.decompose(ENS, np.zeros((50, 50))), r"unknown rule array\(\[\[.*\.\.\.; choose from"),
    "head": (lambda: heads.get("nll"), "did you mean 'natural', the log score; 'mean_variance'"),
    "family": (lambda: up.Gaussian(mu=0.0, sigma=1.0), "use mean=$"),
}


@pytest.mark.parametrize("name", CALLS)
def test_words_of_others_are_refused_with_ours(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(up.UqprismError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("thing", "name", "hint"),
    [
        (ENS, "std", "ensemble.matched.scale"),
        (ENS, "var", "ensemble.mixture.variance"),
        (ENS, "mean", "ensemble.mixture.mean"),
        (ENS, "epistemic", r"up\.decompose\(ensemble\)"),
        (ENS, "shape", "points_shape"),
        (up.evaluate(ENS), "epistemic", r"table\['crps.excess.members.members'\]"),
        (up.decompose(ENS), "noise", "bayes"),
    ],
)
def test_attributes_that_are_tried_are_answered_with_the_line_to_type(thing: object, name: str, hint: str) -> None:
    assert not hasattr(thing, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use .*{hint}"):
        getattr(thing, name)


def test_things_with_hints_copy_and_fail_as_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for thing in (ENS, up.evaluate(ENS, "usual"), up.decompose(ENS)):
        assert repr(copy.deepcopy(thing)) == repr(thing) == repr(pickle.loads(pickle.dumps(thing)))  # noqa: S301

    def broken(self: object) -> None:
        raise AttributeError("the reason")

    monkeypatch.setattr(E, "matched", property(broken))
    with pytest.raises(AttributeError, match="the reason"):
        _ = ENS.matched


def test_every_word_leads_to_a_name_that_there_is() -> None:
    known = {"rule": up.rules.rules.names(), "approximation": approximations.names(), "risk": RISKS, "kind of error": ERRORS}
    known["head"] = heads.names()
    for kind, names in known.items():
        for word in synonyms.NAMES[kind]:
            assert synonyms.meant(kind, word, list(names)), word
            assert word not in names
    for name, each in approximations.items():
        assert synonyms.word("approximation", each.paper_index) == name
