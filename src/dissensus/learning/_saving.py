"""A classifier as a folder: weights as safetensors, the rest as JSON; nothing is unpickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..nn.inputs import Arrays, Images, Inputs, Texts

if TYPE_CHECKING:
    from .classifier import CrowdClassifier

__all__ = ["nothing_of", "read", "restore", "write"]

_WEIGHTS, _NOTES = "weights.safetensors", "classifier.json"


def write(made: CrowdClassifier, folder: Path) -> None:
    """Write a classifier; what training kept per item is left out."""
    if not isinstance(made.encoder, str):
        raise OptionError("a network given as encoder cannot be saved; name an encoder instead")
    folder.mkdir(parents=True, exist_ok=True)
    state = made.model_.state_dict()
    kept = {k: v.contiguous() for k, v in state.items() if k not in made.model_.per_item}
    save_file(kept, folder / _WEIGHTS)
    told = {
        "settings": made.get_params() | {"classes": None},
        "classes": made.classes_.tolist(),
        "annotators": made.annotators_.tolist(),
        "inputs": made.kind_,
        "shape": made.shape_,
        "width": made.model_.classifier.width,
    }
    (folder / _NOTES).write_text(json.dumps(told, indent=1), encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return what was written: notes and weights."""
    try:
        told = json.loads((folder / _NOTES).read_text(encoding="utf-8"))
        told["settings"]["milestones"] = tuple(told["settings"]["milestones"])
        return told, load_file(folder / _WEIGHTS)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as problem:
        raise DataError(f"{folder}: not a classifier that was saved ({problem})") from None


def restore(made: CrowdClassifier, told: dict[str, Any], state: dict[str, torch.Tensor]) -> None:
    """Make a classifier what it was when it was written."""
    nobody: list[int] = []
    annotations = Annotations.from_columns(
        nobody, nobody, nobody, annotators=told["annotators"], classes=told["classes"]
    )
    made.kind_, made.shape_ = told["inputs"], tuple(told["shape"])
    made.encoding_ = made._encoding(nothing_of(made.kind_, made.shape_))
    made._build(torch.zeros(1, told["width"]), annotations, state.get("features"))
    lost = made.model_.load_state_dict(state, strict=False)
    if lost.unexpected_keys or set(lost.missing_keys) - set(made.model_.per_item):
        raise DataError(f"the weights are not those of {made.method}; save the classifier again")


def nothing_of(kind: str, shape: tuple[int, ...]) -> Inputs:
    """Return inputs of a kind with nothing in them, for encoders that only look at their sizes."""
    if kind == "arrays":
        return Arrays(torch.zeros(1, *shape))
    return Images(()) if kind == "images" else Texts(())
