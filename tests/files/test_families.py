"""Files of members of every family: the columns that are found, and the numbers of `evaluate` on the same members."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.files.tables import read_table
from uqprism.ensemble.columns import Columns
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import BadFileError, InvalidValueError
from uqprism.files import evaluate, score
from uqprism.files.inspection import inspected
from uqprism.files.paths import Span
from uqprism.files.points import Points

ROWS = 300
RNG = np.random.default_rng(5)
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.975])
MASS = RNG.dirichlet(np.ones(6), size=(2, ROWS)).transpose(0, 2, 1)
VALUES = np.sort(RNG.normal(size=(3, 5, ROWS)), axis=1)
PLACE, SCALE = RNG.normal(size=(3, ROWS)), np.exp(0.3 * RNG.normal(size=(3, ROWS)))
FEW = ["crps.total.members.members", "crps.bayes.members", "crps.excess.members.members"]
ENSEMBLES: dict[str, Callable[[], up.EnsemblePrediction]] = {
    "gaussian": lambda: up.EnsemblePrediction.gaussian(mean=PLACE, scale=SCALE),
    "laplace": lambda: up.EnsemblePrediction.laplace(location=PLACE, scale=SCALE),
    "student_t": lambda: up.EnsemblePrediction.student_t(location=PLACE, scale=SCALE, df=5.0 + SCALE, weights=[0.5, 0.2, 0.3]),
    "lognormal": lambda: up.EnsemblePrediction.lognormal(log_mean=PLACE, log_scale=SCALE),
    "gamma": lambda: up.EnsemblePrediction.gamma(shape=SCALE, scale=2.0),
    "weibull": lambda: up.EnsemblePrediction.weibull(shape=SCALE + 0.5, scale=SCALE),
    "beta": lambda: up.EnsemblePrediction.beta(a=3.0 + SCALE, b=2.0, low=-1.0, high=3.0)[:9],
    "truncated_gaussian": lambda: up.EnsemblePrediction.truncated_gaussian(location=PLACE, scale=SCALE, low=0.0),
    "censored_gaussian": lambda: up.EnsemblePrediction.censored_gaussian(location=PLACE, scale=SCALE, high=0.5),
    # Few rows of counts, for which no kernel is compiled.
    "poisson": lambda: up.EnsemblePrediction.poisson(rate=3.0 * SCALE)[:15],
    "negative_binomial": lambda: up.EnsemblePrediction.negative_binomial(rate=3 * SCALE, size=2.0, weights=[0.5, 0.2, 0.3])[:15],
    "draws of different numbers": lambda: up.EnsemblePrediction.samples([RNG.normal(size=(n, ROWS)) for n in (4, 7)]),
    "draws": lambda: up.EnsemblePrediction.samples(RNG.normal(size=(3, 7, ROWS))),
    "shared edges": lambda: up.EnsemblePrediction.histogram(edges=np.linspace(0, 1, 7), probabilities=MASS, outer="half_normal"),
    "own edges": lambda: up.EnsemblePrediction.histogram(
        edges=np.sort(RNG.normal(size=(2, 7, ROWS)), axis=1), probabilities=MASS
    ),
    "quantiles": lambda: up.EnsemblePrediction.quantiles(levels=LEVELS, values=VALUES, tails="gaussian"),
    "mixture": lambda: up.EnsemblePrediction.gaussian_mixture(
        mean=VALUES[..., :40],
        variance=1.0 + VALUES[..., :40] ** 2,
        shares=[[[0.1], [0.2], [0.3], [0.4], [0.0]]] * 3,
        weights=[0.5, 0.2, 0.3],
    ),
    "mixture of others": lambda: up.EnsemblePrediction(
        up.Mixture(up.Gamma(shape=1.5 + VALUES[..., :9].swapaxes(0, 1) ** 2, scale=np.full((5, 3, 9), 0.5)))
    ),
}


def assert_measures(scored: pa.Table, ens: up.EnsemblePrediction, rows: np.ndarray | None = None) -> None:
    wanted = up.evaluate(ens, FEW)
    for name in FEW:
        found = scored.column(name).to_numpy()
        np.testing.assert_allclose(found if rows is None else found[rows], np.ravel(wanted[name]), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("case", ENSEMBLES)
@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_every_family_is_read_from_what_an_ensemble_writes(case: str, suffix: str, tmp_path: Path) -> None:
    ens, path = ENSEMBLES[case](), tmp_path / f"in{suffix}"
    ens.save(path) if suffix == ".npz" else pq.write_table(ens.to_arrow(), path)
    report = score(path, tmp_path / "out.parquet", measures=FEW)
    assert (report.rows, report.bad_rows) == (ens.n_points, 0)
    scored = pq.read_table(tmp_path / "out.parquet")
    assert scored.column_names == FEW
    assert_measures(scored, ens)
    found = inspected(Span(path, path.name))
    assert (found.n_rows, found.n_bad, found.layout.family) == (ens.n_points, 0, ens.members.name)
    assert f"members: {ens.n_members} {ens.members.name}" in str(found)
    table = Points.of(path).measures(FEW)
    np.testing.assert_allclose(table[FEW[2]], scored.column(FEW[2]).to_numpy(), rtol=1e-12)


def quantile_columns(values: np.ndarray = VALUES) -> dict[str, np.ndarray]:
    names = [f"q{digits}_{i}" for i in range(len(values)) for digits in ("05", "25", "50", "75", "975")]
    return dict(zip(names, values.reshape(-1, values.shape[-1]), strict=True))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_of_quantiles_parameters_and_lists_are_recognised(suffix: str, tmp_path: Path) -> None:
    tables = {
        "quantiles": (pa.table({"id": np.arange(ROWS), **quantile_columns()}), None),
        "quantiles:tails=gaussian": (pa.table(quantile_columns()), "quantiles:tails=gaussian"),
        "laplace": (
            pa.table({f"{n}_{i}": x[i] for n, x in (("location", PLACE), ("scale", SCALE)) for i in range(3)}),
            "laplace",
        ),
    }
    ensembles = {
        "quantiles": up.EnsemblePrediction.quantiles(levels=LEVELS, values=VALUES),
        "quantiles:tails=gaussian": ENSEMBLES["quantiles"](),
        "laplace": ENSEMBLES["laplace"](),
    }
    for name, (table, family) in tables.items():
        path = tmp_path / f"{name.partition(':')[0]}{suffix}"
        pq.write_table(table, path) if suffix == ".parquet" else pa.csv.write_csv(table, path)
        score(path, tmp_path / "out.parquet", measures=FEW, family=family, overwrite=True)
        assert_measures(pq.read_table(tmp_path / "out.parquet"), ensembles[name])
    with pytest.raises(BadFileError, match="laplace or logistic members; choose with family='laplace' \\(--family laplace\\)"):
        score(tmp_path / f"laplace{suffix}", tmp_path / "other.parquet")


def test_lists_of_other_programs_are_read(tmp_path: Path) -> None:
    """Draws and bars as lists, without what an ensemble writes beside them."""
    draws = RNG.normal(size=(2, 7, ROWS))
    edges = np.sort(RNG.normal(size=(2, 7, ROWS)), axis=1)
    tables = {
        "draws": ({f"draws_{i}": list(draws[i].T) for i in range(2)}, up.EnsemblePrediction.samples(draws)),
        "bars": (
            {f"{n}_{i}": list(x[i].T) for n, x in (("edges", edges), ("probabilities", MASS)) for i in range(2)},
            up.EnsemblePrediction.histogram(edges=edges, probabilities=MASS),
        ),
    }
    for name, (columns, ens) in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        score(tmp_path / f"{name}.parquet", tmp_path / f"{name}-out.parquet", measures=FEW)
        assert_measures(pq.read_table(tmp_path / f"{name}-out.parquet"), ens)
    uneven = {"draws_0": [[1.0, 2.0], [1.0]], "draws_1": [[1.0, 2.0], [1.0, 2.0]]}
    pq.write_table(pa.table(uneven), tmp_path / "uneven.parquet")
    with pytest.raises(InvalidValueError, match="lists of 1 to 2 numbers"):
        score(tmp_path / "uneven.parquet", tmp_path / "o.parquet", measures=FEW)


def two_members(given: dict[str, Any], rows: int) -> pa.Table:
    """Two members with these parameters: numbers, or of the first member one for each row."""
    columns = {}
    for name, x in given.items():
        first = np.ravel(x).astype(float)
        columns |= {f"{name}_0": np.broadcast_to(first, rows), f"{name}_1": np.full(rows, first[0])}
    return pa.table(columns)


BAD = {  # what one row holds, and what is said of it
    "lognormal": ({"log_mean": [0.0, 0.0, 400.0, 0.0, 0.0], "log_scale": 1.0}, "log_mean_0 must be of lognormal members"),
    "gamma": ({"shape": [1.0, 1.0, -1.0, 1.0, 1.0], "scale": 1.0}, "shape_0 must be finite and greater than zero, got -1"),
    "weibull": ({"shape": 2.0, "scale": [1.0, 1.0, 1e-200, 1.0, 1.0]}, "scale_0 must be at least 1e-150"),
    "beta": ({"a": 2.0, "b": 2.0, "low": [0.0, 0.0, 2.0, 0.0, 0.0], "high": 1.0}, "a_0 must be of beta members .*low"),
    "truncated_gaussian": (
        {"location": 0.0, "scale": 1.0, "low": [0.0, -np.inf, np.nan, 0.0, 0.0], "high": np.inf},
        "low_0 must be a number or infinite, got n",
    ),
    "censored_gaussian": (
        {"location": [0.0, 0.0, np.inf, 0.0, 0.0], "scale": 1.0, "low": 0.0, "high": np.inf},
        "location_0 must be finite, got inf",
    ),
    "laplace": ({"location": 0.0, "scale": [1e80, 1e80, 1e-80, 1e80, 1e80]}, "scale_0 must be wider: a scale is at least 2e-154"),
    "poisson": ({"rate": [1.0, 1.0, 0.0, 1.0, 1.0]}, "rate_0 must be finite and greater than zero, got 0"),
    "negative_binomial": (
        {"rate": 1.0, "size": [1.0, 1.0, 1e13, 1.0, 1.0]},
        "rate_0 must be of negative_binomial members .*size",
    ),
}


@pytest.mark.parametrize("family", BAD)
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_row_that_is_no_distribution_of_its_family_is_bad(family: str, suffix: str, tmp_path: Path) -> None:
    given, message = BAD[family]
    path, out = tmp_path / f"in{suffix}", tmp_path / "out.parquet"
    table = two_members(given, 5)
    pq.write_table(table, path) if suffix == ".parquet" else pa.csv.write_csv(table, path)
    with pytest.raises(BadFileError, match=f"row 2.*: {message}"):
        score(path, out, measures=FEW, family=family)
    assert score(path, out, measures=FEW, family=family, on_bad="drop").bad_rows == 1
    kept = {name: np.delete(x, 2) if np.ndim(x) else x for name, x in given.items()}
    assert_measures(pq.read_table(out), up.from_frame(two_members(kept, 4), family=family))


def test_families_with_the_same_columns_are_told_apart_by_name(tmp_path: Path) -> None:
    bounded = {f"{n}_0": [1.0, 2.0] for n in ("location", "scale", "low")} | {"high_0": [5.0, 6.0]}
    for columns, names in (
        ({"shape_0": [1.0], "scale_0": [1.0]}, "gamma or weibull"),
        (bounded, "censored_gaussian or truncated_gaussian"),
    ):
        pq.write_table(pa.table(columns), tmp_path / "in.parquet")
        with pytest.raises(BadFileError, match=f"{names}.* members; choose with family="):
            score(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert up.from_frame({"rate_0": [1.0], "size_0": [2.0]}).members.name == "negative_binomial"
    assert up.from_frame({"rate_0": [1.0], "size": [2.0]}).members.name == "poisson"


def component_columns(x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A column for each number of arrays (members, components, rows)."""
    return {f"{name}_{i}_{k}": own[i, k] for name, own in x.items() for i in range(len(own)) for k in range(own.shape[1])}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_of_components_are_recognised(suffix: str, tmp_path: Path) -> None:
    mean, scale = RNG.normal(size=(2, 3, 20)), np.exp(0.3 * RNG.normal(size=(2, 3, 20)))
    shares = RNG.dirichlet(np.ones(3), size=(2, 20)).transpose(0, 2, 1)
    laplace = up.Laplace(location=mean.swapaxes(0, 1), scale=scale.swapaxes(0, 1))
    cases = {
        "none": ({"mean": mean, "scale": scale, "shares": shares}, None),
        "equal": ({"mean": mean, "variance": scale}, None),
        "laplace": ({"location": mean, "scale": scale, "shares": shares}, "mixture:components=laplace"),
    }
    ensembles = {
        "none": up.EnsemblePrediction.gaussian_mixture(mean=mean, scale=scale, shares=shares),
        "equal": up.EnsemblePrediction.gaussian_mixture(mean=mean, variance=scale),
        "laplace": up.EnsemblePrediction(up.Mixture(laplace, shares.swapaxes(0, 1))),
    }
    for name, (arrays, family) in cases.items():
        path, table = tmp_path / f"{name}{suffix}", pa.table({"id": np.arange(20), **component_columns(arrays)})
        pq.write_table(table, path) if suffix == ".parquet" else pa.csv.write_csv(table, path)
        score(path, tmp_path / "out.parquet", measures=FEW, family=family, overwrite=True)
        assert pq.read_schema(tmp_path / "out.parquet").names == ["id", *FEW]
        assert_measures(pq.read_table(tmp_path / "out.parquet"), ensembles[name])
        found = inspected(Span(path, path.name), Columns(family=family))
        assert "members: 2 mixture" in str(found)
        assert f"components: {found.layout.components.family}" in str(found)
        again = up.from_frame(table, family=family)
        np.testing.assert_allclose(again.mixture.mean, ensembles[name].mixture.mean, rtol=1e-12)


