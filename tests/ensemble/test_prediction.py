"""EnsemblePrediction: constructors, refused input, shapes, and files."""

from __future__ import annotations

import contextlib
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from tests.conftest import as_array
from uqprism.errors import UqprismError

MEAN, SCALE = np.array([[0.0, 1.0, 2.0], [0.5, 1.5, 1.0]]), np.array([[1.0, 2.0, 0.5], [1.0, 1.0, 1.0]])
gaussian = up.EnsemblePrediction.gaussian


def test_variance_and_scale_are_the_same_prediction() -> None:
    a, b = gaussian(mean=MEAN, scale=SCALE), gaussian(mean=MEAN, variance=SCALE**2)
    assert_allclose(up.decompose(a).excess, up.decompose(b).excess, rtol=1e-14)


def test_natural_parameters() -> None:
    natural = up.EnsemblePrediction.natural(eta1=MEAN / SCALE**2, eta2=-0.5 / SCALE**2)
    assert_allclose(natural.members.mean, MEAN, atol=1e-15)
    assert_allclose(natural.members.variance, SCALE**2, rtol=1e-15)


def test_a_table_is_refused_with_the_function_for_tables() -> None:
    frame = pd.DataFrame({"mean_0": [0.0], "variance_0": [1.0]})
    for call in (up.evaluate, up.decompose):
        with pytest.raises(UqprismError, match=r"got DataFrame; up\.from_frame"):
            call(frame)
    by_column = gaussian(mean=pd.DataFrame(MEAN.T), scale=pd.DataFrame(SCALE.T), member_axis=1)
    assert_array_equal(by_column.members.mean, MEAN)


def test_shapes_and_axes() -> None:
    ens = gaussian(mean=MEAN, scale=SCALE)
    assert (ens.n_members, ens.n_points, ens.points_shape, len(ens)) == (2, 3, (3,), 3)
    assert ens.members.mean.shape == (2, 3)
    assert ens.matched.mean.shape == ens.pooled.variance.shape == ens.mixture.mean.shape == (3,)
    turned = gaussian(mean=MEAN.T, scale=SCALE.T, member_axis=1)
    assert_array_equal(turned.members.mean, MEAN)
    assert gaussian(mean=MEAN[:, 0], scale=SCALE[:, 0]).points_shape == ()
    grid = gaussian(mean=MEAN.reshape(2, 3, 1), scale=SCALE.reshape(2, 3, 1))
    assert up.decompose(grid).total.shape == (3, 1)
    assert_allclose(up.decompose(grid).total[:, 0], up.decompose(ens).total)
    assert repr(ens) == "<EnsemblePrediction: 2 gaussian members, 3 points>"


def test_numbers_stretch_and_lists_become_arrays() -> None:
    assert_array_equal(gaussian(mean=MEAN, scale=2.0).members.scale, np.full((2, 3), 2.0))
    assert_array_equal(gaussian(mean=MEAN.tolist(), scale=SCALE.tolist()).members.mean, MEAN)
    assert gaussian(mean=np.array([[1, 2]]), scale=1).members.mean.dtype == np.float64


def test_lists_of_tensors_are_stacked() -> None:
    import torch

    rows = [torch.tensor(row, requires_grad=True) for row in MEAN]
    ens = gaussian(mean=rows, scale=torch.tensor(SCALE), weights=np.array([0.5, 0.5]))
    up.decompose(ens).total.sum().backward()
    assert all(torch.isfinite(row.grad).all() for row in rows)


def test_of_two_precisions_the_wider_counts() -> None:
    ens = gaussian(mean=MEAN.astype(np.float32), scale=SCALE)
    assert up.decompose(ens).total.dtype == np.float64
    assert up.decompose(gaussian(mean=MEAN.astype(np.float32), scale=1.0)).total.dtype == np.float32


def test_weights_are_normalised_whatever_their_precision(rng: np.random.Generator) -> None:
    """Weights that sum to one only in their own precision cost no digit of the result."""
    mean, scale = rng.normal(size=(5, 4)), np.exp(rng.normal(size=(5, 4)))
    plain = up.evaluate(gaussian(mean=mean, scale=scale))
    for weights in (np.full(5, 0.2, dtype=np.float32), np.full(5, 0.2) * (1.0 + 5e-7)):
        table = up.evaluate(gaussian(mean=mean, scale=scale, weights=weights))
        for name in table:
            assert_allclose(table[name], plain[name], rtol=1e-10, atol=1e-13, err_msg=name)


