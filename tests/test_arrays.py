"""Stable special functions against 50-digit arithmetic, also where the obvious form keeps no digit."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.conftest import as_array
from uqprism import arrays

SIZES = [1e-300, 1e-12, 1e-5, 0.1, 0.499, 0.501, 0.999, 1.001, 3.0, 50.0, 1e4]
FUNCTIONS = {
    arrays.exp_minus_linear: lambda x: mp.exp(-x) - 1 + x,
    arrays.gamma_tail: lambda x: 1 - (1 + x) * mp.exp(-x),
    arrays.laplace_tail: lambda x: (3 + x) * mp.exp(-x) - 3 + 2 * x,
    arrays.log_gamma_half_step: lambda x: mp.loggamma(x + mp.mpf(1) / 2) - mp.loggamma(x),
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_against_many_digits(function, library: str) -> None:
    sizes = [*SIZES[3:], 21.0, 1000000.0, 1000000000000.0] if function is arrays.log_gamma_half_step else SIZES
    with mp.workdps(700):
        truth = [float(FUNCTIONS[function](mp.mpf(x))) for x in sizes]
    assert_allclose(np.asarray(function(as_array(library, sizes))), truth, rtol=2e-14, atol=1e-15 * (sizes is not SIZES))


def test_log_gap(library: str) -> None:
    """x - log(1 + x) where x is tiny, where 1 + x is, and in between."""
    ratios = np.array([1e-12, 0.3, 0.4999, 0.5001, 1.0, 1.4999, 1.5001, 7.0, 1e12])
    small = np.array([-1e-9, 1e-200, 3e-7, -0.4])
    with mp.workdps(700):
        truth = [float(mp.mpf(x) - 1 - mp.log(mp.mpf(x))) for x in ratios]
        near = [float(mp.mpf(x) - mp.log(1 + mp.mpf(x))) for x in small]
    values = arrays.log_gap(as_array(library, ratios - 1.0), as_array(library, ratios))
    assert_allclose(np.asarray(values), truth, rtol=1e-14)
    assert_allclose(np.asarray(arrays.log_gap(as_array(library, small), as_array(library, 1.0 + small))), near, rtol=1e-14)


def test_power_of_two(library: str) -> None:
    """Powers of two from 2**-500 to 2**500 come back exactly, so that dividing by them rounds nothing."""
    x = np.array([1.5 * 2.0**-500, 0.75, 1.0, 3.0, 2.0**500])
    unit, log_unit = arrays.power_of_two(as_array(library, x))
    assert np.asarray(unit).tolist() == [2.0**-499, 1.0, 2.0, 4.0, 2.0**501]
    assert_allclose(np.asarray(log_unit), np.log(np.asarray(unit)), rtol=1e-15)


def test_log_sum_exp_of_nothing_is_minus_infinity() -> None:
    assert arrays.log_sum_exp(np.full((3, 2), -np.inf), axis=0).tolist() == [-np.inf, -np.inf]
