"""The operators that ONNX lacks, against SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import torch
from numpy.testing import assert_allclose

from uqprism.training.exporting import operators

WIDE = np.concatenate([np.linspace(-8.0, 8.0, 2001), np.logspace(-300, 1.3, 500), -np.logspace(-300, 1.3, 500)])
CASES = {
    "erf": (operators.erf, scipy.special.erf, WIDE),
    "erfc": (operators.erfc, scipy.special.erfc, WIDE),
    "expm1": (operators.expm1, np.expm1, WIDE),
    "log1p": (operators.log1p, np.log1p, np.concatenate([np.logspace(-300, 9, 500), -np.logspace(-300, -0.01, 500)])),
    "softplus": (operators.softplus, lambda x: np.logaddexp(0.0, x), np.linspace(-700.0, 20.0, 1001)),
}


@pytest.mark.parametrize("name", CASES)
def test_all_digits(name: str) -> None:
    ours, theirs, x = CASES[name]
    assert_allclose(ours(torch.from_numpy(x)).numpy(), theirs(x), rtol=1e-14)


def test_hypot_and_frexp() -> None:
    x = np.concatenate([np.logspace(-300, 300, 2001), 2.0 ** np.arange(-50, 50)])
    assert_allclose(
        operators.hypot(torch.from_numpy(x), torch.from_numpy(x[::-1].copy())).numpy(), np.hypot(x, x[::-1]), rtol=1e-15
    )
    mantissa, exponent = (each.numpy() for each in operators.frexp(torch.from_numpy(x)))
    assert ((mantissa >= 0.49) & (mantissa <= 1.01)).all()
    assert_allclose(mantissa * 2.0**exponent, x, rtol=0)
    unit = np.log2(x / mantissa)
    assert_allclose(unit, np.round(unit), rtol=0, atol=0)
