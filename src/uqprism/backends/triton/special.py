"""The formulas of `families.gaussian` for Triton, in single and in double precision."""

from __future__ import annotations

import math

import triton
import triton.language as tl
from triton.language.extra import libdevice

from uqprism.backends.fits import FAR as FAR_SQUARED
from uqprism.backends.fits import FITS

SQRT_2, SQRT_2_PI = tl.constexpr(math.sqrt(2.0)), tl.constexpr(math.sqrt(2.0 / math.pi))
PER_SQRT_PI, PER_LN_2 = tl.constexpr(1.0 / math.sqrt(math.pi)), tl.constexpr(1.0 / math.log(2.0))
SQRT_EIGHTH = tl.constexpr(math.sqrt(0.125))  # 1 / (2 sqrt(pi)) over sqrt(2 / pi)

# The mean gap of `special`, and a shorter fit of it for single precision (6e-8 up to a squared distance of 28).
ABOVE, BELOW = tl.constexpr(FITS.gap_above), tl.constexpr(FITS.gap_below)
SHORT_ABOVE = tl.constexpr((0.39894229942, 0.0413392955894, 0.00280037555271, 3.90221022666e-05, 3.23608340061e-09))
SHORT_BELOW = tl.constexpr((1.0, 0.186956165607, 0.0142647183078, 0.000473466706135, 1.49138940435e-06))
FAR, SHORT_FAR = tl.constexpr(FAR_SQUARED), tl.constexpr(28.0)
MINUS_EXPM1 = tl.constexpr((1.0, -1 / 2, 1 / 6, -1 / 24))  # 6e-8 up to 1/16
LOG = tl.constexpr(FITS.log)


@triton.jit
def root(x):
    """The square root, correctly rounded."""
    if x.dtype == tl.float32:
        root = tl.sqrt_rn(x)  # `tl.sqrt` is an approximation in single precision
    else:
        root = tl.sqrt(x)
    return root


@triton.jit
def divide(x, y, SINGLE: tl.constexpr):
    """x / y; in single precision by the device's reciprocal, off by two units in the last place at most."""
    return libdevice.fast_dividef(x, y) if SINGLE else x / y


@triton.jit
def _polynomial(x, COEFFICIENTS: tl.constexpr, COUNT: tl.constexpr):
    """The sum of coefficients[n] * x**n."""
    value = COEFFICIENTS[COUNT - 1] * x + COEFFICIENTS[COUNT - 2]
    for k in tl.static_range(2, COUNT):
        value = value * x + COEFFICIENTS[COUNT - 1 - k]
    return value


@triton.jit
def _exp(x, SINGLE: tl.constexpr):
    """The exponential of x <= 0; in single precision what is smaller than 1e-38 is zero."""
    if SINGLE:
        value = tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x * PER_LN_2], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        value = tl.exp(x)
    return value


@triton.jit
def _joint(p, q, SINGLE: tl.constexpr):
    """The variance and the scale of the difference of two Gaussian values, and the inverse of the latter."""
    square = p * p + q * q
    if SINGLE:
        inverse = tl.rsqrt(square)
        joint = square * inverse
    else:
        joint = tl.sqrt(square)
        inverse = 1.0 / joint
    return square, joint, inverse


@triton.jit
def _widths(both, BY_VARIANCE: tl.constexpr):
    """What turns a squared gap of variances into one of scales."""
    return both * both if BY_VARIANCE else 1.0


@triton.jit
def crps_distance(shift, p, q, gap, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr):
    """The integrated squared difference of the distribution functions; gap is of scales or variances.

    Its two fractions share one division, which is what it costs.
    """
    both = p + q
    _, joint, inverse = _joint(p, q, SINGLE)
    t = shift * inverse
    t2 = t * t
    if SINGLE:
        bounded = tl.minimum(t2, SHORT_FAR)
        above = bounded * _polynomial(bounded, SHORT_ABOVE, 5)
        below = _polynomial(bounded, SHORT_BELOW, 5)
        near = t2 < SHORT_FAR
    else:
        bounded = tl.minimum(t2, FAR)
        above = bounded * _polynomial(bounded, ABOVE, 11)
        below = _polynomial(bounded, BELOW, 12)
        near = t2 < FAR
    above = tl.where(near, joint * above, tl.abs(shift) - SQRT_2_PI * joint)
    below = tl.where(near, below, 1.0)
    widths = (SQRT_2 * joint + both) * _widths(both, BY_VARIANCE)
    return divide(above * widths + gap * gap * (PER_SQRT_PI * below), below * widths, SINGLE)


@triton.jit
def _minus_expm1(y, SINGLE: tl.constexpr):
    """1 - exp(-y) for y >= 0, and exp(-y)."""
    decay = _exp(-y, SINGLE)
    if SINGLE:
        value = tl.where(y < 0.0625, y * _polynomial(y, MINUS_EXPM1, 4), 1.0 - decay)
    else:
        value = -libdevice.expm1(-y)
    return value, decay


@triton.jit
def quadratic_distance(shift, p, q, gap, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr):
    """The integrated squared difference of the densities and twice the integral of their product, both over sqrt(2 / pi)."""
    both = p + q
    product = p * q
    square, joint, inverse = _joint(p, q, SINGLE)
    t = shift * inverse
    rise, decay = _minus_expm1(0.5 * t * t, SINGLE)
    widths = product * (both * joint + 2.0 * SQRT_2 * product) * _widths(both, BY_VARIANCE)
    scales = divide(gap * gap * (SQRT_EIGHTH * square + SQRT_2 * product), widths, SINGLE)
    return (scales + rise) * inverse, decay * inverse


@triton.jit
def log_gap(x, ratio):
    """x - log(ratio) for ratio = 1 + x formed without adding: about x**2/2 near zero."""
    near = (ratio > 0.7072) & (ratio < 1.4142)  # the range for which the coefficients of LOG were fitted
    q = tl.where(near, x / (2.0 + x), 0.0)
    square = q * q
    return tl.where(near, x * q - q * square * _polynomial(square, LOG, 8), x - tl.log(ratio))


@triton.jit
def power_of_two(x, SINGLE: tl.constexpr):
    """The power of two above x, its inverse, and its exponent."""
    if SINGLE:
        # From the bits of the number: the bias of the exponent is 127, and the power above is one higher.
        exponent = ((x.to(tl.int32, bitcast=True) >> 23) & 0xFF) - 126
        power = ((exponent + 127) << 23).to(tl.float32, bitcast=True)
        inverse = ((127 - exponent) << 23).to(tl.float32, bitcast=True)
    else:
        exponent = ((x.to(tl.int64, bitcast=True) >> 52) & 0x7FF) - 1022
        power = ((exponent + 1023) << 52).to(tl.float64, bitcast=True)
        inverse = ((1023 - exponent) << 52).to(tl.float64, bitcast=True)
    return power, inverse, exponent
