"""Which array library, which precision, and special functions that the array standard lacks.

Every function gets the library from its arguments with `namespace` and works on NumPy, PyTorch and JAX arrays. Functions whose
obvious form cancels have a name here, and their docstring says where that form breaks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

from uqprism.errors import ArrayTypeError

Array: TypeAlias = Any  # NumPy, PyTorch or JAX; the array API has no common static type

SQRT_PI = math.sqrt(math.pi)
SQRT_2 = math.sqrt(2.0)
LOG_2PI = math.log(2.0 * math.pi)


def is_array(x: object) -> bool:
    """True for NumPy, PyTorch and JAX arrays (traced ones too); False for numbers, lists and tables."""
    return bool(array_api_compat.is_array_api_obj(x)) and not isinstance(x, np.generic)  # a NumPy scalar is a number


def namespace(*arrays: Array) -> Any:
    """The array library of these arrays; NumPy when all are plain numbers."""
    found = [x for x in arrays if is_array(x)]
    return array_api_compat.array_namespace(*found) if found else array_api_compat.array_namespace(np.empty(0))


def is_torch(x: Array) -> bool:
    """True for PyTorch tensors; never imports torch."""
    return "torch" in sys.modules and bool(array_api_compat.is_torch_array(x))


def is_jax(x: Array) -> bool:
    """True for JAX arrays, traced or not; never imports jax."""
    return "jax" in sys.modules and bool(array_api_compat.is_jax_array(x))


def is_traced(x: Array) -> bool:
    """True for an array whose values are not known yet: JAX's inside `jit` and `grad`, PyTorch's inside `torch.export`."""
    if is_torch(x):
        import torch

        exporting = getattr(torch.compiler, "is_exporting", None)  # PyTorch before 2.7 has none
        return exporting is not None and bool(exporting())
    if not is_jax(x):
        return False
    import jax

    return isinstance(x, jax.core.Tracer)


def is_wrapped(x: Array) -> bool:
    """True for a PyTorch tensor inside `torch.func.grad`, `vmap` and the like, whose values cannot be read."""
    if not is_torch(x):
        return False
    import torch

    return bool(torch._C._functorch.is_functorch_wrapped_tensor(x))


def is_transformed(x: Array) -> bool:
    """True for a PyTorch tensor that has more than plain values: wrapped, in forward mode or in `torch.compile`."""
    if not is_torch(x):
        return False
    import torch
    from torch.autograd import forward_ad

    return is_wrapped(x) or torch.compiler.is_compiling() or forward_ad._current_level >= 0


def coerce(**named: Array) -> dict[str, Array]:
    """Real floating arrays of one library and device out of numbers, lists, tables and arrays.

    Integers become floats; numbers and lists follow the library of the arrays beside them; of two precisions the wider counts.

    Raises:
        ArrayTypeError: complex or object dtype, masked or sparse arrays, arrays of two libraries, two devices, or two orders
            of named axes.
    """
    for name, x in named.items():
        _check_readable(name, x)
    orders = {name: tuple(x.dims) for name, x in named.items() if hasattr(x, "dims") and hasattr(x, "coords")}
    if len(set(orders.values())) > 1:
        raise ArrayTypeError(f"arguments with named axes must have them in one order, got {orders}; transpose one of them")
    named = {name: _stacked(x) for name, x in named.items()}
    arrays = {name: x for name, x in named.items() if is_array(x)}
    libraries = {name: "torch" if is_torch(x) else "jax" if is_jax(x) else "numpy" for name, x in arrays.items()}
    if len(set(libraries.values())) > 1:
        kinds = ", ".join(f"{name} is {library}" for name, library in libraries.items())
        raise ArrayTypeError(f"arguments must come from one array library: {kinds}; convert one of them")
    devices = {name: str(x.device) for name, x in arrays.items() if is_torch(x)}
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise ArrayTypeError(f"arguments must be on one device: {where}; move one with .to(device)")
    if "meta" in devices.values():
        raise ArrayTypeError(f"{next(iter(devices))} is on the device meta, which has no values; build it on cpu or cuda")
    xp = namespace(*arrays.values())
    like = next(iter(arrays.values()), None)
    floats = {name: _floating(name, x, xp, like) for name, x in named.items()}
    dtypes = {str(floats[name].dtype): floats[name].dtype for name in arrays}
    if len(dtypes) < 2:
        return floats
    widest = xp.result_type(*dtypes.values())  # of the arrays; plain numbers have no precision to keep
    return {name: xp.astype(x, widest) if name in arrays else x for name, x in floats.items()}


def _check_readable(name: str, x: object) -> None:
    """Refuse arrays whose entries are not all plain numbers that can be read."""
    for part in x if isinstance(x, list | tuple) else [x]:
        if isinstance(part, np.ma.MaskedArray):
            check_unmasked(part, name)
    if hasattr(x, "toarray"):
        raise ArrayTypeError(f"{name} must be dense, got a {type(x).__name__}; pass {name}.toarray()")
    if not is_torch(x):
        return
    kind, way_out = _unreadable(x)
    if kind:
        raise ArrayTypeError(f"{name} must be an ordinary tensor, got {kind}; {way_out}")


def _unreadable(x: Array) -> tuple[str, str]:
    """What is unusual about a tensor and how to change it; empty for one of plain numbers."""
    if x.is_nested:
        return "a nested one", "pad or stack its parts"
    if str(x.layout) != "torch.strided":
        return f"layout {x.layout}", "pass x.to_dense()"
    if x.is_quantized or "float8" in str(x.dtype):
        return f"dtype {x.dtype}", "convert it with .dequantize()" if x.is_quantized else "convert it with .to(torch.float32)"
    return "", ""


def check_unmasked(x: Array, name: str) -> None:
    """Refuse a masked array with masked entries: they have no value, and what lies below the mask is not meant."""
    if np.ma.is_masked(x):
        raise ArrayTypeError(f"{name} must not be masked; drop the masked points, everywhere alike")


def _stacked(x: Array) -> Array:
    """A list of arrays, one for each member, as one array; anything else as it is."""
    if isinstance(x, list | tuple) and x and all(is_array(part) and not isinstance(part, np.ndarray) for part in x):
        return namespace(*x).stack(list(x), axis=0)
    return x


def _floating(name: str, x: Array, xp: Any, like: Array | None) -> Array:
    if not is_array(x):
        x = _from_python(name, x)
        # An integer array must not round the numbers beside it.
        if like is not None and _is_floating(like, xp):
            x = from_numpy(x, like)
    if isinstance(x, np.ndarray):
        x = np.asarray(x)  # a matrix or another subclass has arithmetic of its own
        x = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    if (isinstance(x, np.ndarray) and x.dtype.kind not in "fiub") or xp.isdtype(x.dtype, "complex floating"):
        raise ArrayTypeError(f"{name} must be real numbers, got dtype {x.dtype}; convert it to float first")
    if not _is_floating(x, xp):
        x = xp.astype(x, xp.asarray(1.0).dtype)
    return x


def _from_python(name: str, x: object) -> np.ndarray[Any, Any]:
    try:
        converted = np.asarray(x)
    except ValueError as error:
        raise ArrayTypeError(f"{name} must be numbers in equally long rows; {error}") from None
    if converted.dtype.kind not in "fiub":
        raise ArrayTypeError(f"{name} must be real numbers, got dtype {converted.dtype}; convert it to float first")
    return converted.astype(np.float64) if converted.dtype.kind in "iub" else converted


def _is_floating(x: Array, xp: Any) -> bool:
    return bool(xp.isdtype(x.dtype, "real floating")) or "float" in str(x.dtype)


def working(x: Array) -> Array:
    """`x` in the precision to compute in: float64 on a CPU; what came in on an accelerator or in 32-bit JAX.

    Rounding float32 input up costs little and buys the digits of nearly agreeing members; the caller rounds back.
    """
    xp = namespace(x)
    if is_torch(x):
        narrow = x.device.type != "cpu"
        return x.to(xp.float32 if narrow and x.dtype != xp.float64 else xp.float64)
    if is_jax(x):
        import jax

        return x.astype(xp.float64 if jax.config.jax_enable_x64 else xp.float32)
    return x.astype(np.float64, copy=False)


def constant(x: Array) -> Array:
    """`x` as a number that gradients do not flow through."""
    if is_torch(x):
        return x.detach()
    if is_jax(x):
        import jax

        return jax.lax.stop_gradient(x)
    return x


def to_numpy(x: Array) -> np.ndarray[Any, Any]:
    """The values as a NumPy array without gradients, from any library and device; masked entries are refused."""
    if is_traced(x):
        raise ArrayTypeError("values are not known within jax.jit, jax.grad or torch.export; return the arrays, use them outside")
    if is_torch(x):
        x = x.detach().cpu()
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x  # NumPy has no such type
    check_unmasked(x, "an array")
    return np.asarray(x)


def on_device(x: Array) -> bool:
    """True for a PyTorch tensor that lives on an accelerator with double precision, where values should stay."""
    return is_torch(x) and x.device.type not in ("cpu", "mps")


def plain(x: Array) -> Array:
    """The values in double precision, without gradients, to plan with: NumPy's, or on an accelerator a tensor there."""
    return x.detach().double() if on_device(x) else to_numpy(x).astype(np.float64, copy=False)