def test_single_precision_variances_keep_single_precision(rng: np.random.Generator) -> None:
    """The root of a float32 variance is taken in working precision, so only the result is rounded."""
    mean, variance = (x.astype(np.float32) for x in (rng.normal(size=(4, 6)), np.exp(rng.normal(size=(4, 6)))))
    single = up.evaluate(gaussian(mean=mean, variance=variance))
    double = up.evaluate(gaussian(mean=mean.astype(np.float64), variance=variance.astype(np.float64)))
    for name in single:
        assert_allclose(single[name], double[name], rtol=single.exactness[name].tolerance, err_msg=name)


def test_point_predictions_have_members_and_mixture_but_no_pooled_gaussian() -> None:
    ens = up.EnsemblePrediction.samples(np.array([[[1.0, 2.0]], [[3.0, 2.5]]]))
    d = up.decompose(ens, rule="crps", prediction="mixture", truth="members")
    assert_allclose(d.bayes, 0.0)
    assert_allclose(d.excess, [0.5, 0.125])
    assert np.isfinite(up.decompose(ens, rule="crps", prediction="matched").excess).all()
    with pytest.raises(UqprismError, match="pooled needs a positive, finite variance"):
        up.decompose(ens, rule="crps", prediction="pooled")


def test_approximations() -> None:
    ens = gaussian(mean=MEAN, scale=SCALE, weights=[0.25, 0.75])
    mean = 0.25 * MEAN[0] + 0.75 * MEAN[1]
    pooled = 0.25 * SCALE[0] ** 2 + 0.75 * SCALE[1] ** 2
    spread = 0.25 * (MEAN[0] - mean) ** 2 + 0.75 * (MEAN[1] - mean) ** 2
    for approximation, variance in ((ens.matched, pooled + spread), (ens.pooled, pooled), (ens.mixture, pooled + spread)):
        assert_allclose(approximation.mean, mean, rtol=1e-15)
        assert_allclose(approximation.variance, variance, rtol=1e-15)


def test_indexing_and_concatenation(rng: np.random.Generator) -> None:
    ens = gaussian(mean=rng.normal(size=(4, 10)), scale=np.exp(rng.normal(size=(4, 10))))
    whole = up.decompose(ens, rule="log").excess
    assert_allclose(up.decompose(ens[2:5], rule="log").excess, whole[2:5], rtol=1e-13)
    assert_allclose(up.decompose(ens[3], rule="log").excess, whole[3], rtol=1e-13)
    picked = np.array([True, False] * 5)
    assert_allclose(up.decompose(ens[picked], rule="log").excess, whole[picked], rtol=1e-13)
    again = up.EnsemblePrediction.concatenate([ens[:4], ens[4:]])
    assert_array_equal(again.members.mean, ens.members.mean)
    sideways = [gaussian(mean=rng.normal(size=(4, 2, n)), scale=1.0) for n in (3, 5)]
    assert up.EnsemblePrediction.concatenate(sideways, axis=-1).points_shape == (2, 8)
    for parts, options, message in (
        (sideways, {}, "agree but for axis 0"),
        ([ens, ens], {"axis": 1}, "not an axis"),
        ([ens, gaussian(mean=np.zeros((4, 1)), variance=1.0)], {}, "all be given by variance"),
        ([ens, gaussian(mean=MEAN, scale=SCALE)], {}, "agree in family and members"),
        ([ens, gaussian(mean=np.zeros((4, 1)), scale=1.0, weights=[0.25] * 4)], {}, "same member weights"),
    ):
        with pytest.raises(UqprismError, match=message):
            up.EnsemblePrediction.concatenate(parts, **options)


