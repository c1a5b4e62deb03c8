"""The Q-Former of BLIP-2: a set of queries that ask the places of an item.

Every layer lets the queries look at each other, every `cross_every`-th (the first among them) lets
them look at the tokens of the item, and all end with a layer of their own:

    q ← norm(q + look(q, q))            self-attention, if there is any
    q ← norm(q + look(q, tokens))       cross-attention, keys and values from the tokens' width
    q ← norm(q + out(gelu(wide(q))))

Queries have no places: in another order they give the same, in that order. Without self-attention
a query's answer depends on no other query, so only those that are asked for need be there; `row`
then says whose tokens each row of queries asks, and keys are made once per item all the same.

    J. Li, D. Li, S. Savarese, S. Hoi. BLIP-2: bootstrapping language-image pre-training with
    frozen image encoders and large language models. ICML 2023. arXiv:2301.12597
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn import functional

from ..errors import DataError, MethodError
from ..params import Count, Probability, Settings

__all__ = ["Asked", "QFormer", "Shape", "load_qformer", "pretrained_shape"]

_TINY = 1e-12  # of the norms, as in BERT
_START = 0.02  # spread of weights at the start


@dataclass(frozen=True, kw_only=True)
class Shape(Settings):
    """Sizes of a Q-Former; those of BLIP-2 if not told.

    Parameters
    ----------
    width
        Of a query.
    layers
        How many.
    heads
        Of every attention.
    hidden
        Width of the layer that ends every layer.
    cross_every
        Queries look at tokens in layers 0, `cross_every`, …
    self_attention
        Whether queries look at each other.
    dropout
        Share left out in every step, of attention and of what each part adds.
    """

    width: Count = 768
    layers: Count = 12
    heads: Count = 12
    hidden: Count = 3072
    cross_every: Count = 2
    self_attention: bool = True
    dropout: Probability = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise MethodError(
                f"width = {self.width}, but it must be a multiple of {self.heads} heads"
            )


class Asked(NamedTuple):
    """What queries found, and where they looked if that was asked for."""

    values: Tensor  # (row, query, width)
    cross: list[Tensor]  # by layer that looks at tokens: (row, head, query, place)
    own: list[Tensor]  # by layer: (row, head, query, query)


class QFormer(nn.Module):
    """Queries that ask tokens of `key_width`.

    Examples
    --------
    >>> asks = QFormer(Shape(width=8, heads=2, layers=2, hidden=16), key_width=5)
    >>> asks(torch.zeros(1, 3, 8), torch.zeros(4, 7, 5)).values.shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, shape: Shape, key_width: int) -> None:
        super().__init__()
        self.shape, self.key_width = shape, key_width
        self.norm = nn.LayerNorm(shape.width, eps=_TINY)
        self.dropout = nn.Dropout(shape.dropout)
        self.layers = nn.ModuleList(
            _Layer(shape, key_width if position % shape.cross_every == 0 else None)
            for position in range(shape.layers)
        )
        self.apply(_start)

    def forward(
        self,
        queries: Tensor,  # (row, query, width), or (1, query, width) for the same ones in all
        tokens: Tensor,  # (item, place, key width)
        mask: Tensor | None = None,  # (item, place): whether something is there
        row: Tensor | None = None,  # (row): whose tokens; in order if not given
        *,
        n_guests: int = 0,
        weights: bool = False,
    ) -> Asked:
        """Return what the queries found; with `weights`, also where they looked.

        The last `n_guests` queries look at the others, which do not look at them.
        """
        n_rows = len(tokens) if row is None else len(row)
        if self.training and self.shape.dropout:  # every row leaves out its own
            queries = queries.expand(n_rows, -1, -1)
        x = self.dropout(self.norm(queries))
        hidden = None if mask is None else ~mask[:, None, None]  # (item, 1, 1, place)
        strangers = None if not n_guests else _strangers(queries.shape[1], n_guests, tokens.device)
        cross: list[Tensor] = []
        own: list[Tensor] = []
        for layer in self.layers:
            assert isinstance(layer, _Layer)
            if layer.own is not None:
                x, seen = layer.own(x, x, strangers, weights=weights)
                own += seen
            if layer.cross is not None:
                x, seen = layer.cross(x, tokens, hidden, row, weights=weights)
                cross += seen
            x = layer.feed(x)
        return Asked(
            x.expand(n_rows, -1, -1), cross, [each.expand(n_rows, -1, -1, -1) for each in own]
        )


def _strangers(n_queries: int, n_guests: int, device: torch.device) -> Tensor:
    """Return whom queries do not see: guests, but for themselves: (1, 1, query, query)."""
    at = torch.arange(n_queries, device=device)
    return ((at >= n_queries - n_guests) & (at != at[:, None]))[None, None]


class _Layer(nn.Module):
    """One layer; `key_width` where it looks at tokens."""

    def __init__(self, shape: Shape, key_width: int | None) -> None:
        super().__init__()
        self.own = _Look(shape, shape.width) if shape.self_attention else None
        self.cross = None if key_width is None else _Look(shape, key_width)
        self.feed = _Feed(shape)


