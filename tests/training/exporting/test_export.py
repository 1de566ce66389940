"""Exported files compute what `predict_ensemble` and `decompose` do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import ArgumentError, InvalidValueError, UnsupportedError
from uqprism.measures import resolve_rule
from uqprism.training import heads
from uqprism.training.exporting.split import choose, closed_form_of

from ..problems import images
from .conftest import QUICK, Ready, table, targets

MEMBERS = 7  # a number that no other axis of the file has


def check(ready: Ready, X: Any, rule: str, rtol: float = 1e-9, **roles: str) -> None:
    """All outputs against the Python code, relative, also of a row that is far from all training rows."""
    found, ens = ready.run(X), ready.model.predict_ensemble(X)
    split = up.decompose(ens, rule=rule, **roles)
    assert set(found) == {"mean", "variance", "bayes", "excess", "total"}
    assert_allclose(found["mean"], ens.matched.mean, rtol=rtol)
    assert_allclose(found["variance"], ens.matched.variance, rtol=rtol)
    for name in ("bayes", "excess", "total"):
        assert_allclose(found[name], getattr(split, name), rtol=rtol, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("head", "rule"), [("mixture", "crps"), ("laplace", "log")])
def test_ten_thousand_rows(head: str, rule: str, ready) -> None:
    """Also few and no rows: their number is free. A third head is that of the table below."""
    made, rows = ready(head, rule), targets(10_000, seed=1)[0]
    rows[:50] *= 20.0
    check(made, rows, rule)
    check(made, rows[:1], rule)
    assert [len(x) for x in made.run(rows[:0]).values()] == [0] * 5


def test_a_mixture_of_lognormals(tmp_path) -> None:
    """The logarithm of the targets is part of the file."""
    x, y = targets()
    model = up.DeepEnsembleRegressor(n_members=3, target_transform="log", **QUICK).fit(x, np.exp(0.5 * (y - 50.0)))
    made, rows = model.export(tmp_path / "log.pt2"), targets(60, seed=1)[0]  # few: no kernel is compiled for them
    found = torch.export.load(made.path).module()(*made.tensors(rows))
    ens = model.predict_ensemble(rows)
    assert_allclose(found["variance"].numpy(), ens.matched.variance, rtol=1e-9)
    assert_allclose(found["excess"].numpy(), up.decompose(ens).excess, rtol=1e-7)


def test_single_precision_is_rounded_once(tmp_path, ready) -> None:
    """The networks are narrow, and the split is as wide as ever."""
    model, rows = ready("mixture", "crps").model, targets(60, seed=1)[0].astype(np.float32)  # few: no kernel is compiled
    made = model.export(tmp_path / "narrow.pt2", precision="float32", rule="quadratic")
    found, split = (
        torch.export.load(made.path).module()(*made.tensors(rows)),
        up.decompose(model.predict_ensemble(rows), "quadratic"),
    )
    assert {x.dtype for x in found.values()} == {torch.float32}
    assert_allclose(found["bayes"].numpy(), split.bayes, rtol=1e-5)
    assert_allclose(found["excess"].numpy(), split.excess, rtol=1e-3, atol=1e-7)


@pytest.fixture(scope="module")
def of_a_table(tmp_path_factory) -> Ready:
    frame, y = table(), targets()[1]
    model = up.DeepEnsembleRegressor(n_members=MEMBERS, head="natural", **QUICK).fit(frame, y)
    return Ready(model, model.export(tmp_path_factory.mktemp("table") / "model.onnx", rule="crps"))


def test_a_table_with_gaps_booleans_and_categories_as_text(of_a_table) -> None:
    """Unknown categories and new gaps become what `predict_ensemble` makes of them."""
    new = table(10_000, seed=1)
    new.loc[0, "city"] = "Atlantis"
    new["size"] = new["size"].astype(object)
    new.loc[1, "size"], new.loc[2, "mean"] = None, np.nan
    check(of_a_table, new, "crps")


def test_members_that_nearly_agree_keep_their_digits(of_a_table, tmp_path) -> None:
    """The excess is a mean of pair forms and no difference: six of the digits that its rounded weights leave.

    The weights of the file are moved next to those of the first member, as are those of the model.
    """
    made = onnx.load(of_a_table.exported.path)
    for each in made.graph.initializer:
        if each.dims and each.dims[0] == MEMBERS:
            each.CopyFrom(onnx.numpy_helper.from_array(gathered(onnx.numpy_helper.to_array(each)), each.name))
    onnx.save(made, tmp_path / "close.onnx")
    rows = of_a_table.model.ensemble_.stack.rows
    before, new = rows.detach().clone(), table(300, seed=5)
    with torch.no_grad():
        try:
            rows.copy_(torch.from_numpy(gathered(before.numpy())))
            excess = up.decompose(of_a_table.model.predict_ensemble(new)).excess
        finally:
            rows.copy_(before)
    session = onnxruntime.InferenceSession(tmp_path / "close.onnx")
    (found,) = session.run(["excess"], of_a_table.exported.feed(new))
    assert 0.0 < excess.max() < 1e-8
    assert_allclose(found, excess, rtol=1e-6)


def gathered(weights: np.ndarray) -> np.ndarray:
    """Weights (members, ...) a hundred-thousandth as far from the first member's."""
    narrow = weights.astype(np.float32)
    return (narrow[:1] + np.float32(1e-5) * (narrow - narrow[:1])).astype(weights.dtype)