EXAMPLES = {
    "scale": lambda: gaussian(mean=MEAN, scale=SCALE),
    "variance": lambda: gaussian(mean=MEAN, variance=SCALE, weights=[0.3, 0.7]),
    "laplace": lambda: up.EnsemblePrediction.laplace(location=MEAN, scale=SCALE),
    "student_t": lambda: up.EnsemblePrediction.student_t(location=MEAN, scale=SCALE, df=5.0),
    "single point": lambda: gaussian(mean=MEAN[:, 0], scale=SCALE[:, 0]),
    "grid": lambda: gaussian(mean=MEAN.reshape(2, 1, 3), scale=SCALE.reshape(2, 1, 3)),
    "float32": lambda: gaussian(mean=MEAN.astype(np.float32), scale=SCALE.astype(np.float32)),
    "draws": lambda: up.EnsemblePrediction.samples(np.random.default_rng(0).normal(size=(3, 5, 2))),
}


def same(a: up.EnsemblePrediction, b: up.EnsemblePrediction) -> bool:
    arrays = zip(a.members.arrays(), b.members.arrays(), strict=True)
    weights = (a.weights is None) == (b.weights is None) and (a.weights is None or np.array_equal(a.weights, b.weights))
    return weights and all(x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y) for x, y in arrays)


@pytest.mark.parametrize("example", EXAMPLES)
def test_save_and_load_give_back_every_bit(example: str, tmp_path) -> None:
    ens = EXAMPLES[example]()
    ens.save(tmp_path / "ens.npz")
    assert same(ens, up.EnsemblePrediction.load(tmp_path / "ens.npz"))
    assert [p.name for p in tmp_path.iterdir()] == ["ens.npz"], "the temporary file is gone"


@pytest.mark.parametrize("example", [example for example in EXAMPLES if example != "draws"])
def test_arrow_gives_back_every_bit(example: str, tmp_path) -> None:
    import pyarrow.parquet

    ens = EXAMPLES[example]()
    table = ens.to_arrow()
    assert same(ens, up.from_arrow(table))
    pyarrow.parquet.write_table(table, tmp_path / "ens.parquet")
    assert same(ens, up.from_arrow(pyarrow.parquet.read_table(tmp_path / "ens.parquet")))


def test_arrow_columns_are_named_like_the_files_we_read() -> None:
    assert gaussian(mean=MEAN, variance=SCALE).to_arrow().column_names == ["mean_0", "mean_1", "variance_0", "variance_1"]
    assert gaussian(mean=MEAN, scale=SCALE).to_arrow().column_names == ["mean_0", "mean_1", "scale_0", "scale_1"]


def test_members_that_are_mixtures_of_mixtures_are_not_stored(tmp_path) -> None:
    """Members may be mixtures; there is a file format for those, but none for mixtures of them, and saving says so."""
    inner = up.Gaussian(mean=np.array([[[0.0], [1.0]], [[2.0], [1.0]]]), scale=np.ones((2, 2, 1)))
    ens = up.EnsemblePrediction(up.Mixture(inner))
    flat = gaussian(mean=inner.mean.reshape(4, 1), scale=1.0)
    assert_allclose(up.decompose(ens, rule="crps", truth="mixture").bayes, up.decompose(flat, truth="mixture").bayes, rtol=1e-8)
    ens.save(tmp_path / "ens.npz")
    assert_array_equal(up.EnsemblePrediction.load(tmp_path / "ens.npz").members.components.mean, inner.mean)
    nested = up.EnsemblePrediction(up.Mixture(up.Mixture(inner.map(lambda x: x[..., None]))))
    with pytest.raises(UqprismError, match="mixtures of mixture distributions cannot be stored"):
        nested.save(tmp_path / "nested.npz")


def test_foreign_files_are_refused(tmp_path) -> None:
    np.savez(tmp_path / "other.npz", mean=MEAN)
    with pytest.raises(UqprismError, match="not written by"):
        up.EnsemblePrediction.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("not at all")
    with pytest.raises(UqprismError, match="not a readable"):
        up.EnsemblePrediction.load(tmp_path / "text.npz")


def test_zero_points_give_empty_arrays(library: str) -> None:
    table = up.evaluate(gaussian(mean=as_array(library, np.zeros((3, 0))), scale=as_array(library, np.ones((3, 0)))))
    assert len(table) == 144
    assert all(tuple(table[name].shape) == (0,) for name in table)


