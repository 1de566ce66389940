"""The fitted functions against library functions and 40 digits, to the errors their docstrings state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import erfc, erfcx

numba = pytest.importorskip("numba")

from uqprism.backends.fits import FAR, FITS  # noqa: E402
from uqprism.backends.numba import special  # noqa: E402


def called(piece: object) -> object:
    """A piece of a kernel, which only compiled code can call, for Python."""
    return numba.njit(lambda *numbers: piece(*numbers))  # noqa: PLW0108 (the piece itself has no entry for Python)


def values(piece: object, *arguments: np.ndarray) -> np.ndarray:
    function = called(piece)
    return np.array([function(*numbers, FITS) for numbers in zip(*arguments, strict=True)])


def test_exp(rng: np.random.Generator) -> None:
    x = -rng.exponential(40.0, 3000)
    np.testing.assert_allclose(values(special.exp, x), np.exp(x), rtol=3e-16)
    assert called(special.exp)(-1e6, FITS) < 1e-300


def test_log(rng: np.random.Generator) -> None:
    x = 10.0 ** rng.uniform(-290, 290, 3000)
    x[:1000] = rng.uniform(0.5, 2.0, 1000)
    np.testing.assert_allclose(values(special.log, x), np.log(x), rtol=3e-16, atol=3e-16)


def test_log_gap(rng: np.random.Generator) -> None:
    """Relative accuracy down to gaps of 1e-9, on both sides of every switch."""
    x = np.concatenate([10.0 ** rng.uniform(-9, 4, 800), -(10.0 ** rng.uniform(-9, -1e-3, 800)), [0.4142135, 0.4142136, -0.2928]])
    with mp.workdps(40):
        expected = [float(mpf(v) - mp.log(1 + mpf(v))) for v in x]
    np.testing.assert_allclose(values(special.log_gap, x, 1.0 + x), expected, rtol=3e-15)


def test_mean_gap(rng: np.random.Generator) -> None:
    """E|Z + t| - E|Z| keeps its digits for t down to 1e-9."""
    t = np.concatenate([10.0 ** rng.uniform(-9, 0.9, 1500), [8.2, 8.24]])
    with mp.workdps(40):
        expected = [float(mp.sqrt(2 / mp.pi) * mp.expm1(-(mpf(v) ** 2) / 2) + mpf(v) * mp.erf(mpf(v) / mp.sqrt(2))) for v in t]
    mean_gap = called(special.mean_gap)
    above, below = np.array([mean_gap(v * v, FITS) for v in t]).T
    np.testing.assert_allclose(above / below, expected, rtol=2e-15)
    far = math.sqrt(FAR)  # beyond it the distance itself serves
    assert math.exp(-FAR / 2) < 1e-14 * far


def test_upper_tail_ratio() -> None:
    z = np.concatenate([np.linspace(0.0, 40.0, 3000), [1e3, 1e10, 1e200]])
    np.testing.assert_allclose(values(special.upper_tail_ratio, z[:3000]), erfcx(z[:3000] / math.sqrt(2)) / 2, rtol=3e-15)
    assert all(values(special.upper_tail_ratio, z) >= 0.0)
    assert called(special.upper_tail_ratio)(0.0, FITS) == pytest.approx(erfc(0.0) / 2, rel=1e-15)


def test_power_of_two(rng: np.random.Generator) -> None:
    """The power is above its argument, at most twice it, and dividing by it is exact."""
    power_of_two = called(special.power_of_two)
    for x in 10.0 ** rng.uniform(-290, 290, 500):
        power, log = power_of_two(x)
        assert x < power <= 2.0 * x
        assert math.frexp(power)[0] == 0.5
        assert log == pytest.approx(math.log(power), rel=1e-15)
