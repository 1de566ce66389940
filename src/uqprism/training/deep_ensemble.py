"""`DeepEnsemble`: fitted networks with their head and standardisation, which predict an `EnsemblePrediction`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.origin import Origin
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError
from uqprism.support.optional import require
from uqprism.support.reading import reading
from uqprism.training import heads, networks, transforms
from uqprism.training.checkpoints import read_tensors, write_tensors
from uqprism.training.columns import Columns
from uqprism.training.data import Scaling, as_tensor, check_finite
from uqprism.training.device import full_precision
from uqprism.training.heads import Head
from uqprism.training.heads.joined import Joined
from uqprism.training.history import History
from uqprism.training.networks import Factory
from uqprism.training.posterior import Posterior
from uqprism.training.randomness import DropoutMasks, keep_generators, member_seeds
from uqprism.training.stack import Stack, initialised
from uqprism.training.techniques import DROPOUT
from uqprism.training.transforms import TargetTransform

torch = require("torch", extra="deep")

Tensor = Any
KIND = "DeepEnsemble"
# Limits on the memory of a prediction: numbers in the widest layer of all members, and rows. An image counts this many times,
# because a first convolution may have so many channels.
VALUES_AT_ONCE, ROWS_AT_ONCE, IMAGE_CHANNELS = 2**25, 8192, 32


@dataclass(frozen=True)
class DeepEnsemble:
    """Networks that were trained together; they predict in the user's units.

    Attributes:
        stack: the networks.
        head: what their outputs mean.
        input_scaling: the standardisation of the inputs.
        target_scaling: the standardisation of the targets.
        network: the function that built them.
        history: the record of training.
        columns: those of the table that it was trained on, which is what it predicts for; None for arrays.
        transform: of the targets; `target_scaling` is that of the transformed ones.
        bootstrap: whether each network drew its training rows with replacement.
        shared: how many members each network of the stack has, which share its matrices; None for one.
        posterior: how the networks were drawn from a posterior, and how far they can be trusted; None for trained networks.
    """

    stack: Stack
    head: Head
    input_scaling: Scaling
    target_scaling: Scaling
    network: Factory
    history: History
    columns: Columns | None = None
    transform: TargetTransform | None = None
    bootstrap: bool = False
    shared: int | None = None
    posterior: Posterior | None = None

    @property
    def n_members(self) -> int:
        """The number of members."""
        return len(self.stack) * (self.shared or 1)

    def __repr__(self) -> str:
        parameters = self.stack.rows.shape[1]
        what = f"{self.n_members} networks of" if self.shared is None else f"{self.n_members} members that share one network of"
        return f"<DeepEnsemble: {what} {parameters:,} parameters, {self.head.name} head>"

    def predict_ensemble(self, inputs: Any, *, passes: int | None = None, seed: int = 0) -> EnsemblePrediction:
        """The members' predictive distributions in float64; MLPs are also computed in double precision.

        Args:
            inputs: (rows, ...), or a table with the columns of training. For a tensor the prediction has tensors on the same
                device, otherwise NumPy arrays.
            passes: for MC dropout: each network predicts this many times with dropout on, which gives networks * passes members.
            seed: of the dropout masks.
        """
        parameters = self.parameters(inputs, passes=passes, seed=seed)
        if not isinstance(inputs, torch.Tensor):
            parameters = {name: value.cpu().numpy() for name, value in parameters.items()}
        found = self.head.ensemble(parameters)
        found = found if self.transform is None else self.transform.prediction(found)
        return found.made_by(Origin("DeepEnsemble", self._kind(passes), found.n_members))

    def _kind(self, passes: int | None) -> str:
        """What the members of a prediction are."""
        if self.head.family == "evidential":
            return "evidential"
        if passes is not None:
            return "dropout"
        if self.posterior is not None:
            return "posterior"
        return "shared" if self.shared is not None else "resampled" if self.bootstrap else "networks"

    def predict_evidential(self, inputs: Any) -> Any:
        """The `EvidentialPrediction` of an evidential head; with several networks, they are the first axis."""
        if self.head.family != "evidential":
            raise UnsupportedError(f"the {self.head.name} head does not predict evidence; train with head='evidential'")
        if self.transform is not None:
            raise UnsupportedError("the evidence is of the transformed targets; use predict_ensemble, or no target_transform")
        parameters = self.parameters(inputs)
        return self.head.evidence(parameters if self.n_members > 1 else {name: value[0] for name, value in parameters.items()})  # type: ignore[attr-defined]

    def parameters(self, inputs: Any, *, passes: int | None = None, seed: int = 0) -> dict[str, Tensor]:
        """The parameters of the distributions of the (transformed) targets by name, on the device of the inputs.

        They are (members, rows), and (members, rows, n) for lists of n components, bars or quantiles.
        """
        values = self._numbers(inputs)
        expected = self.stack.input_shape
        if tuple(values.shape[1:]) != expected or values.ndim < 2:
            raise ShapeError(f"inputs must be (rows, {', '.join(map(str, expected))}), got shape {tuple(values.shape)}")
        check_finite(values, "inputs")
        self._check_passes(passes)
        with torch.inference_mode(False), torch.no_grad(), full_precision(self.stack.rows.device):
            # Matrix products round by the size of the batch; in double precision a row does not depend on the other rows.
            stack = self.stack.double() if self.stack.technique == "matmul" else self.stack
            raw = torch.cat([self._predict(stack, block, passes, seed) for block in self._blocks(values)], dim=1)
            found = self.in_units(raw)
        return {name: value.to(values.device) for name, value in found.items()}

    def in_units(self, raw: Tensor) -> dict[str, Tensor]:
        """The parameters of the distributions of the (transformed) targets, from raw outputs (members, rows, outputs)."""
        if self.shared is not None:
            raw = Joined(self.head, self.shared).apart(raw).transpose(1, 2).flatten(0, 1)
        mean, scale = (x.to(raw.device) for x in (self.target_scaling.mean, self.target_scaling.scale))
        return self.head.to_units(self.head.parameters(raw.double()), mean, scale)

    def _numbers(self, inputs: Any) -> Tensor:
        """A table with the columns of training as numbers; an array as it is, where it can take the place of the table."""
        if self.columns is None:
            return as_tensor(inputs, "inputs")
        if isinstance(inputs, torch.Tensor):
            return torch.from_numpy(self.columns.apply(inputs.detach().cpu().numpy())).to(inputs.device)
        return torch.from_numpy(self.columns.apply(inputs))

    def _check_passes(self, passes: int | None) -> None:
        if passes is None:
            return
        if passes < 1:
            raise ArgumentError(f"passes must be at least 1, got {passes}")
        if not any(isinstance(module, DROPOUT) for module in self.stack.template.modules()):
            raise ArgumentError("passes needs a network with dropout; this one has none, so all passes would be equal")

    def _blocks(self, values: Tensor) -> Iterator[Tensor]:
        """Blocks of rows whose activations fit into the memory limit."""
        widest = max(value.shape[1] for value in self.stack.parameters.values() if value.ndim > 1)
        pieces = max((getattr(layer, "pieces", 1) for layer in self.stack.template.modules()), default=1)
        row = math.prod(values.shape[1:]) * (IMAGE_CHANNELS if values.ndim > 2 else pieces)
        yield from values.split(max(min(VALUES_AT_ONCE // (self.n_members * max(row, widest)), ROWS_AT_ONCE), 1))

    def _predict(self, stack: Stack, values: Tensor, passes: int | None, seed: int) -> Tensor:
        """Raw outputs (members, rows, outputs)."""
        inputs = self.input_scaling.apply(values.to(stack.rows.device), stack.rows.dtype)
        inputs = inputs.expand(len(stack), *inputs.shape)  # a view: the members share one copy of the rows
        if passes is None:
            return stack(inputs)
        seeds = member_seeds(seed, len(stack)).to(inputs.device)
        counts = [torch.full_like(seeds, count) for count in range(passes)]
        with keep_generators(inputs.device):  # PyTorch's own dropout layers are seeded through the process's generator
            return torch.cat([stack(inputs, masks=DropoutMasks(seeds, count, per_row=False)) for count in counts])

    def to(self, device: Any) -> DeepEnsemble:
        """The same ensemble on another device."""
        scalings = self.input_scaling.to(device), self.target_scaling.to(device)
        parts = self.stack.to(device), self.head, *scalings, self.network, self.history
        return DeepEnsemble(*parts, self.columns, self.transform, self.bootstrap, self.shared, self.posterior)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with a JSON header; read it with `load`."""
        write_tensors(path, KIND, *self.stored())

    def stored(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The header and the tensors of a file."""
        tensors = {"rows": self.stack.rows}
        tensors |= {f"buffer.{name}": value for name, value in self.stack.buffers.items()}
        tensors["sample"] = self.stack.sample()  # tells networks with equal shapes but other activations apart
        for name, scaling in (("input", self.input_scaling), ("target", self.target_scaling)):
            tensors |= {f"{name}.mean": scaling.mean, f"{name}.scale": scaling.scale}
        header: dict[str, Any] = {
            "network": networks.to_dict(self.network),
            "head": heads.to_dict(self.head),
            "input_shape": self.stack.input_shape,
            "architecture": self.stack.signature(),
            "history": self.history.to_dict(),
            "features": None if self.columns is None else self.columns.given,
            "bootstrap": self.bootstrap,
        }
        header |= {} if self.shared is None else {"shared": self.shared}
        header |= {} if self.posterior is None else {"posterior": self.posterior.to_dict()}
        header |= {} if self.columns is None else {"columns": self.columns.to_dict()}
        header |= {} if self.transform is None else {"transform": transforms.to_dict(self.transform)}
        return header, tensors

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, network: Factory | None = None, device: Any = "cpu") -> DeepEnsemble:
        """Read a file that `save` wrote; pass `network=` again if the networks were built by a function of your own."""
        header, tensors = read_tensors(path, KIND)
        if header["network"] is None and network is None:
            raise ArgumentError(f"{os.fspath(path)} holds networks built by a function of your own: pass it again as network=")
        tensors = {name: value.to(device) for name, value in tensors.items()}
        with reading(path, "does not hold what DeepEnsemble.save writes"):
            factory = networks.from_dict(header["network"]) if network is None else networks.resolve(network)
            head, history = heads.from_dict(header["head"]), History.from_dict(header["history"])
            shape = tuple(int(length) for length in header["input_shape"])
            columns = Columns.from_dict(header["columns"]) if "columns" in header else None
            transform = transforms.from_dict(header["transform"]) if "transform" in header else None
            expected, rows, sample = dict(header["architecture"]["shapes"]), tensors["rows"], tensors["sample"]
            inputs, targets = (Scaling(tensors[f"{name}.mean"], tensors[f"{name}.scale"]) for name in ("input", "target"))
            shared = None if header.get("shared") is None else int(header["shared"])
            n_outputs = head.n_outputs * (shared or 1)
            posterior = None if header.get("posterior") is None else Posterior.from_dict(header["posterior"])
            if network is None:
                _check_size(factory, shape, n_outputs, rows.shape[1])
        template = initialised(factory, shape, n_outputs, 0).to(rows)  # for the layers; the weights are those of the file
        buffers = {name.removeprefix("buffer."): value for name, value in tensors.items() if name.startswith("buffer.")}
        same = {name: list(p.shape) for name, p in [*template.named_parameters(), *template.named_buffers()]}
        if same != expected:
            raise ShapeError(f"network builds other networks than those in {os.fspath(path)}: the parameters do not fit")
        stack = Stack(template, rows, buffers, torch.zeros(2, *shape).to(rows))
        # Not to the last digit: the file may come from another device.
        if not torch.allclose(stack.sample(), sample, rtol=1e-3, atol=1e-4):
            raise InvalidValueError(
                f"network builds other networks than those in {os.fspath(path)}: they predict other values with the same "
                "parameters. (All numbers that a module computes with must be parameters or buffers.)"
            )
        resampled = header.get("bootstrap") is True
        return cls(stack, head, inputs, targets, factory, history, columns, transform, resampled, shared, posterior)


def _check_size(factory: Factory, shape: tuple[int, ...], n_outputs: int, count: int) -> None:
    """Refuse networks with another number of parameters than the file has, before they are built."""
    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in factory(shape, n_outputs).parameters())
    if parameters != count:
        raise InvalidValueError(f"its networks have {parameters:,} parameters each, but it holds {count:,}")
