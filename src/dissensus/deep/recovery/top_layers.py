"""The top layers of a text encoder as an encoder of their own, on the output of the lower ones.

The lower layers run once for every text; their output is held in memory in half precision, so an
epoch costs the top layers alone.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import OptionError
from ..nn.batches import Source
from ..nn.encoders import Encoder, Tokens
from ..nn.inputs import Inputs

_BATCH = 64


class TopLayers(Encoder):
    """The top layers; the last feature of their input is the mask."""

    learned = True

    def __init__(self, layers: nn.ModuleList, width: int, name: str) -> None:
        super().__init__()
        self.layers, self.width, self.name = layers, width, name

    def prepare(self, inputs: Inputs) -> Source:
        raise OptionError("the top layers of an encoder take the output of the lower ones")

    def tokens(self, x: Tensor) -> Tokens:
        mask = x[..., -1] > 0
        return Tokens(_run(self.layers, x[..., :-1], mask), mask)


class HiddenStates:
    """Output of the lower layers, padded to the longest text of a batch."""

    def __init__(self, values: list[Tensor], width: int) -> None:
        self.values, self.width = values, width  # of every text: (token, feature)
        self.sizes = np.array([len(one) for one in values], dtype=np.int64)  # in tokens

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, items: Any, /) -> Tensor:
        some = [self.values[item] for item in np.asarray(items).tolist()]
        padded = torch.zeros(len(some), max(map(len, some), default=1), self.width + 1)
        for row, one in enumerate(some):
            padded[row, : len(one), :-1] = one
            padded[row, : len(one), -1] = 1
        return padded


@torch.no_grad()
def split_encoder(encoder: Encoder, inputs: Inputs, n: int) -> tuple[TopLayers, HiddenStates]:
    """Return the top n layers of a text encoder, and the output of the others on the inputs."""
    body: Any = getattr(encoder, "body", None)
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    if layers is None or not hasattr(encoder, "tokenizer"):
        raise OptionError(
            f"{encoder.name}: only a BERT's top layers can be tuned alone; tune all (layers=None)"
        )
    if n > len(layers):
        raise OptionError(f"layers = {n}, but {encoder.name} has {len(layers)}")
    source: Any = encoder.prepare(inputs)
    encoder.eval()
    values: list[Tensor] = []
    for start in range(0, len(inputs), _BATCH):
        words = source[torch.arange(start, min(start + _BATCH, len(inputs)))]
        mask = words != encoder.tokenizer.pad_token_id  # type: ignore[union-attr]
        states = _run(layers[: len(layers) - n], body.embeddings(input_ids=words), mask)
        values += [
            one[present].to(torch.float16) for one, present in zip(states, mask, strict=True)
        ]
    top = nn.ModuleList(deepcopy(list(layers[len(layers) - n :])))
    return TopLayers(top, encoder.width, encoder.name), HiddenStates(values, encoder.width)


def _run(layers: Any, values: Tensor, mask: Tensor) -> Tensor:
    """Return the output of layers: (item, token, feature)."""
    minimum = torch.finfo(values.dtype).min
    bias = torch.zeros(mask.shape, dtype=values.dtype).masked_fill(~mask, minimum)[:, None, None]
    for layer in layers:
        output = layer(values, bias)
        values = output[0] if isinstance(output, tuple) else output
    return values
