"""Pretrained Q-Formers, from folders of BLIP-2 or InstructBLIP as transformers writes them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from ...errors import DataError
from .qformer import QFormer, Shape

# Names of weights in transformers' Blip2QFormerModel and InstructBlipQFormerModel, and ours.
_RENAMES = (
    (r"^embeddings\.layernorm\.", "norm."),
    (r"^layernorm\.", "norm."),
    (r"^encoder\.layer\.", "layers."),
    (r"\.attention\.attention\.", ".own."),
    (r"\.attention\.output\.dense\.", ".own.out."),
    (r"\.attention\.output\.LayerNorm\.", ".own.norm."),
    (r"\.crossattention\.attention\.", ".cross."),
    (r"\.crossattention\.output\.dense\.", ".cross.out."),
    (r"\.crossattention\.output\.LayerNorm\.", ".cross.norm."),
    (r"\.intermediate_query\.dense\.", ".feed.wide."),
    (r"\.output_query\.dense\.", ".feed.out."),
    (r"\.output_query\.LayerNorm\.", ".feed.norm."),
)
_PREFIX = re.compile(r"^(?:.*\.)?qformer\.")  # of the Q-Former in a larger model
_KEYS = re.compile(r"\.cross\.(?:key|value)\.weight$")


def pretrained_shape(folder: str | Path) -> Shape:
    """Return the sizes of the Q-Former in a folder of BLIP-2 or InstructBLIP."""
    path = Path(folder) / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        config = config.get("qformer_config", config)
        return Shape(
            width=config["hidden_size"],
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            hidden=config["intermediate_size"],
            cross_every=config.get("cross_attention_frequency", 2),
            dropout=config.get("hidden_dropout_prob", 0.1),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DataError(f"{path}: not the config of a Q-Former ({problem})") from None


def load_qformer(
    folder: str | Path, key_width: int, *, self_attention: bool = True
) -> tuple[QFormer, Tensor | None]:
    """Return the Q-Former in a folder of BLIP-2 or InstructBLIP, and its queries if it has any.

    Parameters
    ----------
    folder
        With `config.json` and safetensors as transformers writes them.
    key_width
        Width of the tokens. If it differs from the folder's, keys and values start at random.
    self_attention
        Whether queries attend to each other; if not, these weights are ignored.
    """
    qformer = QFormer(replace(pretrained_shape(folder), self_attention=self_attention), key_width)
    weights = _tensors(Path(folder))
    queries = weights.pop("query_tokens", None)  # (1, query, width)
    expected = qformer.state_dict()
    fits = {
        name: value
        for name, value in weights.items()
        if name in expected and (value.shape == expected[name].shape or not _KEYS.search(name))
    }
    missing = [name for name in expected if name not in fits and not _KEYS.search(name)]
    if missing:
        raise DataError(
            f"{folder}: no weights for {missing[0]}, and {len(missing) - 1} more like this"
        )
    try:
        qformer.load_state_dict(fits, strict=False)
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:160]
        raise DataError(f"{folder}: weights do not match its config.json ({first})") from None
    return qformer, queries


def _tensors(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a Q-Former by our names, from all safetensors of a folder."""
    paths = {name: path for path in sorted(folder.glob("*.safetensors")) for name in _names(path)}
    if not paths:
        raise DataError(f"{folder}: no safetensors in it")
    part = any(_PREFIX.match(name) for name in paths)  # of a larger model
    weights: dict[str, Tensor] = {}
    for name, path in paths.items():
        queries = name.rpartition(".")[2] == "query_tokens"
        if queries or not part or _PREFIX.match(name):
            with safe_open(path, framework="pt") as file:
                weights["query_tokens" if queries else _our_name(name)] = file.get_tensor(
                    name
                ).float()
    return weights


def _names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except (OSError, SafetensorError) as problem:
        raise DataError(f"{path}: not a safetensors file ({problem})") from None


def _our_name(name: str) -> str:
    name = _PREFIX.sub("", name)
    for theirs, ours in _RENAMES:
        name = re.sub(theirs, ours, name)
    return name
