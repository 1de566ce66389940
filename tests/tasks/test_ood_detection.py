"""Detection metrics against scikit-learn, which computes them from the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import uqprism as up
from tests.tasks.problems import ensemble, with_ties
from uqprism import tasks


def fpr_at(labels: np.ndarray, scores: np.ndarray) -> float:
    false, true, _ = roc_curve(labels, scores, drop_intermediate=False)
    return false[np.argmax(true >= 0.95)]


@pytest.mark.parametrize("levels", [2, 30, 10**9])
@pytest.mark.parametrize(("n_in", "n_out"), [(300, 300), (1000, 40), (7, 450), (2, 2)])
def test_metrics_equal_scikit_learns(n_in: int, n_out: int, levels: int) -> None:
    rng = np.random.default_rng(levels + n_in)
    known, alien = with_ties(rng, n_in, levels), with_ties(rng, n_out, levels) + levels / 40
    labels = np.repeat([0, 1], [n_in, n_out])
    scores = np.concatenate([known, alien])
    result = tasks.ood_detection(known, alien, resamples=0)
    found = {name: column["uncertainty"] for name, column in result.metrics.items()}
    assert result["uncertainty"] == pytest.approx(roc_auc_score(labels, scores), rel=1e-12)
    assert found["aupr_out"] == pytest.approx(average_precision_score(labels, scores), rel=1e-12)
    assert found["aupr_in"] == pytest.approx(average_precision_score(1 - labels, -scores), rel=1e-12)
    assert found["fpr95"] == pytest.approx(fpr_at(labels, scores), abs=1e-12)
    assert found["fpr95_in"] == pytest.approx(fpr_at(1 - labels, -scores), abs=1e-12)


def test_the_curve_is_the_roc_curve() -> None:
    rng = np.random.default_rng(0)
    known, alien = with_ties(rng, 400, 60), with_ties(rng, 300, 60) + 2.0
    result = tasks.ood_detection(known, alien, resamples=0)
    false, true, _ = roc_curve(np.repeat([0, 1], [400, 300]), np.concatenate([known, alien]), drop_intermediate=False)
    grid = result.curves["false_positive_rate"]
    inside = ~np.isin(grid, false)  # on a vertical piece of the curve either end is right
    np.testing.assert_allclose(result.curves["uncertainty"][inside], np.interp(grid, false, true)[inside], atol=1e-12)


def test_several_sets_at_once_give_their_mean_and_each_of_them() -> None:
    (ens, _), (near, _), (far, _) = ensemble(400), ensemble(300, shift=1.0, seed=1), ensemble(200, shift=3.0, seed=2)
    names = ["log.excess.members.members", "crps.bayes.members"]
    known, first, second = (up.evaluate(each, names) for each in (ens, near, far))
    result = tasks.ood_detection(known, {"near": first, "far": second})
    assert list(result.parts) == ["near", "far"]
    alone = tasks.ood_detection(known, first)
    assert result.parts["near"][names[0]] == alone[names[0]]
    np.testing.assert_array_equal(result.parts["near"].replicates, alone.replicates)
    for name in names:
        assert result[name] == pytest.approx((result.parts["near"][name] + result.parts["far"][name]) / 2)
    assert [result.best()] == result.not_worse() == names[:1]
    assert result.to_pandas().loc[names[0], "auroc.far"] == result.parts["far"][names[0]]
    plain = tasks.ood_detection([0.0, 1.0, 2.0], {"left": [3.0, 4.0], "right": [0.5, 1.5]}, resamples=0)
    assert [plain.parts[side]["uncertainty"] for side in ("left", "right")] == [1.0, 0.5]


def brute_spread(metric: str, known: np.ndarray, alien: np.ndarray) -> float:
    rng = np.random.default_rng(0)
    drawn = ([rng.choice(each, len(each)) for each in (known, alien)] for _ in range(60))
    return float(np.std([tasks.ood_detection(*pair, resamples=0).metrics[metric]["uncertainty"] for pair in drawn]))


@pytest.mark.parametrize("metric", ["aupr_out", "aupr_in"])
def test_precision_keeps_its_spread_where_one_kind_is_resampled_in_part(metric: str) -> None:
    """Precision depends on how many points there are of each kind, so a part stands for all of its kind."""
    rng = np.random.default_rng(1)
    known, alien = rng.normal(size=60_000), rng.normal(size=2_000) + 1.5
    spread = tasks.ood_detection(known, alien, metric=metric, resamples=200).spread()["uncertainty"]
    assert spread == pytest.approx(brute_spread(metric, known, alien), rel=0.35)


def test_perfect_separation_leaves_no_room_for_others() -> None:
    rng = np.random.default_rng(0)
    known, alien = rng.normal(size=200), rng.normal(size=200) + 100
    columns = {"good": 1.0, "constant": 0.0, "upside_down": -1.0}
    tables = [{name: sign * points for name, sign in columns.items()} for points in (known, alien)]
    assert tasks.ood_detection(*tables).not_worse() == ["good"]
    # An infinite uncertainty is the highest.
    assert tasks.ood_detection([0.0, 1.0], [np.inf, 2.0])["uncertainty"] == 1.0


def delong(known: np.ndarray, alien: np.ndarray) -> float:
    """The standard error of an AUROC by DeLong et al. (1988), from all pairs."""
    above = (alien[:, None] > known).astype(float) + 0.5 * (alien[:, None] == known)
    return float(np.sqrt(above.mean(axis=1).var(ddof=1) / len(alien) + above.mean(axis=0).var(ddof=1) / len(known)))


@pytest.mark.parametrize(("n_in", "n_out"), [(500, 500), (30_000, 400), (400, 30_000)])
def test_the_spread_is_delongs_standard_error(n_in: int, n_out: int) -> None:
    """Also where only some of the points of one kind are resampled."""
    rng = np.random.default_rng(n_in)
    known, alien = rng.normal(size=n_in), rng.normal(size=n_out) + 1.0
    result = tasks.ood_detection(known, alien, resamples=400)
    assert result.spread()["uncertainty"] == pytest.approx(delong(known, alien), rel=0.15)
    low, high = result.interval()["uncertainty"]
    assert low < result["uncertainty"] < high


@pytest.mark.parametrize(
    ("known", "alien", "options", "message"),
    [
        (np.arange(3.0), [], {}, r"table_out must have at least 2 points, got 0"),
        ([], np.arange(3.0), {}, r"table_in must have at least 2 points, got 0"),
        ({"a": np.arange(3.0), "b": np.arange(3.0)}, {"a": [0.0, 1.0]}, {}, r"table_out lacks 'b'; evaluate both with the same"),
        ({"a": np.arange(3.0)}, {"a": [0.0, 1.0], "b": [0.0, 1.0]}, {}, r"table_in lacks 'b'"),
        ({"a": np.arange(3.0)}, {"x": {"a": [0.0, np.nan]}}, {}, r"table_out\['x'\]\['a'\] must not be NaN, point 1"),
        (np.arange(3.0), np.arange(3.0), {"metric": "auc"}, r"unknown metric 'auc'; did you mean 'auroc'"),
    ],
)
def test_bad_input_names_the_argument_and_the_remedy(known, alien, options, message) -> None:
    with pytest.raises(up.UqprismError, match=message):
        tasks.ood_detection(known, alien, **options)
