"""The comparison of parameterisations from data to folder, at the smallest size."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from uqprism.errors import ArgumentError, FileError, InvalidValueError, MissingExtraError
from uqprism.paper import runner, summaries
from uqprism.paper.data.synthetic import sine
from uqprism.paper.experiments.parameterization import EXPERIMENT, Config
from uqprism.paper.results import load
from uqprism.paper.runner import Outcome, produce

TINY = Config(n_sets=2, n_networks=2, n_training=96, n_validation=50, hidden=(8,), other_rates=(1e-2,), epochs=20)
SMOKE = dataclasses.replace(EXPERIMENT, presets={"tiny": TINY})


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return produce(SMOKE, "tiny", out=tmp_path_factory.mktemp("runs") / "here", progress=False)


def test_the_folder_has_all_files_and_no_others(outcome: Outcome) -> None:
    pictures = [f"{name}.{ending}" for name in ("loss", "prediction") for ending in ("png", "svg")]
    assert sorted(path.name for path in outcome.folder.iterdir()) == sorted(
        ["result.json", "report.md", "arrays.npz", "tables", "_work", *pictures]
    )
    for name in pictures:
        start = (outcome.folder / name).read_bytes()[:5]
        assert start in (b"\x89PNG\r", b"<?xml")


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
    assert all(
        isinstance(claim["holds"], bool) and np.isfinite(list(claim["numbers"].values())).all() for claim in record["claims"]
    )
    assert [row["learning rate"] for row in record["tables"]["What holds at which learning rate"]] == [0.001, 0.01]


def test_claims_and_pictures_come_from_the_stored_curves(outcome: Outcome) -> None:
    arrays, claims = outcome.result.arrays, outcome.result.claims
    assert arrays["natural_validation"].shape == (20, 4)
    rough = {
        name: np.median(np.abs(np.diff(arrays[f"{name}_validation"], axis=0))[4:].mean(0)) for name in ("standard", "natural")
    }
    assert claims[1].numbers["natural_validation_roughness"] == pytest.approx(rough["natural"])
    assert claims[1].numbers["validation_roughness_ratio"] == pytest.approx(rough["standard"] / rough["natural"])
    at = [int(np.abs(arrays["grid"] - x).argmin()) for x in (-12.0, -3.0)]
    left = np.median(arrays["standard_scale"][:, at[0]] / arrays["standard_scale"][:, at[1]])
    assert claims[2].numbers["standard_scale_ratio_left"] == pytest.approx(left)
    drawn = EXPERIMENT.draw(load(outcome.folder)[0])
    for ax, name in zip(drawn["loss"].figure.axes, ("standard", "natural"), strict=True):
        curves = np.array([line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 20])
        expected = np.hstack([arrays[f"{name}_training"], arrays[f"{name}_validation"]]).T
        np.testing.assert_array_equal(np.sort(curves, axis=0), np.sort(expected, axis=0))


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


def test_the_report_has_each_statement_beside_its_numbers(outcome: Outcome) -> None:
    text = (outcome.folder / "report.md").read_text()
    for claim in outcome.result.claims:
        verdict = "holds" if claim.holds else "**does not hold**"
        assert f"| {claim.paper} | {verdict} | {claim.measured.replace('|', chr(92) + '|')} |" in text
    assert "(loss.png)" in text
    assert "(prediction.png)" in text


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


def no_run(*_: object) -> None:
    raise AssertionError("nothing should be run")


def test_a_finished_result_is_read_and_not_run_again(outcome: Outcome) -> None:
    again = produce(dataclasses.replace(SMOKE, work=no_run), "tiny", out=outcome.folder)
    assert again.reused
    assert again.result.claims == outcome.result.claims
    assert "read, not run again" in str(again)


def test_a_result_of_other_settings_is_refused(outcome: Outcome) -> None:
    with pytest.raises(ArgumentError, match=r"other settings \(seed is 0 there and 5 here\).*--overwrite"):
        produce(dataclasses.replace(SMOKE, work=no_run), "tiny", out=outcome.folder, seed=5)
    with pytest.raises(ArgumentError, match="holds the experiment 'parameterization', not 'other'"):
        produce(dataclasses.replace(SMOKE, name="other", work=no_run), "tiny", out=outcome.folder)


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


def test_half_a_training_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer answers Ctrl-C with what it has so far; here that is an interruption."""
    from uqprism.training import trainer

    real, epochs = trainer.Trainer._epoch, []

    def interrupted(run: object) -> None:
        epochs.append(1)
        if len(epochs) == 5:
            raise KeyboardInterrupt
        real(run)

    monkeypatch.setattr(trainer.Trainer, "_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        produce(SMOKE, "tiny", out=tmp_path)
    assert not (tmp_path / "result.json").exists()
    assert not list(tmp_path.glob("_work/findings/*"))


def test_overwrite_replaces_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("not ours")
    with pytest.raises(InvalidValueError, match="was not written by uqprism reproduce"):
        produce(SMOKE, "tiny", out=tmp_path)
    done = produce(SMOKE, "tiny", out=tmp_path, overwrite=True)
    assert not done.reused
    (tmp_path / "arrays.npz").unlink()
    with pytest.raises(FileError, match=r"no .*arrays\.npz"):
        produce(SMOKE, "tiny", out=tmp_path)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write into"):
        produce(SMOKE, "tiny", out=tmp_path / "file")


def test_a_missing_package_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str, *, extra: str) -> None:
        raise MissingExtraError(package, extra)

    monkeypatch.setattr(runner, "require", missing)
    with pytest.raises(MissingExtraError, match=r"uqprism\[report\]"):
        produce(dataclasses.replace(SMOKE, work=no_run), "tiny", out=tmp_path)


def test_the_presets_are_quick_and_paper_and_the_paper_has_width_32() -> None:
    assert list(EXPERIMENT.presets) == ["quick", "paper"]
    assert all(config.hidden == (32, 32, 32) for config in EXPERIMENT.presets.values())
    assert summaries()[EXPERIMENT.name] == EXPERIMENT.summary
