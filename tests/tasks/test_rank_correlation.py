"""Kendall's tau-b between measures: against SciPy, in shapes that are easy to get wrong, and the identities of the paper."""

from __future__ import annotations

import json
import re
import tracemalloc
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnknownNameError
from uqprism.support.parallel import limited_to
from uqprism.tasks.kendall import inversions
from uqprism.tasks.rank_correlation import RankCorrelation, rank_alike, rank_correlation


def by_scipy(values: np.ndarray) -> np.ndarray:
    return np.array([[kendalltau(x, y).statistic for y in values] for x in values])


def named(values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"m{i}": row for i, row in enumerate(values)}


@pytest.fixture(scope="module")
def table() -> up.MeasureTable:
    return up.evaluate(ensemble(300)[0])


@pytest.fixture(scope="module")
def correlation(table: up.MeasureTable) -> RankCorrelation:
    return rank_correlation(table)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 40).flatmap(lambda n: arrays(np.int8, (4, n), elements=st.integers(0, 4))))
def test_many_ties_agree_with_scipy(values: np.ndarray) -> None:
    np.testing.assert_allclose(rank_correlation(named(values)).matrix, by_scipy(values), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("n_points", [2, 3, 31, 32, 33, 63, 64, 65, 129, 1000, 1025])
@pytest.mark.parametrize("levels", [3, 40, None])
def test_every_length_of_blocks_agrees_with_scipy(n_points: int, levels: int | None, rng: np.random.Generator) -> None:
    """Lengths around powers of two, with many ties, few ties, and one of each kind among columns without ties."""
    values = rng.normal(size=(4, n_points)) + rng.normal(size=n_points)
    if levels is None:
        values[0] = np.round(values[0])
    else:
        values = np.floor(levels * values / 4.0)
    np.testing.assert_allclose(rank_correlation(named(values)).matrix, by_scipy(values), rtol=0.0, atol=1e-12)


def test_a_quarter_of_a_million_points_agree_with_scipy(rng: np.random.Generator) -> None:
    """So many that ranks and blocks together outgrow 32 bits."""
    x = rng.normal(size=270_000)
    values = np.stack([x, x + rng.normal(size=x.shape), np.round(x, 2)])
    found = rank_correlation(named(values)).matrix
    for i, j in combinations(range(3), 2):
        assert found[i, j] == pytest.approx(kendalltau(values[i], values[j]).statistic, abs=1e-12)


def test_real_measures_agree_with_scipy(table: up.MeasureTable, correlation: RankCorrelation) -> None:
    names = list(table)[::7]
    expected = by_scipy(np.stack([table[name] for name in names]))
    np.testing.assert_allclose(correlation.select(names).matrix, expected, rtol=0.0, atol=1e-12)


def test_values_that_differ_in_the_last_digit_or_are_infinite_keep_their_order() -> None:
    x = np.array([1.0, np.nextafter(1.0, 2.0), 2.0, np.inf, -np.inf, 0.0])
    assert rank_correlation({"x": x, "rank": [2, 3, 4, 5, 0, 1]})["x", "rank"] == 1.0


@settings(deadline=None)
@given(st.integers(1, 90).flatmap(lambda n: arrays(np.int32, (2, n), elements=st.integers(0, n - 1))))
def test_inversions_are_those_of_the_definition(sequences: np.ndarray) -> None:
    expected = [sum(int(a > b) for a, b in combinations(row, 2)) for row in sequences]
    assert inversions(sequences).tolist() == expected


def test_the_same_and_the_opposite_order_are_exactly_one_and_minus_one(rng: np.random.Generator) -> None:
    x = rng.normal(size=777)
    tied = np.round(x, 1)
    found = rank_correlation({"x": x, "same": np.exp(x), "opposite": -(x**3), "tied": tied, "tied opposite": 3.0 - tied})
    assert found["x", "same"] == 1.0
    assert found["x", "opposite"] == found["opposite", "same"] == -1.0
    assert found["tied", "tied opposite"] == -1.0
    assert np.all(np.diagonal(found.matrix) == 1.0)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)


def test_a_constant_measure_has_no_order(rng: np.random.Generator) -> None:
    found = rank_correlation({"x": rng.normal(size=50), "constant": np.full(50, 2.5), "y": rng.normal(size=50)})
    np.testing.assert_array_equal(np.isnan(found.matrix), np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool))
    assert all(np.isnan(rank_correlation({"a": np.zeros(4), "b": np.ones(4)}).matrix).ravel())


def test_tensors_count_as_their_numbers(rng: np.random.Generator) -> None:
    mean, variance = rng.normal(size=(4, 30)), rng.uniform(0.5, 2.0, (4, 30))
    measures = ["crps.total.members.members", "log.excess.members.members", "log.bayes.mixture"]
    ensembles = (up.EnsemblePrediction.gaussian(mean=f(mean), variance=f(variance)) for f in (np.asarray, torch.tensor))
    ours, tensors = (rank_correlation(up.evaluate(ensemble, measures, backend="reference")) for ensemble in ensembles)
    np.testing.assert_array_equal(ours.matrix, tensors.matrix)


