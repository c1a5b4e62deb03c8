"""Features of a frozen encoder, computed once and cached on disk.

The key is the content of the inputs and the weights of the encoder: a copied folder or a renamed
file hits the cache, a changed one does not. Token features can be larger than memory: they are
written batch by batch and memory-mapped.
"""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._files import atomic_folder
from .._progress import Progress
from .batches import Source, inputs_of
from .encoders import Encoder
from .inputs import Arrays, Inputs
from .videos import Videos


class CachedFeatures(NamedTuple):
    """Arrays over the files of the cache, read where they are indexed."""

    values: Any  # (item, feature), (item, token, feature) or (item, frame, token, feature)
    mask: Any | None = None  # of token features: the same axes without the last


def cached_features(
    encoder: Encoder,
    inputs: Inputs,
    *,
    tokens: bool = False,
    batch: int = 64,
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
        Called with items done, items in all, and a message.
    """
    batch = max(batch // _n_frames(inputs), 1)
    key = f"1 {encoder.digest()} {inputs.digest()} {tokens}"
    entry = (cache_folder() if folder is None else Path(folder)) / blake2b(
        key.encode(), digest_size=12
    ).hexdigest()
    if not (entry / "notes.json").exists():
        entry.parent.mkdir(parents=True, exist_ok=True)
        try:
            with atomic_folder(entry) as draft:
                _compute(encoder, inputs, tokens, batch, draft, progress)
                notes = {"encoder": encoder.name, "inputs": inputs.kind, "items": len(inputs)}
                (draft / "notes.json").write_text(json.dumps(notes), encoding="utf-8")
        except OSError:
            if not (entry / "notes.json").exists():  # written by another process meanwhile
                raise
    mask = np.load(entry / "mask.npy", mmap_mode="r") if tokens else None
    return CachedFeatures(np.load(entry / "values.npy", mmap_mode="r"), mask)


def cache_folder() -> Path:
    """Return the user's folder of cached features."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "dissensus" / "features"


@torch.inference_mode()
def _compute(
    encoder: Encoder,
    inputs: Inputs,
    tokens: bool,
    batch: int,
    folder: Path,
    progress: Progress | None,
) -> None:
    """Write features batch by batch; texts are padded to the longest of all."""
    source: Tensor | Source = encoder.prepare(inputs)
    n_items, training = len(inputs), encoder.training
    encoder.eval()
    longest = _longest(source, n_items, batch) if tokens and inputs.kind == "texts" else None
    values: Any = None
    mask: Any = None
    for start in range(0, n_items, batch):
        items = np.arange(start, min(start + batch, n_items))
        x = inputs_of(source, items)
        if not tokens:
            vectors = _vectors(encoder, x).to(torch.float32).numpy()
            if values is None:
                values = _open(folder / "values.npy", (n_items, *vectors.shape[1:]), np.float32)
            values[items] = vectors
        else:
            token = encoder.tokens(x)
            n_tokens = longest or token.values.shape[1]
            if values is None:
                shape = (n_items, n_tokens, *token.values.shape[2:])
                values = _open(folder / "values.npy", shape, np.float32)
                mask = _open(folder / "mask.npy", shape[:-1], np.bool_)
            here = slice(start, start + len(items)), slice(token.values.shape[1])
            values[here], mask[here] = token.values.to(torch.float32).numpy(), token.mask.numpy()
        if progress is not None:
            progress(start + len(items), n_items, "inputs encoded")
    if values is None:
        _open(folder / "values.npy", (0, encoder.width), np.float32)
        _open(folder / "mask.npy", (0, 0), np.bool_)
    encoder.train(training)


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


def _longest(source: Tensor | Source, n_items: int, batch: int) -> int:
    """Return how many tokens the longest text has."""
    sizes = [
        inputs_of(source, np.arange(start, min(start + batch, n_items))).shape[1]
        for start in range(0, n_items, batch)
    ]
    return max(sizes, default=1)


def _open(path: Path, shape: tuple[int, ...], kind: Any) -> Any:
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
