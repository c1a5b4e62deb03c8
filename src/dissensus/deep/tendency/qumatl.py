"""QuMATL (Zhang et al. 2025): every annotator attends to the item with a query of their own.

The tokens of an item (patches, words, frames) come from a frozen encoder. A Q-Former with one
learned query per annotator attends to them; its output goes through a shared layer and then through
the annotator's own classifier:

    P(annotator k says · of x) = softmax(classifier_k(gelu(W · Q-Former(queries, tokens(x))[k])))

The loss is the sum of the cross-entropies of the observed labels. Defaults are the paper's. Its
ablations are settings: `qformer=False` (base: the vector of the item instead of queries),
`head=shared` (U-cls), `self_attention=False`, `votes=before` (pre-mv: learn the majority label from
the mean of all queries) and `votes=after` (post-mv: the majority of all predicted labels).

What the paper leaves open is our choice: a shared layer of width 256, one hidden layer in every
classifier, batches of 32 items, and a validation split of a tenth of the items, on which the epoch
with the highest mean accuracy over annotators is chosen. With these widths, ten annotators, six
classes and the tokens of ViT-G there are 106.02 million parameters, as published.

`qumab` is the setting of the code that the authors published with the later version: outputs of the
shared layer are unit vectors without activation, dropout of .5 follows them and of .3 the hidden
layer of every classifier, batches of 64, a learning rate of 1e-5 on top of pretrained weights, and
the epoch with the lowest validation loss. Its maps come from the second last of twelve layers, of
which every second attends to the item: that is the last one with cross-attention.

When it fails: With the paper's sizes on a few thousand labels it overfits, and needs a GPU.
Attention maps show where the model attends, which need not be why a person decided.

    L. Zhang, Z. Lian, H. Liu, T. Takebe, Y. Nakashima. QuMATL: query-based multi-annotator
    tendency learning. 2025. arXiv:2503.15237
    The later version: QuMAB, 2025. arXiv:2507.17653
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge

from ...answers.annotations import Annotations, Floats, Integers
from ...base.engine import one_blas_thread
from ...errors import DataError, MethodError
from ...params import Count, NonNegative, Positive, Probability
from ..nn.batches import Examples
from ..nn.devices import mixed, torch_seed
from ..nn.features import Features, Layout
from ..nn.runs import load_network, network_state
from ..nn.training import History, Training, train
from .base import FitOptions, State, Tendency, TendencyMethod
from .qformer import Output, Shape, pretrained_shape
from .qumatl_network import QueryNet, Sizes, add_annotator

_ITEMS = 256  # predicted at a time
_PAIRS = 2**14
_FEW = 64  # annotators whose queries attend to each other, if self_attention is None


class QueryTendency(Tendency):
    """Networks fitted with different seeds, whose probabilities are averaged."""

    def __init__(
        self, nets: Sequence[QueryNet], method: Qumatl, histories: Sequence[History] = ()
    ) -> None:
        self.nets, self.method, self.histories = tuple(nets), method, tuple(histories)
        sizes = nets[0].sizes
        self.n_annotators, self.n_classes = sizes.n_annotators, sizes.n_classes

    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        self._check(features)
        if self.method.votes != "after":
            return self._log_probability(features, np.asarray(item), np.asarray(annotator))
        items, index = np.unique(item, return_inverse=True)
        annotators = np.arange(self.n_annotators)
        pairs = np.repeat(items, len(annotators)), np.tile(annotators, len(items))
        log = self._log_probability(features, *pairs)
        probability = np.exp(log).reshape(len(items), len(annotators), self.n_classes)
        return np.log(vote_shares(probability))[index]

    @torch.inference_mode()
    def _log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        out = np.empty((len(item), self.n_classes))
        order = np.argsort(item, kind="stable")
        for piece in _pieces(item[order]):
            pairs = order[piece]
            items, row = np.unique(item[pairs], return_inverse=True)
            x = features.rows[items]
            codes = torch.from_numpy(annotator[pairs].astype(np.int64))
            logs = [
                net.log_given(net.split(x), torch.from_numpy(row), codes).double().log_softmax(1)
                for net in self.nets
            ]
            out[pairs] = (torch.stack(logs).logsumexp(dim=0) - np.log(len(logs))).numpy()
        return out

    @torch.inference_mode()
    def attention(self, features: Features, annotator: Integers, net: int = 0) -> Output:
        """Return attention weights of these annotators on every item, in one of the networks."""
        network = self.nets[net]
        if not network.has_queries:
            raise MethodError("no attention without a Q-Former; fit with qformer=True")
        self._check(features)
        x = network.split(features.rows[np.arange(len(features))])
        return network.attention(x, torch.from_numpy(np.asarray(annotator, dtype=np.int64)))

    def state(self) -> State:
        nets = {str(index): network_state(net) for index, net in enumerate(self.nets)}
        return State.join({"sizes": self.nets[0].sizes.as_dict(), "nets": len(nets)}, **nets)

    def with_annotator(self, features: Features, label: Integers, options: FitOptions) -> Tendency:
        if self.nets[0].sizes.questions:
            raise MethodError("a model of several questions takes no new annotator; fit it again")
        nets = [
            add_annotator(
                net, features, label, metadata=options.metadata, seed=mixed(options.seed, index)
            )
            for index, net in enumerate(self.nets)
        ]
        return QueryTendency(nets, self.method)

    def _check(self, features: Features) -> None:
        sizes = self.nets[0].sizes
        expected, actual = sizes.layout, features.layout
        widths = [(layout.features, layout.token_features) for layout in (expected, actual)]
        if widths[0] != widths[1] or len(expected.tokens) != len(actual.tokens):
            raise DataError(
                f"items are {_described(actual)}, "
                f"but the model was fitted to {_described(expected)}"
            )
        more_frames = len(expected.tokens) == 2 and actual.tokens[0] > expected.tokens[0]
        if more_frames or (sizes.positions and expected.tokens != actual.tokens):
            raise DataError(
                f"items have {actual.tokens} tokens, but the model was fitted to "
                f"{expected.tokens} tokens"
            )


class QuestionTendency(Tendency):
    """One of the questions of a model that was fitted to several."""

    def __init__(self, joint: QueryTendency, question: int) -> None:
        sizes = joint.nets[0].sizes
        self.joint, self.question = joint, question
        self.n_annotators, self.n_classes = sizes.n_core, sizes.questions[question]

    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        log = self.joint.log_probability(features, item, self.codes(annotator))
        return log[:, : self.n_classes]

    def codes(self, annotator: Integers) -> Integers:
        """Return codes of annotators as those of the question and the annotator."""
        return self.question * self.n_annotators + np.asarray(annotator)

    def state(self) -> State:
        raise MethodError("this is one of several questions; save the model of all of them")


def vote_shares(probability: Floats) -> Floats:
    """Return shares of annotators by their most probable class, all above zero: (item, class).

    Ties go to the class with the larger sum of probabilities.

    >>> vote_shares(np.array([[[0.6, 0.4], [0.4, 0.6], [0.3, 0.7]]])).argmax(axis=1).tolist()
    [1]
    """
    _, n_annotators, n_classes = probability.shape
    votes = np.eye(n_classes)[probability.argmax(axis=2)].sum(axis=1)
    shares = votes + probability.sum(axis=1) / (n_annotators + 1)
    return shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class Qumatl(TendencyMethod):
    """A query per annotator attends to the item, and a classifier per annotator gives the label.

    Parameters
    ----------
    width
        Width of a query.
    layers
        Layers of the Q-Former.
    heads
        Attention heads.
    hidden
        Width of the Q-Former's feed-forward blocks.
    cross_every
        Queries attend to the item in the first layer and every so many.
    dropout
        Dropout in the Q-Former and, unless `fc_dropout` is given, after the shared layer.
    self_attention
        Whether queries attend to each other; `None`: with at most 64 annotators and one question.
    qformer
        Whether there are queries; if not, the vector of the item goes to the shared layer.
    fc
        Width of the shared layer.
    fc_dropout
        Dropout after it; `None`: as in the Q-Former.
    unit
        Whether its outputs are vectors of length one, without activation.
    head
        Classifiers: one per annotator (own), one for all (shared), a shared one with a bias per
        annotator (bias), or with a bias and a linear layer per annotator (shrunk).
    head_hidden
        Width of their hidden layer; 0 for none.
    head_dropout, activation
        Dropout and activation after their hidden layer.
    ordinal
        Whether classes are ordered: one score and thresholds instead of logits.
    votes
        before: learn the majority label; after: predict the majority of all predicted labels.
    positions
        Whether tokens get learned position embeddings, if all items have the same tokens.
    scale
        Normalize each token (layer), or every feature over the items (feature).
    frame_queries
        Of videos: queries that summarize a frame.
    video_layers
        Of videos: layers in which annotators' queries attend to the frames.
    pretrained
        A folder with the Q-Former of BLIP-2 or InstructBLIP to start from; it sets the sizes.
    reduction
        The loss as a sum over annotators, or as their mean.
    shrink
        Weight decay of the parameters per annotator, for `head=shrunk`, and of `offsets`; `None`:
        0.1, or 3 for several questions.
    fits
        Number of fits with different seeds; their probabilities are averaged.
    epochs, batch, lr, decay, warmup, clip, patience, held_out, precision
        Training; see `dissensus.deep.nn.Training`. Of several questions, `batch` is the number of
        items with as many labels of one question as a batch has of all.
    choose
        Choose the epoch by accuracy, annotator by annotator, or by likelihood.
    offsets
        Of several questions: whether annotators' queries have an offset for each of them, with
        weight decay `shrink`.
    consistency
        Of several questions with the same classes: weight of the squared distance between an
        annotator's predictions on an item and their mean over questions.
    """

    uses_tokens: ClassVar[bool] = True

    width: Count = 768
    layers: Count = 12
    heads: Count = 12
    hidden: Count = 3072
    cross_every: Count = 2
    dropout: Probability = 0.1
    self_attention: bool | None = True
    qformer: bool = True
    fc: Count = 256
    fc_dropout: Probability | None = None
    unit: bool = False
    head: Literal["own", "shared", "bias", "shrunk"] = "own"
    head_hidden: Annotated[int, Ge(0)] = 256
    head_dropout: Probability = 0.0
    activation: Literal["gelu", "relu"] = "gelu"
    ordinal: bool = False
    votes: Literal["none", "before", "after"] = "none"
    positions: bool = False
    scale: Literal["layer", "feature"] = "layer"
    frame_queries: Count = 32
    video_layers: Count = 2
    pretrained: str | None = None
    reduction: Literal["sum", "mean"] = "sum"
    shrink: NonNegative | None = 0.01
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
    offsets: bool = True
    consistency: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretrained is None:
            self._shape(1)  # raises if sizes do not go together

    def _fit(
        self, features: Features, annotations: Annotations, context: FitOptions
    ) -> QueryTendency:
        labels = _majority(annotations, context.seed) if self.votes == "before" else annotations
        return self._fit_labels(features, labels, [annotations], n_classes=(), context=context)

    def fit_questions(
        self, features: Features, questions: Sequence[Annotations], context: FitOptions
    ) -> QueryTendency:
        sizes = tuple(question.n_classes for question in questions)
        if self.votes != "none":
            raise MethodError("votes are of one question; leave the setting out")
        if self.consistency and len(set(sizes)) > 1:
            raise MethodError("consistency is between questions with the same classes")
        with one_blas_thread():
            return self._fit_labels(
                features, _joined(questions), questions, n_classes=sizes, context=context
            )

    def _fit_labels(
        self,
        features: Features,
        labels: Annotations,
        questions: Sequence[Annotations],
        *,
        n_classes: tuple[int, ...],
        context: FitOptions,
    ) -> QueryTendency:
        """Fit to labels of all questions, with a network that starts from the questions."""
        metadata, tokens = context.metadata, features.tokens
        same_tokens = tokens is not None and bool(np.asarray(tokens.mask).all())
        n_annotators = questions[0].n_annotators
        sizes = Sizes(
            layout=features.layout,
            shape=self._shape(n_annotators, len(questions)),
            n_core=n_annotators,
            n_classes=labels.n_classes,
            n_metadata=0 if metadata is None else np.shape(metadata)[1],
            positions=self.positions and same_tokens,
            questions=n_classes,
        )
        examples = Examples(features.rows, labels)
        batch = _items_per_batch(self.batch, labels, questions)
        nets, histories = [], []
        for fit in range(self.fits):
            seed = mixed(context.seed, fit) >> 32
            with torch_seed(seed):
                net = QueryNet(sizes, self)
                net.start(
                    features, questions, metadata=metadata, seed=seed, pretrained=self.pretrained
                )

            def progress(done: float, total: float = 0, message: str = "", fit: int = fit) -> None:
                context.progress(done + fit * total, self.fits * total, message)

            history = train(
                net,
                examples,
                replace(self.training(seed), batch=batch),
                folder=context.subfolder(f"fit-{fit + 1}").folder,
                resume=context.resume,
                progress=progress,
                about=context.about,
                data=context.data,
            )
            nets.append(net.cpu().eval())
            histories.append(history)
        return QueryTendency(nets, self, histories)

    def restore(self, state: State) -> QueryTendency:
        sizes = Sizes.from_dict(state.notes["sizes"])
        parts = [state.part(str(index)) for index in range(state.notes["nets"])]
        return QueryTendency([load_network(QueryNet(sizes, self), part) for part in parts], self)

    def training(self, seed: int) -> Training:
        """Return the settings of the training loop."""
        return Training.of(self, optimizer="adamw", scheduler="warmup-cosine", seed=seed)

    def _shape(self, n_annotators: int, n_questions: int = 1) -> Shape:
        few = n_annotators <= _FEW and n_questions == 1
        own = few if self.self_attention is None else self.self_attention
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
    """Return slices of pairs, sorted by item, that cut no item in two."""
    ends = np.append(np.flatnonzero(np.diff(item)) + 1, len(item))
    pieces, start, first_item = [], 0, 0
    for index, end in enumerate(ends.tolist() if len(item) else [], 1):
        if index - first_item >= _ITEMS or end - start >= _PAIRS or index == len(ends):
            pieces.append(slice(start, end))
            start, first_item = end, index
    return pieces


def _joined(questions: Sequence[Annotations]) -> Annotations:
    """Return the labels of all questions, with a code for every question and annotator."""
    n_annotators = questions[0].n_annotators
    return Annotations.from_codes(
        np.concatenate([question.item for question in questions]),
        np.concatenate(
            [
                number * n_annotators + question.annotator.astype(int)
                for number, question in enumerate(questions)
            ]
        ),
        np.concatenate([question.label for question in questions]),
        items=questions[0].n_items,
        annotators=n_annotators * len(questions),
        classes=max(question.n_classes for question in questions),
    )


def _items_per_batch(batch: int, labels: Annotations, questions: Sequence[Annotations]) -> int:
    """Return how many items have as many labels of all questions as `batch` items have of one.

    With batches of as many items as for one question there would be a step for the labels of all
    of them, too few steps in all.
    """
    per_item = [
        sum(map(len, answers))
        / max(sum(np.count_nonzero(question.labels_per_item) for question in answers), 1)
        for answers in (questions, [labels])
    ]
    return max(round(batch * per_item[0] / per_item[1]), 1)


def _majority(annotations: Annotations, seed: int) -> Annotations:
    """Return the majority label of every item as the labels of one annotator; ties at random."""
    votes = annotations.votes()
    noise = np.random.default_rng([seed, 0x71E]).random(votes.shape)
    label = np.where(annotations.labels_per_item, (votes + noise / 2).argmax(axis=1), -1)
    return Annotations.from_labels(
        label, annotations.classes, items=annotations.items, annotator="majority"
    )


def _described(layout: Layout) -> str:
    if not layout.tokens:
        return f"vectors of {layout.features}"
    return f"{' × '.join(map(str, layout.tokens))} tokens of {layout.token_features}"
