"""Convolutional networks for images (rows, channels, height, width): the paper's small one, and ResNet-18 (He et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from uqprism.errors import ArgumentError, ShapeError
from uqprism.support.optional import require
from uqprism.training.networks import networks

torch = require("torch", extra="deep")
nn = torch.nn


@networks.register("small_cnn")
@dataclass(frozen=True)
class SmallCNN:
    """Three 3x3 convolutions, each followed by ReLU and 2x2 max pooling, then two fully connected layers.

    Images may have any size. The paper gives the layers but not their widths; the defaults are this package's choice.

    Attributes:
        channels: of the three convolutions.
        hidden: the width of the first fully connected layer.
        dropout: the probability that a unit of that layer is set to zero in training.
    """

    name: ClassVar[str] = "small_cnn"
    channels: tuple[int, int, int] = (16, 32, 64)
    hidden: int = 128
    dropout: float = 0.0

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """Build a network with fresh weights."""
        given, layers = _image_channels(self.name, input_shape), []
        height, width = input_shape[1:]
        for following in self.channels:
            # Sizes are rounded up: an image of one pixel passes all three layers.
            layers += [nn.Conv2d(given, following, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
            given, height, width = following, -(-height // 2), -(-width // 2)
        layers += [nn.Flatten(), nn.Linear(given * height * width, self.hidden), nn.ReLU()]
        layers += [nn.Dropout(self.dropout)] if self.dropout else []
        return nn.Sequential(*layers, nn.Linear(self.hidden, n_outputs))


class BasicBlock(nn.Module):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """Two 3x3 convolutions with a shortcut connection."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        # Without bias: batch norm would subtract it again, and has one of its own.
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
    """ResNet-18: eight basic blocks in four stages, with batch norm.

    Attributes:
        stem: 7 for the original 7x7 convolution and pooling; 3 for one 3x3 convolution, for images below 64 pixels.
        width: channels of the first stage; each stage has twice as many as the one before.
    """

    name: ClassVar[str] = "resnet18"
    stem: int = 7
    width: int = 64

    def __post_init__(self) -> None:
        if self.stem not in {3, 7}:
            raise ArgumentError(f"stem must be 3 or 7, got {self.stem}")

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """Build a network with fresh weights."""
        channels = _image_channels(self.name, input_shape)
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
        # Pooled to one pixel: images may have any size.
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, n_outputs)]
        network = nn.Sequential(*layers)
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")  # He et al. 2015, as torchvision does
        return network


def _image_channels(name: str, input_shape: tuple[int, ...]) -> int:
    """The channels of images (channels, height, width); other shapes are errors."""
    if len(input_shape) != 3:
        raise ShapeError(f"{name} takes images (rows, channels, height, width), got rows of shape {input_shape}")
    return input_shape[0]
