"""Operators that ONNX lacks or that lose digits there, in terms of those it has.

ONNX has no expm1 and no log1p, and converters write them as they read, which keeps no digit near zero; its error function is
for single precision. Each of these keeps all digits but one or two, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from uqprism.arrays import polynomial
from uqprism.support.optional import require

torch = require("torch", extra="deep")

Tensor = Any
NEAR = 0.5  # below which power series are taken
SHIFT, DEGREE = 2.5, 24  # of the fit to erfc(x) exp(x**2) (x + SHIFT), in (x - SHIFT) / (x + SHIFT)
FURTHEST = 26.0  # erfc is zero beyond


def _tensors(coefficients: Iterable[float]) -> list[Tensor]:
    """Numbers as tensors, which a recorded program holds as they are; of plain numbers it records how they became tensors."""
    return [torch.tensor(float(c), dtype=torch.float64) for c in coefficients]


_EXPM1 = _tensors(1.0 / math.factorial(n + 1) for n in range(15))
_ATANH = _tensors(1.0 / (2 * n + 1) for n in range(18))  # log1p(x) = 2 atanh(x / (2 + x))
_ERF = _tensors(2.0 / math.sqrt(math.pi) * (-1.0) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(13))


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1, also next to zero."""
    near = x.abs() < NEAR
    inside = torch.where(near, x, torch.zeros_like(x))
    return torch.where(near, inside * polynomial(inside, _EXPM1), x.exp() - 1.0)


def log1p(x: Tensor) -> Tensor:
    """log(1 + x), also next to zero."""
    near = x.abs() < NEAR
    inside = torch.where(near, x, torch.zeros_like(x))
    q = inside / (2.0 + inside)
    return torch.where(near, 2.0 * q * polynomial(q * q, _ATANH), (1.0 + x).log())


def erf(x: Tensor) -> Tensor:
    """The error function, with all digits next to zero."""
    size = x.abs()
    near = size < NEAR
    inside = torch.where(near, x, torch.zeros_like(x))
    series = inside * polynomial(inside * inside, _ERF)
    return torch.where(near, series, x.sign() * (1.0 - _erfc_of_positive(size)))


def erfc(x: Tensor) -> Tensor:
    """One minus the error function, with all digits in the upper tail."""
    beyond = _erfc_of_positive(x.abs())
    return torch.where(x < 0.0, 2.0 - beyond, torch.where(x < NEAR, 1.0 - erf(x), beyond))


def _erfc_of_positive(x: Tensor) -> Tensor:
    bounded = x.clamp(max=FURTHEST)
    t = (bounded - SHIFT) / (bounded + SHIFT)
    return (-bounded * bounded).exp() * polynomial(t, _fit()) / (bounded + SHIFT)


@cache
def _fit() -> list[Tensor]:
    """The powers of t that make up erfc(x) exp(x**2) (x + SHIFT) for x >= 0."""
    from scipy.special import erfcx

    def function(t: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        x = SHIFT * (1.0 + t) / (1.0 - t)
        return np.where(t < 1.0, erfcx(x) * (x + SHIFT), 1.0 / math.sqrt(math.pi))

    chebyshev: Any = np.polynomial.chebyshev.chebinterpolate(function, DEGREE)
    return _tensors(np.polynomial.chebyshev.cheb2poly(chebyshev))


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x**2 + y**2) without overflow."""
    larger, smaller = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = smaller / torch.where(larger > 0.0, larger, torch.ones_like(larger))
    return larger * (1.0 + ratio * ratio).sqrt()


def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """A mantissa and an exponent with x = mantissa * 2**exponent, for positive x; the mantissa is about 1/2 to 1."""
    exponent = (x.log() * (1.0 / math.log(2.0))).floor() + 1.0
    return x * torch.pow(torch.full_like(x, 2.0), -exponent), exponent.to(torch.int32)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, which is x above the threshold, as in PyTorch."""
    z = beta * x
    return torch.where(z > threshold, x, (z.clamp(min=0.0) + log1p((-z.abs()).exp())) / beta)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function, or its approximation by tanh."""
    if approximate == "tanh":
        return 0.5 * x * (1.0 + (math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)).tanh())
    return 0.5 * x * erfc(-x / math.sqrt(2.0))


def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:  # noqa: ARG001 (as PyTorch calls it)
    """The values in their order, and their places; of equal values in any order."""
    return torch.topk(x, x.shape[dim], dim=dim, largest=descending, sorted=True)


class Exact(torch.overrides.TorchFunctionMode):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """While this is active, these functions run in place of PyTorch's, and numbers keep double precision.

    The converter writes plain numbers in single precision, whatever they are added to.
    """

    def __init__(self) -> None:
        super().__init__()
        _fit()  # before anything is recorded

    def __torch_function__(self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """The function, or what replaces it."""
        kwargs = kwargs or {}
        if function is torch.full_like and _rounded(args[1]):
            return torch.zeros_like(args[0]) + torch.tensor(args[1], dtype=args[0].dtype)
        if function in ARITHMETIC:
            wide = [x.dtype for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor) and x.dtype == torch.float64]
            if wide:
                args = tuple(torch.tensor(x, dtype=wide[0]) if _rounded(x) else x for x in args)
                kwargs = {name: torch.tensor(x, dtype=wide[0]) if _rounded(x) else x for name, x in kwargs.items()}
        ours = REPLACED.get(function)
        if ours is None:
            return function(*args, **kwargs)
        with self:  # which is off in here
            return ours(*args, **kwargs)


def _rounded(x: Any) -> bool:
    """Whether this is a number that single precision does not hold."""
    return type(x) is float and float(np.float32(x)) != x


def _replaced() -> dict[Any, Any]:
    known = {"expm1": expm1, "log1p": log1p, "erf": erf, "erfc": erfc, "hypot": hypot, "frexp": frexp}
    places = (torch, torch.special, torch.Tensor)
    found = {getattr(place, name): ours for name, ours in known.items() for place in places if hasattr(place, name)}
    return found | {
        torch.sort: sort,
        torch.Tensor.sort: sort,
        torch.nn.functional.softplus: softplus,
        torch.nn.functional.gelu: gelu,
    }


def _arithmetic() -> set[Any]:
    names = (
        "add",
        "sub",
        "mul",
        "div",
        "true_divide",
        "where",
        "clamp",
        "clip",
        "maximum",
        "minimum",
        "rsub",
        "subtract",
        "multiply",
    )
    signs = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__")
    return {getattr(place, name) for place in (torch, torch.Tensor) for name in (*names, *signs) if hasattr(place, name)}


REPLACED, ARITHMETIC = _replaced(), _arithmetic()
