"""The experiments with image networks: at the smallest size, and claims on the paper's own and on altered numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from uqprism import ood_detection, selective_prediction
from uqprism.measures import published
from uqprism.paper import ensembles
from uqprism.paper.comparison import Cells, column
from uqprism.paper.ensembles import StoredEnsemble, Training
from uqprism.paper.experiment import Claim
from uqprism.paper.experiments import correlation, ood, selective
from uqprism.paper.experiments.ood import claims as ood_claims
from uqprism.paper.experiments.selective import claims as selective_claims
from uqprism.paper.runner import Outcome, produce
from uqprism.paper.store import Store
from uqprism.tasks import prediction_error
from uqprism.tasks.rank_correlation import RankCorrelation

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


def refused(*_: object, **__: object) -> None:
    raise AssertionError("should not be called")


def without_training(patch: pytest.MonkeyPatch) -> None:
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
    rows = detected.result.tables["AUROC, mean over the sets"]
    assert [row["measure"] for row in rows] == [measure.name for measure in published.measures()]  # the blank cells, too
    mean = dict(zip(arrays["measures"], arrays["auroc"].mean(axis=(0, 1)), strict=True))
    assert [row["ours"] for row in rows] == pytest.approx([mean[row["measure"]] for row in rows])
    assert mean["squared_error.excess.mixture.matched"] == 0.5


def test_a_stand_in_for_letters_changes_one_quadrant_only() -> None:
    mosaics = np.zeros((3, 1, 16, 16), np.uint8)
    for place, (row, across) in zip(ood.PLACES, ((0, 0), (0, 8), (8, 0), (8, 8)), strict=True):
        expected = mosaics.copy()
        expected[:, :, row : row + 8, across : across + 8] = 255
        np.testing.assert_array_equal(ood.ood_mosaics(f"inverted_{place}", mosaics, Store(Path("unused")), seed=0), expected)


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
    row = selected.result.tables["PRR (lower is better), mean over the data sets"][0]
    dots, arrow = (published.table("selective_prediction_full", name)[row["measure"]].value for name in ("dots", "arrow"))
    assert row["paper"] == pytest.approx((dots + arrow) / 2.0)  # over the data sets that are there


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
    assert [ood.PAPER_ROWS[name] for name in ood.Config().ood_names()] == published.rows("ood_detection_full")
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


def test_seeds_are_held_against_the_paper_and_each_other(selected: Outcome) -> None:
    arrays, table = selected.result.arrays, published.table("selective_prediction_full", "dots")
    first, second = arrays["dots_prr"][:, [list(arrays["measures"]).index(published.printed_as(name)) for name in table]]
    row = selected.result.tables["Seeds"][0]
    for name, other in (("Spearman with the paper", [cell.value for cell in table.values()]), ("with our other seeds", second)):
        assert row[name] == pytest.approx(spearmanr(first, other).statistic)


def test_with_equal_variances_all_rules_find_what_the_means_tell(detected: Outcome) -> None:
    """Two members: every R_exc^{1,1} then grows with the distance of their means, so all rules agree."""
    rows = detected.result.tables[ood.EQUAL]
    assert [row["data"] for row in rows[::2]] == list(detected.result.arrays["rows"])
    for own, equal in zip(rows[::2], rows[1::2], strict=True):
        assert (own["variances"], equal["variances"]) == ("own", "equal")
        assert [equal[rule] for rule in ("crps", "log", "quadratic")] == pytest.approx([own["squared_error"]] * 3, abs=1e-6)


def test_selection_goes_on_from_a_store_alone(selected: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is given the store needs no data files, nor makes the images again."""
    monkeypatch.setattr("uqprism.paper.inputs.load", refused)
    (job, *_) = selective.jobs(PICTURES)
    again = selective.work(job, Store(selected.folder / "_work"))
    assert again.settings["record"]["test NLL"] == selected.result.tables["Training"][0]["test NLL"]


def papers(name: str, row: str | None = None, blank: float = 0.5) -> Cells:
    """The paper's table as if it were ours, with a number in its blank cells."""
    table = published.table(name, row)
    names = [measure.name for measure in published.measures()]
    return Cells(
        {each: table[each].value if each in table else blank for each in names},
        {each: table[each].spread if each in table else 0.0 for each in names},
    )


def changed(cells: Cells, **values: float) -> Cells:
    return dataclasses.replace(cells, value={**cells.value, **{name.replace("__", "."): x for name, x in values.items()}})


def denied(claims: Iterable[Claim]) -> list[str]:
    return [claim.name for claim in claims if not claim.holds]


def test_every_sentence_holds_for_the_numbers_it_was_written_from() -> None:
    """The thresholds are ours; on the paper's own tables they must say what the paper says."""
    assert denied(ood_claims.all_claims(altered("nothing"))) == []
    assert denied(selective_claims.all_claims(papers("selective_prediction_mean", blank=1.0))) == []


