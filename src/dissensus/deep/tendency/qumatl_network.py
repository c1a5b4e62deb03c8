"""Add an annotator to a trained network: one more row in every table, and only that row is trained.

The new row starts as that of the annotator under whom the new labels are most likely or, without
labels, from the metadata through the map of the queries. Queries of the other annotators do not
attend to the new one, so their predictions do not change.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from ...answers.annotations import Annotations, Floats, Integers
from ...errors import DataError, MethodError
from ..nn import Examples, Features, Table, Training, train
from .heads import OrdinalHeads, OwnHeads
from .net import QueryNet

_TRAINING = Training(
    epochs=40, batch=16, optimizer="adamw", lr=3e-3, scheduler="cosine", clip=1.0, held_out=0.0
)
_ENOUGH = 50  # labels from which some are held out to choose the epoch
_BATCH = 64


def add_annotator(
    net: QueryNet, features: Features, label: Integers, metadata: Floats | None, seed: int
) -> QueryNet:
    """Return a network with one more annotator, the last."""
    _check(net, label, metadata)
    new = net.sizes.n_annotators
    nearest = _nearest(net, features, label) if len(label) else None
    grown = deepcopy(net)
    grown.sizes = replace(net.sizes, n_added=net.sizes.n_added + 1)
    _add_row(grown, nearest)
    if grown.has_queries:
        known = net.queries.metadata
        row = known[[nearest or 0]]
        if metadata is not None:
            row = torch.as_tensor(metadata, dtype=torch.float32)[None]
            if nearest is None:
                grown.queries.own.weight.data[new] = 0
        grown.queries.metadata = torch.cat([known, row])
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
    given = 0 if metadata is None else len(metadata)
    if given != expected and (metadata is not None or not len(label)):
        raise DataError(
            f"the model has {expected} metadata features of an annotator, but {given} are given"
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
        given = log.gather(1, codes[items][row][:, None])
        total += given.reshape(len(items), n_core).double().sum(dim=0)
    return int(total.argmax())


def _add_row(net: nn.Module, source: int | None) -> None:
    """Append a row to every table: a copy of row `source`, or zeros."""
    for module in list(net.modules()):
        for name, table in list(module.named_children()):
            if isinstance(table, Table):
                rows: Tensor = table.all.detach()
                row = torch.zeros_like(rows[:1]) if source is None else rows[source : source + 1]
                setattr(module, name, Table(torch.cat([rows, row])))
