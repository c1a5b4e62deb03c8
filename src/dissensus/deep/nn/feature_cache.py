"""Features of a frozen encoder, computed once per content and cached on disk.

The key is the content of an input and the weights of the encoder: a renamed file, another order or
another split of the same texts hits the cache, a changed text does not. Texts are encoded in
batches of similar length, without padding of note. With token features their means are kept too,
where those are what the encoder returns. Token features can be larger than memory: they are written
batch by batch and memory-mapped.
"""

from __future__ import annotations

from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...base.feature_store import FeatureStore, StoredRows, feature_folder
from ...base.progress import Progress
from ...base.arrays import Array
from .batches import Source
from .encoders import Encoder
from .inputs import Arrays, Inputs
from .media import Videos

_SHARD = 2048  # items that are kept together; what was encoded before an interruption stays


class CachedFeatures(NamedTuple):
    """Arrays over the files of the cache, read where they are indexed."""

    values: Any  # (item, feature), (item, token, feature) or (item, frame, token, feature)
    mask: Any | None = None  # of token features: the same axes without the last


def cached_features(
    encoder: Encoder,
    inputs: Inputs,
    *,
    tokens: bool = False,
    batch: int = 16,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> CachedFeatures:
    """Return features of inputs, from the cache where they are in it.

    Parameters
    ----------
    encoder
        Used as if frozen.
    inputs
        Inputs of all items.
    tokens
        Features of words or patches rather than one vector per item.
    batch
        Items per step.
    folder
        Folder of the cache; the user's by default.
    progress
        Called with items done, items to encode, and a message.
    """
    keys, digest = inputs.keys(), encoder.digest()
    root = feature_folder() if folder is None else Path(folder)
    stores = {
        kind: FeatureStore(
            root / blake2b(f"2 {digest} {kind}".encode(), digest_size=12).hexdigest()
        )
        for kind in ("vectors", "tokens")
    }
    kinds = ["tokens"] if tokens else ["vectors"]
    missing = stores[kinds[0]].missing(keys)
    if tokens and type(encoder).forward is Encoder.forward:
        kinds.append("vectors")
    if len(missing):
        todo = inputs.take(missing)
        size = max(batch // _n_frames(inputs), 1)
        _encode(
            encoder, todo, keys[missing], {each: stores[each] for each in kinds}, size, progress
        )
    rows = stores[kinds[0]].find(keys)
    if tokens:
        return CachedFeatures(rows, rows.mask)
    return CachedFeatures(_vectors_of(rows, encoder.width))


def _vectors_of(rows: StoredRows, width: int) -> Array:
    return rows[:][:, 0] if len(rows) else np.zeros((0, width), np.float32)


@torch.inference_mode()
def _encode(
    encoder: Encoder,
    inputs: Inputs,
    keys: Array,
    stores: dict[str, FeatureStore],
    batch: int,
    progress: Progress | None,
) -> None:
    """Write features, the longest inputs first."""
    source: Tensor | Source = encoder.prepare(inputs)
    order = np.arange(len(inputs))
    if (sizes := getattr(source, "sizes", None)) is not None:
        order = np.argsort(-sizes, kind="stable")
    training = encoder.training
    encoder.eval()
    done = 0
    for first in range(0, len(order), _SHARD):
        shard = order[first : first + _SHARD]
        with ExitStack() as stack:
            writers = {
                kind: stack.enter_context(store.writing(encoder.name, kind))
                for kind, store in stores.items()
            }
            for start in range(0, len(shard), batch):
                items = shard[start : start + batch]
                rows = _rows(encoder, source[torch.from_numpy(items)], stores)
                for kind, writer in writers.items():
                    writer.add(keys[items], rows[kind])
                done += len(items)
                if progress is not None:
                    progress(done, len(inputs), f"{done:,} of {len(inputs):,} inputs encoded")
    encoder.train(training)


def _rows(encoder: Encoder, x: Tensor, kinds: Any) -> dict[str, list[Any]]:
    """Return the rows of every item, by kind."""
    if "tokens" not in kinds:
        return {"vectors": [vector[None] for vector in _vectors(encoder, x).float().numpy()]}
    values, mask = (each.numpy() for each in encoder.tokens(x))
    if mask.ndim == 2:
        rows = [value[there] for value, there in zip(values, mask, strict=True)]
    else:
        rows = list(values)  # every frame has all its patches
    flat = [each.reshape(-1, values.shape[-1]) for each in rows]
    vectors = [each.sum(axis=0, keepdims=True) / max(len(each), 1) for each in flat]
    return {"tokens": rows, "vectors": vectors}


def _n_frames(inputs: Inputs) -> int:
    """Return how many images an item is."""
    if isinstance(inputs, Videos):
        return inputs.frames
    return inputs.values.shape[1] if isinstance(inputs, Arrays) and inputs.values.ndim == 5 else 1


def _vectors(encoder: Encoder, x: Tensor) -> Tensor:
    """Return one vector per item; of a video, the mean over its frames."""
    if x.ndim < 5:
        return encoder(x)
    return encoder(x.flatten(0, 1)).reshape(*x.shape[:2], -1).mean(dim=1)
