"""What every encoder has: prepared inputs, a vector per item, and features of its tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from hashlib import blake2b
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from ...errors import OptionError
from .batches import Source
from .inputs import Arrays, Files, Inputs, LoadedFiles

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, by channel


class Tokens(NamedTuple):
    """Features of the tokens of every item: words, patches of an image, or of frames."""

    values: Tensor  # (item, token, feature) or (item, frame, token, feature)
    mask: Tensor  # the same axes without the last: whether there is a token


class Encoder(nn.Module, ABC):
    """A network that turns an input into vectors; a frozen one stays in evaluation mode."""

    name: str
    width: int  # of a vector
    pretrained: bool = False
    is_frozen: bool = False
    extent: int = 0  # of an input that is seen: tokens of a text, pixels of a side

    @abstractmethod
    def prepare(self, inputs: Inputs) -> Tensor | Source:
        """Return inputs as the network takes them."""

    @abstractmethod
    def tokens(self, x: Tensor) -> Tokens:
        """Return features of tokens: (item, token, feature)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return one vector per item, by default the mean of its tokens: (item, feature)."""
        values, mask = self.tokens(x)
        weight = mask.to(values)[:, :, None]
        return (values * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)

    def freeze(self) -> Self:
        """Freeze its weights."""
        self.is_frozen = True
        self.requires_grad_(False)
        return self.eval()

    def train(self, mode: bool = True) -> Self:
        """Set training mode, unless it is frozen."""
        return super().train(mode and not self.is_frozen)

    def digest(self) -> str:
        """Return a hash of name, weights, and how much of an input is seen."""
        digest = blake2b(f"{self.name} {self.extent}".encode(), digest_size=16)
        for name, value in sorted(self.state_dict().items()):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        return digest.hexdigest()


class ImageEncoder(Encoder):
    """An encoder of images of one size, from 0 to 1: (item, 3, size, size).

    Videos are images with one axis more: (item, frame, 3, size, size).
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, size: int, mean: tuple[float, ...] = _MEAN, std: tuple[float, ...] = _STD
    ) -> None:
        super().__init__()
        self.size = self.extent = size
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)

    def prepare(self, inputs: Inputs) -> Tensor | Source:
        """Return images of the size that the network takes."""
        if isinstance(inputs, Files):
            return LoadedFiles(inputs, self.size)
        if isinstance(inputs, Arrays) and inputs.values.ndim in (4, 5):
            outer, inner = inputs.values.shape[:-3], inputs.values.shape[-3:]
            flat = _sized(inputs.values.reshape(-1, *inner), self.size, len(self.mean))
            return flat.reshape(*outer, *flat.shape[1:])
        axes = f" with the axes {tuple(inputs.values.shape)}" if isinstance(inputs, Arrays) else ""
        raise OptionError(f"{self.name} takes images, but these are {inputs.kind}{axes}")

    @abstractmethod
    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map, of standardized images: (item, feature, row, column)."""

    def tokens(self, x: Tensor) -> Tokens:
        """Return features of patches: (item, patch, feature), or (item, frame, patch, feature)."""
        if x.ndim == 5:
            each = self.tokens(x.flatten(0, 1))
            shape = *x.shape[:2], *each.mask.shape[1:]
            return Tokens(each.values.reshape(*shape, -1), each.mask.reshape(shape))
        values = self.patches((x - self.mean) / self.std).flatten(2).transpose(1, 2)
        return Tokens(values, torch.ones(values.shape[:2], dtype=torch.bool, device=x.device))


def _sized(x: Tensor, size: int, channels: int) -> Tensor:
    if x.shape[1] not in (1, 3) and x.shape[-1] in (1, 3):
        x = x.permute(0, 3, 1, 2)
    if x.shape[1] == 1 and channels == 3:
        x = x.expand(-1, 3, -1, -1)
    if x.shape[1] != channels:
        raise OptionError(f"images of {x.shape[1]} channels, but the encoder takes {channels}")
    if tuple(x.shape[2:]) != (size, size):
        x = nn.functional.interpolate(x, (size, size), mode="bilinear", antialias=True)
    return x
