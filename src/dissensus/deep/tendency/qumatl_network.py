"""The network of QuMATL: a query per annotator attends to the item, a classifier gives the label.

    tokens ─queries─▶ Q-Former ─shared layer─▶ classifier of the annotator ─▶ label

Several questions about an item share everything but the classifiers, of which each has its own,
and an offset to the query of every annotator, since questions may be about different regions. With
`offsets=False` an annotator has the same query for all questions. Together they need more of the
tokens than one question does, so queries get the values of tokens at full scale from the start.

With self-attention between queries, all annotators' queries attend to every item. Without, only
those of annotators with labels do, so a step costs what its annotations cost.

An annotator added to a trained network is one more row in every table, and only that row is
trained. It starts as that of the annotator under whom the new labels are most likely or, without
labels, from the metadata through the map of the queries. Queries of the other annotators do not
attend to the new one, so their predictions do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ...answers.annotations import Annotations, Floats, Integers
from ...errors import DataError, MethodError
from ..nn import Batch, Examples, Features, Learner, Table, Training, train
from ..nn.estimator import Standardize
from ..nn.features import FeatureBatch, Layout
from .baselines import label_marginals
from .qformer import Output, QFormer, Shape, load_qformer, pass_tokens_on
from .query_heads import (
    BiasHeads,
    FrameLayer,
    Heads,
    OrdinalHeads,
    OwnHeads,
    QuestionHeads,
    SharedHeads,
    ShrunkHeads,
    TokenLayer,
    gaps_of,
    slots,
)

if TYPE_CHECKING:
    from .qumatl import Qumatl


_INIT_STD = 0.02
_QUERY_DROPOUT = 0.25  # how often an annotator is represented by their metadata alone
_NORM_ITEMS = 1024  # items by which tokens are normalized
_SHRINK = 0.1, 3.0  # of one question, and of several: each has its own parameters per annotator
_TRAINING = Training(  # of an annotator added later
    epochs=40, batch=16, optimizer="adamw", lr=3e-3, scheduler="cosine", clip=1.0, held_out=0.0
)
_ENOUGH = 50  # labels from which some are held out to choose the epoch
_BATCH = 64


@dataclass(frozen=True)
class Sizes:
    """Sizes of a network, storable as JSON."""

    layout: Layout
    shape: Shape
    n_core: int  # annotators it was trained with
    n_classes: int
    n_metadata: int = 0
    n_added: int = 0  # annotators added later
    positions: bool = False
    questions: tuple[int, ...] = ()  # classes of each, if there are several questions

    @property
    def n_annotators(self) -> int:
        """All annotators."""
        return self.n_core + self.n_added

    def as_dict(self) -> dict[str, Any]:
        """Return the sizes for JSON."""
        return asdict(self) | {"layout": list(self.layout)}

    @classmethod
    def from_dict(cls, sizes: dict[str, Any]) -> Self:
        """Return sizes from JSON."""
        n_features, positions, token_features = sizes["layout"]
        layout = Layout(n_features, tuple(positions), token_features)
        typed = {"layout": layout, "shape": Shape(**sizes["shape"])}
        return cls(**(sizes | typed | {"questions": tuple(sizes.get("questions", ()))}))


class Queries(nn.Module):
    """A query per annotator: an embedding, plus a linear map of their metadata.

    With several questions there is one per question and annotator, which share the embedding.
    """

    metadata: Tensor  # (annotator, feature)

    def __init__(
        self, n_annotators: int, width: int, n_metadata: int, n_questions: int = 1
    ) -> None:
        super().__init__()
        self.own = Table(_INIT_STD * torch.randn(n_annotators, width))
        n_offsets = n_questions * n_annotators if n_questions > 1 else 0
        self.offsets = Table(torch.zeros(n_offsets, width)) if n_offsets else None
        self.map = nn.Linear(n_metadata, width) if n_metadata else None
        self.scaling = Standardize(n_metadata)
        self.register_buffer("metadata", torch.zeros(n_annotators, n_metadata))

    def forward(self, annotator: Tensor) -> Tensor:
        """Return the queries of annotators: (annotator, width)."""
        if self.offsets is None:
            return self._with_metadata(self.own(annotator), annotator)
        person = annotator % len(self.own.weight)
        return self._with_metadata(self.own(person), person) + self.offsets(annotator)

    def first(self, count: int) -> Tensor:
        """Return the queries of the first annotators, with a dense gradient: (annotator, width)."""
        annotator = torch.arange(count, device=self.own.weight.device)
        if self.offsets is None:
            return self._with_metadata(self.own.all[:count], annotator)
        person = annotator % len(self.own.weight)
        return self._with_metadata(self.own.all[person], person) + self.offsets.all[:count]

    def _with_metadata(self, own: Tensor, annotator: Tensor) -> Tensor:
        if self.map is None:
            return own
        if self.training:
            dropped = torch.rand(len(self.metadata), 1, device=own.device) < _QUERY_DROPOUT
            own = own.masked_fill(dropped[annotator], 0)
        return own + self.map(self.scaling(self.metadata[annotator]))


class UnitLength(nn.Module):
    """Vectors divided by their length."""

    def forward(self, x: Tensor) -> Tensor:
        """Return vectors of length one: (…, width)."""
        return functional.normalize(x, dim=-1)


class QueryNet(Learner):
    """A query per annotator, a Q-Former, a shared layer and classifiers.

    Without queries, the vector of the item goes to the shared layer.
    """

    tokens: TokenLayer | FrameLayer
    qformer: QFormer
    queries: Queries

    def __init__(self, sizes: Sizes, method: Qumatl) -> None:
        super().__init__()
        self.sizes, self.votes = sizes, method.votes
        self.by_accuracy = method.choose == "accuracy"
        self.frozen_core = False
        self.shrink = _SHRINK[bool(sizes.questions)] if method.shrink is None else method.shrink
        self.consistency = method.consistency
        n_sums = sizes.n_core * max(len(sizes.questions), 1)
        self.loss_scale = n_sums if method.reduction == "sum" else 1
        shape, layout = sizes.shape, sizes.layout
        self.has_queries, width = method.qformer, shape.width
        if not self.has_queries:
            self.scaling = Standardize(layout.features)
            width = layout.features
        elif len(layout.tokens) == 2:
            frames = replace(shape, self_attention=True)
            self.tokens = FrameLayer(
                layout,
                frames,
                scale=method.scale,
                positions=sizes.positions,
                n_queries=method.frame_queries,
            )
            video = replace(shape, layers=method.video_layers, cross_every=1)
            self.qformer = QFormer(video, width)
        else:
            n_tokens = layout.tokens[0] if layout.tokens else 1
            n_features = layout.token_features if layout.tokens else layout.features
            self.tokens = TokenLayer(n_features, n_tokens, method.scale, sizes.positions)
            self.qformer = QFormer(shape, n_features)
        if self.has_queries:
            n_questions = len(sizes.questions) if method.offsets else 1
            self.queries = Queries(sizes.n_annotators, width, sizes.n_metadata, n_questions)
        dropout = shape.dropout if method.fc_dropout is None else method.fc_dropout
        after = UnitLength() if method.unit else nn.GELU()
        self.fc = nn.Sequential(nn.Linear(width, method.fc), after, nn.Dropout(dropout))
        self.heads = _heads(sizes, method)

    def start(
        self,
        features: Features,
        questions: Sequence[Annotations],
        *,
        metadata: Floats | None,
        seed: int,
        pretrained: str | None,
    ) -> None:
        """Initialize from the data, and from a pretrained Q-Former if there is one."""
        if not self.has_queries:
            self.scaling.fit(torch.from_numpy(features.vectors))
        else:
            sample = np.random.default_rng(seed).permutation(len(features))[:_NORM_ITEMS]
            x = self.split(features.rows[np.sort(sample)])
            self.tokens.fit(x.values[x.mask])
            if self.sizes.questions:
                pass_tokens_on(self)
            if pretrained is not None:
                self._load(pretrained)
            if metadata is not None:
                self.queries.metadata.copy_(torch.as_tensor(metadata))
                self.queries.scaling.fit(self.queries.metadata)
        heads = self.heads.heads if isinstance(self.heads, QuestionHeads) else [self.heads]
        for head, labels in zip(heads, questions, strict=True):
            if isinstance(head, BiasHeads):
                log = torch.from_numpy(np.log(label_marginals(labels))).float()
                head.bias.weight.data.copy_(log - log.mean(dim=1, keepdim=True))
            if isinstance(head, OrdinalHeads):
                counts = np.bincount(labels.label, minlength=labels.n_classes)
                head.gaps.data.copy_(gaps_of(torch.from_numpy(counts).float()))

    def _load(self, folder: str) -> None:
        """Load a pretrained Q-Former; its queries initialize ours, cyclically."""
        qformer, own = self.qformer, self.queries.own.weight.data  # (query, width)
        if isinstance(self.tokens, FrameLayer):  # frames are images; annotators come after them
            qformer, own = self.tokens.qformer, self.tokens.queries.data[0]
        loaded, queries = load_qformer(
            folder, qformer.key_width, self_attention=qformer.shape.self_attention
        )
        qformer.load_state_dict(loaded.state_dict())
        if queries is None:
            return
        own.copy_(queries[0][torch.arange(len(own)) % queries.shape[1]])
        if len(own) > queries.shape[1]:  # break ties
            own.add_(_INIT_STD * queries.std() * torch.randn_like(own))

    def split(self, x: Tensor) -> FeatureBatch:
        """Return rows of numbers as vectors, tokens and mask."""
        return self.sizes.layout.split(x)

    def log_given(self, x: FeatureBatch, row: Tensor, annotator: Tensor) -> Tensor:
        """Return log-probabilities of labels for pairs: (pair, class).

        With several questions, the code of an annotator is that of `QuestionHeads`.
        """
        if not self.sizes.questions or self.n_queries > self.sizes.n_core:
            return self.heads(self._hidden(x, row, annotator), annotator).log_softmax(dim=1)
        query, index = self._queries_of(row, annotator)
        hidden = self._hidden(x, query // self.sizes.n_core, query % self.sizes.n_core)
        return self.heads(hidden[index], annotator).log_softmax(dim=1)

    @property
    def n_queries(self) -> int:
        """Queries it was trained with: of annotators, or of questions and annotators."""
        offsets = self.queries.offsets if self.has_queries else None
        return self.sizes.n_core if offsets is None else len(offsets.weight)

    def _queries_of(self, row: Tensor, annotator: Tensor) -> tuple[Tensor, Tensor]:
        """Return row × annotators + annotator once for all questions, and the index of pairs."""
        key = row * self.sizes.n_core + annotator % self.sizes.n_core
        query, index = torch.unique(key, return_inverse=True)
        return query, index

    def _hidden(self, x: FeatureBatch, row: Tensor, annotator: Tensor) -> Tensor:
        """Return the output of the shared layer: (pair, width)."""
        if not self.has_queries:
            hidden = self.scaling(x.vector)[row]
        elif self.votes == "before":
            queries = self.queries.first(self.sizes.n_core)[None]
            hidden = self.qformer(queries, *self.tokens(x)).values.mean(dim=1)[row]
        else:
            hidden = self.attend(x, row, annotator)
        return self.fc(hidden)

    def attend(self, x: FeatureBatch, row: Tensor, annotator: Tensor) -> Tensor:
        """Return the Q-Former's output for pairs of item and annotator: (pair, width)."""
        tokens, mask = self.tokens(x)
        if self.sizes.shape.self_attention:
            queries, column, n_added = self._all_queries(annotator)
            return self.qformer(queries[None], tokens, mask, n_added=n_added).values[row, column]
        rows = slots(row)
        items = torch.arange(len(tokens), device=row.device)
        owner = None if torch.equal(rows.owner, items) else rows.owner  # one row per item
        packed = rows.pack(self.queries(annotator))
        return rows.unpack(self.qformer(packed, tokens, mask, owner).values)

    def _all_queries(self, annotator: Tensor) -> tuple[Tensor, Tensor, int]:
        """Return all queries, the index of each annotator among them, and how many were added."""
        n_core = self.n_queries
        core = self.queries.first(n_core)
        core = core.detach() if self.frozen_core else core
        late = annotator >= n_core
        if not bool(late.any()):
            return core, annotator, 0
        added, position = torch.unique(annotator[late], return_inverse=True)
        column = annotator.clone()
        column[late] = n_core + position
        return torch.cat([core, self.queries(added)]), column, len(added)

    def attention(self, x: FeatureBatch, annotator: Tensor) -> Output:
        """Return the output of these annotators' queries on every item, with attention weights."""
        tokens, mask = self.tokens(x)
        if not self.sizes.shape.self_attention:
            return self.qformer(self.queries(annotator)[None], tokens, mask, weights=True)
        queries, column, n_added = self._all_queries(annotator)
        out = self.qformer(queries[None], tokens, mask, n_added=n_added, weights=True)
        return out._replace(
            values=out.values[:, column], cross=[weights[:, :, column] for weights in out.cross]
        )

    def _log_batch(self, batch: Batch) -> Tensor:
        return self.log_given(self.split(batch.x), batch.row, batch.annotator)

    def loss(self, batch: Batch) -> Tensor:
        log = self._log_batch(batch)
        loss = functional.nll_loss(log, batch.label)
        if self.consistency and self.sizes.questions:
            loss = loss + self.consistency * self._inconsistency(log, batch)
        return self.loss_scale * loss

    def _inconsistency(self, log: Tensor, batch: Batch) -> Tensor:
        """Return the squared distance between an annotator's predictions and their mean: ().

        The mean is over the questions that the annotator answered on the same item.
        """
        query, index = self._queries_of(batch.row, batch.annotator)
        probability = log.exp()
        count = torch.bincount(index, minlength=len(query))[:, None]
        total = probability.new_zeros(len(query), log.shape[1]).index_add(0, index, probability)
        return (probability - (total / count)[index]).square().sum(dim=1).mean()

    def log_probability(self, batch: Batch) -> Tensor:
        return self._log_batch(batch).gather(1, batch.label[:, None])[:, 0]

    def predicted_labels(self, batch: Batch) -> Tensor:
        return self._log_batch(batch).argmax(dim=1)

    def groups(self) -> list[dict[str, Any]]:
        own = self.heads.own()
        if self.has_queries and self.queries.offsets is not None:
            own = [*own, self.queries.offsets.weight]
        ids = {id(parameter) for parameter in own}
        common = [parameter for parameter in self.parameters() if id(parameter) not in ids]
        return [{"params": common}, {"params": own, "weight_decay": self.shrink}]