def test_the_number_of_threads_changes_nothing(table: up.MeasureTable, correlation: RankCorrelation) -> None:
    with limited_to(1):
        alone = rank_correlation(table)
    np.testing.assert_array_equal(alone.matrix, correlation.matrix)


def test_memory_grows_with_the_points_and_not_with_the_pairs(rng: np.random.Generator) -> None:
    values = rng.normal(size=(12, 60_000))
    tracemalloc.start()
    try:
        rank_correlation(named(values))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * values.nbytes


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        ({"a": [1.0, 2.0], "b": [1.0, np.nan]}, InvalidValueError, "table['b'] must not be NaN"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}, ShapeError, "3 for 'b'"),
        ({"a": [1.0]}, InvalidValueError, "at least 2 points"),
        ({}, ArgumentError, "no measures"),
    ],
)
def test_bad_tables_and_names_are_refused(table: dict[str, list[float]], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        rank_correlation(table)
    for names, kind, message in ((("a", "b"), ShapeError, "2 names"), (("a", "a", "c"), InvalidValueError, "distinct")):
        with pytest.raises(kind, match=message):
            RankCorrelation(names, np.eye(3))


RULES = ("crps", "log", "quadratic", "squared_error")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("prediction", ["members", "mixture", "matched", "pooled"])
def test_total_risks_are_linear_in_the_truth(rule: str, prediction: str, correlation: RankCorrelation) -> None:
    """R_tot^{1,1} and R_tot^{2,1} (truth, prediction) are one ranking; likewise for the other predictions."""
    assert correlation[f"{rule}.total.{prediction}.members", f"{rule}.total.{prediction}.mixture"] == 1.0


@pytest.mark.parametrize("rule", ["crps", "quadratic", "squared_error"])
def test_pairwise_excess_is_twice_the_excess_over_the_mixture(rule: str, correlation: RankCorrelation) -> None:
    """R_exc^{1,1} and R_exc^{2,1} are one ranking, where the divergence is a squared distance; for the log rule it is not."""
    assert correlation[f"{rule}.excess.members.members", f"{rule}.excess.members.mixture"] == 1.0
    assert correlation["log.excess.members.members", "log.excess.members.mixture"] < 1.0


@pytest.mark.parametrize("truth", ["matched", "pooled"])
def test_all_rules_are_perfectly_correlated_on_one_gaussian(truth: str, correlation: RankCorrelation) -> None:
    """R_Bayes^{3a} and R_Bayes^{3b}: the entropy of one Gaussian grows with its variance, whatever the rule."""
    assert np.all(correlation.select([f"{rule}.bayes.{truth}" for rule in RULES]).matrix == 1.0)


def test_a_stand_in_has_no_excess_over_itself(correlation: RankCorrelation) -> None:
    for rule in RULES:
        for stand_in in ("mixture", "matched", "pooled"):
            assert np.isnan(correlation[(f"{rule}.excess.{stand_in}.{stand_in}",) * 2])


def test_measures_are_found_by_name_or_by_themselves(correlation: RankCorrelation) -> None:
    one, other = up.Measure.parse("crps.bayes.members"), "log.bayes.pooled"
    assert correlation[one, other] == correlation[other, "crps.bayes.members"] != 1.0
    with pytest.raises(UnknownNameError, match=r"did you mean 'crps\.bayes\.members'"):
        correlation["crps.bayes.member", other]
    with pytest.raises(ArgumentError, match="two measures"):
        correlation["crps.bayes.members"]  # type: ignore[index]

    part = correlation.select(["log.bayes.pooled", "crps.bayes.members"])
    assert part.names == ("log.bayes.pooled", "crps.bayes.members")
    assert part.matrix[0, 1] == correlation["log.bayes.pooled", "crps.bayes.members"]
    assert correlation.select("log.bayes.pooled").matrix.tolist() == [[1.0]]


def test_the_order_puts_like_measures_beside_each_other_and_constant_ones_last(rng: np.random.Generator) -> None:
    bases = rng.normal(size=(3, 400))
    columns = {f"{kind}{copy}": bases[kind] + 0.1 * rng.normal(size=400) for copy in range(4) for kind in range(3)}
    found = rank_correlation({"constant": np.zeros(400), **columns}).order()
    assert sorted(found) == sorted(["constant", *columns])
    assert found[-1] == "constant"
    kinds = [name[0] for name in found[:-1]]
    assert sum(kind != after for kind, after in pairwise(kinds)) == 2
    for names in (("a",), ("a", "b")):
        few = rank_correlation({name: [1.0, 2.0, i] for i, name in enumerate(names)})
        assert (few.order(), few.same_rankings()) == (names, [])


def test_within_a_group_every_pair_is_the_same_ranking() -> None:
    """a is near b and b near c, but a not near c: a chain is no group."""
    names = ("x", "a", "b", "c", "constant", "y")
    matrix = np.full((6, 6), 0.1)
    np.fill_diagonal(matrix, 1.0)
    for one, other, tau in ((0, 5, 1.0), (1, 2, 0.97), (2, 3, 0.96), (1, 3, 0.90)):
        matrix[one, other] = matrix[other, one] = tau
    matrix[4] = matrix[:, 4] = np.nan
    correlation = RankCorrelation(names, matrix)
    assert correlation.same_rankings(0.95) == [("x", "y"), ("a", "b")]
    assert correlation.same_rankings(0.9) == [("x", "y"), ("a", "b", "c")]
    assert correlation.same_rankings() == [("x", "y")]
    with pytest.raises(InvalidValueError, match="threshold"):
        correlation.same_rankings(1.5)


def test_groups_of_a_real_table_hold_what_they_promise(correlation: RankCorrelation) -> None:
    groups = correlation.same_rankings()
    assert len({name for group in groups for name in group}) == sum(map(len, groups))
    for group in groups:
        assert len(group) > 1
        assert correlation.select(group).matrix.min() >= 0.999
        assert list(group) == sorted(group, key=correlation.names.index)
    firsts = [correlation.names.index(group[0]) for group in groups]
    assert firsts == sorted(firsts)


def test_the_average_is_that_of_the_matrices_whatever_their_order(rng: np.random.Generator) -> None:
    one, other = (rank_correlation(named(rng.normal(size=(3, 20)))) for _ in range(2))
    turned = other.select(["m2", "m0", "m1"])
    found = RankCorrelation.average([one, turned])
    assert found.names == one.names
    np.testing.assert_allclose(found.matrix, (one.matrix + other.matrix) / 2.0, rtol=1e-15)
    with pytest.raises(ArgumentError, match="'m2' is not in all"):
        RankCorrelation.average([one, other.select(["m0", "m1"])])
    with pytest.raises(ArgumentError, match="at least one"):
        RankCorrelation.average([])


def test_files_and_frames_hold_all_of_it(correlation: RankCorrelation, tmp_path: Path) -> None:
    correlation.save(tmp_path / "tau.npz")
    back = RankCorrelation.load(tmp_path / "tau.npz")
    assert back.names == correlation.names
    np.testing.assert_array_equal(back.matrix, correlation.matrix)
    text = correlation.to_json(tmp_path / "tau.json")
    assert (tmp_path / "tau.json").read_text() == text + "\n"
    frame = correlation.to_pandas()
    assert tuple(frame.index) == tuple(frame.columns) == correlation.names
    np.testing.assert_array_equal(frame.to_numpy(), correlation.matrix)
    plain = json.loads(text, parse_constant=pytest.fail)
    np.testing.assert_array_equal(np.array(plain["matrix"], dtype=float), correlation.matrix)
    assert [tuple(group) for group in plain["same_rankings"]] == correlation.same_rankings()


def test_in_words_it_says_how_many_rankings_there_are(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 40))
    said = str(rank_correlation({"x": x, "twice": 2.0 * x, "y": y, "constant": np.ones(40)}))
    assert "4 measures, 2 distinct rankings" in said
    assert "1 constant" in said
    assert said.endswith("the same: x, twice")


