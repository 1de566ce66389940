"""ResNet-18 (He et al. 2016), with basic blocks and batch norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.training.networks.base import image_channels, networks

torch = require("torch", extra="deep")
nn = torch.nn


class BasicBlock(nn.Module):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """Two 3x3 convolutions around which the input is added again."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(given, width, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or given != width:
            self.shortcut = nn.Sequential(nn.Conv2d(given, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Any) -> Any:
        """(rows, given, height, width) to (rows, width, height / stride, width / stride)."""
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


@networks.register("resnet18")
@dataclass(frozen=True)
class ResNet18:
    """Eight basic blocks in four stages.

    Attributes:
        stem: 7 for the 7x7 convolution and pooling made for photographs, 3 for one 3x3 convolution, for images below 64 pixels.
        width: channels of the first stage; each later stage has twice as many.
    """

    name: ClassVar[str] = "resnet18"
    stem: int = 7
    width: int = 64

    def __post_init__(self) -> None:
        if self.stem not in {3, 7}:
            raise ArgumentError(f"stem must be 3 or 7, got {self.stem}")

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """A fresh network."""
        channels = image_channels(self.name, input_shape)
        layers: list[Any] = [
            nn.Conv2d(channels, self.width, self.stem, stride=1 if self.stem == 3 else 2, padding=self.stem // 2, bias=False),
            nn.BatchNorm2d(self.width),
            nn.ReLU(),
        ]
        layers += [nn.MaxPool2d(3, stride=2, padding=1)] if self.stem == 7 else []
        given = self.width
        for stage in range(4):
            following = self.width * 2**stage
            layers += [BasicBlock(given, following, 1 if stage == 0 else 2), BasicBlock(following, following, 1)]
            given = following
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, n_outputs)]
        network = nn.Sequential(*layers)
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        return network
