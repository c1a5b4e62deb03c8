"""SeedBERT: copies of a pretrained network that differ by how their last layer starts.

Where only the top layers of a text encoder are tuned, they become an encoder of their own, on the
output of the lower ones. These run once for every text; their output is held in memory in half
precision, so an epoch costs the top layers alone.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from ...answers.annotations import Annotations, Floats, Integers
from ...base.progress import share_of_time
from ...errors import OptionError
from ...method import Progress
from ...params import Count, Positive
from ...registry import recoverers
from ..nn import Encoder, Learner, Training, train
from ..nn.batches import Batch, Examples, Source, inputs_of
from ..nn.encoders import Tokens
from ..nn.features import Features, RawInputs
from ..nn.inputs import Inputs, digests
from .base import FitInputs, Recovery, RecoveryMethod, State, most_probable
from .members import fold_weights

_BATCH = 64  # inputs encoded at a time


class TopLayers(Encoder):
    """The top layers; the last feature of their input is the mask."""

    learned = True

    def __init__(self, layers: nn.ModuleList, width: int, name: str) -> None:
        super().__init__()
        self.layers, self.width, self.name = layers, width, name

    def prepare(self, inputs: Inputs) -> Source:
        raise OptionError("the top layers of an encoder take the output of the lower ones")

    def tokens(self, x: Tensor) -> Tokens:
        mask = x[..., -1] > 0
        return Tokens(_run(self.layers, x[..., :-1], mask), mask)


class HiddenStates:
    """Output of the lower layers, padded to the longest text of a batch."""

    def __init__(self, values: list[Tensor], width: int) -> None:
        self.values, self.width = values, width  # of every text: (token, feature)
        self.sizes = np.array([len(states) for states in values], dtype=np.int64)  # in tokens

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, items: Any, /) -> Tensor:
        texts = [self.values[item] for item in np.asarray(items).tolist()]
        padded = torch.zeros(len(texts), max(map(len, texts), default=1), self.width + 1)
        for row, states in enumerate(texts):
            padded[row, : len(states), :-1] = states
            padded[row, : len(states), -1] = 1
        return padded


@torch.no_grad()
def split_encoder(encoder: Encoder, inputs: Inputs, n: int) -> tuple[TopLayers, HiddenStates]:
    """Return the top n layers of a text encoder, and the output of the others on the inputs."""
    body: Any = getattr(encoder, "body", None)
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    if layers is None or not hasattr(encoder, "tokenizer"):
        raise OptionError(
            f"{encoder.name}: only a BERT's top layers can be tuned alone; tune all (layers=None)"
        )
    if n > len(layers):
        raise OptionError(f"layers = {n}, but {encoder.name} has {len(layers)}")
    source: Any = encoder.prepare(inputs)
    encoder.eval()
    values: list[Tensor] = []
    for start in range(0, len(inputs), _BATCH):
        words = source[torch.arange(start, min(start + _BATCH, len(inputs)))]
        mask = words != encoder.tokenizer.pad_token_id  # type: ignore[union-attr]
        states = _run(layers[: len(layers) - n], body.embeddings(input_ids=words), mask)
        values += [
            text[present].to(torch.float16) for text, present in zip(states, mask, strict=True)
        ]
    top = nn.ModuleList(deepcopy(list(layers[len(layers) - n :])))
    return TopLayers(top, encoder.width, encoder.name), HiddenStates(values, encoder.width)


def _run(layers: Any, values: Tensor, mask: Tensor) -> Tensor:
    """Return the output of layers: (item, token, feature)."""
    minimum = torch.finfo(values.dtype).min
    bias = torch.zeros(mask.shape, dtype=values.dtype).masked_fill(~mask, minimum)[:, None, None]
    for layer in layers:
        output = layer(values, bias)
        values = output[0] if isinstance(output, tuple) else output
    return values


class Copy(Learner):
    """An encoder with a linear head."""

    def __init__(
        self, body: Encoder, head: nn.Linear, settings: SeedBert, soft: Floats | None
    ) -> None:
        super().__init__()
        self.body, self.head = body, head
        self.pool, self.head_lr = settings.pool, settings.head_lr or settings.lr
        labels = np.eye(head.out_features) if soft is None else soft
        self.soft_labels = torch.from_numpy(labels).to(head.weight)  # (label, class)

    def log_truth(self, x: Tensor) -> Tensor:
        vector = self.body.tokens(x).values[:, 0] if self.pool == "first" else self.body(x)
        return self.head(vector.to(self.head.weight)).log_softmax(dim=-1)

    @torch.no_grad()
    def start_from_marginal(self, label: Integers) -> None:
        """Initialize the head so that it predicts the marginal of these labels."""
        count = self.soft_labels[label].sum(dim=0) + 1
        self.head.weight.zero_()
        self.head.bias.copy_((count / count.sum()).log())

    def loss(self, batch: Batch) -> Tensor:
        log = self.log_truth(batch.x)[batch.row]
        return -(log * self.soft_labels[batch.label].to(log)).sum(dim=-1).mean()

    def groups(self) -> list[dict[str, Any]]:
        return [
            {"params": list(self.body.parameters())},
            {"params": list(self.head.parameters()), "lr": self.head_lr},
        ]

    @torch.no_grad()
    def proba(self, x: Tensor | Source, items: Integers) -> Floats:
        """Return the probabilities of items: (item, class)."""
        self.eval()
        p = np.zeros((len(items), self.head.out_features))
        for start in range(0, len(items), _BATCH):
            rows = slice(start, start + _BATCH)
            p[rows] = self.log_truth(inputs_of(x, items[rows])).double().exp().numpy()
        return p

    def tuned(self) -> dict[str, Tensor]:
        """Return the trained weights and the running statistics."""
        trained = {name for name, value in self.named_parameters() if value.requires_grad}
        running = {name for name, _ in self.named_buffers() if "running" in name}
        state = self.state_dict()
        return {name: state[name].detach().clone() for name in sorted(trained | running)}


class Copies(Recovery):
    """The fine-tuned weights of n copies of an encoder."""

    def __init__(
        self,
        weights: list[dict[str, Any]],
        settings: SeedBert,
        held_out_proba: Floats | None = None,
    ) -> None:
        self.weights, self.settings = weights, settings
        self.held_out_proba = held_out_proba  # (item, class): by copies that hold the item out
        self._last: tuple[Any, Floats] | None = None  # of the last call: encoding is slow

    def members(self, features: Features) -> Floats:
        raw = features.raw
        assert raw is not None
        if self._last is not None and self._last[0] is raw:
            return self._last[1]
        body, x = self.settings.tuned_part(raw)
        n_classes = len(self.weights[0]["head.bias"])
        p = np.zeros((len(self.weights), len(x), n_classes))
        copy = self.settings.copy_of(body, n_classes, 0, 0)
        for member, weights in enumerate(self.weights):
            copy.load_state_dict(weights, strict=False)
            p[member] = copy.proba(x, np.arange(len(x)))
        self._last = raw, p
        return p

    def predict(self, features: Features) -> Integers:
        """Return the class with most votes; ties are broken by the mean probability."""
        if self.distance is not None:
            return super().predict(features)
        members = self.members(features)
        return (most_probable(members).mean(axis=0) + 1e-6 * members.mean(axis=0)).argmax(axis=1)

    def state(self) -> State:
        return State.join(**{
            str(member): State({}, {name: value.numpy() for name, value in weights.items()})
            for member, weights in enumerate(self.weights)
        })  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SeedBert(RecoveryMethod):
    """Copies of a pretrained network, fine-tuned from other initializations of the last layer.

    SeedBERT: n copies of a pretrained network that differ by the initialization of the last layer.

    Every member has the same encoder, data, aggregated label, loss and, strict, the same order and
    the same dropout; only its linear head is initialized differently. The label is the vote of the
    members, and the paper reads the share of their votes as the label distribution of the
    annotators.

    These votes measure how much training depends on its initialization. Nothing makes that equal to
    how people differ, and on every set measured here it is far from it; `predict_proba` is
    therefore the mean probability of the members, and `votes` is the paper's rule.

        votes[k] = share of members m with argmax softmax(head_m(encoder_m(x))) = k

    When it fails: Its vote shares are farther from those of annotators than one distribution for
    all items, on every set measured here; use the mean probability.

        A. Sampath, V. Lin, L.-P. Morency. SeedBERT: recovering annotator rating distributions from
        an aggregated label. 2022.

    Parameters
    ----------
    n
        Number of copies.
    mode
        `strict`: only the initialization of the last layer differs; `ensemble`: also order and
        dropout; `folds`: every copy holds out another part of the items, by which the temperature
        is set, and starts from the label marginal.
    layers
        Number of top layers of a text encoder that are tuned; the output of the others is computed
        once, which is much faster. `None` tunes all.
    embeddings
        Also tune the word embeddings: half of the weights and much of the time.
    pool
        The vector of a text: the mean over its tokens, or the first token.
    epochs
        Number of epochs.
    batch
        Batch size.
    lr
        Learning rate.
    head_lr
        Learning rate of the last layer; `None` for that of the others.
    scheduler
        Schedule of the learning rate.
    precision
        32 or bf16, which is faster on processors that support it.
    """

    needs: ClassVar[tuple[str, ...]] = ("raw",)

    n: Count = 10
    mode: Literal["strict", "ensemble", "folds"] = "strict"
    layers: Annotated[int, Ge(1)] | None = None
    embeddings: bool = False
    pool: Literal["mean", "first"] = "mean"
    epochs: Count = 3
    batch: Count = 16
    lr: Positive = 5e-6
    head_lr: Positive | None = None
    scheduler: Literal["constant", "warmup-cosine"] = "constant"
    precision: Literal["32", "bf16"] = "32"

    def _fit(self, features: Features, context: FitInputs) -> Copies:
        assert features.raw is not None
        if context.soft_labels is not None and self.mode != "folds":
            raise OptionError(
                "with a distance between classes copies hold out items: seedbert[mode=folds]"
            )
        body, x = self.tuned_part(features.raw)
        annotations = Annotations.from_labels(context.label, context.n_classes)
        examples = Examples(x, annotations, sizes=getattr(x, "sizes", None))
        held_out = np.zeros((self.n, len(x)), dtype=bool)  # (copy, item)
        if self.mode == "folds":
            held_out = fold_weights(self.n, len(x), context.seed).numpy() == 0
        held_out_proba = np.full((len(x), context.n_classes), np.nan)
        weights = []
        run: dict[str, Any] = {"resume": True, "about": self._about(features.raw.encoder)}
        if context.folder is not None:
            soft = {"distances between classes": context.soft_labels}
            run["data"] = digests({"inputs": features.raw.inputs, **soft})
        for member in range(self.n):
            copy = self.copy_of(body, context.n_classes, context.seed, member, context.soft_labels)
            if self.mode == "folds":
                copy.start_from_marginal(context.label[~held_out[member]])
            seed = context.seed + (0 if self.mode == "strict" else 7919 * member)
            settings = Training.of(self, held_out=0.0, seed=seed)
            folder = None if context.folder is None else context.folder / f"member-{member}"
            progress = self._progress(context.progress, member)
            learned = replace(examples, annotations=annotations.keep(~held_out[member]))
            with share_of_time(1 / (self.n - member)):
                train(copy, learned, settings, folder=folder, progress=progress, **run)
            weights.append(copy.tuned())
            items = np.flatnonzero(held_out[member])
            held_out_proba[items] = copy.proba(x, items)
        model = Copies(weights, self, held_out_proba)
        if self.mode == "folds":
            model.calibrate(context.label)
        return model

    def restore(self, state: State) -> Copies:
        weights = [
            {name: torch.tensor(value) for name, value in state.part(member).arrays.items()}
            for member in state.notes
        ]
        return Copies(weights, self)

    def tuned_part(self, raw: RawInputs) -> tuple[Encoder, Tensor | Source]:
        """Return the part of the encoder that is tuned, and its inputs."""
        if self.layers is None:
            return raw.encoder, raw.encoder.prepare(raw.inputs)
        return split_encoder(raw.encoder, raw.inputs, self.layers)

    def copy_of(
        self, body: Encoder, n_classes: int, seed: int, member: int, soft: Floats | None = None
    ) -> Copy:
        """Return an untrained member: the same encoder for all, its own head."""
        head = nn.Linear(body.width, n_classes)
        bound = body.width**-0.5
        values = np.random.default_rng([seed, member]).uniform(-bound, bound, head.weight.shape)
        with torch.no_grad():
            head.weight.copy_(torch.from_numpy(values))
            head.bias.zero_()
        body = deepcopy(body)
        body.is_frozen = False
        body.requires_grad_(True)
        embeddings = getattr(getattr(body, "body", None), "embeddings", None)
        if embeddings is not None and not self.embeddings:
            embeddings.requires_grad_(False)
        return Copy(body, head, self, soft)

    def _about(self, encoder: Encoder) -> str:
        """Return what is trained, without what a resumed training may change."""
        settings = replace(self, n=type(self).n, epochs=type(self).epochs)
        return f"{recoverers.describe(settings)} on {encoder.name}"

    def _progress(self, progress: Progress | None, member: int) -> Progress | None:
        """Return a callback that counts the steps of all members."""
        if progress is None:
            return None

        def step(done: float, total: float = 0, message: str = "") -> None:
            progress(member * total + done, self.n * total, f"member {member + 1}, {message}")

        return step
