"""Branch-free exp, log and normal functions that LLVM can vectorise over points or nodes.

Library functions are calls, and a loop with a call runs one element at a time. These are polynomials and ratios of
polynomials whose coefficients were fitted with 50 digits; the ratios have positive coefficients only, so nothing in them
cancels. Each docstring states the largest relative error found.

The coefficients travel as an argument (`FITS`) although they are constants: as literals every one of them would be loaded
anew in every turn of the loop, as arguments they are loaded once, which saves a fifth of the time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from uqprism.kernels.compiler import inlined

Coefficients = tuple[float, ...]


class Fits(NamedTuple):
    """Coefficients, the constant term first."""

    exp: Coefficients
    log: Coefficients
    gap_above: Coefficients
    gap_below: Coefficients
    tail_above: Coefficients
    tail_below: Coefficients


FITS = Fits(
    exp=(
        1.0,
        0.500000000000000567,
        0.16666666666666671,
        0.0416666666665723915,
        0.00833333333332608312,
        0.00138888889327510003,
        0.000198412698750022788,
        2.48015040144269051e-05,
        2.75572551700008874e-06,
        2.76264955464321963e-07,
        2.51053127296221018e-08,
    ),
    log=(
        0.666666666666666583,
        0.400000000000075475,
        0.285714285688031164,
        0.222222226792612236,
        0.18181773554921244,
        0.153871688430400763,
        0.132485857565567108,
        0.132637099672227947,
    ),
    gap_above=(
        0.39894228040143265,
        0.06146128263146408,
        0.006142070856108337,
        0.0003620381338824031,
        1.6279671930364333e-05,
        5.119609006094544e-07,
        1.2461337762817393e-08,
        2.0887846177007262e-10,
        2.429201295568741e-12,
        1.2774737738689411e-14,
        1.454276988426523e-17,
    ),
    gap_below=(
        1.0,
        0.23739392217244626,
        0.0268453819870899,
        0.0019103751227298581,
        9.50555085193667e-05,
        3.4666707621500466e-06,
        9.406387979252679e-08,
        1.8735851599635196e-09,
        2.593032895600739e-11,
        2.1370937287958755e-13,
        5.645998672183952e-16,
        1.7467345605612315e-19,
    ),
    tail_above=(
        0.4999999999999999,
        0.7978613882337616,
        0.6278394578575818,
        0.31378366597997054,
        0.10881679107571653,
        0.027065548105841598,
        0.0048315457572769855,
        0.0005995545630783262,
        4.736049842716706e-05,
        1.846870364003253e-06,
    ),
    tail_below=(
        1.0,
        2.393607337270341,
        2.6655012547490955,
        1.823487481539845,
        0.8514229095682964,
        0.28463670216488823,
        0.06933686978152329,
        0.012229604369129763,
        0.001507489837476286,
        0.00011871516445812651,
        4.629417473988648e-06,
    ),
)

LN_2, PER_LN_2 = math.log(2.0), 1.0 / math.log(2.0)
LN_2_HIGH, LN_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the high part times an exponent is exact
SHIFT = 1.5 * 2.0**52  # added to a small number it leaves the nearest integer in the last bits
LOWEST = -700.0  # below it exp is as good as zero
BIAS, FRACTION = np.uint64(1023), np.uint64(52)  # of the exponent, in bits
ROOT_HALF, ONE, TWO_52 = (np.array(x).view(np.uint64)[()] for x in (math.sqrt(0.5), 1.0, 2.0**52))
SQRT_2_PI = math.sqrt(2.0 / math.pi)
FAR = 68.0  # squared distance in scales beyond which the mean gap is the distance itself


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
def log(x: float, fits: Fits) -> float:
    """The natural logarithm of ordinary x > 0; 3e-16 of max(|log x|, 1)."""
    exponent, mantissa = _split(x)
    q = (mantissa - 1.0) / (mantissa + 1.0)
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
