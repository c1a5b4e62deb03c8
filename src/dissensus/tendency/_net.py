"""The network of QuMATL: a query per annotator asks the item, a classifier says the label.

    tokens ─queries─▶ Q-Former ─shared layer─▶ classifier of the annotator ─▶ label

Where queries see each other, all of them ask every item. Where they do not, only those whose
labels are wanted do, so that a step costs what its annotations cost.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .._relation import Floats
from ..annotations import Annotations
from ..errors import DataError
from ..nn.batches import Batch
from ..nn.learner import Learner
from ..nn.tables import Table
from ._base import Layout, Seen, Views
from ._entrance import Entrance, FrameEntrance, Scaling
from ._heads import (
    BiasHeads,
    Heads,
    OrdinalHeads,
    OwnHeads,
    SharedHeads,
    ShrunkHeads,
    gaps_of,
)
from ._slots import slots
from .own_majority import habits
from .qformer import Asked, QFormer, Shape, load_qformer

if TYPE_CHECKING:
    from .qumatl import Qumatl

__all__ = ["QueryNet", "Sizes"]

_START = 0.02
_ALONE = 0.25  # how often an annotator has to do with what is known of them, where that is given
_LOOK = 1024  # items by which tokens are scaled


@dataclass(frozen=True)
class Sizes:
    """How large a network is; what JSON can say of it."""

    layout: Layout
    shape: Shape
    n_core: int  # annotators that it was trained with
    n_classes: int
    n_metadata: int = 0
    n_guests: int = 0  # annotators that came later
    positions: bool = False
    corrects: bool = False  # whether it is added to logits that are given

    def notes(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self) | {"layout": list(self.layout)}

    @classmethod
    def of(cls, notes: dict[str, Any]) -> Self:
        """Return it from JSON."""
        features, positions, token_features = notes["layout"]
        layout = Layout(features, tuple(positions), token_features)
        return cls(**(notes | {"layout": layout, "shape": Shape(**notes["shape"])}))


class Queries(nn.Module):
    """A query per annotator: their own, and what is known of them through a linear map."""

    known: Tensor  # (annotator, feature)

    def __init__(self, n_annotators: int, width: int, n_metadata: int) -> None:
        super().__init__()
        self.own = Table(_START * torch.randn(n_annotators, width))
        self.map = nn.Linear(n_metadata, width) if n_metadata else None
        self.scaling = Scaling(n_metadata)
        self.register_buffer("known", torch.zeros(n_annotators, n_metadata))

    def forward(self, annotator: Tensor) -> Tensor:
        """Return the queries of annotators: (annotator, width)."""
        return self._told(self.own(annotator), annotator)

    def first(self, count: int) -> Tensor:
        """Return the queries of the first annotators: (annotator, width)."""
        return self._told(self.own.all[:count], torch.arange(count, device=self.own.weight.device))

    def _told(self, own: Tensor, annotator: Tensor) -> Tensor:
        if self.map is None:
            return own
        if self.training:
            alone = torch.rand(len(self.known), 1, device=own.device) < _ALONE
            own = own.masked_fill(alone[annotator], 0)
        return own + self.map(self.scaling(self.known[annotator]))


class QueryNet(Learner):
    """A query per annotator, a Q-Former, a shared layer and classifiers."""

    offset_key: Tensor  # (annotation): item and annotator as one number, in order
    offset_value: Tensor  # (annotation, class)

    def __init__(self, sizes: Sizes, method: Qumatl) -> None:
        super().__init__()
        self.sizes, self.votes = sizes, method.votes
        self.by_accuracy = method.choose == "accuracy"
        self.frozen_core = False
        self.shrink = method.shrink
        self.times = sizes.n_core if method.reduction == "sum" else 1
        n_annotators, shape = sizes.n_core + sizes.n_guests, sizes.shape
        layout = sizes.layout
        self.entrance: Entrance | FrameEntrance | None = None
        self.asks: QFormer | None = None
        width = shape.width
        if not method.qformer:
            self.scaling = Scaling(layout.features)
            width = layout.features
        elif len(layout.positions) == 2:
            self.entrance = FrameEntrance(
                layout,
                replace(shape, self_attention=True),
                method.scale,
                sizes.positions,
                method.frame_queries,
            )
            video = replace(shape, layers=method.video_layers, cross_every=1)
            self.asks = QFormer(video, shape.width)
        else:
            n_places = layout.positions[0] if layout.positions else 1
            features = layout.token_features if layout.positions else layout.features
            self.entrance = Entrance(features, n_places, method.scale, sizes.positions)
            self.asks = QFormer(shape, features)
        if self.asks is not None:
            self.queries = Queries(n_annotators, shape.width, sizes.n_metadata)
        self.fc = nn.Sequential(nn.Linear(width, method.fc), nn.GELU(), nn.Dropout(shape.dropout))
        self.heads = _heads(sizes, method, n_annotators)
        empty = torch.zeros(0, dtype=torch.int64)
        self.register_buffer("offset_key", empty, persistent=False)
        self.register_buffer("offset_value", empty.float(), persistent=False)

    def start(
        self,
        views: Views,
        annotations: Annotations,
        metadata: Floats | None,
        seed: int,
        folder: str | None,
    ) -> None:
        """Begin with what the data tell before anything is learned."""
        chosen = np.random.default_rng(seed).permutation(len(views))[:_LOOK]
        seen = self.sizes.layout.split(views.rows[np.sort(chosen)])
        if self.asks is None:
            self.scaling.fit(torch.from_numpy(views.vectors))
        elif self.entrance is not None:
            self.entrance.fit(seen.values[seen.mask])
        if folder is not None:
            self._load(folder)
        if metadata is not None and self.asks is not None:
            self.queries.known.copy_(torch.as_tensor(metadata))
            self.queries.scaling.fit(self.queries.known)
        if isinstance(self.heads, BiasHeads) and not self.sizes.corrects:
            habit = torch.from_numpy(np.log(habits(annotations, 2.0))).float()
            self.heads.bias.weight.data.copy_(habit - habit.mean(dim=1, keepdim=True))
        if isinstance(self.heads, OrdinalHeads):
            counts = torch.from_numpy(
                np.bincount(annotations.label, minlength=annotations.n_classes)
            ).float()
            self.heads.gaps.data.copy_(gaps_of(counts))

    def _load(self, folder: str) -> None:
        """Take the weights of a trained Q-Former, and its queries in turn."""
        asks, mine = self.asks, self.queries.own.weight.data  # (query, width)
        if isinstance(self.entrance, FrameEntrance):  # frames are images, annotators come after
            asks, mine = self.entrance.asks, self.entrance.queries.data[0]
        assert asks is not None
        own = asks.shape.self_attention
        made, queries = load_qformer(folder, asks.key_width, self_attention=own)
        asks.load_state_dict(made.state_dict())
        if queries is None:
            return
        mine.copy_(queries[0][torch.arange(len(mine)) % queries.shape[1]])
        if len(mine) > queries.shape[1]:  # no two begin alike
            mine.add_(_START * queries.std() * torch.randn_like(mine))

    def offset_by(self, annotations: Annotations, offset: Floats) -> None:
        """Be added to logits: (annotation, class), in the order of `annotations`."""
        if np.shape(offset) != (len(annotations), annotations.n_classes):
            raise DataError(
                f"offsets with the axes {np.shape(offset)}, but there are {len(annotations)} annotations "
                f"of {annotations.n_classes} classes"
            )
        key = annotations.item.astype(np.int64) * annotations.n_annotators + annotations.annotator
        order = np.argsort(key, kind="stable")
        self.offset_key = torch.from_numpy(key[order])
        self.offset_value = torch.as_tensor(np.asarray(offset)[order], dtype=torch.float32)

    def _offset(self, batch: Batch) -> Tensor | None:
        if not len(self.offset_key):
            return None
        key = batch.item[batch.row] * self.sizes.n_core + batch.annotator
        return self.offset_value[torch.searchsorted(self.offset_key, key)]

    def log_given(
        self, seen: Seen, row: Tensor, annotator: Tensor, offset: Tensor | None = None
    ) -> Tensor:
        """Return log-probabilities of labels, pair by pair: (pair, class)."""
        if self.votes == "before":
            found = self._together(seen)[row]
        elif self.asks is None:
            found = self.scaling(seen.vector)[row]
        else:
            found = self._asked(seen, row, annotator)
        logits = self.heads(self.fc(found), annotator)
        return (logits if offset is None else logits + offset).log_softmax(dim=1)

    def _asked(self, seen: Seen, row: Tensor, annotator: Tensor) -> Tensor:
        """Return what the queries of pairs found: (pair, width)."""
        assert self.entrance is not None
        assert self.asks is not None
        tokens, mask = self.entrance(seen)
        if self.sizes.shape.self_attention:
            queries, column, n_guests = self._crowd(annotator)
            found = self.asks(queries[None], tokens, mask, n_guests=n_guests).values
            return found[row, column]
        laid = slots(row)
        every = torch.arange(len(tokens), device=row.device)
        owner = None if torch.equal(laid.owner, every) else laid.owner  # a row each, in order
        return laid.pick(self.asks(laid.lay(self.queries(annotator)), tokens, mask, owner).values)

    def _crowd(self, annotator: Tensor) -> tuple[Tensor, Tensor, int]:
        """Return all queries that ask together, where those of annotators are, and guests."""
        n_core = self.sizes.n_core
        core = self.queries.first(n_core)
        core = core.detach() if self.frozen_core else core
        late = annotator >= n_core
        if not bool(late.any()):
            return core, annotator, 0
        guests, position = torch.unique(annotator[late], return_inverse=True)
        column = annotator.clone()
        column[late] = n_core + position
        return torch.cat([core, self.queries(guests)]), column, len(guests)

    def _together(self, seen: Seen) -> Tensor:
        """Return the mean of what all queries found: (item, width)."""
        if self.asks is None or self.entrance is None:
            return self.scaling(seen.vector)
        tokens, mask = self.entrance(seen)
        return self.asks(self.queries.first(self.sizes.n_core)[None], tokens, mask).values.mean(1)

    def looked(self, seen: Seen, annotator: Tensor) -> Asked:
        """Return what these annotators find in every item, and where they look."""
        assert self.entrance is not None
        assert self.asks is not None
        tokens, mask = self.entrance(seen)
        if not self.sizes.shape.self_attention:
            return self.asks(self.queries(annotator)[None], tokens, mask, weights=True)
        queries, column, n_guests = self._crowd(annotator)
        found = self.asks(queries[None], tokens, mask, n_guests=n_guests, weights=True)
        return Asked(
            found.values[:, column],
            [each[:, :, column] for each in found.cross],
            found.own,
        )

    def seen(self, x: Tensor) -> Seen:
        """Return rows taken apart."""
        return self.sizes.layout.split(x)

    def _log_batch(self, batch: Batch) -> Tensor:
        return self.log_given(self.seen(batch.x), batch.row, batch.annotator, self._offset(batch))

    def loss(self, batch: Batch) -> Tensor:
        return self.times * functional.nll_loss(self._log_batch(batch), batch.label)

    def log_probability(self, batch: Batch) -> Tensor:
        return self._log_batch(batch).gather(1, batch.label[:, None])[:, 0]

    def predicted_labels(self, batch: Batch) -> Tensor:
        return self._log_batch(batch).argmax(dim=1)

    def groups(self) -> list[dict[str, Any]]:
        own = self.heads.own()
        mine = {id(each) for each in own}
        rest = [each for each in self.parameters() if id(each) not in mine]
        return [{"params": rest}, {"params": own, "weight_decay": self.shrink}]


def _heads(sizes: Sizes, method: Qumatl, n_annotators: int) -> Heads:
    """Return what gives labels, as the settings say."""
    out = 1 if method.ordinal else sizes.n_classes
    wide = method.fc, method.head_hidden, out
    made: Heads
    if method.head == "shared" or method.votes == "before":
        made = SharedHeads(*wide, zero=sizes.corrects)
    elif method.head == "own":
        made = OwnHeads(n_annotators, *wide, zero=sizes.corrects)
    elif method.head == "bias":
        made = BiasHeads(n_annotators, *wide, zero=sizes.corrects)
    else:
        made = ShrunkHeads(n_annotators, *wide, zero=sizes.corrects)
    if method.ordinal:
        own = not isinstance(made, SharedHeads)
        made = OrdinalHeads(made, torch.zeros(sizes.n_classes - 1), n_annotators, own=own)
    return made