def unplain(x: Array, like: Array) -> Array:
    """What was planned with `plain` values, in the library, precision and place of `like`."""
    return x.to(like.dtype) if is_torch(x) else from_numpy(x, like)


def counting(x: Array) -> Array:
    """0, 1, 2 and so on, one for each row of `x`, where `x` lives."""
    return namespace(x).arange(x.shape[0], device=array_api_compat.device(x))


def from_numpy(x: np.ndarray[Any, Any], like: Array) -> Array:
    """NumPy values as an array of the library, precision and device of `like`."""
    if isinstance(like, np.ndarray | np.generic):
        return x.astype(like.dtype, copy=False)
    return namespace(like).asarray(x, dtype=like.dtype, device=None if is_traced(like) else array_api_compat.device(like))


def power_of_two(x: Array) -> tuple[Array, Array]:
    """The power of two just above each positive `x`, and its natural logarithm; dividing by it is exact."""
    xp = namespace(x)
    library = np if isinstance(x, np.ndarray) else xp
    # x = mantissa * 2**exponent with a mantissa from 1/2 to 1, so the quotient below is exact.
    mantissa, exponent = library.frexp(x)
    return x / mantissa, xp.astype(exponent, x.dtype) * math.log(2.0)


def expand(x: Array, axis: int, count: int = 1) -> Array:
    """`x` with `count` axes of length one inserted before `axis` (counted from the front)."""
    return namespace(x).reshape(x, (*x.shape[:axis], *(1,) * count, *x.shape[axis:]))


