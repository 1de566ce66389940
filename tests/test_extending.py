"""One file adds a rule, a family, an approximation, an adapter, a head, a task, an experiment or a data set.

The files are those of docs/extending.md. Each check runs in a process of its own, on a copy of the package with the file added.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import run_python

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "uqprism"
FILES = dict(re.findall(r'```python title="([\w/.]+)"\n(.*?)```', (ROOT / "docs" / "extending.md").read_text(), flags=re.DOTALL))

PRELUDE = """
import sys
from pathlib import Path
import numpy as np
import uqprism as up
from typer.testing import CliRunner

folder = Path(sys.argv[1])
assert Path(up.__file__).is_relative_to(folder)
ens = up.EnsemblePrediction.gaussian(mean=np.array([[0.0, 2.0], [1.0, 2.1]]), scale=np.array([[1.0, 0.5], [2.0, 0.5]]))

def shell(*words):
    from uqprism.cli import app
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output
"""

CHECKS = {
    "rules/spherical.py": """
d = up.decompose(ens, rule="spherical")
assert np.allclose(d.total, d.bayes + d.excess) and d.exactness["excess"].method == "quadrature"
table = up.evaluate(ens, "exact_spherical.*")
assert len(table) == 36
assert table.exactness["exact_spherical.excess.members.members"].method == "closed form"
assert np.allclose(table["exact_spherical.excess.members.members"], d.excess, atol=1e-9)
assert "spherical.bayes.mixture" in shell("catalogue", "--rule", "spherical")
ens.to_pandas().assign(y=[0.3, 2.0]).to_csv(folder / "in.csv", index=False)
shell("score", str(folder / "in.csv"), "-o", str(folder / "out.csv"), "--measures", "spherical.*")
assert "spherical.total.pooled.matched" in (folder / "out.csv").read_text()
page = up.write_report(folder / "in.csv", folder / "page.html", target="y", rule="spherical").path.read_text()
assert "spherical score" in page
""",
    "families/gumbel.py": """
family = up.families.families.get("gumbel")
gumbel = up.EnsemblePrediction(family(location=np.array([[0.0], [1.0]]), scale=np.array([[1.0], [1.5]])))
table, fused = up.evaluate(gumbel, backend="reference"), up.evaluate(gumbel, backend="fused")
assert len(table) == 144
assert all(np.allclose(fused[name], table[name], rtol=1e-9) for name in table)
assert np.allclose(table["squared_error.bayes.members"], np.pi**2 / 6 * (1.0 + 1.5**2) / 2)
assert np.allclose(table["log.bayes.mixture"], table["log.bayes.members"] + table["log.excess.mixture.members"])
assert np.allclose(up.rules.CRPS().entropy(family(location=0.0, scale=2.0)), 2.0 * np.log(2.0))
gumbel.save(folder / "gumbel.npz")
for back in (up.EnsemblePrediction.load(folder / "gumbel.npz"), up.from_frame(gumbel.to_pandas(), family="gumbel")):
    assert type(back.members) is family and np.array_equal(back.members.scale, gumbel.members.scale)
""",
    "ensemble/first.py": """
d = up.decompose(ens, rule="crps", prediction="first", truth="members")
assert d.excess.shape == (2,) and (d.excess > 0.0).all()
names = [measure.name for measure in up.catalogue()]
assert len(names) == 4 * (25 + 5 + 25) and "log.total.first.mixture" in names
assert np.array_equal(up.evaluate(ens, "crps.excess.first.members")["crps.excess.first.members"], d.excess)
assert "crps.bayes.first" in shell("catalogue")
""",
    "adapters/interval.py": """
class Weather:
    def predict_interval(self, X):
        return X[:, 0] - 1.0, X[:, 0] + 1.0

twice = up.from_model([Weather(), Weather()], np.zeros((3, 1)), stretch=2.0)
assert np.allclose(twice.members.scale, 2.0) and twice.n_members == 2
try:
    up.from_model(Weather(), np.zeros((3, 1)), strech=2.0)
except up.UqprismError as error:
    assert "stretch" in str(error)
else:
    raise AssertionError
""",
    "training/heads/logistic.py": """
x = np.linspace(-2.0, 2.0, 60)[:, None]
y = np.sin(2.0 * x[:, 0])
how = dict(n_members=2, hidden=(8,), max_epochs=2, random_state=0, head="logistic")
one, other = (up.DeepEnsembleRegressor(**how).fit(x, target).predict_ensemble(x).members for target in (y, 100.0 * y + 1e4))
assert one.name == "logistic"
assert np.allclose(other.location, 1e4 + 100.0 * one.location) and np.allclose(other.scale, 100.0 * one.scale, rtol=1e-4)
from uqprism.training import train
trained = train(x, y, n_members=2, max_epochs=1, head="logistic")
trained.save(folder / "model")
assert up.DeepEnsemble.load(folder / "model").head == trained.head
""",
    "tasks/worst_case.py": """
import runpy
rng = np.random.default_rng(0)
noise = np.exp(rng.normal(size=500))
wrong = np.abs(noise * rng.normal(size=500))
assert up.worst_case({"noise": noise, "nothing": noise[::-1]}, error=wrong).best() == "noise"
assert "--error-column" in shell("worst", "--help")
table = {"crps.bayes.members": noise, "crps.excess.members.members": noise[::-1].copy()}
report = up.write_report(table, folder / "page.html", error=wrong, resamples=20)
assert "Are the worst errors found?" in report.path.read_text()
pages = runpy.run_path("docs/generate.py")
assert "## uqprism worst" in pages["command_line_page"]()
assert "worst_case" in pages["reference_page"]("tasks")
""",
    "paper/experiments/means.py": """
assert "means" in up.paper.summaries() and "means" in shell("reproduce", "--help")
printed = shell("reproduce", "means", "--out", str(folder / "run"))
assert "1 of 1" in printed, printed
assert "The mean is zero." in (folder / "run" / "report.md").read_text()
""",
    "paper/data/sets/line.py": """
from uqprism.paper import data
assert len(data.load("line", n=50).train) == 35 and "line" in data.summaries()
""",
}


def test_every_file_of_the_page_has_a_check() -> None:
    assert set(FILES) == set(CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES)
def test_one_file_is_enough(path: str, tmp_path: Path) -> None:
    package = shutil.copytree(SOURCE, tmp_path / "uqprism", ignore=shutil.ignore_patterns("__pycache__"))
    assert not (package / path).exists()
    (package / path).write_text(FILES[path])
    run_python(PRELUDE + CHECKS[path], tmp_path, PYTHONPATH=str(tmp_path))
