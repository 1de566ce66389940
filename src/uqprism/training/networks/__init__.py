"""Networks: specifications that build a `torch.nn.Module` for an input shape and a number of outputs. One file each."""

from __future__ import annotations

from uqprism.training.networks.base import Network, from_dict, networks, resolve, to_dict
from uqprism.training.networks.mlp import MLP
from uqprism.training.networks.resnet18 import ResNet18
from uqprism.training.networks.small_cnn import SmallCNN

__all__ = ["MLP", "Network", "ResNet18", "SmallCNN", "from_dict", "networks", "resolve", "to_dict"]
