"""The Q-Former of BLIP-2: a set of queries that attend to the tokens of an item.

In every layer queries attend to each other, in every `cross_every`-th layer (starting with the
first) also to the tokens, and a feed-forward block follows:

    q ← norm(q + attention(q, q))       self-attention, if any
    q ← norm(q + attention(q, tokens))  cross-attention, keys and values of the tokens' width
    q ← norm(q + out(gelu(wide(q))))

The Q-Former is equivariant to the order of the queries. Without self-attention a query's output
does not depend on other queries, so only the needed queries are computed; `row` then names the item
of each row of queries, and keys are still computed once per item.

Pretrained ones are read from folders of BLIP-2 or InstructBLIP as transformers writes them.

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

from ...errors import DataError, MethodError
from ...params import Count, Probability, Settings

_EPS = 1e-12  # of layer norms, as in BERT
_INIT_STD = 0.02

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


@dataclass(frozen=True, kw_only=True)
class Shape(Settings):
    """Sizes of a Q-Former; the defaults are those of BLIP-2.

    Parameters
    ----------
    width
        Width of a query.
    layers
        Number of layers.
    heads
        Attention heads.
    hidden
        Width of the feed-forward blocks.
    cross_every
        Queries attend to tokens in layers 0, `cross_every`, …
    self_attention
        Whether queries attend to each other.
    dropout
        Dropout of attention weights and of every residual branch.
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


class Output(NamedTuple):
    """The output of the queries and, if requested, attention weights."""

    values: Tensor  # (row, query, width)
    cross: list[Tensor]  # by layer with cross-attention: (row, head, query, token)
    own: list[Tensor]  # by layer: (row, head, query, query)


class QFormer(nn.Module):
    """Queries that attend to tokens of width `key_width`.

    Examples
    --------
    >>> qformer = QFormer(Shape(width=8, heads=2, layers=2, hidden=16), key_width=5)
    >>> qformer(torch.zeros(1, 3, 8), torch.zeros(4, 7, 5)).values.shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, shape: Shape, key_width: int) -> None:
        super().__init__()
        self.shape, self.key_width = shape, key_width
        self.norm = nn.LayerNorm(shape.width, eps=_EPS)
        self.dropout = nn.Dropout(shape.dropout)
        self.layers = nn.ModuleList(
            _Layer(shape, key_width if position % shape.cross_every == 0 else None)
            for position in range(shape.layers)
        )
        self.apply(_initialize)

    def forward(
        self,
        queries: Tensor,  # (row, query, width), or (1, query, width) if the same for all rows
        tokens: Tensor,  # (item, token, key width)
        mask: Tensor | None = None,  # (item, token): whether it is a token or padding
        row: Tensor | None = None,  # (row): its item; by default row i is item i
        *,
        n_added: int = 0,
        weights: bool = False,
    ) -> Output:
        """Return the output of the queries; with `weights`, also attention weights.

        The last `n_added` queries attend to the others, which do not attend to them.
        """
        n_rows = len(tokens) if row is None else len(row)
        if self.training and self.shape.dropout:  # rows have different dropout
            queries = queries.expand(n_rows, -1, -1)
        x = self.dropout(self.norm(queries))
        hidden = None if mask is None else ~mask[:, None, None]  # (item, 1, 1, token)
        added = None if not n_added else _hide_added(queries.shape[1], n_added, tokens.device)
        cross: list[Tensor] = []
        own: list[Tensor] = []
        for layer in self.layers:
            assert isinstance(layer, _Layer)
            if layer.own is not None:
                x, attention = layer.own(x, x, added, weights=weights)
                own += attention
            if layer.cross is not None:
                x, attention = layer.cross(x, tokens, hidden, row, weights=weights)
                cross += attention
            x = layer.feed(x)
        return Output(
            x.expand(n_rows, -1, -1), cross, [weight.expand(n_rows, -1, -1, -1) for weight in own]
        )


def _hide_added(n_queries: int, n_added: int, device: torch.device) -> Tensor:
    """Return a mask of added queries, except on the diagonal: (1, 1, query, query)."""
    query = torch.arange(n_queries, device=device)
    return ((query >= n_queries - n_added) & (query != query[:, None]))[None, None]


class _Layer(nn.Module):
    """One layer, with cross-attention if there is a `key_width`."""

    def __init__(self, shape: Shape, key_width: int | None) -> None:
        super().__init__()
        self.own = _Attention(shape, shape.width) if shape.self_attention else None
        self.cross = None if key_width is None else _Attention(shape, key_width)
        self.feed = _FeedForward(shape)


class _Attention(nn.Module):
    """Multi-head attention with a residual connection."""

    def __init__(self, shape: Shape, key_width: int) -> None:
        super().__init__()
        self.heads, self.attention_dropout = shape.heads, shape.dropout
        self.query = nn.Linear(shape.width, shape.width)
        self.key = nn.Linear(key_width, shape.width)
        self.value = nn.Linear(key_width, shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=_EPS)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(
        self,
        x: Tensor,  # (row, query, width)
        source: Tensor,  # (item, token, key width)
        hidden: Tensor | None = None,  # (item, 1, 1, token): padding
        row: Tensor | None = None,  # (row)
        *,
        weights: bool = False,
    ) -> tuple[Tensor, list[Tensor]]:
        query, key, value = self.query(x), self.key(source), self.value(source)
        if row is not None:
            key, value = key[row], value[row]
            hidden = None if hidden is None else hidden[row]
        query, key, value = (self._by_head(projected) for projected in (query, key, value))
        dropout = self.attention_dropout if self.training else 0.0
        if weights:
            score = query @ key.transpose(2, 3) * query.shape[3] ** -0.5
            if hidden is not None:
                score = score.masked_fill(hidden, -torch.inf)
            attention = score.softmax(dim=3)  # (row, head, query, token)
            out, attentions = functional.dropout(attention, dropout) @ value, [attention]
        else:
            query = query.expand(len(key), -1, -1, -1)
            visible = None if hidden is None else ~hidden
            out = functional.scaled_dot_product_attention(query, key, value, visible, dropout)
            attentions = []
        out = self.out(out.transpose(1, 2).flatten(2))
        return self.norm(x + self.dropout(out)), attentions

    def _by_head(self, x: Tensor) -> Tensor:
        """Return (row, head, position, width of a head)."""
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)


class _FeedForward(nn.Module):
    """A feed-forward block with a residual connection."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.wide = nn.Linear(shape.width, shape.hidden)
        self.out = nn.Linear(shape.hidden, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=_EPS)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.dropout(self.out(functional.gelu(self.wide(x)))))


def pass_tokens_on(network: nn.Module) -> None:
    """Draw the weights by which queries get tokens anew, so that values keep their scale.

    With BERT's small weights, next to nothing of a token arrives at first, and what only one of
    several questions needs may be learned too late.
    """
    for layer in network.modules():
        if isinstance(layer, _Layer) and layer.cross is not None:
            for linear in (layer.cross.value, layer.cross.out):
                nn.init.normal_(linear.weight, std=linear.in_features**-0.5)


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=_INIT_STD)
        nn.init.zeros_(module.bias)


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
        reason = " ".join(str(problem).split())[:160]
        raise DataError(f"{folder}: weights do not match its config.json ({reason})") from None
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
    for pattern, replacement in _RENAMES:
        name = re.sub(pattern, replacement, name)
    return name