def test_mixtures_of_other_programs_are_read_from_lists_and_kept(tmp_path: Path) -> None:
    mean, shares = RNG.normal(size=(2, 3, 20)), np.full((2, 3, 20), 1 / 3)
    lists = {f"{n}_{i}": list(x[i].T) for n, x in (("mean", mean), ("scale", 1.0 + mean**2), ("shares", shares)) for i in (0, 1)}
    pq.write_table(pa.table(lists), tmp_path / "lists.parquet")
    pq.write_table(pa.table(component_columns({"mean": mean, "scale": 1.0 + mean**2, "shares": shares})), tmp_path / "in.parquet")
    ens = up.EnsemblePrediction.gaussian_mixture(mean=mean, scale=1.0 + mean**2)
    for name, kept in (("lists", "parquet"), ("in", "parquet"), ("in", "npz")):
        score(tmp_path / f"{name}.parquet", tmp_path / f"out.{kept}", measures=FEW, keep_members=True, overwrite=True)
        assert_measures(read_table(tmp_path / f"out.{kept}"), ens)
        again = Points.of(tmp_path / f"out.{kept}").ensemble()
        np.testing.assert_allclose(again.mixture.variance, ens.mixture.variance, rtol=1e-12)


ONE = {"mean_0_0": 0.0, "scale_0_0": 1.0, "shares_0_0": 0.5, "mean_0_1": 1.0, "scale_0_1": 1.0, "shares_0_1": 0.5}
WITHOUT = {  # a column, what it becomes, and what is said
    "shares_0_1": "component 1 has no column shares_0_1; every component needs one",
    "scale_0_0": r"component 0: no columns like variance_\{i\} or scale_\{i\}",
    "mean_0_0": "component 0: no columns like",
}


