"""No page says of more data what an audit on the same models would contradict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import uqprism as up
from tests.report.pages import plain
from uqprism.ensemble.origin import KINDS, Origin
from uqprism.report.claims import NATURE, NO_PROMISE, Claim, Contradiction
from uqprism.report.page import Report
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


def test_models_that_are_less_sure_than_they_could_be_are_not_called_too_sure() -> None:
    claim = Claim(contradiction=Contradiction("predictions cost 1 where 2 was expected", too_sure=False))
    assert "What they call noise is more than there is" in claim.withheld


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_member_has_a_caveat(kind: str) -> None:
    said = Claim(kind).caveat
    assert "uqprism audit" in said
    assert (kind in KEPT) == ("were audited" in said)
    assert Claim(kind).stands == (kind not in NO_PROMISE)


def test_an_audit_takes_the_place_of_the_caveat(tmp_path: Path) -> None:
    x, y = friedman(256, 0)
    audit = up.audit(RandomForestRegressor(10), x, y, parts=4, repeats=2, measures=CRPS, resamples=20)
    audit.save(tmp_path / "audit.npz")
    for given in (audit, tmp_path / "audit.npz"):
        page, text = written(forest(200), tmp_path, audit=given)
        assert f"twice the rows remove {audit.first.factor:.2f} (" in page.sentences["claim"]
        assert plain(page.sentences["claim"]) in text


def test_the_origin_of_a_file_decides(tmp_path: Path) -> None:
    source, _ = gaussians()
    source.made_by(Origin("list", "boosting", 5)).save(tmp_path / "boosted.npz")
    source.save(tmp_path / "bare.npz")
    said = [written(tmp_path / name, tmp_path)[0].findings.claim.kind for name in ("boosted.npz", "bare.npz")]
    assert said == ["boosting", "unknown"]
