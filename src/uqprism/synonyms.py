"""Words that people try, and what they are called here: for the errors about unknown names, arguments and attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from uqprism.errors import ArgumentError, UnknownAttributeError

P = ParamSpec("P")
T = TypeVar("T")

# The word used here, a comma, and what else must be known; by the words that others use.
RULES = {
    **dict.fromkeys(
        ("nll", "nlpd", "nlp", "logs", "logscore", "log_score", "logarithmic", "likelihood", "log_likelihood", "ignorance"), "log"
    ),
    **dict.fromkeys(("kl", "kl_divergence", "entropy", "cross_entropy", "mutual_information", "mi", "bald"), "log"),
    **dict.fromkeys(("mse", "se", "l2", "variance", "squared"), "squared_error"),
    "rmse": "squared_error, its square",
    **dict.fromkeys(("mae", "l1", "absolute", "absolute_error"), "quantile, which at its default level 0.5 is half of it"),
    **dict.fromkeys(("pinball", "tick", "check", "median"), "quantile"),
    **dict.fromkeys(("energy", "energy_score", "energy_distance"), "crps, the same in one dimension"),
    **dict.fromkeys(("brier", "brier_score"), "quadratic, the Brier score of densities"),
    **dict.fromkeys(("mmd", "kernel", "rbf"), "gaussian_kernel"),
}
APPROXIMATIONS = {
    **dict.fromkeys(("1", "each", "individual", "pairwise"), "members"),
    **dict.fromkeys(("2", "ens", "ensemble", "mean", "average", "p_ens"), "mixture"),
    **dict.fromkeys(("bma", "bayesian", "posterior"), "mixture, the average distribution, or 'members' to average risks"),
    **dict.fromkeys(("3", "gaussian", "moment_matched", "moments", "p_star"), "matched, the paper's 3a; 'pooled' is its 3b"),
    "3a": "matched",
    "3b": "pooled",
}  # fmt: skip
RISKS = {
    **dict.fromkeys(("aleatoric", "noise", "data", "irreducible", "entropy"), "bayes"),
    **dict.fromkeys(
        ("epistemic", "disagreement", "knowledge", "model", "reducible", "divergence", "mutual_information"), "excess"
    ),
    **dict.fromkeys(("uncertainty", "predictive", "expected_score", "risk"), "total"),
}
ERRORS = {
    **dict.fromkeys(("mse", "se", "sq", "l2", "squared_error"), "squared"),
    "rmse": "squared, its square",
    **dict.fromkeys(("mae", "l1", "absolute_error"), "absolute"),
    **dict.fromkeys(("log", "logs", "log_score", "likelihood", "nlpd"), "nll"),
}
HEADS = dict.fromkeys(
    ("nll", "gaussian", "normal", "log", "gaussian_nll"),
    "natural, the log score; 'mean_variance' is the same in other parameters",
)
NAMES: Mapping[str, Mapping[str, str]] = {
    "rule": RULES,
    "approximation": APPROXIMATIONS,
    "risk": RISKS,
    "kind of error": ERRORS,
    "head": HEADS,
    "metric": {**dict.fromkeys(("auc", "roc", "roc_auc"), "auroc"), **dict.fromkeys(("aupr", "ap"), "aupr_out"), "fpr": "fpr95"},
}

DEVIATIONS = ("std", "stds", "sd", "stdev", "stddev", "sigma", "sigmas", "standard_deviation", "y_std", "std_dev")
VARIANCES = ("var", "vars", "variances", "sigma2", "sigma_squared", "y_var")
CENTRES = (
    "mu",
    "mus",
    "loc",
    "locs",
    "means",
    "mean",
    "location",
    "locations",
    "pred",
    "preds",
    "predictions",
    "y_pred",
    "y_mean",
)
# By argument that is tried: those that may be meant, of which a function has the first that it has.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(CENTRES, ("mean", "location")),
    **dict.fromkeys((*DEVIATIONS, "scales", "b"), ("scale",)),
    **dict.fromkeys((*VARIANCES, "variance"), ("variance", "scale")),
    "mu": ("mean", "location", "log_mean"),
    "sigma": ("scale", "log_scale"),
    **dict.fromkeys(("nu", "dof", "degrees_of_freedom"), ("df",)),
    **dict.fromkeys(("weight", "weights_", "w", "member_weights"), ("weights",)),
    **dict.fromkeys(("axis", "members_axis", "ensemble_axis", "dim"), ("member_axis",)),
    **{f"{name}_columns": ("mean_columns",) for name in CENTRES},
    **{f"{name}_columns": ("scale_columns",) for name in DEVIATIONS},
    **{f"{name}_columns": ("variance_columns",) for name in VARIANCES},
    **dict.fromkeys(("errors", "loss", "losses"), ("error",)),
    **dict.fromkeys(("alpha", "p_val", "p_value", "significance", "significance_level", "delta"), ("level",)),
    **dict.fromkeys(("window_size", "n_window", "chunk_size", "batch_size", "test_window"), ("window",)),
    **dict.fromkeys(("x_ref", "ref", "baseline", "reference_data", "calibration_data"), ("reference",)),
    **dict.fromkeys(("y", "labels", "outcomes", "y_true", "observed"), ("target",)),
    **dict.fromkeys(("group", "by", "segment", "segments", "slices"), ("groups",)),
    **dict.fromkeys(("samples", "sample", "values", "y_samples"), ("draws",)),
}


def meant(kind: str, name: object, known: Collection[str]) -> str | None:
    """What a word of others is called here, if that is known: `'log'`, with what else must be known about it."""
    word, _, remark = NAMES.get(kind, {}).get(normal(name), "").partition(", ")
    return f"{word!r}{remark and f', {remark}'}" if word in known else None


def word(kind: str, name: str) -> str:
    """The word used here for this one; any other stays."""
    return NAMES[kind].get(normal(name), normal(name)).partition(",")[0]


def normal(name: object) -> str:
    """In small letters and with underscores, as names are written here."""
    return str(name).strip().lower().replace(" ", "_").replace("-", "_")


def named_arguments(deviation: str = "", *, instead: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator: a call that does not fit the signature is an `ArgumentError`, which says how an unknown argument is called here.

    Args:
        deviation: how `scale` follows from the standard deviation, where it is not the same.
        instead: the call that is rather meant, where there is one.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                _signature(function).bind(*args, **kwargs)
            except TypeError as error:
                # A class method may belong to a class from which the one that was called is derived.
                owner = f"{args[0].__name__}." if args and isinstance(args[0], type) else ""
                title = f"{owner}{function.__name__}" if owner else function.__qualname__.removesuffix(".__init__")
                raise ArgumentError(instead or _misfit(function, kwargs, deviation, error, title)) from None
            return function(*args, **kwargs)

        return call

    return decorate


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _misfit(function: Callable[..., Any], given: Mapping[str, Any], deviation: str, error: TypeError, title: str) -> str:
    """What is wrong with a call, in one line."""
    known = [name for name in _signature(function).parameters if name not in ("self", "cls")]
    usage = f"{title}({', '.join(f'{name}=' for name in known)})"
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return f"{title}: {error}; the arguments are {usage}"
    word = next((each for each in ARGUMENTS.get(normal(unknown), ()) if each in known), None)
    if word is None:
        return f"{title} has no argument {unknown!r}; its arguments are {usage}"
    spread = word == "scale" and normal(unknown) in (*DEVIATIONS, *VARIANCES, "variance")
    remark = deviation or "the standard deviation"
    return f"{title} has no argument {unknown!r}; use {word}={f', {remark}' if spread else ''}"


def no_attribute(owner: object, name: str, hints: Mapping[str, str]) -> UnknownAttributeError:
    """The error for an attribute that an object does not have, with the line to type for those that people try."""
    if inspect.getattr_static(owner, name, None) is not None:
        object.__getattribute__(owner, name)  # a property that failed: raises its own error again
    hint = hints.get(name)
    text = f"{type(owner).__name__} has no attribute {name!r}" + (f"; use {hint}" if hint else "")
    # With both, Python adds the nearest attribute to the traceback.
    return UnknownAttributeError(text, name=name, obj=None if hint else owner)