def test_what_a_table_feeds_by_hand(of_a_table) -> None:
    """The description in the file is enough to make the inputs without this package."""
    session = onnxruntime.InferenceSession(of_a_table.exported.path)
    about = session.get_modelmeta().custom_metadata_map
    new = table(50, seed=3).rename(columns={"mean": "mean (column)"})
    feed = {}
    for each in json.loads(about["inputs"]):
        column = new[each["name"]].astype(object)
        text = each["kind"] == "category"
        feed[each["name"]] = column.map(str, na_action="ignore").fillna("").to_numpy() if text else column.to_numpy(float)
    assert_allclose(session.run(["mean"], feed)[0], of_a_table.model.predict(table(50, seed=3)), rtol=1e-12)
    assert [(x.name, x.type) for x in session.get_inputs()][:2] == [
        ("mean (column)", "tensor(double)"),
        ("age (years)", "tensor(double)"),
    ]


def test_the_file_says_what_it_is(of_a_table) -> None:
    about = onnxruntime.InferenceSession(of_a_table.exported.path).get_modelmeta().custom_metadata_map
    assert about["rule"] == "crps"
    assert about["uqprism_version"] == up.__version__
    assert json.loads(about["outputs"])["excess"] == "crps.excess.members.members"
    assert json.loads(about["origin"]) == {"adapter": "DeepEnsemble", "kind": "networks", "n_members": MEMBERS}
    assert json.loads(about["features"])[1:] == ["age (years)", "on", "city", "size"]
    model = onnx.load(of_a_table.exported.path)
    assert "/" not in "".join(node.doc_string for node in model.graph.node)  # no paths of the machine that wrote it


def test_a_program_of_torch_export(of_a_table, tmp_path) -> None:
    """The same numbers, with the categories as codes."""
    new, path = table(60, seed=4), tmp_path / "model.pt2"
    made = of_a_table.model.export(path, rule="quadratic", prediction="matched")
    files = {"uqprism.json": ""}
    found = torch.export.load(path, extra_files=files).module()(*made.tensors(new))
    split = up.decompose(of_a_table.model.predict_ensemble(new), rule="quadratic", prediction="matched")
    assert_allclose(found["excess"].numpy(), split.excess, rtol=1e-10)
    assert json.loads(files["uqprism.json"])["prediction"] == "matched"
    assert made.inputs[3].categories == ("Köln", "Oslo", "rare")


ROLES = [("members", "members"), ("mixture", "members"), ("members", "mixture"), ("matched", "members"), ("pooled", "matched")]


@pytest.mark.parametrize("rule", ["crps", "quadratic", "squared_error"])
@pytest.mark.parametrize(("prediction", "truth"), ROLES)
def test_sums_over_components_are_the_risks_of_mixtures(rule: str, prediction: str, truth: str, rng) -> None:
    """Against the integrals of `decompose`."""
    mean, scale = rng.normal(size=(3, 4, 20)), np.exp(0.3 * rng.normal(size=(3, 4, 20)))
    weights = rng.dirichlet(np.ones(3), size=(4, 20)).transpose(2, 0, 1)
    members = up.Mixture(up.Gaussian(mean=100.0 + 7.0 * mean, scale=7.0 * scale), weights)
    found = choose(members, rule, prediction, truth)(members)
    expected = up.decompose(up.EnsemblePrediction(members), rule=rule, prediction=prediction, truth=truth)
    for name in ("bayes", "excess", "total"):
        assert_allclose(found[name], getattr(expected, name), rtol=1e-9, atol=1e-12, err_msg=name)


def test_mc_dropout_has_its_own_masks(tmp_path) -> None:
    x, y = targets()
    model = up.MCDropoutRegressor(n_members=6, dropout=0.2, head="natural", **QUICK).fit(x, y)
    made = up.export(model, tmp_path / "dropout.pt2", rule="log")
    found = torch.export.load(made.path).module()(*made.tensors(x[:20]))
    assert_allclose(found["total"].numpy(), up.decompose(model.predict_ensemble(x[:20]), rule="log").total, rtol=1e-10)