class _Look(nn.Module):
    """Attention with several heads; what it finds is added."""

    def __init__(self, shape: Shape, key_width: int) -> None:
        super().__init__()
        self.heads, self.share = shape.heads, shape.dropout
        self.query = nn.Linear(shape.width, shape.width)
        self.key = nn.Linear(key_width, shape.width)
        self.value = nn.Linear(key_width, shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=_TINY)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(
        self,
        x: Tensor,  # (row, query, width)
        source: Tensor,  # (item, place, key width)
        hidden: Tensor | None = None,  # (item, 1, 1, place): where nothing is
        row: Tensor | None = None,  # (row)
        *,
        weights: bool = False,
    ) -> tuple[Tensor, list[Tensor]]:
        query, key, value = self.query(x), self.key(source), self.value(source)
        if row is not None:
            key, value = key[row], value[row]
            hidden = None if hidden is None else hidden[row]
        query, key, value = (self._by_head(each) for each in (query, key, value))
        share = self.share if self.training else 0.0
        if weights:
            score = query @ key.transpose(2, 3) * query.shape[3] ** -0.5
            if hidden is not None:
                score = score.masked_fill(hidden, -torch.inf)
            chance = score.softmax(dim=3)  # (row, head, query, place)
            found, seen = functional.dropout(chance, share) @ value, [chance]
        else:
            query = query.expand(len(key), -1, -1, -1)
            shown = None if hidden is None else ~hidden
            found = functional.scaled_dot_product_attention(query, key, value, shown, share)
            seen = []
        added = self.out(found.transpose(1, 2).flatten(2))
        return self.norm(x + self.dropout(added)), seen

    def _by_head(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(
            1, 2
        )  # (row, head, place, width of one)


class _Feed(nn.Module):
    """Two layers with GELU between; what they find is added."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.wide = nn.Linear(shape.width, shape.hidden)
        self.out = nn.Linear(shape.hidden, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=_TINY)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.dropout(self.out(functional.gelu(self.wide(x)))))


def _start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=_START)
        nn.init.zeros_(module.bias)


# The names of transformers' Blip2QFormerModel and InstructBlipQFormerModel, and ours.
_NAMES = (
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
_PLACE = re.compile(r"^(?:.*\.)?qformer\.")  # where a Q-Former is a part of a model
_KEYS = re.compile(r"\.cross\.(?:key|value)\.weight$")


def pretrained_shape(folder: str | Path) -> Shape:
    """Return the sizes of the Q-Former in a folder of BLIP-2 or InstructBLIP."""
    path = Path(folder) / "config.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        told = told.get("qformer_config", told)
        return Shape(
            width=told["hidden_size"],
            layers=told["num_hidden_layers"],
            heads=told["num_attention_heads"],
            hidden=told["intermediate_size"],
            cross_every=told.get("cross_attention_frequency", 2),
            dropout=told.get("hidden_dropout_prob", 0.1),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DataError(f"{path}: not the settings of a Q-Former ({problem})") from None


def load_qformer(
    folder: str | Path, key_width: int, *, self_attention: bool = True
) -> tuple[QFormer, Tensor | None]:
    """Return the Q-Former of a folder of BLIP-2 or InstructBLIP, and its queries if there are any.

    Parameters
    ----------
    folder
        With `config.json` and safetensors under transformers' names; nothing else is read.
    key_width
        Of the tokens. Where the folder's differ, keys and values begin anew.
    self_attention
        Whether queries look at each other; without, these weights are left.
    """
    made = QFormer(replace(pretrained_shape(folder), self_attention=self_attention), key_width)
    found = _tensors(Path(folder))
    queries = found.pop("query_tokens", None)  # (1, query, width)
    mine = made.state_dict()
    fits = {
        name: value
        for name, value in found.items()
        if name in mine and (value.shape == mine[name].shape or not _KEYS.search(name))
    }
    lost = [name for name in mine if name not in fits and not _KEYS.search(name)]
    if lost:
        raise DataError(f"{folder}: no weights for {lost[0]}, and {len(lost) - 1} more like this")
    try:
        made.load_state_dict(fits, strict=False)
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:160]
        raise DataError(f"{folder}: weights of other sizes than its settings ({first})") from None
    return made, queries


def _tensors(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a Q-Former by our names, out of all safetensors of a folder."""
    where = {name: path for path in sorted(folder.glob("*.safetensors")) for name in _named(path)}
    if not where:
        raise DataError(f"{folder}: no safetensors in it")
    part = any(_PLACE.match(name) for name in where)  # of a larger model
    found: dict[str, Tensor] = {}
    for name, path in where.items():
        queries = name.rpartition(".")[2] == "query_tokens"
        if queries or not part or _PLACE.match(name):
            with safe_open(path, framework="pt") as file:
                found["query_tokens" if queries else _ours(name)] = file.get_tensor(name).float()
    return found


def _named(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except (OSError, SafetensorError) as problem:
        raise DataError(f"{path}: not a file of weights ({problem})") from None


def _ours(name: str) -> str:
    name = _PLACE.sub("", name)
    for theirs, ours in _NAMES:
        name = re.sub(theirs, ours, name)
    return name
