"""Vectors of a frozen encoder, computed once and kept on the disk.

They are found again by the content of the inputs and the weights of the encoder, so neither a
copied folder nor a renamed file computes them anew, and no changed one takes the old. Vectors of
places can be larger than memory: they are written as they come and read back piece by piece.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._files import atomic_folder
from ..errors import OptionError
from .batches import Source, inputs_of
from .encoders import Encoder
from .inputs import Arrays, Inputs
from .videos import Videos

__all__ = ["Features", "cached_features", "features"]

Progress = Callable[[int, int], None]  # items done, items in all


@dataclass(frozen=True, eq=False)
class Features:
    """Vectors on the disk, read when asked for: (item, feature), or by place and frame."""

    values: Any  # a NumPy array over the file: (item, [frame,] [place,] feature)
    mask: Any | None  # (item, [frame,] place), for vectors of places

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, items: Any, /) -> Tensor:
        return torch.from_numpy(np.array(self.values[np.asarray(items)]))

    def masks(self, items: Any) -> Tensor:
        """Return where places of items are: (item, place)."""
        if self.mask is None:
            raise OptionError("one vector per item has no places; ask for places=True")
        return torch.from_numpy(np.array(self.mask[np.asarray(items)]))

    def all(self) -> Tensor:
        """Return all of them in memory."""
        return self[np.arange(len(self))]


def cached_features(
    encoder: Encoder,
    inputs: Inputs,
    *,
    positions: bool = False,
    batch: int = 64,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Features:
    """Return the vectors of inputs, from the cache if they are there.

    Parameters
    ----------
    encoder
        What makes them; taken as it is, as if frozen.
    inputs
        Of which.
    positions
        Vectors of words or patches rather than one per item.
    batch
        Items at a time.
    folder
        Where they are kept; the user's cache if not given.
    progress
        Called with items done and items in all.
    """
    batch = max(batch // _n_frames(inputs), 1)
    told = f"1 {encoder.digest()} {inputs.digest()} {positions}"
    kept = (cache() if folder is None else Path(folder)) / blake2b(
        told.encode(), digest_size=12
    ).hexdigest()
    if not (kept / "notes.json").exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            with atomic_folder(kept) as draft:
                _compute(encoder, inputs, positions, batch, draft, progress)
                notes = {"encoder": encoder.name, "inputs": inputs.kind, "items": len(inputs)}
                (draft / "notes.json").write_text(json.dumps(notes), encoding="utf-8")
        except OSError:
            if not (kept / "notes.json").exists():  # another process was faster: its are the same
                raise
    mask = np.load(kept / "mask.npy", mmap_mode="r") if positions else None
    return Features(np.load(kept / "values.npy", mmap_mode="r"), mask)


def features(encoder: Encoder, inputs: Inputs, **more: Any) -> Tensor:
    """Return one vector per item in memory, from the cache if they are there: (item, feature)."""
    return cached_features(encoder, inputs, **more).all()


def cache() -> Path:
    """Return the folder where vectors are kept."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(given) if given else Path.home() / ".cache") / "dissensus" / "features"


@torch.inference_mode()
def _compute(
    encoder: Encoder,
    inputs: Inputs,
    positions: bool,
    batch: int,
    folder: Path,
    progress: Progress | None,
) -> None:
    """Write vectors as they come; texts are filled up to the longest of all."""
    source: Tensor | Source = encoder.prepare(inputs)
    n_items, learning = len(inputs), encoder.training
    encoder.eval()
    longest = _longest(source, n_items, batch) if positions and inputs.kind == "texts" else None
    values: Any = None
    mask: Any = None
    for at in range(0, n_items, batch):
        items = np.arange(at, min(at + batch, n_items))
        x = inputs_of(source, items)
        if not positions:
            found = _vectors(encoder, x).to(torch.float32).numpy()
            if values is None:
                values = _open(folder / "values.npy", (n_items, *found.shape[1:]), np.float32)
            values[items] = found
        else:
            tokens = encoder.tokens(x)
            n_places = longest or tokens.values.shape[1]
            if values is None:
                shape = (n_items, n_places, *tokens.values.shape[2:])
                values = _open(folder / "values.npy", shape, np.float32)
                mask = _open(folder / "mask.npy", shape[:-1], np.bool_)
            here = slice(at, at + len(items)), slice(tokens.values.shape[1])
            values[here], mask[here] = tokens.values.to(torch.float32).numpy(), tokens.mask.numpy()
        if progress is not None:
            progress(at + len(items), n_items)
    if values is None:
        _open(folder / "values.npy", (0, encoder.width), np.float32)
        _open(folder / "mask.npy", (0, 0), np.bool_)
    encoder.train(learning)


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
    """Return how many places the longest text has."""
    sizes = [
        inputs_of(source, np.arange(at, min(at + batch, n_items))).shape[1]
        for at in range(0, n_items, batch)
    ]
    return max(sizes, default=1)


def _open(path: Path, shape: tuple[int, ...], kind: Any) -> Any:
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