def _heads(sizes: Sizes, method: Qumatl) -> Heads:
    """Return the classifiers that the settings ask for."""
    if sizes.questions:
        sizes_of_questions = [
            replace(sizes, n_classes=count, questions=()) for count in sizes.questions
        ]
        heads = [_heads(question, method) for question in sizes_of_questions]
        return QuestionHeads(heads, sizes.n_core, sizes.n_classes)
    out = 1 if method.ordinal else sizes.n_classes
    own = method.head != "shared" and method.votes != "before"
    kind = {"own": OwnHeads, "bias": BiasHeads, "shrunk": ShrunkHeads, "shared": SharedHeads}
    activation = {"gelu": nn.GELU, "relu": nn.ReLU}[method.activation]()
    after = nn.Sequential(activation, nn.Dropout(method.head_dropout))
    classifier: Heads = kind[method.head if own else "shared"](
        sizes.n_annotators, method.fc, method.head_hidden, out, after
    )
    if method.ordinal:
        start = torch.zeros(sizes.n_classes - 1)
        classifier = OrdinalHeads(classifier, start, sizes.n_annotators, own=own)
    return classifier


def add_annotator(
    net: QueryNet, features: Features, label: Integers, *, metadata: Floats | None, seed: int
) -> QueryNet:
    """Return a network with one more annotator, the last."""
    _check(net, label, metadata)
    new = net.sizes.n_annotators
    nearest = _nearest(net, features, label) if len(label) else None
    grown = deepcopy(net)
    grown.sizes = replace(net.sizes, n_added=net.sizes.n_added + 1)
    _add_row(grown, nearest)
    if grown.has_queries:
        encoded = net.queries.metadata
        row = encoded[[nearest or 0]]
        if metadata is not None:
            row = torch.as_tensor(metadata, dtype=torch.float32)[None]
            if nearest is None:
                grown.queries.own.weight.data[new] = 0
        grown.queries.metadata = torch.cat([encoded, row])
    if not len(label):
        return grown.eval()
    annotations = Annotations.from_labels(label, net.sizes.n_classes)
    annotations = annotations.with_codes(annotator=np.full(len(label), new), annotators=new + 1)
    grown.requires_grad_(False)
    for module in grown.modules():
        if isinstance(module, Table):
            module.weight.requires_grad_(True)
    grown.frozen_core = True
    held_out = 0.2 if len(label) >= _ENOUGH else 0.0
    settings = replace(_TRAINING, held_out=held_out, seed=seed >> 32)
    train(grown, Examples(features.rows, annotations), settings)
    grown.frozen_core = False
    return grown.requires_grad_(True).cpu().eval()


