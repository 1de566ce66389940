"""The experiments with image networks, from data to folder, at the smallest size."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from uqprism import ood_detection, selective_prediction
from uqprism.measures import published
from uqprism.paper import ensembles
from uqprism.paper.ensembles import StoredEnsemble, Training
from uqprism.paper.experiments import correlation, ood, selective
from uqprism.paper.runner import Outcome, produce
from uqprism.paper.store import Store
from uqprism.tasks import prediction_error

SMALL = Training(channels=(2, 2, 2), hidden=4, n_members=2, max_epochs=2, patience=1)
MOSAICS = dataclasses.replace(ood.QUICK, sizes=(96, 32, 40), training=SMALL)
PICTURES = dataclasses.replace(selective.QUICK, sizes=(96, 32, 40), training=SMALL)
OOD = dataclasses.replace(ood.EXPERIMENT, presets={"tiny": MOSAICS})
SELECTIVE = dataclasses.replace(selective.EXPERIMENT, presets={"tiny": PICTURES})
CORRELATION = dataclasses.replace(correlation.EXPERIMENT, presets={"tiny": PICTURES})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def detected(folder: Path) -> Outcome:
    """Gone on from the predictions alone, which are all that a machine with a GPU need leave."""
    ood.predict(MOSAICS, Store(folder / "ood" / "_work"))
    members = list(folder.glob("ood/_work/members/*.safetensors"))
    assert len(members) == MOSAICS.n_seeds
    for path in members:
        path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        without_training(patch)
        return produce(OOD, "tiny", out=folder / "ood", progress=False)


@pytest.fixture(scope="module")
def selected(folder: Path) -> Outcome:
    return produce(SELECTIVE, "tiny", out=folder / "selective", progress=False)


def without_training(patch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("nothing should be trained")

    for name in ("trained", "trained_now"):
        patch.setattr(ensembles, name, refused)


def test_detection_is_that_of_the_kept_predictions(detected: Outcome) -> None:
    """Recomputed by hand for one seed and one kind of OOD mosaics."""
    store, fit = Store(detected.folder / "_work"), ood.fits(MOSAICS)[1]
    known, ood_measures = (ensembles.measured(store.get(fit.predictions(what))) for what in ("test", "inverted"))
    name = "crps.excess.members.members"
    expected = ood_detection({name: known[name]}, {name: ood_measures[name]}, resamples=0)[name]
    arrays = detected.result.arrays
    at = list(arrays["rows"]).index("inverted"), list(arrays["measures"]).index(name)
    assert arrays["auroc"][1, *at] == pytest.approx(expected)
    rows = detected.result.tables["AUROC by set"]
    (row,) = [each for each in rows if (each["data"], each["rule"], each["numbers"]) == ("inverted", "crps", "ours")]
    assert row["R_exc^{1,1}"] == pytest.approx(arrays["auroc"][:, *at].mean())


def test_the_mean_over_sets_has_every_column_of_the_paper_and_the_blank_ones_too(detected: Outcome) -> None:
    rows = detected.result.tables["AUROC, mean over the sets"]
    assert [row["measure"] for row in rows] == [measure.name for measure in published.measures()]
    arrays = detected.result.arrays
    mean = dict(zip(arrays["measures"], arrays["auroc"].mean(axis=(0, 1)), strict=True))
    for row in rows:
        assert row["ours"] == pytest.approx(mean[row["measure"]])
    assert mean["squared_error.excess.mixture.matched"] == 0.5


def test_a_stand_in_for_letters_changes_one_quadrant_only() -> None:
    mosaics = np.zeros((3, 1, 16, 16), np.uint8)
    for place, corner in zip(ood.PLACES, ((0, 0), (0, 8), (8, 0), (8, 8)), strict=True):
        found = ood.ood_mosaics(f"inverted_{place}", mosaics, Store(Path("unused")), seed=0)
        expected = mosaics.copy()
        expected[:, :, corner[0] : corner[0] + 8, corner[1] : corner[1] + 8] = 255
        np.testing.assert_array_equal(found, expected)


def test_selection_is_that_of_the_kept_predictions(selected: Outcome) -> None:
    store, job = Store(selected.folder / "_work"), selective.jobs(PICTURES)[0]
    fitted = StoredEnsemble(job.key.fit, store)
    predictions, targets = fitted.predictions(), fitted.data.test.targets
    name = "log.total.members.members"
    scores = {name: ensembles.measured(predictions)[name]}
    error = prediction_error(predictions, targets)
    np.testing.assert_allclose(error, (np.mean(predictions.members.mean, axis=0) - targets) ** 2)
    expected = selective_prediction(scores, error=error, resamples=0)[name]
    arrays = selected.result.arrays
    assert arrays["dots_prr"][0, list(arrays["measures"]).index(name)] == pytest.approx(expected)
    assert selected.result.data["dots, seed 1"] == fitted.data.checksum()


def test_the_papers_mean_is_over_the_data_sets_that_are_there(selected: Outcome) -> None:
    row = selected.result.tables["PRR, mean over the data sets"][0]
    dots, arrow = (published.table("selective_prediction_full", name)[row["measure"]].value for name in ("dots", "arrow"))
    assert row["paper"] == pytest.approx((dots + arrow) / 2.0)


def test_correlation_reads_the_ensembles_of_selective(selected: Outcome, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_training(monkeypatch)
    found = produce(CORRELATION, "tiny", out=folder / "correlation", progress=False)
    arrays = found.result.arrays
    names = list(arrays["measures"])
    one, other = (names.index(f"{rule}.bayes.matched") for rule in ("crps", "log"))
    assert arrays["tau"][one, other] == pytest.approx(1.0)
    assert found.result.data == selected.result.data
    assert (found.folder / "correlation.png").exists()


def test_each_report_has_its_sentences_and_pictures(detected: Outcome, selected: Outcome) -> None:
    for outcome, pictures in ((detected, ["by_set"]), (selected, ["retention", "cells"])):
        text = (outcome.folder / "report.md").read_text()
        for claim in outcome.result.claims:
            assert claim.paper in text
        for name in pictures:
            assert f"({name}.png)" in text
            assert (outcome.folder / f"{name}.svg").exists()


def test_the_paper_preset_is_the_papers() -> None:
    assert len(ood.jobs(ood.Config())) == 5
    names = [job.key.name for job in selective.jobs(selective.Config())]
    assert sorted(set(names)) == sorted(published.rows("selective_prediction_full"))
    for how in (ood.Config().training, selective.Config().training, selective.Config().scene_training):
        assert (how.n_members, how.learning_rate, how.batch_size) == (10, 1e-3, 64)


def test_expected_times_follow_epochs_and_pixels() -> None:
    """Within a third of what was recorded on an H200; cityscapes has 51 times the pixels of camvid."""
    scenes = (dataclasses.replace(selective.PRESETS[name], generated=()) for name in ("paper", "longer", "cityscapes"))
    camvid, longer, large = (selective.jobs(config)[0] for config in scenes)
    assert camvid.seconds == pytest.approx(73.0, rel=0.33)
    assert longer.seconds == pytest.approx(217.0, rel=0.33)
    assert large.seconds == pytest.approx(camvid.seconds * 16_200 * 224**2 / (1_468 * 90 * 120))
    assert selective.jobs(selective.Config())[0].seconds == pytest.approx(13.7, rel=0.33)
    assert ood.jobs(ood.Config())[0].seconds == pytest.approx(65.1, rel=0.33)
    for experiment in (selective.EXPERIMENT, correlation.EXPERIMENT):
        assert experiment.wants_gpu == ("paper", "cityscapes", "longer")


def test_another_generator_is_another_ensemble(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an old run's measures would be taken for those of the new data."""
    dots, *_, before = selective.jobs(PICTURES)
    monkeypatch.setattr("uqprism.paper.data.sets.arrow_images.NOISE", 0.7)
    unchanged, *_, after = selective.jobs(PICTURES)
    assert [dots.key.name, before.key.name] == ["dots", "arrow"]
    assert dots.artefact.digest == unchanged.artefact.digest
    assert before.artefact.digest != after.artefact.digest
    for kind in ("members", "measures", "record"):
        assert getattr(before.key.fit, kind).digest != getattr(after.key.fit, kind).digest