def test_components_that_do_not_fit_together_are_errors(tmp_path: Path) -> None:
    for missing, message in WITHOUT.items():
        table = {name: [x] for name, x in ONE.items() if name != missing}
        with pytest.raises(InvalidValueError, match=message):
            up.from_frame(table)
    with pytest.raises(InvalidValueError, match="component 0 has no column mean_1_0, as component 1 has"):
        up.from_frame({name: [x] for name, x in {**ONE, "mean_1_1": 0.0}.items()})
    with pytest.raises(InvalidValueError, match=r"of laplace or logistic.* family=.mixture:components=laplace"):
        up.from_frame({"location_0_0": [0.0], "scale_0_0": [1.0], "shares_0_0": [1.0]})
    with pytest.raises(up.UqprismError, match="unknown family of a mixture's components 'draws'"):
        up.from_frame({name: [x] for name, x in ONE.items()}, family="mixture:components=draws")
    for bad, message in (
        ({"shares_0_0": 0.7}, "shares_0_0 must be of mixture members .*sum to one"),
        ({"scale_0_1": 0.0}, "scale_0_1 must be"),
    ):
        pq.write_table(pa.table({name: [x, {**ONE, **bad}[name]] for name, x in ONE.items()}), tmp_path / "in.parquet")
        with pytest.raises(BadFileError, match=f"row 1: {message}"):
            score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW)
        assert score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW, on_bad="null").bad_rows == 1
        (tmp_path / "out.parquet").unlink()