def _check(net: QueryNet, label: Integers, metadata: Floats | None) -> None:
    if net.votes == "before":
        raise MethodError("a model of majority labels has no annotators; none can be added")
    expected = net.sizes.n_metadata
    n_given = 0 if metadata is None else len(metadata)
    if n_given != expected and (metadata is not None or not len(label)):
        raise DataError(
            f"the model has {expected} metadata features of an annotator, but {n_given} are given"
        )
    heads = net.heads.score if isinstance(net.heads, OrdinalHeads) else net.heads
    if not len(label) and (isinstance(heads, OwnHeads) or not expected):
        reason = "every annotator has their own classifier" if expected else "no metadata"
        raise MethodError(f"no labels of the new annotator, and {reason}; give some labels")


@torch.no_grad()
def _nearest(net: QueryNet, features: Features, label: Integers) -> int:
    """Return the annotator under whom labels are most likely."""
    n_core = net.sizes.n_core
    total = torch.zeros(n_core, dtype=torch.float64)
    codes = torch.from_numpy(np.asarray(label, dtype=np.int64))
    for start in range(0, len(label), _BATCH):
        items = np.arange(start, min(start + _BATCH, len(label)))
        row = torch.arange(len(items)).repeat_interleave(n_core)
        annotator = torch.arange(n_core).repeat(len(items))
        log = net.log_given(net.split(features.rows[items]), row, annotator)
        likelihood = log.gather(1, codes[items][row][:, None])
        total += likelihood.reshape(len(items), n_core).double().sum(dim=0)
    return int(total.argmax())


def _add_row(net: nn.Module, source: int | None) -> None:
    """Append a row to every table: a copy of row `source`, or zeros."""
    for module in list(net.modules()):
        for name, table in list(module.named_children()):
            if isinstance(table, Table):
                rows: Tensor = table.all.detach()
                row = torch.zeros_like(rows[:1]) if source is None else rows[source : source + 1]
                setattr(module, name, Table(torch.cat([rows, row])))
