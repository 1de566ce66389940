"""No page says of more data what an audit on the same models would contradict."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import uqprism as up
from tests.report.pages import plain
from uqprism.ensemble.origin import KINDS, Origin
from uqprism.errors import ArgumentError
from uqprism.report.claims import NATURE, NO_PROMISE, Claim, Contradiction
from uqprism.report.page import Report
from uqprism.tasks.audit import Audit
from uqprism.tasks.audit.evidence import KEPT

CRPS = "crps.excess.members.members"
CLAIMS = ("would not reduce", "could reduce", "could help", "like these would change little", "Collect more data")


def friedman(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A target that bends in five inputs, with a little noise: there is much for more data to teach."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 5))
    mean = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3] + 5.0 * x[:, 4]
    return x, mean + rng.standard_normal(n)


TEST = friedman(300, 10**6)


def forest(n: int) -> up.EnsemblePrediction:
    return up.from_model(RandomForestRegressor(30, random_state=0).fit(*friedman(n, 0)), TEST[0])


def boosted(n: int) -> up.EnsemblePrediction:
    """Boosted models that follow their training rows closely, and take what is left there for the noise."""
    x, y = friedman(n, 0)
    models = [GradientBoostingRegressor(n_estimators=150, subsample=0.8, random_state=seed).fit(x, y) for seed in range(5)]
    return up.from_model(models, TEST[0], variance=np.mean((models[0].predict(x) - y) ** 2))


def gaussians() -> tuple[up.EnsemblePrediction, np.ndarray]:
    """Five Gaussians that nearly agree and are too sure, of which nobody says where they come from."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=300)
    members = mean + 0.02 * rng.normal(size=(5, 300))
    return up.EnsemblePrediction.gaussian(mean=members, scale=np.ones((5, 300))), mean + 1.4 * rng.normal(size=300)


def written(source: Any, folder: Path, **how: Any) -> tuple[Report, str]:
    page = up.write_report(source, folder / "page.html", resamples=0, measures="crps.*.members*", **how)
    return page, plain(page.path.read_text())


def crps(ensemble: up.EnsemblePrediction) -> float:
    """The mean penalty of one of the models."""
    return float(up.rules.CRPS().score(ensemble.members, TEST[1]).mean())


def test_a_default_forest_does_not_say_that_more_data_would_remove_its_disagreement(tmp_path: Path) -> None:
    """Most of what it expects is disagreement, of which eight times the rows remove a small part."""
    before, after = forest(200), forest(1600)
    d = up.decompose(before)
    promised, went = d.excess.mean(), crps(before) - crps(after)
    assert promised > 0.4 * d.total.mean()
    assert went < 0.5 * promised
    for given in ({}, {"target": TEST[1]}):
        page, text = written(before, tmp_path, **given)
        assert not any(claim in text for claim in CLAIMS)
        assert "trees of a forest, which disagree however many rows there are" in page.sentences["claim"] or given
        assert page.advice[1].do == "Audit before you collect data"


def test_boosted_models_whose_calibration_fails_do_not_say_that_data_would_not_help(tmp_path: Path) -> None:
    """They call nearly all noise, and eight times the rows remove more than all of their disagreement."""
    before, after = boosted(200), boosted(1600)
    d = up.decompose(before)
    went = crps(before) - crps(after)
    assert went > 2.0 * d.excess.mean()
    page, text = written(before, tmp_path, target=TEST[1])
    assert not any(claim in text for claim in CLAIMS)
    assert page.findings.claim.contradiction is not None
    assert "does not say what more data would bring, because the targets contradict the models" in text
    assert "What they call noise may be error that more data removes" in text
    page, text = written(before, tmp_path)
    assert not any(claim in text for claim in CLAIMS)
    assert NATURE["boosting"] in page.sentences["claim"]


def test_bare_gaussians_whose_calibration_fails_say_nothing_about_data_either(tmp_path: Path) -> None:
    source, y = gaussians()
    page, text = written(source, tmp_path, target=y)
    assert page.findings.parts.shares[0] > 0.95
    assert not any(claim in text for claim in CLAIMS)
    assert page.advice[1].do == "Audit before you collect data"
    assert page.findings.claim.contradiction.what in page.advice[1].why


def test_models_that_are_right_about_outcomes_are_quoted(tmp_path: Path) -> None:
    source, _ = gaussians()
    page, text = written(source, tmp_path, target=source.members.mean[0] + np.random.default_rng(1).normal(size=300))
    assert page.findings.claim.stands
    assert "According to these 5 models" in page.sentences["split"]
    assert "which they say more data would not reduce" in page.sentences["split"]
    assert "was not checked" in text