def altered(change: str) -> ood_claims.Aurocs:
    """The paper's AUROCs with one change."""
    mean, names = papers("ood_detection_mean"), published.rows("ood_detection_full")
    rows = {row: papers("ood_detection_full", row) for row in names}
    if change == "noise detects":
        mean = changed(mean, crps__bayes__members=0.9)
    elif change == "places swapped":
        rows["EMNIST (tr)"], rows["EMNIST (br)"] = rows["EMNIST (br)"], rows["EMNIST (tr)"]
    elif change == "SVHN passes as digits":
        rows["SVHN"] = changed(rows["SVHN"], log__excess__members__members=0.7)
    return ood_claims.Aurocs(mean, rows, tuple(names[:4]), tuple(names[4:]))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("noise detects", ["excess risks suit best", "particularly R_exc^{1,1}"]),
        ("places swapped", ["by positional significance"]),
        ("SVHN passes as digits", ["similar across sources", "SVHN as well"]),
    ],
)
def test_other_aurocs_deny_the_sentences_that_are_about_them(change: str, expected: list[str]) -> None:
    found = ood_claims.all_claims(altered(change))
    assert denied(found) == expected
    if change == "noise detects":
        assert found[1].numbers["behind_crps"] == pytest.approx(0.9 - 0.825)


@pytest.mark.parametrize(
    ("measure", "value", "expected"),
    [
        ("squared_error__excess__members__members", 0.2, {"squared_excess", "best_totals", "overall_best", "among_the_best"}),
        ("quadratic__excess__mixture__pooled", 0.39, {"poor_excess"}),
        ("log__excess__members__members", 0.33, {"log_excess"}),
        ("log__total__members__members", 0.4, {"best_totals", "among_the_best"}),
    ],
)
def test_one_number_denies_the_sentences_that_are_about_it(measure: str, value: float, expected: set[str]) -> None:
    mean = changed(papers("selective_prediction_mean", blank=1.0), **{measure: value})
    names = ("total_does_well", "best_totals", "squared_excess", "poor_excess", "log_excess", "overall_best", "among_the_best")
    assert {name for name in names if not getattr(selective_claims, name)(mean).holds} == expected


def correlation_of(pairs: dict[tuple[str, str], float], otherwise: float = 1.0) -> RankCorrelation:
    names = tuple(measure.name for measure in published.measures())
    matrix = np.full((len(names), len(names)), otherwise)
    np.fill_diagonal(matrix, 1.0)
    for (one, other), tau in pairs.items():
        i, j = names.index(one), names.index(other)
        matrix[i, j] = matrix[j, i] = tau
    return RankCorrelation(names, matrix)


def test_correlations_deny_what_they_are_about() -> None:
    slip = {(column("log", "excess 1,1"), column("log", "excess 2,1")): 0.95}
    varied = (column("crps", "excess 3a,1"), column("quadratic", "excess 3a,1"))
    claims = correlation.all_claims(correlation_of({varied: 0.3, **slip}))
    assert denied(claims) == ["R_exc^{1,1} and R_exc^{2,1}"]
    assert claims[3].numbers == {"crps": 1.0, "log": 0.95, "squared_error": 1.0, "quadratic": 1.0}
    mean = correlation_of({(column("crps", "bayes 1"), column("crps", "bayes 3b")): 0.5})
    assert denied(correlation.all_claims(mean)) == ["R_Bayes^{1} and R_Bayes^{3b}", "only excess risks vary"]


def test_the_log_score_counts_only_where_the_paper_could_compute_it() -> None:
    measure = "total 3a,2"
    mean = correlation_of({(column("log", measure), column("crps", measure)): 0.5})
    claim = correlation.all_claims(mean)[5]
    assert claim.holds
    assert "by our integrals: 0.5000" in claim.measured
    assert not correlation.all_claims(correlation_of({(column("quadratic", measure), column("crps", measure)): 0.5}))[5].holds


def test_what_is_within_the_spread_of_the_best_is_among_the_best() -> None:
    """As the paper prints in bold; with one seed there is no spread, and the paper's own takes its place."""
    mean = papers("selective_prediction_mean", blank=1.0)
    behind = changed(mean, crps__bayes__members=0.30)  # now the best, 0.018 ahead of R_tot^{1,1}
    for spread, holds in ((0.03, True), (0.01, False), (np.nan, False)):
        cells = dataclasses.replace(behind, spread=dict.fromkeys(behind.spread, spread))
        assert selective_claims.best_totals(cells).holds == holds
        assert not selective_claims.overall_best(cells).holds
    near = dataclasses.replace(mean, spread=dict.fromkeys(mean.spread, np.nan))
    assert selective_claims.best_totals(near).holds
