"""A new annotator joins a trained network: a row more in every table, and only that row learns.

The newcomer begins as the annotator whose foreseen labels fit theirs best, where there are labels,
and otherwise with what is known of them through the map of the queries and with what all share.
Queries that were there before do not see the new one, so nothing changes for the others.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..errors import DataError, MethodError
from ..nn.batches import Examples
from ..nn.tables import Table
from ..nn.training import Training, train
from ._base import Views
from ._heads import OrdinalHeads, OwnHeads
from ._net import QueryNet

__all__ = ["joined"]

_EPOCHS = 40
_BATCH = 16
_LR = 3e-3
_ENOUGH = 50  # labels, of which some can be held out to choose the epoch


def joined(
    net: QueryNet,
    views: Views,
    label: Integers,
    features: Floats | None,
    seed: int,
) -> QueryNet:
    """Return a network that knows one annotator more, as the last."""
    _check(net, label, features)
    sizes = net.sizes
    new = sizes.n_core + sizes.n_guests
    like = _likest(net, views, label) if len(label) else None
    made = deepcopy(net)
    made.sizes = replace(sizes, n_guests=sizes.n_guests + 1)
    _grow(made, like)
    if features is not None and made.asks is not None:
        given = torch.as_tensor(features, dtype=torch.float32)
        made.queries.known = torch.cat([net.queries.known, given[None]])
        if like is None:
            made.queries.own.weight.data[new] = 0
    elif made.asks is not None:
        known = net.queries.known
        made.queries.known = torch.cat([known, known[[0 if like is None else like]]])
    if not len(label):
        return made.eval()
    annotations = Annotations.from_codes(
        np.arange(len(label)),
        np.full(len(label), new),
        np.asarray(label),
        items=len(label),
        annotators=new + 1,
        classes=sizes.n_classes,
    )
    made.requires_grad_(False)
    for module in made.modules():
        if isinstance(module, Table):
            module.weight.requires_grad_(True)
    made.frozen_core = True
    settings = Training(
        epochs=_EPOCHS,
        batch=_BATCH,
        optimizer="adamw",
        lr=_LR,
        scheduler="cosine",
        clip=1.0,
        held_out=0.2 if len(label) >= _ENOUGH else 0.0,
        seed=seed >> 32,
    )
    train(made, Examples(views.rows, annotations), settings)
    made.frozen_core = False
    return made.requires_grad_(True).cpu().eval()


def _check(net: QueryNet, label: Integers, features: Floats | None) -> None:
    if net.votes == "before":
        raise MethodError("a model of majority labels has no annotators to join")
    if net.sizes.corrects:
        raise MethodError("a correction has no annotators of its own; fit it again")
    wanted = net.sizes.n_metadata
    if (features is None and wanted and not len(label)) or (
        features is not None and len(features) != wanted
    ):
        given = "none" if features is None else str(len(features))
        raise DataError(f"the model knows {wanted} features of an annotator, but {given} are given")
    heads = net.heads.score if isinstance(net.heads, OrdinalHeads) else net.heads
    if not len(label) and (isinstance(heads, OwnHeads) or not wanted):
        why = "every annotator has a classifier of their own" if wanted else "nothing is known"
        raise MethodError(f"no labels of the new annotator, and {why}; give some labels")


@torch.no_grad()
def _likest(net: QueryNet, views: Views, label: Integers) -> int:
    """Return the annotator under whom labels are most probable."""
    n_core = net.sizes.n_core
    good = torch.zeros(n_core, dtype=torch.float64)
    who = torch.arange(n_core)
    for at in range(0, len(label), 64):
        items = np.arange(at, min(at + 64, len(label)))
        row = torch.arange(len(items)).repeat_interleave(n_core)
        log = net.log_given(net.seen(views.rows[items]), row, who.repeat(len(items)))
        annotations = torch.from_numpy(np.asarray(label)[items].astype(np.int64))[row]
        good += log.gather(1, annotations[:, None]).reshape(len(items), n_core).double().sum(dim=0)
    return int(good.argmax())


def _grow(net: nn.Module, like: int | None) -> None:
    """Add a row to every table: that of somebody, or zeros."""
    for module in list(net.modules()):
        for name, table in list(module.named_children()):
            if isinstance(table, Table):
                rows: Tensor = table.all.detach()
                row = torch.zeros_like(rows[:1]) if like is None else rows[like : like + 1]
                setattr(module, name, Table(torch.cat([rows, row])))
