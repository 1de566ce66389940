"""The head of a network with the outputs of several members."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from uqprism.training.heads import Head, Tensor


@dataclass(frozen=True)
class Joined(Head):
    """`members` times a head, whose outputs follow one after the other; the loss is the mean of the members' losses.

    It only trains: `apart` gives the outputs that each member's own head reads.
    """

    name: ClassVar[str] = "joined"
    one: Head
    members: int

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Those of all members."""
        return self.members * self.one.n_outputs

    @property
    def warm_up_epochs(self) -> int:
        """The number of first epochs that early stopping ignores."""
        return self.one.warm_up_epochs

    def apart(self, raw: Tensor) -> Tensor:
        """Raw outputs (..., members * n) as (..., members, n)."""
        return raw.unflatten(-1, (self.members, -1))

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The parameters of each member's distribution, (..., members)."""
        return self.one.parameters(self.apart(raw))

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The mean of the members' losses."""
        each = self.apart(raw)
        return self.one.loss(each, target.unsqueeze(-1).expand(each.shape[:-1]), age.unsqueeze(-1)).mean(-1)

    @property
    def knows_gradient(self) -> bool:
        """Where the members' head does."""
        return self.one.knows_gradient

    def with_gradient(self, raw: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of the members' losses and its gradient."""
        each = self.apart(raw)
        losses, gradient = self.one.with_gradient(each, target.unsqueeze(-1).expand(each.shape[:-1]))
        return losses.mean(-1), gradient.flatten(-2) / self.members

    def validation_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """The mean of the members' losses for early stopping."""
        each = self.apart(raw)
        return self.one.validation_loss(each, target.unsqueeze(-1).expand(each.shape[:-1])).mean(-1)

    def fitted(self, targets: Tensor) -> Self:
        """The heads for these standardised training targets."""
        return replace(self, one=self.one.fitted(targets))