GIVEN = {"mean": MEAN, "scale": SCALE}
FRAMES = {"mean": pd.DataFrame(MEAN.T), "variance": pd.DataFrame(SCALE.T)}
TWO = "one array library: mean is {}, variance is numpy"
BAD_MEMBERS = {  # what is given for mean and scale or variance, and the error
    "variance zero": ({"mean": MEAN, "variance": np.zeros((2, 3))}, ValueError, "variance must be .*greater than zero"),
    "variance negative": ({"mean": MEAN, "variance": -SCALE}, ValueError, "variance must be .*-1.0 at index"),
    "variance NaN": ({"mean": MEAN, "variance": np.full((2, 3), np.nan)}, ValueError, "variance must be finite"),
    "variance infinite": ({"mean": MEAN, "variance": np.full((2, 3), np.inf)}, ValueError, "variance must be finite"),
    "scale zero": ({"mean": MEAN, "scale": 0.0}, ValueError, "scale must be"),
    "mean NaN": ({"mean": MEAN * np.nan, "scale": SCALE}, ValueError, "mean must be finite, got nan"),
    "mean infinite": ({"mean": [[np.inf]], "scale": [[1.0]]}, ValueError, "mean must be finite, got inf"),
    "(3,) with (3, 1)": ({"mean": np.zeros(3), "variance": np.ones((3, 1))}, ValueError, r"\(3,\).*\(3, 1\)"),
    "(10, N) with (N,)": ({"mean": np.zeros((10, 5)), "variance": np.ones(5)}, ValueError, r"\(10, 5\).*\(5,\)"),
    "no member axis": ({"mean": 0.0, "variance": 1.0}, ValueError, "axis of members"),
    "no members": ({"mean": np.zeros((0, 3)), "variance": np.ones((0, 3))}, ValueError, "at least one member"),
    "both": (GIVEN | {"variance": SCALE}, TypeError, "exactly one of variance and scale.*got both"),
    "neither": ({"mean": MEAN}, TypeError, "exactly one of variance and scale"),
    "weights negative": (GIVEN | {"weights": [-0.5, 1.5]}, ValueError, "not negative"),
    "weights NaN": (GIVEN | {"weights": [np.nan, 1.0]}, ValueError, "finite"),
    "weights sum": (GIVEN | {"weights": [1.0, 1.0]}, ValueError, "sum to one, got 2"),
    "weights length": (GIVEN | {"weights": [1.0]}, ValueError, "2 members"),
    "complex": ({"mean": MEAN + 0j, "scale": SCALE}, TypeError, "complex"),
    "objects": ({"mean": np.array([["a", "b"]], dtype=object), "scale": 1.0}, TypeError, "object"),
    "a data frame": (FRAMES, TypeError, r"members first, got a DataFrame; up.from_frame .*mean.to_numpy\(\).T"),
    "strings": ({"mean": [["a", "b"]], "scale": 1.0}, TypeError, "real numbers"),
    "member axis": (GIVEN | {"member_axis": 2}, ValueError, "member_axis 2"),
    "torch and numpy": ({"mean": as_array("torch", MEAN), "variance": SCALE}, TypeError, TWO.format("torch")),
    "jax and numpy": ({"mean": as_array("jax", MEAN), "variance": SCALE}, TypeError, TWO.format("jax")),
    "mean missing": ({"mean": None, "scale": 1.0}, TypeError, "mean must be given"),
    "text": ({"mean": MEAN.astype(str), "scale": SCALE}, TypeError, "mean must be real numbers"),
    "dates": ({"mean": MEAN.astype("datetime64[s]"), "scale": SCALE}, TypeError, "mean must be real numbers"),
    "ragged": ({"mean": [[0.0, 1.0], [0.0]], "scale": 1.0}, TypeError, "equally long rows"),
}
ENSEMBLE, make = gaussian(**GIVEN), up.EnsemblePrediction
BAD = {
    **{case: (partial(gaussian, **given), *error) for case, (given, *error) in BAD_MEMBERS.items()},
    "eta2 positive": (lambda: make.natural(eta1=MEAN, eta2=SCALE), ValueError, "eta2 must be .*less than zero, got 1.0"),
    "laplace scale": (lambda: make.laplace(location=MEAN, scale=-SCALE), ValueError, "scale must be"),
    "no degrees of freedom": (lambda: make.student_t(location=MEAN, scale=SCALE), TypeError, "df"),
    "draw axis": (lambda: make.samples(np.zeros((2, 3)), draw_axis=5), ValueError, "draw_axis 5"),
    "same axes": (lambda: make.samples(np.zeros((2, 3)), draw_axis=0), ValueError, "must differ"),
    "draws too flat": (lambda: make.samples(np.zeros(3)), ValueError, "members, draws"),
    "one-hot unbiased": (
        lambda: up.decompose(gaussian(**GIVEN, weights=[1.0, 0.0]), estimator="unbiased"),
        ValueError,
        "two members with weight",
    ),
    "unbiased of one": (
        lambda: up.decompose(gaussian(mean=MEAN[:1], scale=SCALE[:1]), estimator="unbiased"),
        ValueError,
        "at least two members",
    ),
    "unbiased mixture": (lambda: up.decompose(ENSEMBLE, prediction="mixture", estimator="unbiased"), TypeError, "use 'plugin'"),
    "unknown estimator": (lambda: up.decompose(ENSEMBLE, estimator="unbiassed"), ValueError, "did you mean 'unbiased'"),
    "unknown rule": (lambda: up.decompose(ENSEMBLE, rule="crsp"), ValueError, "did you mean 'crps'"),
    "unknown source": (lambda: up.decompose(ENSEMBLE, prediction="mixtures"), ValueError, "did you mean 'mixture'"),
    "unknown truth": (lambda: up.decompose(ENSEMBLE, truth="match"), ValueError, "did you mean 'matched'"),
    "unknown risk": (lambda: up.evaluate(ENSEMBLE, ["crps.exces.members.members"]), ValueError, "'excess'"),
    "bad measure": (
        lambda: up.evaluate(ENSEMBLE, ["crps"]),
        ValueError,
        "did you mean 'crps.total.members.members', 'crps.bayes",
    ),
    "numbers as measures": (lambda: up.evaluate(ENSEMBLE, [3]), TypeError, "names or Measures"),
    "not an ensemble": (lambda: up.evaluate(MEAN), TypeError, "EnsemblePrediction"),
    "several levels": (lambda: up.rules.Quantile([0.1, 0.9]), TypeError, "one number"),
    "level": (lambda: up.rules.Quantile(1.0), ValueError, "strictly between 0 and 1"),
    "infinite bandwidth": (lambda: up.rules.GaussianKernel(np.inf), ValueError, "bandwidth must be finite"),
    "bandwidth": (lambda: up.rules.GaussianKernel(0.0), ValueError, "bandwidth must be finite and greater than zero"),
    "dotted rule": (lambda: up.catalogue([up.rules.Quantile(0.9, name="q.9")]), ValueError, "no dots"),
    "family variance": (lambda: up.Gaussian(mean=0.0, variance=-1.0), ValueError, "variance must be .*got -1.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_reason_and_remedy(case: str) -> None:
    call, kind, message = BAD[case]
    with pytest.raises(UqprismError, match=message) as caught:
        call()
    assert isinstance(caught.value, kind)


def test_different_devices_are_refused() -> None:
    import torch

    with pytest.raises(TypeError, match="one device: mean on cpu, variance on meta"):
        gaussian(mean=torch.zeros(2, 3), variance=torch.ones(2, 3, device="meta"))


def test_checks_can_be_skipped() -> None:
    ens = gaussian(mean=MEAN, variance=np.array([[1.0, np.nan, 1.0], [1.0, 1.0, 1.0]]), check=False)
    assert np.isnan(ens.members.scale[0, 1])


def test_a_damaged_file_is_refused_wherever_the_damage_is(tmp_path) -> None:
    """Checksums are compared: what loads is what was saved."""
    ens = up.EnsemblePrediction.gaussian(mean=np.arange(60.0).reshape(3, 20), variance=np.ones((3, 20)))
    path = tmp_path / "ens.npz"
    ens.save(path)
    good = path.read_bytes()
    unharmed = 0
    for at in np.random.default_rng(0).integers(len(good), size=120):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x15]) + good[at + 1 :])
        with contextlib.suppress(up.UqprismError):
            again = up.EnsemblePrediction.load(path)
            np.testing.assert_array_equal(again.members.mean, ens.members.mean)
            np.testing.assert_array_equal(again.members.variance, ens.members.variance)
            unharmed += 1
    assert unharmed < 60


