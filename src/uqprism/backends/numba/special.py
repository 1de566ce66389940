"""Branch-free exp, log and normal functions that LLVM can vectorise over points or nodes.

Library functions are calls, and a loop with a call runs one element at a time. These are polynomials and ratios of
polynomials whose coefficients were fitted with 50 digits; the ratios have positive coefficients only, so nothing in them
cancels. Each docstring states the largest relative error found.

The coefficients travel as an argument (`FITS`) although they are constants: as literals every one of them would be loaded
anew in every turn of the loop, as arguments they are loaded once, which saves a fifth of the time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from uqprism.backends.fits import FAR, Coefficients, Fits
from uqprism.backends.numba.base import inlined

LN_2, PER_LN_2 = math.log(2.0), 1.0 / math.log(2.0)
LN_2_HIGH, LN_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the high part times an exponent is exact
SHIFT = 1.5 * 2.0**52  # added to a small number it leaves the nearest integer in the last bits
LOWEST = -700.0  # below it exp is as good as zero
BIAS, FRACTION = np.uint64(1023), np.uint64(52)  # of the exponent, in bits
ROOT_HALF, ONE, TWO_52 = (np.array(x).view(np.uint64)[()] for x in (math.sqrt(0.5), 1.0, 2.0**52))
SQRT_2_PI = math.sqrt(2.0 / math.pi)


@intrinsic
def _bits(_context: Any, _value: Any) -> Any:
    """The bits of a float64 as a uint64."""
    return types.uint64(types.float64), lambda context, builder, _, args: builder.bitcast(
        args[0], context.get_value_type(types.uint64)
    )


@intrinsic
def _from_bits(_context: Any, _value: Any) -> Any:
    """The float64 with these bits."""
    return types.float64(types.uint64), lambda context, builder, _, args: builder.bitcast(
        args[0], context.get_value_type(types.float64)
    )


@inlined
def power_of_two(x: float) -> tuple[float, float]:
    """The power of two above x, or twice x if it is one, and its logarithm; for ordinary x > 0."""
    biased = (_bits(x) >> FRACTION) + np.uint64(1)
    return _from_bits(biased << FRACTION), (_from_bits(biased + TWO_52) - (2.0**52 + 1023.0)) * LN_2


@inlined
def _ten(x: float, c: Coefficients) -> float:
    """c[0] + ... + c[9] x**9."""
    high = c[5] + x * (c[6] + x * (c[7] + x * (c[8] + x * c[9])))
    return c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * high))))


@inlined
def _eleven(x: float, c: Coefficients) -> float:
    """c[0] + ... + c[10] x**10."""
    high = c[5] + x * (c[6] + x * (c[7] + x * (c[8] + x * (c[9] + x * c[10]))))
    return c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * high))))


@inlined
def _twelve(x: float, c: Coefficients) -> float:
    """c[0] + ... + c[11] x**11."""
    high = c[6] + x * (c[7] + x * (c[8] + x * (c[9] + x * (c[10] + x * c[11]))))
    return c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * (c[5] + x * high)))))


@inlined
def exp_parts(x: float, fits: Fits) -> tuple[float, float]:
    """A power of two and a number q for x <= 0, with exp(x) = power + power * q; 2e-16."""
    bounded = x if x > LOWEST else LOWEST
    shifted = bounded * PER_LN_2 + SHIFT
    power = _from_bits((_bits(shifted) + BIAS) << FRACTION)
    count = shifted - SHIFT
    rest = (bounded - count * LN_2_HIGH) - count * LN_2_LOW
    return power, rest * _eleven(rest, fits.exp)


@inlined
def exp(x: float, fits: Fits) -> float:
    """The exponential of x <= 0; 3e-16."""
    power, q = exp_parts(x, fits)
    return power + power * q


@inlined
def expm1(x: float, fits: Fits) -> float:
    """exp(x) - 1 for x <= 0; 4e-16."""
    power, q = exp_parts(x, fits)
    return power * q + (power - 1.0)


@inlined
def _split(x: float) -> tuple[float, float]:
    """Exponent and mantissa of x > 0, the mantissa between the square roots of a half and of two."""
    bits = _bits(x)
    biased = (bits + ONE - ROOT_HALF) >> FRACTION
    mantissa = _from_bits(bits - ((biased - BIAS) << FRACTION))
    return _from_bits(biased + TWO_52) - (2.0**52 + 1023.0), mantissa


@inlined
def _log_tail(q: float, fits: Fits) -> float:
    """2 atanh(q) - 2 q, for mantissas 1 + x with q = x / (2 + x)."""
    x, c = q * q, fits.log
    high = c[4] + x * (c[5] + x * (c[6] + x * c[7]))
    return q * x * (c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * high))))


@inlined
def log_gap(x: float, ratio: float, fits: Fits) -> float:
    """x - log(ratio) for ratio = 1 + x formed without adding; about x**2/2 near zero; 3e-15."""
    exponent, mantissa = _split(ratio)
    near = exponent == 0.0
    q = x / (2.0 + x) if near else (mantissa - 1.0) / (mantissa + 1.0)
    tail = _log_tail(q, fits)
    return x * q - tail if near else x - (exponent * LN_2 + (2.0 * q + tail))


@inlined
def log_and_gap(x: float, ratio: float, fits: Fits) -> tuple[float, float]:
    """log(ratio) and x - log(ratio) for ratio = 1 + x formed without adding; 3e-16 and 3e-15."""
    exponent, mantissa = _split(ratio)
    near = exponent == 0.0
    q = (x if near else mantissa - 1.0) / (2.0 + x if near else mantissa + 1.0)
    tail = _log_tail(q, fits)
    whole = exponent * LN_2 + (2.0 * q + tail)
    return whole, x * q - tail if near else x - whole


@inlined
def log(x: float, fits: Fits) -> float:
    """The natural logarithm of ordinary x > 0; 3e-16 of max(|log x|, 1)."""
    exponent, mantissa = _split(x)
    q = (mantissa - 1.0) / (mantissa + 1.0)
    return exponent * LN_2 + (2.0 * q + _log_tail(q, fits))


@inlined
def log1p(x: float, fits: Fits) -> float:
    """log(1 + x) for ordinary x >= 0; 4e-16."""
    exponent, mantissa = _split(1.0 + x)
    near = exponent == 0.0  # where the sum would round x
    above, below = (x, 2.0 + x) if near else (mantissa - 1.0, mantissa + 1.0)
    q = above / below
    return exponent * LN_2 + (2.0 * q + _log_tail(q, fits))


@inlined
def mean_gap(t2: float, fits: Fits) -> tuple[float, float]:
    """E|Z + t| - E|Z| for a standard normal Z and t**2 up to FAR, as numerator and denominator; 1e-15."""
    bounded = t2 if t2 < FAR else FAR
    return bounded * _eleven(bounded, fits.gap_above), _twelve(bounded, fits.gap_below)


@inlined
def upper_tail_ratio(z: float, fits: Fits) -> float:
    """The probability of normal values above z >= 0, divided by exp(-z**2/2); 2e-15."""
    bounded = z if z < 1e30 else 1e30  # the polynomials would overflow
    return _ten(bounded, fits.tail_above) / _eleven(bounded, fits.tail_below)
