"""When a kernel is taken, what happens without one, and what it costs beside its results."""

from __future__ import annotations

import re
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.conftest import run_python
from uqprism.backends import choose
from uqprism.errors import install_command

pytest.importorskip("numba")

WANTED = ["crps.excess.members.members", "log.bayes.mixture"]


def ordinary(points: int = 3000, members: int = 10) -> up.EnsemblePrediction:
    rng = np.random.default_rng(1)
    return up.EnsemblePrediction.gaussian(
        mean=rng.normal(size=(members, points)), scale=np.exp(0.3 * rng.normal(size=(members, points)))
    )


def test_auto_takes_the_kernel_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    monkeypatch.setattr(choose, "_installed", taken.append)
    monkeypatch.setattr(choose, "_hint", lambda *_: None)
    up.evaluate(ordinary(3), WANTED)
    up.evaluate(ordinary(3000), WANTED[:1], backend="reference")
    assert taken == []
    up.evaluate(ordinary(3000), WANTED[:1])
    assert taken == ["numba"]


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference path serves, and one line says once what would be faster."""
    expected = up.evaluate(ordinary(), WANTED[:1])[WANTED[0]]
    monkeypatch.setattr(choose, "_installed", lambda _: False)
    choose._hint.cache_clear()
    with pytest.warns(UserWarning, match=r"pip install .*\[fast\]'"):
        table = up.evaluate(ordinary(), WANTED[:1])
    np.testing.assert_allclose(table[WANTED[0]], expected, rtol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        up.evaluate(ordinary(), WANTED[:1])
    with pytest.raises(ImportError, match=re.escape(install_command("fast"))):
        up.evaluate(ordinary(), WANTED[:1], backend="fused")


def test_an_error_in_one_slice_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other threads do not wait for what it held."""
    from uqprism.backends.numba import backend as cpu

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cpu, "_slice", fail)
    monkeypatch.setenv("UQPRISM_THREADS", "2")
    with pytest.raises(MemoryError):
        up.evaluate(ordinary(100_000), WANTED)


def test_gradients_of_a_variance_given_without_a_graph() -> None:
    """The scale was formed without gradients, the variance still wants its own."""
    torch = pytest.importorskip("torch")
    variance = torch.ones(3, 3000, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        ensemble = up.EnsemblePrediction.gaussian(mean=torch.zeros(3, 3000, dtype=torch.float64), variance=variance)
    assert up.evaluate(ensemble, "squared_error.bayes.members")["squared_error.bayes.members"].requires_grad


def test_gradients_take_the_reference_path() -> None:
    torch = pytest.importorskip("torch")
    mean = torch.randn(3, 3000, dtype=torch.float64, requires_grad=True)
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=torch.ones_like(mean))
    up.evaluate(ensemble, WANTED[0])[WANTED[0]].sum().backward()
    assert mean.grad is not None
    with pytest.raises(TypeError, match="need gradients"):
        up.evaluate(ensemble, WANTED, backend="fused")


def test_transformed_tensors_take_the_reference_path() -> None:
    """Inside `torch.func` a tensor has no plain values, and in forward mode it has more than those."""
    torch = pytest.importorskip("torch")
    mean, scale = torch.randn(3, 3000, dtype=torch.float64), torch.ones(3, 3000, dtype=torch.float64)

    def risk(mean: object) -> object:
        return up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, check=False), WANTED[0])[WANTED[0]].sum()

    leaf = mean.clone().requires_grad_()
    risk(leaf).backward()
    torch.testing.assert_close(torch.func.grad(risk)(mean), leaf.grad)
    direction = torch.randn_like(mean)
    with torch.autograd.forward_ad.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of its own use of itself
        dual = torch.autograd.forward_ad.make_dual(mean, direction)
        tangent = torch.autograd.forward_ad.unpack_dual(risk(dual)).tangent
    torch.testing.assert_close(tangent, (leaf.grad * direction).sum())


