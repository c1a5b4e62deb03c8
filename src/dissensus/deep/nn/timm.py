"""Image networks of timm, where that package is installed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...errors import OptionError
from ...params import Settings
from .inputs import Inputs
from .encoders_base import ImageEncoder


@dataclass(frozen=True, kw_only=True)
class TimmSettings(Settings):
    """A network of timm.

    Parameters
    ----------
    model
        Its name there.
    pretrained
        Whether to fetch its weights.
    """

    model: str
    pretrained: bool = True

    def build(self, inputs: Inputs | None) -> Timm:  # noqa: ARG002
        """Return the encoder."""
        return Timm(self.model, self.pretrained)


class Timm(ImageEncoder):
    """A network of timm without its last layer."""

    def __init__(self, model: str, pretrained: bool) -> None:
        try:
            import timm
        except (ImportError, RuntimeError) as problem:  # RuntimeError: torchvision without torch
            raise OptionError(
                f"timm:{model} needs timm: pip install timm torchvision ({problem})"
            ) from None
        try:
            body = timm.create_model(model, pretrained=pretrained, num_classes=0)
        except (OSError, RuntimeError, ValueError) as problem:
            first = str(problem).splitlines()[0]
            raise OptionError(f"timm:{model}: cannot be loaded ({first})") from None
        config = body.pretrained_cfg
        super().__init__(config["input_size"][-1], tuple(config["mean"]), tuple(config["std"]))
        self.name, self.body, self.pretrained = f"timm:{model}", body, pretrained
        self.width = body.num_features

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        maps = self.body.forward_features(x)
        return maps if maps.ndim == 4 else maps.transpose(1, 2)[..., None]
