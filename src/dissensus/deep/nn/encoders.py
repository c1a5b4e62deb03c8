"""Encoders by name: networks that turn inputs into vectors.

    efficientnet-lite0, minilm      weights inside packages
    hf:<name or folder>             of Hugging Face
    timm:<name>                     where timm is installed
    resnet18, vgg16-bn, …           random, or from a file of weights
    modellabelme, modelmusic        peerannot's
    conv4, patches, mlp, identity   small ones
    auto                            by the kind of the inputs

Settings are written in brackets, as for methods: `resnet18[size=32]`. Pretrained encoders are
frozen by default; random ones are trained.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import OptionError
from ...params import describe_fields, format_value
from ...registry import Registry
from .inputs import Arrays, Inputs
from .encoders_base import Encoder, ImageEncoder, Tokens

__all__ = ["Encoder", "ImageEncoder", "Tokens", "encoder_for", "encoder_spec", "encoders"]

_USUAL = 224  # pixels of encoders with a single size

encoders: Registry[Any] = Registry(
    "encode",
    {
        "efficientnet-lite0": "dissensus.deep.nn.efficientnet:EfficientNetSettings",
        "minilm": "dissensus.deep.nn.huggingface:MinilmSettings",
        "hf": "dissensus.deep.nn.huggingface:HuggingFaceSettings",
        "timm": "dissensus.deep.nn.timm:TimmSettings",
        "resnet": "dissensus.deep.nn.resnet:ResNetSettings",
        "vgg-bn": "dissensus.deep.nn.vgg:VggSettings",
        "modellabelme": "dissensus.deep.nn.vgg:PeerannotSettings",
        "conv4": "dissensus.deep.nn.image_encoders:Conv4Settings",
        "patches": "dissensus.deep.nn.plain:PatchesSettings",
        "mlp": "dissensus.deep.nn.plain:MlpSettings",
        "identity": "dissensus.deep.nn.plain:IdentitySettings",
    },
    {
        "resnet18": "resnet[depth=18]",
        "resnet34": "resnet[depth=34]",
        "resnet50": "resnet[depth=50]",
        "vgg11-bn": "vgg-bn[depth=11]",
        "vgg13-bn": "vgg-bn[depth=13]",
        "vgg16-bn": "vgg-bn[depth=16]",
        "vgg19-bn": "vgg-bn[depth=19]",
        "modelmusic": "modellabelme",
    },
)


def encoder_for(
    name: str, inputs: Inputs | None = None, *, frozen: bool | None = None, seed: int = 0
) -> Encoder:
    """Return an encoder.

    Parameters
    ----------
    name
        Its name, with settings in brackets.
    inputs
        Inputs to encode; they decide the number of features, and what `auto` means.
    frozen
        Whether it is not trained; by default pretrained ones are frozen.
    seed
        Random seed of weights that are not pretrained.
    """
    if inputs is not None and inputs.kind == "several":
        raise OptionError("inputs of several kinds have no common network; give one kind")
    if name == "auto":
        name = _auto(inputs)
    settings = encoders.create(_as_spec(name))
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        encoder: Encoder = settings.build(inputs)
    return encoder.freeze() if (encoder.pretrained if frozen is None else frozen) else encoder


def encoder_spec(
    name: str, inputs: Inputs | None = None, *, size: int | None = None, pretrained: bool = False
) -> str:
    """Return an encoder's specification with size and weights.

    Parameters
    ----------
    name
        Its name; `auto` becomes the one for the kind of inputs.
    inputs
        Inputs to encode.
    size
        Side of the images, in pixels.
    pretrained
        Whether to load published weights, where random ones are the default.

    Examples
    --------
    >>> encoder_spec("ResNet18", size=64)
    'resnet[depth=18,size=64]'
    """
    known, settings = encoders.resolve(_as_spec(_auto(inputs) if name == "auto" else name))
    names = {field.name for field in describe_fields(encoders.find(known))}
    if size is not None and "size" in names:
        settings = {"size": size} | settings
    elif size not in (None, _USUAL) and inputs is not None and inputs.kind == "images":
        raise OptionError(f"{known} takes images of one size only; leave --img-size out")
    if pretrained and "weights" in names:
        settings = {"weights": "imagenet"} | settings
    inner = ",".join(f"{key}={format_value(value)}" for key, value in sorted(settings.items()))
    return f"{known}[{inner}]" if inner else known


def _as_spec(name: str) -> str:
    """Return `hf:<model>[…]` as `hf[model='<model>',…]`, and the same for timm."""
    home, colon, rest = name.partition(":")
    if not colon or home.lower() not in ("hf", "timm"):
        return name
    model, bracket, settings = rest.partition("[")
    return f"{home}[model={model!r}{',' + settings if bracket else ']'}"


def _auto(inputs: Inputs | None) -> str:
    if inputs is None:
        raise OptionError("name an encoder: `auto` needs inputs")
    if isinstance(inputs, Arrays):
        return "resnet18" if inputs.values.ndim in (4, 5) else "identity"
    return "minilm" if inputs.kind == "texts" else "efficientnet-lite0"