def test_images(tmp_path) -> None:
    x, y = images()
    settings = {name: value for name, value in QUICK.items() if name != "hidden"}
    model = up.DeepEnsembleRegressor(n_members=2, network="small_cnn", **settings).fit(x, y)
    made = model.export(tmp_path / "images.pt2")
    found = torch.export.load(made.path).module()(*made.tensors(x[:5]))
    assert_allclose(found["excess"].numpy(), up.decompose(model.predict_ensemble(x[:5])).excess, rtol=1e-4)


# What is refused ------------------------------------------------------------------------------------------------------------


def test_a_rule_without_a_closed_form_names_those_that_have_one(ready, tmp_path) -> None:
    model = ready("mixture", "crps").model
    with pytest.raises(UnsupportedError, match=r"rule='log'.*'crps' or 'quadratic' or 'squared_error'"):
        model.export(tmp_path / "model.onnx", rule="log")
    with pytest.raises(UnsupportedError, match="members/members"):
        ready("laplace", "log").model.export(tmp_path / "model.onnx", rule="log", truth="mixture")
    assert list(tmp_path.iterdir()) == []


def test_transforms_and_heads_without_one(tmp_path) -> None:
    x, y = targets(80)
    other = up.DeepEnsembleRegressor(n_members=2, target_transform="yeo_johnson", **QUICK).fit(x, y)
    with pytest.raises(UnsupportedError, match="target_transform=None"):
        other.export(tmp_path / "model.onnx")
    with pytest.raises(UnsupportedError, match="DeepEnsembleRegressor"):
        up.EvidentialRegressor(**QUICK).fit(x, y).export(tmp_path / "model.onnx")


def test_arguments_that_make_no_sense(ready, tmp_path) -> None:
    model = ready("laplace", "log").model
    with pytest.raises(ArgumentError, match=r"\.onnx, \.pt2"):
        model.export(tmp_path / "model.h5")
    with pytest.raises(ValueError, match="float64"):
        model.export(tmp_path / "model.onnx", precision="half")
    with pytest.raises(ArgumentError, match="DeepEnsembleRegressor"):
        up.export(object(), tmp_path / "model.onnx")


def test_empty_text_as_a_category(tmp_path) -> None:
    x, y = targets(60)
    frame = pd.DataFrame({"a": x[:, 0], "b": np.where(x[:, 1] > 0, "", "c")})
    model = up.DeepEnsembleRegressor(n_members=2, **QUICK).fit(frame, y)
    with pytest.raises(InvalidValueError, match="empty text"):
        model.export(tmp_path / "model.onnx")


def test_the_command(ready, tmp_path, monkeypatch) -> None:
    from typer.testing import CliRunner

    from uqprism.cli import app

    monkeypatch.chdir(tmp_path)
    ready("laplace", "log").model.save("model.safetensors")
    done = CliRunner().invoke(app, ["export", "model.safetensors", "-o", "model.pt2", "--rule", "log"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["outputs"]["bayes"] == "log.bayes.members"
    assert torch.export.load("model.pt2").module()(torch.zeros(2, 3, dtype=torch.float64))["total"].shape == (2,)


def exportable_of_the_page() -> list[tuple[str, set[str]]]:
    """Heads and rules of the table in docs/export.md."""
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text().split("| head | rules |")[1].split("\n\n")[0]
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    return [(head, set(re.findall(r"`(\w+)`", rules))) for heads, rules in rows for head in re.findall(r"`(\w+)`", heads)]


@pytest.mark.parametrize(("head", "rules"), exportable_of_the_page())
def test_the_page_says_which_rules_each_head_has(head: str, rules: set[str]) -> None:
    kind = heads.resolve(head).fitted(torch.linspace(-2.0, 2.0, 60).double())
    raw = torch.linspace(-1.0, 1.0, 6 * kind.n_outputs).double().view(2, 3, kind.n_outputs)[:, :1]
    members, known = kind.distribution(kind.parameters(raw)), ("crps", "log", "quadratic", "squared_error", "gaussian_kernel")
    assert {rule for rule in known if closed_form_of(members, resolve_rule(rule), "members", "members")} == rules


def test_the_page_names_all_heads() -> None:
    assert {head for head, _ in exportable_of_the_page()} == set(heads.heads.names()) - {"evidential"}


@pytest.mark.parametrize("rule", ["crps", "quadratic"])
def test_mixtures_that_nearly_agree(rule: str, rng) -> None:
    """A difference of sums: its error is that of double precision relative to the spread, not to the excess."""
    apart, shape = 1e-3 * rng.normal(size=(3, 5, 50)), (3, 5, 50)
    members = up.Gaussian(mean=rng.normal(size=(3, 1, 50)) + apart, scale=np.exp(0.3 * rng.normal(size=(3, 1, 50)) + apart))
    members = up.Mixture(members, np.full(shape, 1 / 3))
    excess = up.decompose(up.EnsemblePrediction(members), rule=rule).excess
    assert np.median(excess) < 1e-6
    assert_allclose(choose(members, rule, "members", "members")(members)["excess"], excess, rtol=1e-6, atol=2e-15)
