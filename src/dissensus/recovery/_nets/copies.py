"""Copies of an encoder with a linear head each, tuned one after the other."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..._relation import Floats
from ...annotations import Annotations
from ...nn.batches import Batch, Examples, Source
from ...nn.encoders import Encoder, Tokens
from ...nn.learner import Learner
from ...nn.settings import Training
from ...nn.training import train
from .._base import Shown
from .features import Raw
from .top_layers import tail_of

if TYPE_CHECKING:
    from ..seedbert import SeedBert

__all__ = ["Copy", "believed", "copies", "copy_of"]

_PIECE = 64


class Copy(Learner):
    """An encoder and a linear head."""

    def __init__(self, body: Encoder, head: nn.Linear, pool: str) -> None:
        super().__init__()
        self.body, self.head, self.pool = body, head, pool

    def log_truth(self, x: Tensor) -> Tensor:
        if self.pool == "first":
            tokens: Tokens = self.body.tokens(x)
            vector = tokens.values[:, 0]
        else:
            vector = self.body(x)
        return self.head(vector.to(self.head.weight)).log_softmax(dim=-1)

    def loss(self, batch: Batch) -> Tensor:
        return -self.log_truth(batch.x)[batch.row, batch.label].mean()

    def tuned(self) -> dict[str, Tensor]:
        """Return the weights that learn, and the statistics that follow them."""
        learning = {name for name, value in self.named_parameters() if value.requires_grad}
        running = {name for name, _ in self.named_buffers() if "running" in name}
        state = self.state_dict()
        return {name: state[name].detach().clone() for name in sorted(learning | running)}


def copies(
    settings: SeedBert, raw: Raw, annotations: Annotations, shown: Shown
) -> list[dict[str, Tensor]]:
    """Return the weights that every member has learned."""
    body, x = _ground(settings, raw)
    examples = Examples(x, annotations, sizes=getattr(x, "sizes", None))
    learned = []
    for member in range(settings.n):
        copy = copy_of(body, annotations.n_classes, settings, shown.seed, member)
        seed = shown.seed + (7919 * member if settings.mode == "ensemble" else 0)
        made = Training(
            epochs=settings.epochs, batch=settings.batch, lr=settings.lr, seed=seed, held_out=0.0,
            precision=settings.precision,
        )  # fmt: skip
        folder = None if shown.folder is None else shown.folder / f"member-{member}"
        train(
            copy,
            examples,
            made,
            folder=folder,
            resume=True,
            progress=_told(shown, settings, member),
        )
        learned.append(copy.tuned())
    return learned


def copy_of(body: Encoder, n_classes: int, settings: SeedBert, seed: int, member: int) -> Copy:
    """Return a member as it begins: the same encoder for all, a head by the member's own seed."""
    head = nn.Linear(body.width, n_classes)
    bound = body.width**-0.5
    drawn = np.random.default_rng([seed, member]).uniform(-bound, bound, head.weight.shape)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(drawn))
        head.bias.zero_()
    return Copy(_learning(deepcopy(body), settings.embeddings), head, settings.pool)


@torch.no_grad()
def believed(settings: SeedBert, raw: Raw, learned: list[dict[str, Any]]) -> Floats:
    """Return what every member believes: (member, item, class)."""
    body, x = _ground(settings, raw)
    n_classes = len(learned[0]["head.bias"])
    found = np.zeros((len(learned), len(x), n_classes))
    copy = copy_of(body, n_classes, settings, 0, 0)
    for member, weights in enumerate(learned):
        copy.load_state_dict(weights, strict=False)
        copy.eval()
        for at in range(0, len(x), _PIECE):
            items = torch.arange(at, min(at + _PIECE, len(x)))
            found[member, items] = copy.log_truth(x[items]).double().exp().numpy()
    return found


def _ground(settings: SeedBert, raw: Raw) -> tuple[Encoder, Tensor | Source]:
    """Return the part that is tuned, and what it takes."""
    if settings.layers is None:
        return raw.encoder, raw.encoder.prepare(raw.inputs)
    return tail_of(raw.encoder, raw.inputs, settings.layers)


def _learning(body: Encoder, embeddings: bool) -> Encoder:
    """Return an encoder that learns; the embeddings of words only if wanted."""
    body.is_frozen = False
    body.requires_grad_(True)
    inner = getattr(getattr(body, "body", None), "embeddings", None)
    if inner is not None and not embeddings:
        inner.requires_grad_(False)
    return body


def _told(shown: Shown, settings: SeedBert, member: int) -> Any:
    """Return what a training tells, so that all members are one."""
    if shown.progress is None:
        return None
    progress = shown.progress

    def told(done: int, total: int, words: str) -> None:
        progress(member * total + done, settings.n * total, f"member {member + 1}, {words}")

    return told