def test_parameters_of_one_value_per_member_or_per_point_stretch() -> None:
    variance = np.array([[0.5], [2.0]])
    whole = gaussian(mean=MEAN, variance=np.broadcast_to(variance, MEAN.shape))
    for given in (variance, variance.tolist()):
        assert_array_equal(up.decompose(gaussian(mean=MEAN, variance=given)).total, up.decompose(whole).total)
    assert_array_equal(gaussian(mean=MEAN.T, variance=variance.T, member_axis=1).members.variance, whole.members.variance)
    assert_array_equal(gaussian(mean=MEAN, variance=SCALE[:1]).members.variance, np.broadcast_to(SCALE[:1], MEAN.shape))
    assert_array_equal(gaussian(mean=MEAN, variance=[0.1]).members.variance, np.full(MEAN.shape, 0.1))
    t = up.EnsemblePrediction.student_t(location=MEAN, scale=1.0, df=[[3.0], [5.0]])
    assert_array_equal(t.members.df[:, 0], [3.0, 5.0])


@pytest.mark.parametrize("shape", [(2,), (3,), (3, 2), (1, 2), (2, 2)])
def test_other_shapes_are_refused_because_they_may_be_meant_otherwise(shape: tuple[int, ...]) -> None:
    with pytest.raises(UqprismError, match=r"variance must match .*\(2, 3\)"):
        gaussian(mean=MEAN, variance=np.ones(shape))
    with pytest.raises(UqprismError, match="variance must match"):
        gaussian(mean=np.ones((3, 1)), variance=np.ones((1, 3)))  # would be members times points


