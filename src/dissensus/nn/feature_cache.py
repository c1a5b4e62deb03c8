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

from .._files import atomic_folder, cache_folder
from .._progress import Progress
from .batches import Source, chunks
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
    entry = (cache_folder() / "features" if folder is None else Path(folder)) / blake2b(
        key.encode(), digest_size=12
    ).hexdigest()
    if not (entry / "notes.json").exists():
        try:
            with atomic_folder(entry, ("notes.json", "values.npy", "mask.npy")) as draft:
                _compute(encoder, inputs, tokens, batch, draft, progress)
                notes = {"encoder": encoder.name, "inputs": inputs.kind, "items": len(inputs)}
                (draft / "notes.json").write_text(json.dumps(notes), encoding="utf-8")
        except OSError:
            if not (entry / "notes.json").exists():  # written by another process meanwhile
                raise
    mask = np.load(entry / "mask.npy", mmap_mode="r") if tokens else None
    return CachedFeatures(np.load(entry / "values.npy", mmap_mode="r"), mask)


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
    training = encoder.training
    encoder.eval()
    longest = 0
    if tokens and inputs.kind == "texts":
        longest = max((x.shape[1] for x in chunks(source, batch)), default=0)
    arrays: dict[str, Any] = {}
    done = 0
    for x in chunks(source, batch):
        parts = encoder.tokens(x)._asdict() if tokens else {"values": _vectors(encoder, x)}
        for name, part in parts.items():
            value = (part.float() if name == "values" else part).numpy()
            if name not in arrays:
                shape = len(inputs), longest or value.shape[1], *value.shape[2:]
                arrays[name] = _open(folder / f"{name}.npy", shape, value.dtype)
            arrays[name][done : done + len(x), : value.shape[1]] = value
        done += len(x)
        if progress is not None:
            progress(done, len(inputs), "inputs encoded")
    if not arrays:
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


def _open(path: Path, shape: tuple[int, ...], kind: Any) -> Any:
    array = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
    if hasattr(os, "posix_fallocate") and array.nbytes:  # on a full disk, fail here, not later
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array
