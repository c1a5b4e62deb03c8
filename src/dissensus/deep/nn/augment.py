"""Augmentation of images: random flips, crops and colours, with torch's random numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ...errors import OptionError
from ...params import NonNegative, Probability, Settings
from .inputs import Arrays, Inputs


@dataclass(frozen=True, kw_only=True)
class Augment(Settings):
    """Random changes to images: (item, channel, height, width), from 0 to 1.

    Parameters
    ----------
    flip
        Share of images that are flipped.
    crop
        Largest share of a side that is cropped; the rest is resized.
    colour
        Largest relative change of brightness, contrast and saturation.

    Examples
    --------
    >>> Augment(flip=1, crop=0, colour=0)(torch.tensor([[[[0.0, 1.0]]]])).tolist()
    [[[[1.0, 0.0]]]]
    """

    flip: Probability = 0.5
    crop: Probability = 0.2
    colour: NonNegative = 0.2

    def __call__(self, x: Tensor) -> Tensor:
        """Return augmented images."""
        if self.flip:
            mirrored = torch.rand(len(x)) < self.flip
            x = torch.where(mirrored.to(x.device)[:, None, None, None], x.flip(-1), x)
        if self.crop:
            x = _cropped(x, self.crop)
        if self.colour:
            x = _coloured(x, self.colour)
        return x


def augment_for(inputs: Inputs) -> Augment:
    """Return the default augmentation of inputs, which have to be images."""
    pictures = inputs.values.ndim == 4 if isinstance(inputs, Arrays) else inputs.kind == "images"
    if not pictures:
        raise OptionError(f"only images are augmented, not {inputs.kind}")
    return Augment()


def _cropped(x: Tensor, most: float) -> Tensor:
    """Return a random crop of every image, resized."""
    side = 1 - most * torch.rand(len(x), 2)  # (item, axis): share of the side that is kept
    shift = (1 - side) * (2 * torch.rand(len(x), 2) - 1)
    window = torch.zeros(len(x), 2, 3)
    window[:, [0, 1], [0, 1]] = side
    window[:, :, 2] = shift
    grid = functional.affine_grid(window, list(x.shape), align_corners=False)
    return functional.grid_sample(
        x, grid.to(x), mode="bilinear", padding_mode="border", align_corners=False
    )


def _coloured(x: Tensor, most: float) -> Tensor:
    """Return images with random brightness, contrast and saturation."""
    factors = 1 + most * (2 * torch.rand(3, len(x), 1, 1, 1) - 1)
    brightness, contrast, saturation = factors.clamp(min=0).to(x)
    x = x * brightness
    x = torch.lerp(x.mean(dim=(1, 2, 3), keepdim=True), x, contrast)
    if x.shape[1] == 3:
        x = torch.lerp(x.mean(dim=1, keepdim=True), x, saturation)
    return x.clamp(0, 1)
