"""QuMATL (Zhang et al. 2025): every annotator asks the item with a query of their own.

The tokens of an item (patches, words, frames) come from an encoder that learns nothing. A Q-Former
with one learned query per annotator asks them; what a query found goes through a layer that all
share and then through the annotator's own classifier:

    P(annotator k says · of x) = softmax(classifier_k(gelu(W · Q-Former(queries, tokens(x))[k])))

The loss is the sum of the cross-entropies of the labels that were given; a label that was not
given is in no sum. Defaults are the paper's. Its ablations are settings: `qformer=False` (base:
the vector of the item instead of queries), `head=shared` (U-cls), `self_attention=False`,
`votes=before` (pre-mv: learn the majority label from the mean of all queries) and `votes=after`
(post-mv: the majority of what all annotators are foreseen to say).

What the paper leaves open is ours: the width of the shared layer (256), one hidden layer in every
classifier, batches of 32 items, and a tenth of the items held out, by which the epoch with the
highest mean accuracy over annotators is kept. With these widths, ten annotators, six classes and
the tokens of ViT-G there are 106.02 million parameters, as published.

    L. Zhang, Z. Lian, H. Liu, T. Takebe, Y. Nakashima. QuMATL: query-based multi-annotator
    tendency learning. 2025. arXiv:2503.15237
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..errors import DataError, MethodError
from ..nn.batches import Examples
from ..nn.devices import mixed
from ..nn.training import History, Training, train
from ..params import Count, NonNegative, Positive, Probability
from ._base import How, State, Tendency, TendencyMethod, Views
from ._net import QueryNet, Sizes
from .qformer import Asked, Shape, pretrained_shape

__all__ = ["QueryTendency", "Qumatl", "voted"]

_ITEMS = 256  # asked at a time
_PAIRS = 2**14
_FEW = 64  # annotators that see each other, where nobody says whether they should


class QueryTendency(Tendency):
    """Networks that were fitted with different seeds; chances are their means."""

    def __init__(
        self, nets: Sequence[QueryNet], method: Qumatl, histories: Sequence[History] = ()
    ) -> None:
        self.nets, self.method, self.histories = tuple(nets), method, tuple(histories)
        sizes = nets[0].sizes
        self.n_annotators, self.n_classes = sizes.n_core + sizes.n_guests, sizes.n_classes

    def log_probability(
        self,
        views: Views,
        item: Integers,
        annotator: Integers,
        offset: Floats | None = None,
    ) -> Floats:
        """Return log-probabilities of what annotators say of items, pair by pair: (pair, class).

        Parameters
        ----------
        views
            The items.
        item
            Of every pair.
        annotator
            Of every pair.
        offset
            Logits of every pair that the networks are added to, where they were fitted so.
        """
        self._check(views, offset)
        if self.method.votes == "after":
            items, position = np.unique(item, return_inverse=True)
            return self._voted(views.take(items))[position]
        return self._log_probability(views, item, annotator, offset)

    def _log_probability(
        self, views: Views, item: Integers, annotator: Integers, offset: Floats | None = None
    ) -> Floats:
        out = np.empty((len(item), self.n_classes))
        order = np.argsort(item, kind="stable")
        for pairs in _pieces(np.asarray(item)[order]) if len(item) else ():
            here = order[pairs]
            items, row = np.unique(np.asarray(item)[here], return_inverse=True)
            x = views.rows[items]
            who = torch.from_numpy(np.asarray(annotator)[here].astype(np.int64))
            more = None if offset is None else torch.as_tensor(offset[here], dtype=torch.float32)
            with torch.inference_mode():
                logs = [
                    net.log_given(net.seen(x), torch.from_numpy(row), who, more)
                    .double()
                    .log_softmax(1)
                    for net in self.nets
                ]
            out[here] = (torch.stack(logs).logsumexp(dim=0) - np.log(len(logs))).numpy()
        return out

    def _voted(self, views: Views) -> Floats:
        """Return the shares of annotators who are foreseen to say every class: (item, class)."""
        n_items, everyone = len(views), np.arange(self.n_annotators)
        item = np.repeat(np.arange(n_items), self.n_annotators)
        log = self._log_probability(views, item, np.tile(everyone, n_items))
        chance = np.exp(log).reshape(n_items, self.n_annotators, self.n_classes)
        return np.log(voted(chance))

    def looked(self, views: Views, annotator: Integers, net: int = 0) -> Asked:
        """Return where these annotators look in every item; by one of the networks."""
        chosen = self.nets[net]
        if chosen.asks is None:
            raise MethodError("without a Q-Former nobody looks anywhere; fit with qformer=True")
        self._check(views, None, maps=True)
        with torch.inference_mode():
            seen = chosen.seen(views.rows[np.arange(len(views))])
            return chosen.looked(seen, torch.from_numpy(np.asarray(annotator, dtype=np.int64)))

    def state(self) -> State:
        arrays = {
            f"{position}.{name}": value.cpu().numpy()
            for position, net in enumerate(self.nets)
            for name, value in net.state_dict().items()
        }
        return State({"sizes": self.nets[0].sizes.notes(), "nets": len(self.nets)}, arrays)

    def with_annotator(
        self,
        views: Views,
        label: Integers,
        *,
        features: Floats | None = None,
        seed: int = 0,
    ) -> QueryTendency:
        from ._newcomer import joined

        nets = [
            joined(net, views, label, features, mixed(seed, position))
            for position, net in enumerate(self.nets)
        ]
        return QueryTendency(nets, self.method)

    def _check(self, views: Views, offset: Floats | None, *, maps: bool = False) -> None:
        sizes = self.nets[0].sizes
        mine, given = sizes.layout, views.layout
        same = mine.features == given.features and mine.token_features == given.token_features
        if not same or len(mine.positions) != len(given.positions):
            raise DataError(f"items are {_told(given)}, but the model has learned {_told(mine)}")
        frames = len(mine.positions) == 2 and given.positions[0] > mine.positions[0]
        if frames or (sizes.positions and mine.positions != given.positions):
            raise DataError(
                f"items have {given.positions} places, but the model has learned {mine.positions}"
            )
        if not maps and sizes.corrects != (offset is not None):
            wanted = "asks for" if sizes.corrects else "was fitted without"
            raise MethodError(f"the model {wanted} offsets")


def voted(chance: Floats) -> Floats:
    """Return shares of annotators by their most probable class, none of them zero: (item, class).

    Among classes with as many votes, the one with the higher chances added up is ahead by a hair.

    >>> voted(np.array([[[0.6, 0.4], [0.4, 0.6], [0.3, 0.7]]])).argmax(axis=1).tolist()
    [1]
    """
    n_items, n_annotators, n_classes = chance.shape
    best = chance.argmax(axis=2)
    votes = np.zeros((n_items, n_classes))
    np.add.at(votes, (np.arange(n_items)[:, None], best), 1)
    shares = votes + chance.sum(axis=1) / (n_annotators + 1)
    return shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class Qumatl(TendencyMethod):
    """A query per annotator asks the item, and a classifier of their own says the label.

    Parameters
    ----------
    width
        Of a query.
    layers
        Of the Q-Former.
    heads
        Of every attention.
    hidden
        Width of the layer that ends every layer of the Q-Former.
    cross_every
        Queries look at the item in the first layer and every so many.
    dropout
        Share left out in every step.
    self_attention
        Whether queries see each other; `None`: where there are at most 64 annotators.
    qformer
        Whether there are queries; without, the vector of the item goes to the shared layer.
    fc
        Width of the shared layer.
    head
        Classifiers: each annotator's own, one shared, or a shared one with a bias, or with a bias
        and a linear part (shrunk), of their own.
    head_hidden
        Width of their hidden layer; 0 for none.
    ordinal
        Whether classes stand in an order: one score and thresholds instead of logits.
    votes
        before: learn the majority label; after: foresee the majority of what all would say.
    positions
        Whether places get learned vectors, where all items have the same places.
    scale
        Tokens are scaled each by its own spread (layer) or by feature over items (feature).
    frame_queries
        Of videos: queries that sum up a frame.
    video_layers
        Of videos: layers in which annotators' queries look at the frames.
    pretrained
        A folder with the Q-Former of BLIP-2 or InstructBLIP to begin with; sizes are its own.
    reduction
        The loss as a sum over annotators, or as their mean.
    shrink
        Weight decay of what is an annotator's own, of `head=shrunk`.
    fits
        How often it is fitted, with other seeds; chances are averaged.
    epochs, batch, lr, decay, warmup, clip, patience, held_out, precision
        How to train; see `dissensus.nn.Training`.
    choose
        By what the epoch is chosen: accuracy, annotator by annotator, or likelihood.
    """

    wants_tokens: ClassVar[bool] = True

    width: Count = 768
    layers: Count = 12
    heads: Count = 12
    hidden: Count = 3072
    cross_every: Count = 2
    dropout: Probability = 0.1
    self_attention: bool | None = True
    qformer: bool = True
    fc: Count = 256
    head: Literal["own", "shared", "bias", "shrunk"] = "own"
    head_hidden: Annotated[int, Ge(0)] = 256
    ordinal: bool = False
    votes: Literal["none", "before", "after"] = "none"
    positions: bool = False
    scale: Literal["layer", "feature"] = "layer"
    frame_queries: Count = 32
    video_layers: Count = 2
    pretrained: str | None = None
    reduction: Literal["sum", "mean"] = "sum"
    shrink: NonNegative = 0.01
    fits: Count = 1
    epochs: Count = 200
    batch: Count = 32
    lr: Positive = 1e-4
    decay: NonNegative = 0.01
    warmup: Probability = 0.2
    clip: NonNegative = 1.0
    patience: Annotated[int, Ge(0)] = 25
    held_out: Probability = 0.1
    precision: Literal["32", "bf16"] = "32"
    choose: Literal["accuracy", "likelihood"] = "accuracy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretrained is None:
            self._shape(1)  # sizes that do not go together are found here

    def learn(
        self, views: Views, annotations: Annotations, how: How, offset: Floats | None = None
    ) -> QueryTendency:
        """Return the fitted model.

        Parameters
        ----------
        views, annotations, how
            What to learn from.
        offset
            Logits (annotation, class) in the order of `annotations`: the networks begin at zero and are
            added to them.
        """
        if offset is not None and (self.ordinal or self.votes == "before"):
            raise MethodError("offsets go with labels without an order, and without votes before")
        sizes = Sizes(
            views.layout,
            self._shape(annotations.n_annotators),
            annotations.n_annotators,
            annotations.n_classes,
            n_metadata=0 if how.metadata is None else np.shape(how.metadata)[1],
            positions=self.positions and _alike(views),
            corrects=offset is not None,
        )
        labels = _majority(annotations, how.seed) if self.votes == "before" else annotations
        found = [
            self._fit(views, annotations, labels, how, offset, sizes, position)
            for position in range(self.fits)
        ]
        return QueryTendency([net for net, _ in found], self, [history for _, history in found])

    def _fit(
        self,
        views: Views,
        annotations: Annotations,
        labels: Annotations,
        how: How,
        offset: Floats | None,
        sizes: Sizes,
        position: int,
    ) -> tuple[QueryNet, History]:
        """Fit one of the networks."""
        seed = mixed(how.seed, position) >> 32
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = QueryNet(sizes, self)
            net.start(views, annotations, how.metadata, seed, self.pretrained)
        if offset is not None:
            net.offset_by(labels, offset)

        def progress(done: float, total: float = 0, message: str = "") -> None:
            how.progress(done + position * total, self.fits * total, message)

        history = train(
            net,
            Examples(views.rows, labels),
            self.training(seed),
            folder=how.inside(f"fit-{position + 1}").folder,
            resume=how.resume,
            progress=progress,
        )
        net.offset_key, net.offset_value = net.offset_key[:0], net.offset_value[:0]
        return net.cpu().eval(), history

    def restore(self, state: State) -> QueryTendency:
        sizes = Sizes.of(state.notes["sizes"])
        nets = []
        for position in range(state.notes["nets"]):
            net = QueryNet(sizes, self)
            start = f"{position}."
            weights = {
                name.removeprefix(start): torch.from_numpy(np.array(value))
                for name, value in state.arrays.items()
                if name.startswith(start)
            }
            net.load_state_dict(weights)
            nets.append(net.eval())
        return QueryTendency(nets, self)

    def training(self, seed: int) -> Training:
        """Return how it is trained."""
        return Training(
            epochs=self.epochs,
            batch=self.batch,
            optimizer="adamw",
            lr=self.lr,
            decay=self.decay,
            scheduler="warmup-cosine",
            warmup=self.warmup,
            clip=self.clip,
            patience=self.patience,
            held_out=self.held_out,
            precision=self.precision,
            seed=seed,
        )

    def _shape(self, n_annotators: int) -> Shape:
        own = n_annotators <= _FEW if self.self_attention is None else self.self_attention
        if self.pretrained is not None:
            return replace(pretrained_shape(self.pretrained), self_attention=own)
        return Shape(
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            hidden=self.hidden,
            cross_every=self.cross_every,
            self_attention=own,
            dropout=self.dropout,
        )


def _pieces(item: Integers) -> list[slice]:
    """Return slices of pairs, sorted by item, of a few items and pairs each."""
    starts = np.flatnonzero(np.diff(item, prepend=-1))
    ends = np.append(starts[1:], len(item))
    pieces, at, since = [], 0, 0
    for position, end in enumerate(ends.tolist(), 1):
        if position - since >= _ITEMS or end - at >= _PAIRS or position == len(ends):
            pieces.append(slice(at, end))
            at, since = end, position
    return pieces


def _alike(views: Views) -> bool:
    """Return whether all items have the same places."""
    if views.tokens is None:
        return False
    mask: Any = views.tokens.mask
    return bool(np.asarray(mask).all())


def _majority(annotations: Annotations, seed: int) -> Annotations:
    """Return the label that most gave to every item, as of one annotator; ties by lot."""
    votes = annotations.votes()
    lot = np.random.default_rng([seed, 0x71E]).random(votes.shape)
    item = np.flatnonzero(annotations.labels_per_item)
    label = (votes + lot / 2)[item].argmax(axis=1)
    return Annotations.from_codes(
        item,
        np.zeros(len(item), np.int64),
        label,
        items=annotations.items,
        annotators=["majority"],
        classes=annotations.classes,
    )


def _told(layout: Any) -> str:
    positions = " × ".join(map(str, layout.positions))
    if not layout.positions:
        return f"vectors of {layout.features}"
    return f"{positions} tokens of {layout.token_features}"
