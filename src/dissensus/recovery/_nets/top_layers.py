"""The last layers of a text encoder as an encoder of their own, over what the others make.

The lower layers are asked once for every text; what comes out of them is kept in memory in half
floats, so an epoch costs the last layers alone.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import OptionError
from ...nn.batches import Source
from ...nn.encoders import Encoder, Tokens
from ...nn.inputs import Inputs

__all__ = ["Tail", "tail_of"]

_PIECE = 64


class Tail(Encoder):
    """The last layers: x is vectors of words, the last feature says where one is."""

    learned = True

    def __init__(self, layers: nn.ModuleList, width: int, name: str) -> None:
        super().__init__()
        self.layers, self.width, self.name = layers, width, name

    def prepare(self, inputs: Inputs) -> Source:
        raise OptionError("the last layers of an encoder take what the others make")

    def tokens(self, x: Tensor) -> Tokens:
        mask = x[..., -1] > 0
        return Tokens(run(self.layers, x[..., :-1], mask), mask)


def run(layers: Any, values: Tensor, mask: Tensor) -> Tensor:
    """Return what comes out of layers: (item, place, feature)."""
    far = torch.finfo(values.dtype).min
    added = torch.zeros(mask.shape, dtype=values.dtype).masked_fill(~mask, far)[:, None, None]
    for layer in layers:
        found = layer(values, added.to(values.dtype))
        values = found[0] if isinstance(found, tuple) else found
    return values


@torch.no_grad()
def tail_of(encoder: Encoder, inputs: Inputs, n: int) -> tuple[Tail, Lower]:
    """Return the last n layers of a text encoder, and what the others make of inputs."""
    body: Any = getattr(encoder, "body", None)
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    if layers is None or not hasattr(encoder, "tokenizer"):
        raise OptionError(f"{encoder.name}: only layers of a BERT can be tuned alone; layers=None")
    if n > len(layers):
        raise OptionError(f"layers = {n}, but {encoder.name} has {len(layers)}")
    source: Any = encoder.prepare(inputs)
    encoder.eval()
    values: list[Tensor] = []
    for at in range(0, len(inputs), _PIECE):
        words = source[torch.arange(at, min(at + _PIECE, len(inputs)))]
        mask = words != encoder.tokenizer.pad_token_id  # type: ignore[union-attr]
        found = run(layers[: len(layers) - n], body.embeddings(input_ids=words), mask)
        values += [one[there].to(torch.float16) for one, there in zip(found, mask, strict=True)]
    tail = Tail(
        nn.ModuleList(deepcopy(list(layers[len(layers) - n :]))), encoder.width, encoder.name
    )
    return tail, Lower(values, encoder.width)


class Lower:
    """What lower layers made of texts, filled up to the longest asked for."""

    def __init__(self, values: list[Tensor], width: int) -> None:
        self.values, self.width = values, width  # of every text: (place, feature)
        self.sizes = np.array([len(one) for one in values], dtype=np.int64)  # in words

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, items: Any, /) -> Tensor:
        some = [self.values[item] for item in np.asarray(items).tolist()]
        longest = max((len(one) for one in some), default=1)
        found = torch.zeros(len(some), longest, self.width + 1)
        for position, one in enumerate(some):
            found[position, : len(one), :-1] = one
            found[position, : len(one), -1] = 1
        return found