def test_training_says_how_unlike_the_images_to_stop_on_and_to_test_on_are(selected: Outcome) -> None:
    """The NLL to stop on is the lowest of training, the NLL to test on that of the kept predictions, in its units."""
    store = Store(selected.folder / "_work")
    (job, *_) = selective.jobs(PICTURES)
    fitted = StoredEnsemble(job.key.fit, store)
    (row, *_), (seed, *_) = (selected.result.tables[name] for name in ("Training", "Seeds"))
    losses = fitted.record().arrays["validation_loss"]
    assert row["validation NLL"] == pytest.approx(np.nanmin(losses, axis=0).mean())
    test, scale = fitted.data.test, fitted.data.train.targets.std()
    members = fitted.predictions().members
    z = (test.targets - members.mean) / np.sqrt(members.variance)
    nll = 0.5 * np.log(2 * np.pi * members.variance / scale**2) + 0.5 * z**2
    assert row["test NLL"] == pytest.approx(nll.mean())
    assert row["spread of validation targets"] == pytest.approx(fitted.data.validation.targets.std())
    error = prediction_error(fitted.predictions(), test.targets)
    assert seed["share of ten largest"] == pytest.approx(sum(sorted(error)[-10:]) / sum(error))
    assert seed["largest error"] ** 2 == pytest.approx(error.max())
    assert seed["its target"] == test.targets[error.argmax()]


def test_with_equal_variances_all_rules_find_what_the_means_tell(detected: Outcome) -> None:
    """Two members: every R_exc^{1,1} then grows with the distance of their means, so all rules agree."""
    rows = detected.result.tables[ood.EQUAL]
    assert [row["data"] for row in rows[::2]] == list(detected.result.arrays["rows"])
    for own, equal in zip(rows[::2], rows[1::2], strict=True):
        assert (own["variances"], equal["variances"]) == ("own", "equal")
        assert [equal[rule] for rule in ("crps", "log", "quadratic")] == pytest.approx([own["squared_error"]] * 3, abs=1e-6)


def test_seeds_are_held_against_the_paper_and_each_other(selected: Outcome) -> None:
    from scipy.stats import spearmanr

    arrays, papers = selected.result.arrays, published.table("selective_prediction_full", "dots")
    at = [list(arrays["measures"]).index(published.printed_as(name)) for name in papers]
    first, second = arrays["dots_prr"][:, at]
    (row, *_) = selected.result.tables["Seeds"]
    assert row["Spearman with the paper"] == pytest.approx(spearmanr(first, [cell.value for cell in papers.values()]).statistic)
    assert row["with our other seeds"] == pytest.approx(spearmanr(first, second).statistic)


def test_selection_goes_on_from_a_store_alone(selected: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is given the store needs no data files, nor makes the images again."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("no data should be loaded")

    monkeypatch.setattr("uqprism.paper.inputs.load", refused)
    (job, *_) = selective.jobs(PICTURES)
    again = selective.work(job, Store(selected.folder / "_work"))
    assert again.settings["record"]["test NLL"] == selected.result.tables["Training"][0]["test NLL"]