def test_mixtures_of_lists_have_no_table_form(tmp_path: Path) -> None:
    ens = up.EnsemblePrediction(up.Mixture(up.Draws(RNG.normal(size=(7, 2, 3, 4)))))
    with pytest.raises(up.UqprismError, match="mixtures of draws members have no table form"):
        ens.to_pandas()
    ens.save(tmp_path / "in.npz")
    with pytest.raises(BadFileError, match="mixtures of draws members have no table form"):
        score(tmp_path / "in.npz", tmp_path / "out.parquet")


SAID = {"family": "histogram", "options": {"outer": None}, "shared": {"edges": [0.0, 1.0, 2.0]}}
WRONG = [[], {"family": "x"}, {"family": []}, SAID | {"options": []}, SAID | {"options": {"outer": {}}}]
WRONG += [SAID | {"options": {"x": 1}}, SAID | {"shared": {"edges": ["a", "b", "c"]}}, SAID | {"shared": {"edges": [1.0]}}]
WRONG += [SAID | {"shared": {"edges": [0.0, 1.0], "probabilities": [1.0]}}, {"family": "quantiles", "shared": {"values": [1.0]}}]


@pytest.mark.parametrize("header", WRONG, ids=range(len(WRONG)))
def test_a_header_that_describes_no_members_is_an_error(header: object, tmp_path: Path) -> None:
    right = pa.table({f"probabilities_{i}": [[0.5, 0.5]] * 3 for i in range(2)})
    for about, fine in ((SAID, True), (header, False)):
        table = right.replace_schema_metadata({FORMAT: json.dumps(about)})
        pq.write_table(table, tmp_path / "in.parquet")
        if fine:
            assert score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW).rows == 3
            continue
        for read in (lambda: score(tmp_path / "in.parquet", tmp_path / "o.parquet", measures=FEW), lambda: up.from_frame(table)):  # noqa: B023 (called at once)
            with pytest.raises(up.UqprismError) as caught:
                read()
            assert "\n" not in str(caught.value)