def by_pairs(columns: dict[str, np.ndarray]) -> list[tuple[str, ...]]:
    """The same by looking at every pair of rows."""
    signs = {name: np.sign(np.subtract.outer(column, column)).tobytes() for name, column in columns.items()}
    return [tuple(name for name in columns if signs[name] == each) for each in dict.fromkeys(signs.values())]


@pytest.mark.parametrize("levels", [2, 4, 40])
def test_groups_are_those_that_every_pair_of_rows_gives(levels: int) -> None:
    rng = np.random.default_rng(levels)
    first = rng.integers(0, levels, 30).astype(float)
    swapped = first[[0, 1, 2, 7, 4, 5, 6, 3, *range(8, 30)]]
    columns = {"first": first, "other": rng.normal(size=30), "cubed": first**3 - 5.0, "swapped": swapped}
    columns |= {"constant": np.ones(30), "zero": np.zeros(30), "opposite": -first, "sorted": np.arange(30.0)}
    columns |= {"finer": first + 1e-3 * np.arange(30)}
    assert rank_alike(columns) == by_pairs(columns)


def test_rounding_is_no_difference_nor_is_one_pair_in_thousands_and_infinite_values_have_their_place() -> None:
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=20_000))
    columns = {"rounded": values * (1.0 + 1e-13 * rng.normal(size=20_000)), "b": values.copy(), "a": values, "c": values.copy()}
    columns["b"][[5000, 5001]] = columns["b"][[5001, 5000]]
    columns["c"][:1000] = columns["c"][:1000][::-1]  # a tau of 0.995
    assert rank_alike(columns) == [("rounded", "b", "a"), ("c",)]
    assert rank_alike(columns, same=0.99) == [("rounded", "b", "a", "c")]
    infinite = {"a": [1.0, np.inf, 2.0, np.inf], "b": [0.0, 9.0, 3.0, 9.0], "c": [0.0, 9.0, 3.0, 8.0]}
    assert rank_alike({name: np.array(column) for name, column in infinite.items()}) == [("a", "b"), ("c",)]