WIDE = np.zeros((2000, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda **how: gaussian(mean=WIDE, scale=1.0, **how),
            r"2,000 members of 5 points.*mean\.T or member_axis=1.*member_axis=0",
        ),
        (lambda **how: gaussian(mean=WIDE[:, 0], scale=1.0, **how), r"2,000 members of 1 point;.*mean\[None\] for one model"),
        (lambda **how: gaussian(mean=WIDE[:, :, None], scale=1.0, **how), "member_axis="),
        (lambda **how: up.EnsemblePrediction.laplace(location=WIDE, scale=1.0, **how), r"location\.T"),
        (lambda **how: up.EnsemblePrediction.natural(eta1=WIDE, eta2=-1.0, **how), r"eta1\.T"),
        (lambda **how: up.EnsemblePrediction.samples(WIDE[:, None], **how), "2,000 members of 5 points"),
        (lambda **how: up.from_draws(WIDE, **how), "2,000 members of 1 point"),
        (lambda **how: up.from_draws(WIDE[:30], **how), r"30 members of 1 point, with 5 draws.*draws\[None\].*draws\.T\[None\]"),
        (
            lambda **how: up.EnsemblePrediction.quantiles(levels=[0.1, 0.3, 0.5, 0.7, 0.9], values=np.sort(WIDE[:9]), **how),
            "9 members",
        ),
    ],
)
def test_more_members_than_points_is_doubted_until_the_axis_is_given(call, message: str) -> None:
    with pytest.warns(up.errors.UqprismWarning, match=message) as caught:
        call()
    assert caught[0].filename == __file__  # the line of the user
    call(member_axis=0)


def test_few_members_or_enough_points_are_not_doubted() -> None:
    gaussian(mean=np.zeros((100, 2)), scale=1.0)
    gaussian(mean=np.zeros((101, 101)), scale=1.0)
    gaussian(mean=np.zeros((101, 0)), scale=1.0)
    up.from_posterior(WIDE, scale=1.0)


@pytest.mark.parametrize("size", [1e-320, 1e-310, 1e154, 1e308])
def test_numbers_whose_squares_leave_the_range_of_doubles_are_refused(size: float) -> None:
    with pytest.raises(UqprismError, match=r"scale must lie between .* another unit"):
        gaussian(mean=MEAN, scale=size)
    if size > 1.0:
        with pytest.raises(UqprismError, match=r"mean must lie between .* entry 4"):
            gaussian(mean=np.array([[0.0, 0.0, 0.0], [0.0, -size, 0.0]]), scale=1.0)
    if not 1e-306 < size < 1e306:
        with pytest.raises(UqprismError, match="variance must lie between"):
            gaussian(mean=MEAN, variance=size)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1e-306), (1.0, 1e-306), (1e153, 1.0), (0.0, 1e306), (1e153, 1e306)])