def test_bad_rows_of_other_families(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[1, 2, 7] = np.nan
    pq.write_table(pa.table(quantile_columns(values)), tmp_path / "q.parquet")
    with pytest.raises(BadFileError, match="row 7: q50_1 must be finite, got nan"):
        score(tmp_path / "q.parquet", tmp_path / "o.parquet", measures=FEW)
    assert score(tmp_path / "q.parquet", tmp_path / "o.parquet", measures=FEW, on_bad="null").bad_rows == 1
    scored, good = pq.read_table(tmp_path / "o.parquet"), np.arange(ROWS) != 7
    assert scored.column(FEW[0])[7].as_py() is None
    assert_measures(scored, up.EnsemblePrediction.quantiles(levels=LEVELS, values=VALUES)[good], good)
    mass = MASS.copy()
    mass[1, 0, 3] += 0.5
    bars = {f"probabilities_{i}": list(mass[i].T) for i in range(2)}
    bars |= {f"edges_{i}": [np.arange(7.0)] * ROWS for i in range(2)}
    pq.write_table(pa.table(bars), tmp_path / "bars.parquet")
    with pytest.raises(BadFileError, match=r"row 3: .*must be of histogram members .probabilities must sum to one"):
        score(tmp_path / "bars.parquet", tmp_path / "b.parquet", measures=FEW)
    assert score(tmp_path / "bars.parquet", tmp_path / "b.parquet", measures=FEW, on_bad="drop").bad_rows == 1


def test_rows_without_a_density_are_bad_where_a_rule_needs_one(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[0, 3, 11] = values[0, 2, 11]
    pq.write_table(pa.table(quantile_columns(values)), tmp_path / "q.parquet")
    assert score(tmp_path / "q.parquet", tmp_path / "o.parquet", measures=FEW).bad_rows == 0
    with pytest.raises(BadFileError, match=r"row 11: .*with a density, which needs values that differ"):
        score(tmp_path / "q.parquet", tmp_path / "p.parquet", measures="log.bayes.members")
    assert score(tmp_path / "q.parquet", tmp_path / "p.parquet", on_bad="null").bad_rows == 1


def test_measures_take_the_place_of_members_in_frames_and_partitions() -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = pa.table({"id": np.arange(ROWS), **quantile_columns()}).to_pandas()
    wanted = up.evaluate(up.from_frame(frame), FEW)
    for scored in (evaluate(frame, FEW), evaluate(dd.from_pandas(frame, npartitions=3), FEW).compute()):
        assert list(scored) == ["id", *FEW]
        np.testing.assert_allclose(scored[FEW[2]], wanted[FEW[2]], rtol=1e-12)


def test_inspect_says_what_was_found(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(ROWS), "y": np.zeros(ROWS), **quantile_columns()})
    pq.write_table(table, tmp_path / "q.parquet")
    text = str(inspected(Span(tmp_path / "q.parquet", "q"), Columns(family="quantiles:tails=none")))
    for part in (
        "300 rows",
        "members: 3 quantiles",
        "q05_0, q25_0",
        "(15)",
        "levels: 0.05, 0.25",
        "tails: none",
        "id, y",
        "equal",
    ):
        assert part in text
    score(tmp_path / "q.parquet", tmp_path / "o.csv", measures=FEW)
    text = str(inspected(Span(tmp_path / "o.csv", "o")))
    assert "no members" in text
    assert "measures: crps.total.members.members" in text
    assert read_table(tmp_path / "o.csv").num_rows == ROWS


def test_quantiles_that_cross_are_sorted_counted_and_said_once(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[0, :2, :40], values[2, 3:, 100] = values[0, 1::-1, :40], values[2, :2:-1, 100]
    pq.write_table(pa.table(quantile_columns(values)), tmp_path / "q.parquet")
    with pytest.warns(UserWarning, match=r"o.parquet: quantiles crossed in 41 of 900 predictions and were sorted") as said:
        score(tmp_path / "q.parquet", tmp_path / "o.parquet", measures=FEW)
    assert len(said) == 1
    assert_measures(pq.read_table(tmp_path / "o.parquet"), up.EnsemblePrediction.quantiles(levels=LEVELS, values=VALUES))
    with pytest.warns(UserWarning, match="crossed in 41 of 900 predictions"):
        Points.of(tmp_path / "q.parquet").ensemble()


def test_without_named_measures_those_that_the_members_have_are_written(tmp_path: Path) -> None:
    """Draws have no density: log and quadratic are left out with a warning, and refused at once where they are named."""
    pq.write_table(ENSEMBLES["draws"]().to_arrow(), tmp_path / "in.parquet")
    for again in ({}, {"resume": True}):
        with pytest.warns(
            UserWarning, match="6 measures are left out, log.total.members.members, .*the draws members have no density"
        ):
            score(tmp_path / "in.parquet", tmp_path / "out", **again)
    assert pq.read_schema(tmp_path / "out" / "in.parquet").names == [
        f"{rule}.{risk}"
        for rule in ("crps", "squared_error")
        for risk in ("total.members.members", "bayes.members", "excess.members.members")
    ]
    with pytest.raises(up.UqprismError, match="no density"):
        score(tmp_path / "in.parquet", tmp_path / "log.parquet", measures="log.bayes.members")
    pq.write_table(pa.table(quantile_columns()), tmp_path / "cut.parquet")
    with pytest.warns(UserWarning, match="quantiles members have no density"):
        score(tmp_path / "cut.parquet", tmp_path / "cut-out.parquet", family="quantiles:tails=none")


def test_whole_numbers_are_members(tmp_path: Path) -> None:
    """Columns of integers alone, such as the rates of counts."""
    path, out = tmp_path / "counts.parquet", tmp_path / "scored.parquet"
    rates = np.arange(1, 9).reshape(2, 4)
    pq.write_table(pa.table({f"rate_{i}": rates[i] for i in range(2)}), path)
    score(path, out, measures="crps.bayes.members")
    expected = up.decompose(up.EnsemblePrediction.poisson(rate=rates.astype(float)), rule="crps").bayes
    np.testing.assert_allclose(pq.read_table(out)["crps.bayes.members"], expected)


@pytest.mark.parametrize(
    "names", [["q05", "q50", "q95"], ["0.1", "0.5"], ["p10_0", "p50_0"], ["quantile_0.1_0", "quantile_0.9_0"]]
)
def test_columns_that_seem_to_be_quantiles_are_told_how_to_be_named(names: list[str]) -> None:
    with pytest.raises(
        InvalidValueError, match=rf"if '{names[0]}' and others are quantiles, name them .* q05_0, q50_0 and q95_0"
    ):
        up.from_frame({name: [0.0] for name in names})


def test_lists_of_text_are_no_members(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    pq.write_table(pa.table({"draws_0": [["a", "b"]], "draws_1": [["a", "b"]]}), path)
    with pytest.raises(InvalidValueError, match=r"'draws_0' must hold lists of numbers, its type is list<element: string>"):
        score(path, tmp_path / "scored.parquet")
