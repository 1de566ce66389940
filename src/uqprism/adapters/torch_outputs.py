"""What PyTorch networks return, as parameters with names: nothing is guessed from the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqprism.adapters.distributions import is_distribution, mixed, read
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ShapeError
from uqprism.families import Mixture, families
from uqprism.support.optional import require

GAUSSIAN = ({"mean", "variance"}, {"mean", "scale"})
EXAMPLES = "outputs='mean, variance', 'mean, log_variance', 'mean, scale', 'mean, log_scale' or 'eta1, eta2'"
SHARES = {"shares", "logits"}  # of the components of a mixture
MIXTURE = "mixture"  # of Gaussians, or of the family after a colon
OTHERS = {  # what others call these outputs
    **dict.fromkeys(("mu", "loc", "mean_prediction"), "mean"),
    **dict.fromkeys(("std", "sigma", "sd", "stddev"), "scale"),
    **dict.fromkeys(("var", "sigma2", "sigma_squared"), "variance"),
    **dict.fromkeys(("logvar", "log_var", "log_sigma2"), "log_variance"),
    **dict.fromkeys(("log_std", "logstd", "log_sigma", "logsigma"), "log_scale"),
    **dict.fromkeys(("pi", "weights", "probs", "mixing"), "shares"),
}
Parameters = dict[str, Any]


@dataclass(frozen=True)
class Outputs:
    """How outputs are read.

    Attributes:
        keys: for each name of a parameter, where it stands in a tuple, a dictionary or the last axis of a tensor; None if the
            outputs name their parameters themselves.
        family: of the members, if it was said.
        variance: of the noise, next to outputs that are means only.
        head: of `uqprism.training`, for raw outputs.
        member_axis: the axis of one network's outputs along which it has several members.
        levels: of outputs that are quantiles.
    """

    keys: dict[str, Any] | None
    family: str | None
    variance: Any
    head: Any
    member_axis: int | None
    levels: tuple[float, ...] | None

    @classmethod
    def of(
        cls, outputs: Any, *, family: str | None, variance: Any, head: Any, member_axis: int | None, levels: Any = None
    ) -> Outputs:
        """Check the arguments of `from_torch`."""
        if head is not None:
            from uqprism.training import heads  # imports torch

            if outputs is not None or family is not None or variance is not None:
                raise ArgumentError("head says what the outputs mean; leave out outputs, family and variance")
            head = heads.resolve(head)
            if head.family == "evidential":
                raise ArgumentError("evidential outputs are no ensemble yet: use EvidentialPrediction(...).as_ensemble()")
        if isinstance(outputs, str):
            outputs = [part.strip() for part in outputs.split(",")]
        if isinstance(outputs, Sequence):
            if len(set(outputs)) != len(outputs):
                raise ArgumentError(f"outputs must name each parameter once, got {', '.join(outputs)}")
            outputs = dict(zip(outputs, range(len(outputs)), strict=True))
        keys = None if outputs is None else dict(outputs)
        if (variance is not None) != (keys is not None and set(keys) == {"mean"}):
            raise ArgumentError("variance= is for outputs='mean', means without noise, and needed there")
        if (levels is not None) != (keys is not None and set(keys) == {"quantiles"}):
            raise ArgumentError("levels= is for outputs='quantiles', and needed there")
        if member_axis is not None and member_axis < 0:
            raise ArgumentError(f"member_axis must count from the front of one network's outputs, got {member_axis}")
        return cls(keys, family, variance, head, member_axis, None if levels is None else tuple(levels))

    def read(self, outputs: list[Any]) -> tuple[str, Parameters]:
        """The family, and its parameters (members, rows), of what the networks returned, each with a first axis of members."""
        torch = require("torch", extra="deep")
        parts = [self._one(output) for output in outputs]
        if len({(family, frozenset(values)) for family, values in parts}) > 1:
            raise ArgumentError("networks must all predict the same parameters")
        family, first = parts[0]
        return family, {name: torch.cat([values[name] for _, values in parts]) for name in first}

    def ensemble(self, family: str, values: Parameters) -> EnsemblePrediction:
        """The prediction of members with these parameters."""
        torch = require("torch", extra="deep")
        if self.variance is not None:
            mean = values["mean"]
            noise = torch.as_tensor(self.variance, dtype=mean.dtype, device=mean.device)
            if noise.ndim and tuple(noise.shape) != (len(mean),):
                shape = tuple(noise.shape)
                raise ShapeError(f"variance must be a number or one for each of the {len(mean)} members, got shape {shape}")
            values = {"mean": mean, "variance": _wide(noise, mean)}
        if family == "natural":
            return EnsemblePrediction.natural(**values, member_axis=0)
        if family == "quantiles":
            quantiles = values["quantiles"]
            return EnsemblePrediction.quantiles(
                levels=self.levels, values=quantiles, member_axis=0, level_axis=quantiles.ndim - 1
            )
        if family.startswith(MIXTURE):
            return _mixture(values, family.partition(":")[2] or "gaussian")
        return EnsemblePrediction(families.get(family)(**values))

    def _one(self, output: Any) -> tuple[str, Parameters]:
        """The family and the parameters (members, rows) of one output with a first axis of members."""
        if self.head is not None:
            return self.head.family, self._by_head(output)
        if is_distribution(output):
            if self.keys is not None:
                raise ArgumentError(f"outputs= is for numbers; the network returns a distribution, {type(output).__name__}")
            if (mixture := mixed(output)) is None:
                family, values = read(output)
            else:  # with its components along the last axis, as networks return them
                family, values = f"{MIXTURE}:{mixture[1][0]}", _with_components_last(*mixture)
            return family, self._members({name: x[None] for name, x in values.items()})
        values = self._members(self._named(output))
        plain = {name.removeprefix("log_"): x.exp() if name.startswith("log_") else x for name, x in values.items()}
        if len(plain) != len(values):
            raise ArgumentError(f"a parameter is given twice: {', '.join(values)}")
        return self._family(set(plain), list(values)), plain

    def _by_head(self, output: Any) -> Parameters:
        if not hasattr(output, "shape") or output.shape[-1] != self.head.n_outputs:
            wanted = f"the {self.head.name} head reads tensors (rows, {self.head.n_outputs})"
            raise ShapeError(f"{wanted}, the network returned {_described(output)}")
        return self._members(self.head.parameters(output))

    def _named(self, output: Any) -> Parameters:
        """The outputs by the names of parameters, each (members, rows, ...)."""
        if self.keys is None:
            if isinstance(output, Mapping):
                return dict(output)
            raise ArgumentError(
                f"say what the network's outputs mean, which its values do not show: {EXAMPLES}, in their order; the network "
                f"returned {_described(output)}"
            )
        if isinstance(output, Mapping):
            places = {name: name if isinstance(key, int) else key for name, key in self.keys.items()}
            if missing := [key for key in places.values() if key not in output]:
                raise ArgumentError(
                    f"outputs names {', '.join(missing)}; the network returned a dictionary of {', '.join(output)}"
                )
            return {name: output[key] for name, key in places.items()}
        count = len(output) if isinstance(output, tuple | list) else output.shape[-1] if hasattr(output, "shape") else None
        if isinstance(output, tuple | list) and count == len(self.keys):
            return {name: output[key] for name, key in self.keys.items()}
        if len(self.keys) == 1 and hasattr(output, "shape"):
            return dict.fromkeys(self.keys, output)
        if hasattr(output, "shape") and output.ndim > 2 and count == len(self.keys):
            return {name: output[..., key] for name, key in self.keys.items()}
        raise ArgumentError(
            f"outputs names {len(self.keys)} parameters, {', '.join(self.keys)}; the network returned {_described(output)}"
        )

    def _members(self, values: Parameters) -> Parameters:
        """All of one shape (members, rows, ...), without axes of length one that linear layers leave."""
        widest = max(values.values(), key=lambda x: x.ndim)
        values = {name: _wide(x, widest) if x.ndim < 2 else x for name, x in values.items()}
        if self.member_axis is not None:
            if widest.ndim < self.member_axis + 2:
                raise ShapeError(f"member_axis {self.member_axis} is not an axis of the network's outputs")
            # After the axis of the networks.
            values = {name: x.movedim(self.member_axis + 1, 1).flatten(0, 1) for name, x in values.items()}
        values = {name: x[..., 0] if x.ndim > 2 and x.shape[-1] == 1 else x for name, x in values.items()}
        if len(shapes := {tuple(x.shape[1:]) for x in values.values()}) > 1:
            raise ShapeError(f"the network's outputs must have one shape, got {' and '.join(map(str, sorted(shapes)))}")
        return values

    def _family(self, names: set[str], given: list[str]) -> str:
        """The family whose parameters these are."""
        if names == {"quantiles"} and self.family in {None, "quantiles"}:
            return "quantiles"
        if len(shares := names & SHARES) == 1 and names - shares in GAUSSIAN and self.family in {None, "gaussian"}:
            return MIXTURE
        if self.family not in {None, "gaussian"}:
            if names != set(families.get(self.family).arguments()):
                needs = ", ".join(families.get(self.family).arguments())
                raise ArgumentError(f"{self.family} members need {needs}; the outputs are {', '.join(given)}")
            return str(self.family)
        if names in GAUSSIAN or (names == {"mean"} and self.variance is not None):
            return "gaussian"
        if names == {"eta1", "eta2"}:
            return "natural"
        if names == {"location", "scale", "df"} and self.family is None:
            return "student_t"
        if names == {"location", "scale"} and self.family is None:
            raise ArgumentError("location and scale do not say the family; add family='laplace' or family='logistic'")
        meant = ", ".join(OTHERS.get(each, each) for each in given)
        if self.keys is not None and meant != ", ".join(given):
            raise ArgumentError(f"{', '.join(given)} are not the parameters of a family; say outputs={meant!r} if they are these")
        raise ArgumentError(
            f"{', '.join(given)} are not the parameters of a family; name them with {EXAMPLES}, or map such names to the keys "
            "of a dictionary, as in outputs={'mean': 'loc', 'log_variance': 'logvar'}"
        )


def _mixture(values: Parameters, family: str) -> EnsemblePrediction:
    """Members that are mixtures of this family, from parameters (members, rows, components)."""
    values = {name: x[..., None] if x.ndim < 3 else x for name, x in values.items()}  # one component
    logits = values.pop("logits", None)
    shares = values.pop("shares") if logits is None else logits.softmax(-1)
    components = families.get(family)(**{name: x.movedim(-1, 0) for name, x in values.items()})
    return EnsemblePrediction(Mixture(components, shares.movedim(-1, 0)))


def _with_components_last(shares: Any, components: tuple[str, Parameters]) -> Parameters:
    """The parameters of a mixture, each (rows, components)."""
    values = components[1]
    values = {**values, "shares": shares.expand_as(next(iter(values.values())))}
    if all(x.ndim > 2 and x.shape[-1] == 1 for x in values.values()):  # events of one number each
        values = {name: x[..., 0] for name, x in values.items()}
    return {name: x.movedim(0, -1) for name, x in values.items()}


def _wide(x: Any, like: Any) -> Any:
    """Numbers (members,) or one number as an array of the shape of another one."""
    return x.reshape(-1, *(1,) * (like.ndim - 1)).expand_as(like)


def _described(output: Any) -> str:
    if isinstance(output, tuple | list):
        return f"a tuple of {len(output)}"
    return f"shape {tuple(output.shape[1:])}" if hasattr(output, "shape") else type(output).__name__
