"""The comparison of parameterisations: from data to folder at the smallest size, and claims on curves with known answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from uqprism.paper import summaries
from uqprism.paper.data.synthetic import sine
from uqprism.paper.experiments.parameterization import EXPERIMENT, Config, claims
from uqprism.paper.experiments.parameterization.claims import Baseline, Networks
from uqprism.paper.results import load
from uqprism.paper.runner import Outcome, produce

TINY = Config(n_sets=2, n_networks=2, n_training=96, n_validation=50, hidden=(8,), other_rates=(1e-2,), epochs=20)
SMOKE = dataclasses.replace(EXPERIMENT, presets={"tiny": TINY})


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return produce(SMOKE, "tiny", out=tmp_path_factory.mktemp("runs") / "here", progress=False)


def test_the_folder_has_all_files_and_no_others_and_the_report_each_statement_beside_its_numbers(outcome: Outcome) -> None:
    pictures = {f"{name}.{ending}" for name in ("loss", "prediction") for ending in ("png", "svg")}
    names = {path.name for path in outcome.folder.iterdir()}
    assert names == {"result.json", "report.md", "arrays.npz", "tables", "_work", *pictures}
    for name in pictures:
        assert (outcome.folder / name).read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")
    text = (outcome.folder / "report.md").read_text()
    for claim in outcome.result.claims:
        verdict, measured = "holds" if claim.holds else "**does not hold**", claim.measured.replace("|", r"\|")
        assert f"| {claim.paper} | {verdict} | {measured} |" in text
    assert "(loss.png)" in text
    assert "(prediction.png)" in text


def test_the_record_says_how_it_was_made(outcome: Outcome) -> None:
    record = json.loads((outcome.folder / "result.json").read_text())
    assert record["config"] == {**dataclasses.asdict(TINY), "hidden": [8], "other_rates": [0.01]}
    assert {"uqprism", "python", "numpy", "torch", "matplotlib"} <= set(record["versions"])
    assert record["hardware"]["cores"] >= 1
    assert record["seconds"] > 0
    assert record["jobs"] | {"seconds of work": 0} == {"count": 4, "found done": 0, "processes": 1, "seconds of work": 0}
    assert [len(digest) for digest in record["data"].values()] == [64, 64]
    assert len(record["seeds"]["training data"]) == len(record["seeds"]["networks"]) == 2
    assert len(record["claims"]) == 4
    for claim in record["claims"]:
        assert isinstance(claim["holds"], bool)
        assert np.isfinite(list(claim["numbers"].values())).all()
    assert [row["learning rate"] for row in record["tables"]["What holds at which learning rate"]] == [0.001, 0.01]


def test_claims_and_pictures_come_from_the_stored_curves(outcome: Outcome) -> None:
    arrays, claims = outcome.result.arrays, outcome.result.claims
    assert arrays["natural_validation"].shape == (20, 4)
    curves = (arrays[f"{name}_validation"] for name in ("standard", "natural"))
    standard, natural = (np.median(np.abs(np.diff(each, axis=0))[4:].mean(0)) for each in curves)
    assert claims[1].numbers["natural_validation_roughness"] == pytest.approx(natural)
    assert claims[1].numbers["validation_roughness_ratio"] == pytest.approx(standard / natural)
    at = [int(np.abs(arrays["grid"] - x).argmin()) for x in (-12.0, -3.0)]
    left = np.median(arrays["standard_scale"][:, at[0]] / arrays["standard_scale"][:, at[1]])
    assert claims[2].numbers["standard_scale_ratio_left"] == pytest.approx(left)
    drawn = EXPERIMENT.draw(load(outcome.folder)[0])
    for ax, name in zip(drawn["loss"].figure.axes, ("standard", "natural"), strict=True):
        shown = np.array([line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 20])
        expected = np.hstack([arrays[f"{name}_training"], arrays[f"{name}_validation"]]).T
        np.testing.assert_array_equal(np.sort(shown, axis=0), np.sort(expected, axis=0))


def test_losses_are_in_the_units_of_the_targets(outcome: Outcome) -> None:
    """A network's loss at its best epoch is the likelihood of the validation rows under what it predicts there."""
    from scipy.stats import norm

    inputs, targets = sine(TINY.n_validation, outcome.result.seeds["validation data"])
    arrays = outcome.result.arrays
    for name in ("standard", "natural"):
        for i in range(4):
            mean, scale = (np.interp(inputs[:, 0], arrays["grid"], arrays[f"{name}_{what}"][i]) for what in ("mean", "scale"))
            loss = -norm.logpdf(targets, mean, scale).mean()
            assert loss == pytest.approx(arrays[f"{name}_validation"][:, i].min(), abs=2e-3)  # the grid is fine, not exact
    x, y = sine(TINY.n_training, outcome.result.seeds["training data"][0])
    assert (arrays["inputs"] == x[:, 0]).all()
    assert (arrays["targets"] == y).all()


