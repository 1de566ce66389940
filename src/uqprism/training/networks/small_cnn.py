"""The paper's small convolutional network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from uqprism.support.optional import require
from uqprism.training.networks.base import image_channels, networks

torch = require("torch", extra="deep")


@networks.register("small_cnn")
@dataclass(frozen=True)
class SmallCNN:
    """Three 3x3 convolutions, each followed by ReLU and halving the image, then two fully connected layers.

    Images may have any size; the paper gives the layers but not their widths, which are ours.

    Attributes:
        channels: of the three convolutions.
        hidden: the width of the first fully connected layer.
        dropout: the probability that a unit of that layer is left out.
    """

    name: ClassVar[str] = "small_cnn"
    channels: tuple[int, int, int] = (16, 32, 64)
    hidden: int = 128
    dropout: float = 0.0

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """A fresh network."""
        nn = torch.nn
        given, layers = image_channels(self.name, input_shape), []
        height, width = input_shape[1:]
        for following in self.channels:
            # Rounding up, so that even a single pixel survives three times.
            layers += [nn.Conv2d(given, following, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
            given, height, width = following, -(-height // 2), -(-width // 2)
        layers += [nn.Flatten(), nn.Linear(given * height * width, self.hidden), nn.ReLU()]
        layers += [nn.Dropout(self.dropout)] if self.dropout else []
        return nn.Sequential(*layers, nn.Linear(self.hidden, n_outputs))