def test_narrow_and_read_only_arrays() -> None:
    """Half precision is rounded without a warning, also to infinity, and arrays that cannot be written are read."""
    mean = np.linspace(-300.0, 300.0, 9000).astype(np.float16).reshape(3, 3000)
    mean.setflags(write=False)
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=np.ones_like(mean))
    for name in ("squared_error.excess.members.members", "crps.excess.members.members"):
        fused, reference = (up.evaluate(ensemble, name, backend=backend)[name] for backend in ("fused", "reference"))
        assert fused.dtype == np.float16
        np.testing.assert_array_equal(fused, reference)


def test_fused_needs_a_form() -> None:
    """A family that no kernel can be compiled from, as one derived from another whose density it may change, says so."""

    class Derived(up.families.Gaussian):
        pass

    ensemble = up.EnsemblePrediction(Derived(mean=np.zeros((2, 3)), scale=np.ones((2, 3))))
    with pytest.raises(TypeError, match="Derived states no form to compile one from"):
        up.evaluate(ensemble, WANTED, backend="fused")
    assert up.evaluate(ensemble, WANTED)[WANTED[0]].shape == (3,)


def test_unknown_backend() -> None:
    with pytest.raises(ValueError, match="fused"):
        up.evaluate(ordinary(3), backend="fuesd")


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither how many threads, nor that several callers run at once."""
    ensemble = ordinary(20_000)
    monkeypatch.setenv("UQPRISM_THREADS", "1")
    expected = up.evaluate(ensemble, WANTED)
    monkeypatch.setenv("UQPRISM_THREADS", "3")
    with ThreadPoolExecutor(3) as pool:
        tables = list(pool.map(lambda _: up.evaluate(ensemble, WANTED), range(3)))
    for table in tables:
        for name in WANTED:
            np.testing.assert_array_equal(table[name], expected[name])


MEMORY = """
import numpy as np, uqprism as up

def status(field):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(field))

members, points = {members}, {points}
mean = np.random.default_rng(0).normal(size=(members, points)); scale = np.exp(0.3 * mean)
ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale, member_axis=0)
up.evaluate(ensemble[: 200], backend="fused")
before = status("VmRSS:")
table = up.evaluate(ensemble, backend="fused")
results = sum(x.nbytes for x in table.values())
print((status("VmHWM:") - before - results) / 2**20)
"""


@pytest.mark.parametrize(("members", "points"), [(10, 100_000), (3000, 100)])
def test_memory(members: int, points: int) -> None:
    """Beside inputs and results a kernel holds less than 64 MB."""
    assert float(run_python(MEMORY.format(members=members, points=points), UQPRISM_THREADS="2")) < 64.0


CACHED = """
import sys; sys.path.insert(0, {folder!r})
import numpy as np, uqprism as up
assert up.__file__.startswith({folder!r}), up.__file__
table = up.evaluate(up.EnsemblePrediction.gaussian(mean=np.zeros((2, 3)), scale=np.ones((2, 3))), "squared_error.bayes.members",
                    backend="fused")
from uqprism.backends.numba.points import prepare
print(sum(prepare.stats.cache_hits.values()), sum(prepare.stats.cache_misses.values()), prepare.stats.cache_path)
"""


@pytest.mark.slow
def test_read_only_package(tmp_path: Path) -> None:
    """Compiled code is kept in the user's cache folder where the package's own cannot be written, and found again."""
    folder, cache = tmp_path / "site", tmp_path / "cache"
    shutil.copytree(Path(up.__file__).parent, folder / "uqprism", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "uqprism" / "backends" / "numba" / "__pycache__").write_text("a file in the folder's place")
    code = CACHED.format(folder=str(folder))
    environment = {"XDG_CACHE_HOME": str(cache), "NUMBA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    first, second = (run_python(code, **environment).split() for _ in range(2))
    assert first[:2] == ["0", "1"]
    assert second[:2] == ["1", "0"]
    assert first[2].startswith(str(cache))
    program = folder / "uqprism" / "backends" / "program.py"
    program.write_text(program.read_text() + "# a change in a file that the kernel's pieces come from\n")
    assert run_python(code, **environment).split()[:2] == ["0", "1"]
    run_python(code, **environment | {"XDG_CACHE_HOME": "/dev/null/none", "HOME": "/dev/null/none"})