# Special functions ----------------------------------------------------------------------------------------------------


def merged(x: Array, axes: int) -> Array:
    """All axes but the last `axes` as one, also where an axis is empty."""
    lead = x.ndim - axes
    return namespace(x).reshape(x, (math.prod(x.shape[:lead]), *x.shape[lead:]))


def _special(x: Array) -> Any:
    if is_torch(x):
        import torch

        return torch.special
    if is_jax(x):
        import jax

        return jax.scipy.special
    import scipy.special

    return scipy.special


def erf(x: Array) -> Array:
    """The error function."""
    return _special(x).erf(x)


def normal_cdf(z: Array) -> Array:
    """The standard normal distribution function, accurate in the lower tail."""
    # 1 + erf(z / sqrt(2)) would cancel in the lower tail.
    return 0.5 * _special(z).erfc(-z / SQRT_2)


def log_normal_cdf(z: Array) -> Array:
    """The logarithm of `normal_cdf`, also where that is zero."""
    return _special(z).log_ndtr(z)


def normal_quantile(level: Array) -> Array:
    """The inverse of `normal_cdf`."""
    return _special(level).ndtri(level)


def log_gamma(x: Array) -> Array:
    """The logarithm of the gamma function."""
    return _special(x).gammaln(x)


def log_gamma_half_step(x: Array) -> Array:
    """log gamma(x + 1/2) - log gamma(x): for large x a difference of huge numbers, so from its asymptotic series."""
    xp = namespace(x)
    large = x > 20.0
    r = 1.0 / xp.where(large, x, xp.ones_like(x))
    # The next term is 691 / (180224 x**11), below 2e-17 for x > 20.
    series = -0.5 * xp.log(r) - r * polynomial(r * r, [1 / 8, -1 / 192, 1 / 640, -17 / 14336, 31 / 18432])
    # The branch that is not used gets a harmless argument, or its gradient could be NaN.
    small = xp.where(large, xp.ones_like(x), x)
    return xp.where(large, series, log_gamma(small + 0.5) - log_gamma(small))