def test_the_largest_and_smallest_numbers_give_numbers_without_warnings(mean: float, variance: float) -> None:
    table = up.evaluate(gaussian(mean=np.array([[mean, 0.0], [-mean, 0.0]]), variance=variance))
    assert not any(np.isnan(values).any() for values in table.values())
    with pytest.raises(UqprismError, match="less than 2e-154 of the distance"):  # both at once are too far apart
        gaussian(mean=[[1e153], [-1e153]], variance=1e-306)


def _masked(where: object) -> np.ma.MaskedArray:
    return np.ma.masked_array(MEAN, mask=where)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gaussian(mean=x, scale=1.0),
        lambda x: gaussian(mean=list(x), scale=1.0),
        lambda x: gaussian(mean=MEAN, scale=x + 1.0),
        lambda x: up.EnsemblePrediction.natural(eta1=x, eta2=-1.0),
        lambda x: up.from_draws(x[None]),
        lambda x: up.from_posterior(x, scale=1.0),
        lambda x: up.EvidentialPrediction(gamma=x, nu=1.0, alpha=2.0, beta=1.0),
        lambda x: up.Gaussian(mean=x, scale=1.0),
        lambda x: gaussian(mean=MEAN, scale=1.0, weights=np.ma.masked_array([0.5, 0.5], mask=[False, x.mask.any()])),
    ],
)
def test_masked_entries_are_never_unmasked(call) -> None:
    with pytest.raises(UqprismError, match="must not be masked"):
        call(_masked(MEAN > 1.0))
    call(_masked(False))


@pytest.mark.parametrize("kind", [">f8", "<f4", "i2", "?", "f2"])
def test_arrays_of_unusual_layout_give_the_same_numbers(kind: str) -> None:
    mean = MEAN.astype(kind)
    plain = up.decompose(gaussian(mean=np.ascontiguousarray(mean, dtype=mean.dtype.newbyteorder("=")), scale=1.0)).total
    backwards = mean[:, ::-1].copy()[:, ::-1]
    backwards.setflags(write=False)
    for given in (mean, backwards, np.asfortranarray(mean), [*mean], [pd.Series(row) for row in mean]):
        found = up.decompose(gaussian(mean=given, scale=1.0)).total
        assert found.dtype.isnative
        assert_allclose(found.astype(float), plain.astype(float), rtol=1e-3 if kind == "f2" else 1e-6)


def test_unusual_tensors_are_named() -> None:
    import torch

    whole = torch.zeros(2, 3)
    for given, message in (
        (whole.to_sparse(), r"layout torch.sparse_coo; pass x.to_dense\(\)"),
        (whole.to("meta"), "on the device meta"),
        (whole.to(torch.float8_e4m3fn), r"float8.*\.to\(torch.float32\)"),
        (whole.to(torch.complex64), "real numbers"),
    ):
        with pytest.raises(UqprismError, match=message):
            gaussian(mean=given, scale=1.0)


@pytest.mark.parametrize("family", ["gaussian", "laplace", "logistic", "student_t"])
@pytest.mark.parametrize(
    ("mean", "scale"), [((0.0, 0.0), (1e-80, 1e80)), ((1e100, 0.0), (1e-60, 1e-60)), ((0.0, 0.0), (1e-150, 1e5))]
)
def test_members_too_narrow_beside_the_others_are_refused(
    family: str, mean: tuple[float, float], scale: tuple[float, float]
) -> None:
    """Their noise under the log score was wrong in the fifth digit, or they gave NaN."""
    centre = "mean" if family == "gaussian" else "location"
    given = {centre: np.array([mean, (0.0, 1.0)]).T, "scale": np.array([scale, (1.0, 1.0)]).T}
    given |= {"df": 5.0} if family == "student_t" else {}
    build = getattr(up.EnsemblePrediction, family)
    with pytest.raises(
        up.UqprismError, match="1 points have a member whose scale is less than 2e-154 of the distance to another"
    ):
        build(**given)
    assert build(**given, check=False).n_points == 2
    # Points far apart from each other do not count.
    apart = build(
        **(given | {centre: np.array([[1e100, 1e100], [0.0, 1e-60]]).T, "scale": np.array([[1e70, 1e80], [1e-70, 2e-70]]).T})
    )
    assert np.isfinite(up.decompose(apart, rule="log").bayes).all()
