"""What a text encoder looks at: attention, rolled out or not, or the gradient times the input."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ..._relation import Floats, Integers
from ...errors import OptionError
from ...nn.encoders import Encoder
from ..highlights import to_words

__all__ = ["word_maps"]


def word_maps(
    encoder: Encoder,
    texts: list[list[str]],
    *,
    kind: Literal["attention", "rollout", "gradient"] = "attention",
    head: nn.Module | None = None,
) -> list[Floats]:
    """Return what an encoder looks at in texts of words: (word) of each, summing to one.

    Parameters
    ----------
    encoder
        A BERT.
    texts
        Lists of words.
    kind
        `attention` of the first place to all, a mean over the heads of the last layer; `rollout`,
        the product of all layers' attention, each with what it passes on; `gradient` of the
        largest logit times the input, its length.
    head
        From the vector of a text to logits, for `gradient`.
    """
    body: Any = deepcopy(getattr(encoder, "body", None))
    tokenizer: Any = getattr(encoder, "tokenizer", None)
    if tokenizer is None or not hasattr(body, "encoder"):
        raise OptionError(f"{encoder.name}: only what a BERT looks at can be seen")
    body.set_attn_implementation("eager")
    body.eval()
    found = []
    for words in texts:
        coded = tokenizer(
            words, is_split_into_words=True, truncation=True, return_tensors="pt",
            max_length=getattr(encoder, "length", 128),
        )  # fmt: skip
        position = np.array([-1 if word is None else word for word in coded.word_ids()])
        if kind == "gradient":
            told = _gradient(body, coded, head)
        else:
            told = _attention(body, coded, rolled=kind == "rollout")
        found.append(_filled(told, position, len(words)))
    return found


@torch.no_grad()
def _attention(body: Any, coded: Any, *, rolled: bool) -> Floats:
    layers = body(**coded, output_attentions=True).attentions  # of each: (1, head, place, place)
    if not rolled:
        return layers[-1][0, :, 0].mean(dim=0).double().numpy()
    total = torch.eye(layers[0].shape[-1])
    for layer in layers:
        passed = layer[0].mean(dim=0) / 2 + torch.eye(layer.shape[-1]) / 2
        total = passed @ total
    return total[0].double().numpy()


def _gradient(body: Any, coded: Any, head: nn.Module | None) -> Floats:
    if head is None:
        raise OptionError("the gradient is that of a logit; give the head")
    inputs: Tensor = body.get_input_embeddings()(coded["input_ids"]).detach().requires_grad_()
    values = body(inputs_embeds=inputs, attention_mask=coded["attention_mask"]).last_hidden_state
    head(values.mean(dim=1)).max().backward()
    assert inputs.grad is not None
    return (inputs.grad * inputs).sum(dim=-1)[0].abs().detach().double().numpy()


def _filled(told: Floats, position: Integers, n_words: int) -> Floats:
    """Return attention to all words; those beyond what was read have none."""
    words = to_words(told, position)
    return np.concatenate([words, np.zeros(n_words - len(words))])