def log_sum_exp(x: Array, axis: int) -> Array:
    """log(sum(exp(x))) along one axis without overflow; minus infinity where every term is."""
    xp = namespace(x)
    # The shift cancels out of the value, so it needs no gradient.
    top = constant(xp.max(x, axis=axis, keepdims=True))
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))  # where all are -inf, -inf - (-inf) would be NaN
    total = xp.sum(xp.exp(x - top), axis=axis)
    return xp.where(total > 0.0, xp.log(xp.where(total > 0.0, total, xp.ones_like(total))), -math.inf) + xp.squeeze(
        top, axis=axis
    )


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """The sum of coefficients[n] * x**n, by Horner's rule."""
    value = coefficients[-1] + 0.0 * x
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value


def _with_series(x: Array, coefficients: Sequence[float], direct: Callable[[Array], Array]) -> Array:
    """x**2 times a power series below 1, `direct` above; both branches get finite arguments so that gradients stay finite."""
    xp = namespace(x)
    small = x < 1.0
    inside = xp.where(small, x, xp.zeros_like(x))
    outside = xp.where(small, xp.ones_like(x), x)
    return xp.where(small, inside * inside * polynomial(inside, coefficients), direct(outside))


# Up to x**20: below x = 1 the next term is less than 2e-18 of the sum.
_TERMS = range(2, 21)
_EXP_LINEAR = [(-1.0) ** n / math.factorial(n) for n in _TERMS]
_GAMMA_TAIL = [(-1.0) ** n * (n - 1) / math.factorial(n) for n in _TERMS]
_LAPLACE = [(-1.0) ** n * (3 - n) / math.factorial(n) for n in _TERMS]


def exp_minus_linear(x: Array) -> Array:
    """exp(-x) - 1 + x for x >= 0: about x**2/2 near zero, where the plain form keeps no digits."""
    xp = namespace(x)
    return _with_series(x, _EXP_LINEAR, lambda t: xp.exp(-t) - 1.0 + t)


def gamma_tail(x: Array) -> Array:
    """1 - (1 + x) exp(-x) for x >= 0: about x**2/2 near zero, where the plain form keeps no digits."""
    xp = namespace(x)
    return _with_series(x, _GAMMA_TAIL, lambda t: 1.0 - (1.0 + t) * xp.exp(-t))


def laplace_tail(x: Array) -> Array:
    """(3 + x) exp(-x) - 3 + 2x for x >= 0: about x**2/2 near zero, where the plain form keeps no digits."""
    xp = namespace(x)
    return _with_series(x, _LAPLACE, lambda t: (3.0 + t) * xp.exp(-t) - 3.0 + 2.0 * t)


# log(1 + x) = 2 atanh(q) for q = x / (2 + x); |x| <= 1/2 gives q**2 <= 1/9, and 17 terms are enough for a double.
_ATANH = [1.0 / (2 * n + 3) for n in range(17)]


def log_gap(x: Array, ratio: Array) -> Array:
    """x - log(1 + x), given also `ratio` = 1 + x formed without adding: what a ratio of variances costs the log score.

    About x**2/2 near zero, where the plain form cancels; near x = -1 it is the ratio that carries the digits.
    """
    xp = namespace(x, ratio)
    near = xp.abs(x) <= 0.5
    inside = xp.where(near, x, xp.zeros_like(x))
    q = inside / (2.0 + inside)
    series = inside * q - 2.0 * q**3 * polynomial(q * q, _ATANH)
    return xp.where(near, series, x - xp.log(ratio))
