"""What a query model has before its Q-Former and after it: layers of tokens, and classifiers.

Tokens are normalized, either each on its own (`layer`, as on top of an image transformer) or every
feature over the training items (`feature`, which preserves differences between tokens). If all
items have the same number of tokens, tokens may get learned position embeddings.

For videos, the tokens of every frame are first summarized by a few queries that all annotators
share, plus a position embedding of the frame; these summaries are the tokens of the video.

There is a classifier per annotator, one for all, or both:

    own      a network per annotator
    shared   one network; only the queries differ between annotators
    bias     a shared network and a bias per annotator
    shrunk   a shared network, plus a linear layer and a bias per annotator, with weight decay

Networks have one hidden layer or none, with an activation and maybe dropout after it. Parameters of
annotators are rows of a `Table`: a step costs what its annotators cost, and a new annotator adds a
row.

Ordinal labels have one score and thresholds instead of a logit per class:

    P(label ≤ c) = sigmoid(threshold[c] − score)
    threshold[c] = threshold[c − 1] + softplus(gap[c])
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..nn.batches import Table
from ..nn.estimator import Standardize
from ..nn.features import FeatureBatch, Layout
from .qformer import QFormer, Shape

_INIT_STD = 0.02
_POSITION_STD = 0.3  # of position embeddings
_MIN_GAP = 1e-3  # between neighbouring thresholds


class TokenLayer(nn.Module):
    """Normalized tokens, with position embeddings if `positions`."""

    def __init__(self, n_features: int, n_tokens: int, scale: str, positions: bool) -> None:
        super().__init__()
        self.width = n_features
        self.norm: nn.Module = (
            nn.LayerNorm(n_features) if scale == "layer" else Standardize(n_features)
        )
        start = _POSITION_STD * torch.randn(n_tokens, n_features)
        self.positions = nn.Parameter(start) if positions else None

    def fit(self, tokens: Tensor) -> None:
        """Normalize by these tokens: (token, feature)."""
        if isinstance(self.norm, Standardize):
            self.norm.fit(tokens)

    def forward(self, x: FeatureBatch) -> tuple[Tensor, Tensor]:
        """Return tokens (item, token, feature) and their mask."""
        tokens = self.norm(x.values)
        if self.positions is not None:
            tokens = tokens + self.positions[: tokens.shape[1]]
        return tokens, x.mask


class FrameLayer(nn.Module):
    """Tokens of a video: `n_queries` summaries of every frame."""

    def __init__(
        self, layout: Layout, shape: Shape, *, scale: str, positions: bool, n_queries: int
    ) -> None:
        super().__init__()
        n_frames, n_tokens = layout.tokens
        self.width = shape.width
        self.tokens = TokenLayer(layout.token_features, n_tokens, scale, positions)
        self.queries = nn.Parameter(_INIT_STD * torch.randn(1, n_queries, shape.width))
        self.qformer = QFormer(shape, layout.token_features)
        self.positions = nn.Parameter(_POSITION_STD * torch.randn(n_frames, 1, shape.width))

    def fit(self, tokens: Tensor) -> None:
        """Normalize by these tokens: (token, feature)."""
        self.tokens.fit(tokens)

    def forward(self, x: FeatureBatch) -> tuple[Tensor, Tensor]:
        """Return tokens (item, frame and query, width) and their mask."""
        shape = x.mask.shape[:2]  # item, frame
        flat = FeatureBatch(x.vector, x.values.flatten(0, 1), x.mask.flatten(0, 1))
        tokens, mask = self.tokens(flat)
        present = mask.any(dim=1)
        # Attention over a frame without tokens is undefined: unmask it, then mask its summary.
        out = self.qformer(self.queries, tokens, mask | ~present[:, None]).values
        out = out.reshape(*shape, *out.shape[1:]) + self.positions[: shape[1]]
        out_mask = present.reshape(shape)[:, :, None].expand(-1, -1, out.shape[2])
        return out.flatten(1, 2), out_mask.flatten(1)


class Heads(nn.Module):
    """A map from vectors and annotators to outputs: (pair, width), (pair) → (pair, out)."""

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        """Return the outputs of every pair."""
        raise NotImplementedError

    def own(self) -> list[Tensor]:
        """Return the parameters of annotators that get weight decay of their own."""
        return []


class SharedHeads(Heads):
    """One network for all annotators."""

    def __init__(
        self, n_annotators: int, width: int, hidden: int, out: int, after: nn.Module | None = None
    ) -> None:
        super().__init__()
        layers = [nn.Linear(width, hidden), after or nn.GELU()] if hidden else []
        self.body = nn.Sequential(*layers, nn.Linear(hidden or width, out))

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        return self.body(x)


class OwnHeads(Heads):
    """A network per annotator."""

    def __init__(
        self, n_annotators: int, width: int, hidden: int, out: int, after: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.after = after or nn.GELU()
        self.weights = nn.ModuleList()
        self.biases = nn.ModuleList()
        for n_in, n_out in pairwise([width, hidden, out] if hidden else [width, out]):
            limit = 1 / sqrt(n_in)
            start = torch.empty(n_annotators, n_in + 1, n_out).uniform_(-limit, limit)
            self.weights.append(Table(start[:, :-1]))  # (annotator, in, out)
            self.biases.append(Table(start[:, -1]))  # (annotator, out)

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        rows = slots(annotator)
        x = rows.pack(x)  # (row, slot, in)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = self.after(x) if layer else x
            x = torch.baddbmm(bias(rows.owner)[:, None], x, weight(rows.owner))
        return rows.unpack(x)


class BiasHeads(Heads):
    """A shared network and a bias per annotator."""

    def __init__(
        self, n_annotators: int, width: int, hidden: int, out: int, after: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.shared = SharedHeads(n_annotators, width, hidden, out, after)
        self.bias = Table(torch.zeros(n_annotators, out))

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        return self.shared(x, annotator) + self.bias(annotator)


class ShrunkHeads(BiasHeads):
    """A shared network, and a linear layer and a bias per annotator."""

    def __init__(
        self, n_annotators: int, width: int, hidden: int, out: int, after: nn.Module | None = None
    ) -> None:
        super().__init__(n_annotators, width, hidden, out, after)
        self.weight = Table(torch.zeros(n_annotators, width, out))

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        rows = slots(annotator)
        own = torch.bmm(rows.pack(x), self.weight(rows.owner))
        return super().forward(x, annotator) + rows.unpack(own)

    def own(self) -> list[Tensor]:
        return [self.weight.weight]


class QuestionHeads(Heads):
    """Classifiers of several questions: (pair, class), minus infinity for classes of others.

    The code of a pair is question × number of annotators + annotator.
    """

    def __init__(self, heads: list[Heads], n_annotators: int, n_classes: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)
        self.n_annotators, self.n_classes = n_annotators, n_classes

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        question = annotator // self.n_annotators
        parts, order = [x.new_zeros(0, self.n_classes)], []
        for number, heads in enumerate(self.heads):
            pairs = torch.nonzero(question == number)[:, 0]
            order.append(pairs)
            if len(pairs):
                logits = heads(x[pairs], annotator[pairs] % self.n_annotators)
                missing = self.n_classes - logits.shape[1]
                parts.append(functional.pad(logits, (0, missing), value=-torch.inf))
        return torch.cat(parts)[torch.argsort(torch.cat(order))]

    def own(self) -> list[Tensor]:
        return [parameter for heads in self.heads for parameter in cast(Heads, heads).own()]


class OrdinalHeads(Heads):
    """A score and thresholds that cut it into labels: log-probabilities (pair, class)."""

    def __init__(self, score: Heads, gaps: Tensor, n_annotators: int, *, own: bool) -> None:
        super().__init__()
        self.score = score
        self.gaps = nn.Parameter(gaps.clone())  # (class − 1)
        self.own_gaps = Table(torch.zeros(n_annotators, len(gaps))) if own else None

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        gaps = self.gaps.expand(len(x), -1)
        if self.own_gaps is not None:
            gaps = gaps + self.own_gaps(annotator)
        steps = torch.cat([gaps[:, :1], functional.softplus(gaps[:, 1:]) + _MIN_GAP], dim=1)
        above = steps.cumsum(dim=1) - self.score(x, annotator)  # (pair, class − 1)
        at_most = functional.logsigmoid(above)
        log_above = functional.logsigmoid(-above)
        # σ(a) − σ(b) = σ(a) σ(−b) (1 − exp(b − a))
        between = at_most[:, 1:] + log_above[:, :-1] + torch.log(-torch.expm1(-steps[:, 1:]))
        return torch.cat([at_most[:, :1], between, log_above[:, -1:]], dim=1)

    def own(self) -> list[Tensor]:
        gaps = [] if self.own_gaps is None else [self.own_gaps.weight]
        return [*self.score.own(), *gaps]


def gaps_of(counts: Tensor) -> Tensor:
    """Return gaps whose thresholds give the classes the shares of these counts, at score zero.

    >>> gaps_of(torch.tensor([1.0, 1.0]))
    tensor([0.])
    """
    share = (counts.cumsum(dim=0)[:-1] + 0.5) / (counts.sum() + 1)
    steps = torch.diff(torch.logit(share), prepend=torch.zeros(1))
    upper = (steps[1:] - _MIN_GAP).clamp(min=1e-2)
    return torch.cat([steps[:1], torch.log(torch.expm1(upper))])


class Slots(NamedTuple):
    """Positions of pairs in padded rows of equal length, one or more rows per owner.

    Queries on the same item, and vectors for the same annotator's classifier, are processed
    together: one matrix product per row instead of a copy of the matrix per pair. A row has at most
    twice the mean number of slots, so rows have at most three times as many slots as there are
    pairs, however unevenly pairs are distributed.
    """

    owner: Tensor  # (row)
    position: Tensor  # (pair): row × size + slot
    size: int  # slots of a row

    def pack(self, x: Tensor) -> Tensor:
        """Return pairs (pair, …) in rows, padded with zeros: (row, slot, …)."""
        out = x.new_zeros(len(self.owner) * self.size, *x.shape[1:])
        return out.index_copy(0, self.position, x).reshape(len(self.owner), self.size, *x.shape[1:])

    def unpack(self, x: Tensor) -> Tensor:
        """Return pairs (pair, …) from rows (row, slot, …)."""
        return x.flatten(0, 1)[self.position]


def slots(owner: Tensor) -> Slots:
    """Return rows for pairs, given the owner of each (pair).

    >>> rows = slots(torch.tensor([5, 2, 5]))
    >>> rows.owner.tolist(), rows.size, rows.pack(torch.tensor([1, 2, 3])).tolist()
    ([2, 5], 2, [[2, 0], [1, 3]])
    """
    owners, index, count = torch.unique(owner, return_inverse=True, return_counts=True)
    size = int(min(count.max(), -(-2 * len(owner) // len(owners)))) if len(owner) else 1
    n_rows = -(-count // size)  # (owner)
    order = torch.argsort(index, stable=True)
    rank = torch.empty_like(order)
    start = count.cumsum(0) - count
    rank[order] = torch.arange(len(owner), device=owner.device) - start[index[order]]
    row = (n_rows.cumsum(0) - n_rows)[index] + rank // size
    return Slots(owners.repeat_interleave(n_rows), row * size + rank % size, size)