def test_bare_members_without_targets_say_nothing_about_data(tmp_path: Path) -> None:
    """A forest whose file does not say that it is one, as CSV cannot: nothing is known that the page could stand for."""
    before = forest(200)
    path = tmp_path / "forest.csv"
    before.to_pandas().to_csv(path, index=False)
    page, text = written(path, tmp_path)
    assert not any(claim in text for claim in CLAIMS)
    assert "nothing is known of these models" in page.sentences["claim"]
    assert page.advice[1].do == "Audit before you collect data"


def test_what_a_csv_cannot_say_is_said_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "forest.csv"
    forest(200).to_pandas().to_csv(path, index=False)
    page, _ = written(path, tmp_path, models="forest")
    assert page.findings.claim.kind == "forest"
    assert NATURE["forest"] in page.sentences["claim"]
    page, text = written(path, tmp_path, models="resampled")
    assert page.findings.claim.stands
    assert "could reduce" in text
    with pytest.raises(ArgumentError, match=r"kind of models \(models, --models\).*forest"):
        written(path, tmp_path, models="forrest")


def test_models_that_are_less_sure_than_they_could_be_are_not_called_too_sure() -> None:
    claim = Claim(contradiction=Contradiction("predictions were off by 1 where 2 was expected", too_sure=False))
    assert "the targets do not tell which" in claim.withheld
    assert "What they call noise" not in claim.withheld  # too wide a forest may have too little noise


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_member_has_a_caveat(kind: str) -> None:
    said = Claim(kind).caveat
    assert "uqprism audit" in said
    assert (kind in KEPT) == ("were audited" in said)
    assert Claim(kind).stands == (kind not in NO_PROMISE)


@pytest.fixture(scope="module")
def audited() -> Audit:
    x, y = friedman(256, 0)
    return up.audit(RandomForestRegressor(10), x, y, parts=4, repeats=2, measures=CRPS, resamples=20)


def test_an_audit_takes_the_place_of_the_caveat(tmp_path: Path, audited: Audit) -> None:
    audited.save(tmp_path / "audit.npz")
    for given in (audited, tmp_path / "audit.npz"):
        page, text = written(forest(200), tmp_path, audit=given)
        assert f"twice the rows remove {audited.first.factor:.2f} (" in page.sentences["claim"]
        assert plain(page.sentences["claim"]) in text


def test_an_audit_is_on_the_page_with_its_figure_and_its_sentence(tmp_path: Path, audited: Audit) -> None:
    page, text = written(forest(200), tmp_path, audit=audited)
    assert plain(audited.first.sentence()) in text
    html = page.path.read_text()
    assert 'id="figure-promise"' in html
    assert "rows of the training set" in html.split('id="figure-promise"')[1]
    assert 'id="figure-promise"' not in written(forest(200), tmp_path)[0].path.read_text()


def test_an_audit_says_whether_to_collect_data(tmp_path: Path, audited: Audit) -> None:
    """Also where targets contradict the models, since an audit has measured what the models cannot tell."""
    fall = 1.0 - audited.first.expected(2.0)[0] / audited.first.penalty[-1]
    page, _ = written(forest(200), tmp_path, audit=audited, target=TEST[1])
    assert page.findings.claim.contradiction.what in page.sentences["claim"]
    assert page.advice[1].do.startswith("Collect more data like")
    assert f"twice the rows lower the penalty by {100 * fall:.2g}" in page.advice[1].why
    little = dataclasses.replace(audited, penalty=audited.penalty[:, -1:] + 1e-3 * audited.penalty, replicates=None)
    page, _ = written(forest(200), tmp_path, audit=little)
    assert page.advice[1].do == "Do not expect much of more data"


def test_an_audit_of_another_measure_is_refused(tmp_path: Path, audited: Audit) -> None:
    with pytest.raises(ArgumentError, match=r"audit must hold log.excess.members.members.*it holds crps"):
        up.write_report(forest(200), tmp_path / "page.html", rule="log", audit=audited)


def test_the_origin_of_a_file_decides(tmp_path: Path) -> None:
    source, _ = gaussians()
    source.made_by(Origin("list", "boosting", 5)).save(tmp_path / "boosted.npz")
    source.save(tmp_path / "bare.npz")
    said = [written(tmp_path / name, tmp_path)[0].findings.claim.kind for name in ("boosted.npz", "bare.npz")]
    assert said == ["boosting", "unknown"]