def test_the_seed_decides(outcome: Outcome, tmp_path: Path) -> None:
    same = produce(SMOKE, "tiny", out=tmp_path / "same", progress=False)
    other = produce(SMOKE, "tiny", out=tmp_path / "other", seed=1, progress=False)
    assert same.result.claims == outcome.result.claims
    for name, values in outcome.result.arrays.items():
        np.testing.assert_array_equal(same.result.arrays[name], values)
    assert (other.result.arrays["targets"] != outcome.result.arrays["targets"]).all()
    assert other.result.config["seed"] == 1
    for name in ("loss.svg", "prediction.svg"):
        assert (same.folder / name).read_bytes() == (outcome.folder / name).read_bytes()


def test_what_was_trained_before_an_interruption_is_not_trained_again(
    outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from uqprism import training

    real, begun = training.train_many, []

    def interrupted(*arguments: object, **settings: object) -> object:
        begun.append((settings["head"], settings["learning_rate"]))
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **settings)

    monkeypatch.setattr(training, "train_many", interrupted)
    with pytest.raises(KeyboardInterrupt):
        produce(SMOKE, "tiny", out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["_work"]
    resumed = produce(SMOKE, "tiny", out=tmp_path)
    assert begun == [("mean_variance", 1e-3), ("natural", 1e-3), ("natural", 1e-3), ("mean_variance", 1e-2), ("natural", 1e-2)]
    assert resumed.result.claims == outcome.result.claims


def test_half_a_training_is_no_result(tmp_path: Path, epochs: Callable[..., list[int]]) -> None:
    """On Ctrl-C the trainer returns its networks so far; a job raises instead."""
    epochs(stop=5)
    with pytest.raises(KeyboardInterrupt):
        produce(SMOKE, "tiny", out=tmp_path)
    assert not (tmp_path / "result.json").exists()
    assert not list(tmp_path.glob("_work/bundle/*"))


def test_the_presets_are_quick_and_paper_and_have_the_papers_width() -> None:
    assert {name: config.hidden for name, config in EXPERIMENT.presets.items()} == dict.fromkeys(("quick", "paper"), (32, 32, 32))
    assert summaries()[EXPERIMENT.name] == EXPERIMENT.summary


BASELINE = Baseline(steps_per_epoch=8, true_loss=0.0, edge=3.0, far=12.0, spread=2.0)
GRID = np.linspace(-12.0, 12.0, 241)
BEYOND = np.maximum(np.abs(GRID) - 3.0, 0.0)
FLAT, ONE = GRID * 0.0, GRID * 0.0 + 1.0


def networks(loss: np.ndarray, mean: np.ndarray = FLAT, scale: np.ndarray = ONE, restarts: int = 0) -> Networks:
    """Three networks that are all the same."""
    curves = np.repeat(loss[:, None], 3, axis=1)
    return Networks(curves, curves, restarts, GRID, np.tile(mean, (3, 1)), np.tile(scale, (3, 1)))


def falling(epochs: int) -> np.ndarray:
    """One nat, then zero from this epoch on, of 100."""
    return np.where(np.arange(1, 101) >= epochs, 0.0, 1.0)


def zigzag(size: float) -> np.ndarray:
    return size * (np.arange(100) % 2)


def test_steps_count_epochs_until_the_level_and_all_of_them_where_it_is_never_reached() -> None:
    curves = np.array([[3.0, 1.0, 9.0], [2.0, 0.0, 9.0], [1.0, 5.0, 9.0]])
    assert claims.steps_to(curves, 2.0, 10).tolist() == [20, 10, 30]
    assert claims.steps_to(curves, curves.min(0), 10).tolist() == [30, 20, 10]


def test_more_steps_needs_both_ways_of_counting() -> None:
    quick, slow = networks(falling(10)), networks(falling(40))
    claim = claims.more_steps(quick, slow, BASELINE)
    assert claim.holds
    assert claim.numbers["standard_steps_to_own_best"] == 80
    assert claim.numbers["natural_steps_to_true_loss"] == 320
    assert claim.numbers["pairs_where_natural_needs_more"] == 3
    assert not claims.more_steps(slow, quick, BASELINE).holds
    # It soon reaches a best of its own that is far from the truth: slow by one count only.
    claim = claims.more_steps(quick, networks(falling(5) + 1.0), BASELINE)
    assert claim.numbers["natural_never_at_true_loss"] == 3
    assert claim.numbers["natural_steps_to_true_loss"] == 800
    assert not claim.holds


def test_roughness_is_the_change_from_epoch_to_epoch_after_the_first_fifth() -> None:
    wild_start = np.concatenate([np.linspace(50.0, 0.0, 20), zigzag(0.3)[:80]])[:, None]
    assert claims.roughness(wild_start)[0] == pytest.approx(0.3)
    spike = np.zeros((100, 1))
    spike[60] = 4.0
    assert claims.largest_rise(spike)[0] == 4.0
    assert claims.roughness(spike)[0] == pytest.approx(8.0 / 79)


@pytest.mark.parametrize(("size", "restarts", "holds"), [(0.1, 0, True), (0.4, 0, False), (0.8, 0, False), (0.1, 1, False)])
def test_much_more_stable_means_half_the_change_and_no_more_divergence(size: float, restarts: int, holds: bool) -> None:
    claim = claims.more_stable(networks(zigzag(0.6)), networks(zigzag(size), restarts=restarts))
    assert claim.numbers["validation_roughness_ratio"] == pytest.approx(0.6 / size)
    assert claim.holds is holds


@pytest.mark.parametrize(
    ("standard", "natural", "holds"),
    [
        (np.exp(-BEYOND), (1.0 + BEYOND) ** -0.5, True),
        (np.exp(0.1 * BEYOND), (1.0 + BEYOND) ** -0.5, False),  # does not collapse
        (np.exp(-BEYOND), np.exp(-0.5 * BEYOND), False),  # both do
        (np.exp(-BEYOND), np.exp(0.5 * BEYOND), False),  # natural is not constant either
    ],
)
def test_variance_away_from_data(standard: np.ndarray, natural: np.ndarray, holds: bool) -> None:
    claim = claims.variance_collapses(networks(zigzag(1), scale=standard), networks(zigzag(1), scale=natural), BASELINE)
    assert claim.holds is holds
    assert claim.numbers["standard_scale_ratio"] == pytest.approx(standard[0])
    assert claim.numbers["natural_scale_ratio_right"] == pytest.approx(natural[-1])
    one_sided = networks(zigzag(1), scale=np.where(GRID < 0.0, standard, 1.0))
    found = claims.variance_collapses(one_sided, networks(zigzag(1)), BASELINE).numbers
    assert found["standard_scale_ratio"] == pytest.approx(standard[0] ** 0.5)  # sides are averaged as factors
    assert found["standard_sides_collapsed"] == (0.5 if standard[0] < 0.25 else 0.0)


@pytest.mark.parametrize(
    ("standard", "natural", "holds"),
    [
        (0.5 * GRID, 0.5 * np.tanh(GRID), True),
        (0.5 * np.tanh(GRID), 0.5 * np.tanh(GRID), False),  # standard stays
        (0.5 * GRID, 0.5 * GRID, False),  # natural goes
        (4.0 * np.sin(3.0 * GRID), 0.0 * GRID, False),  # standard moves, in no line
    ],
)
def test_mean_away_from_data(standard: np.ndarray, natural: np.ndarray, holds: bool) -> None:
    claim = claims.mean_goes_on(networks(zigzag(1), mean=standard), networks(zigzag(1), mean=natural), BASELINE)
    assert claim.holds is holds
    if standard[-1] == 6.0:
        assert claim.numbers["standard_mean_change"] == pytest.approx(0.5 * 4.5 / 2.0)
        assert claim.numbers["standard_straightness"] == pytest.approx(1.0)


def test_all_claims_are_made_of_medians_over_networks() -> None:
    odd = dataclasses.replace(networks(falling(10)), validation=np.column_stack([falling(10), falling(10), falling(90)]))
    claim, *others = claims.all_claims(standard=odd, natural=networks(falling(40)), baseline=BASELINE)
    assert claim.numbers["standard_steps_to_own_best"] == 80
    assert claim.numbers["pairs_where_natural_needs_more"] == 2
    assert len(others) == 3
