"""Few-shot models in folders: weights as safetensors, the rest as JSON; nothing is unpickled."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from .._files import atomic_folder
from .._serialization import with_prefix
from ..errors import DataError, OptionError
from ..nn.encoding import encoding_for
from ..nn.inputs import Arrays, Images, Inputs, Texts
from ..nn.settings import Training
from .embedding import Embedding
from .episodes import Sizes
from .pseudo import PseudoCrowd

if TYPE_CHECKING:
    from .few_shot import FewShotCrowd

__all__ = ["restore", "save_state"]

_FORMAT = 1
_SETTINGS: dict[str, Any] = {"sizes": Sizes, "crowd": PseudoCrowd, "training": Training}


def save_state(model: FewShotCrowd, folder: str | Path) -> None:
    """Write a fitted model to a folder, all at once."""
    if not isinstance(model.encoder, str):
        raise OptionError("a network given as encoder cannot be saved; name an encoder instead")
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / "few_shot.json").exists():
        raise DataError(f"{folder}: holds something else; name a new folder")
    state = {
        f"{kind}.{name}": value.contiguous()
        for kind, part in (("embedding", model.embedding_), ("adapter", model.adapter_))
        for name, value in part.state_dict().items()
    }
    settings = model.get_params(deep=False)
    for name in _SETTINGS:
        settings[name] = None if settings[name] is None else asdict(settings[name])
    told = {
        "format": _FORMAT,
        "settings": settings,
        "rule": model.rule_,
        "kind": model.kind_,
        "shape": model.shape_,
        "width": model.embedding_.width,
        "held out": model.split_,
        "validation": model.validation_,
    }
    with atomic_folder(folder) as draft:
        save_file(state, draft / "weights.safetensors")
        (draft / "few_shot.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


def restore(kind: type[FewShotCrowd], folder: str | Path) -> FewShotCrowd:
    """Return the model that a folder holds."""
    folder = Path(folder)
    try:
        told = json.loads((folder / "few_shot.json").read_text(encoding="utf-8"))
        if told["format"] != _FORMAT:
            raise DataError(f"{folder}: written by another version; update dissensus to read it")
        state = load_file(folder / "weights.safetensors")
        settings = dict(told["settings"])
        for name, made in _SETTINGS.items():
            settings[name] = None if settings[name] is None else _settings(made, settings[name])
        model = kind(**settings)
        model.kind_, model.shape_ = told["kind"], tuple(told["shape"])
        model.split_, model.rule_ = told["held out"], told["rule"]
        model.validation_ = {name: tuple(pair) for name, pair in told["validation"].items()}
        model.history_ = None
        model.encoding_ = encoding_for(
            model.encoder, _sample(model.kind_, model.shape_), model.seed
        )
        model.embedding_ = Embedding(model.encoding_.network(), told["width"], model.head)
        model.adapter_ = model.built(model.rule_)
        model.embedding_.load_state_dict(with_prefix("embedding", state))
        model.adapter_.load_state_dict(with_prefix("adapter", state))
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as problem:
        first = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise DataError(f"{folder}: not a saved few-shot model ({first})") from None
    model.embedding_.eval()
    model.adapter_.eval()
    return model


def _settings(kind: Any, told: dict[str, Any]) -> Any:
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in told.items()})


def _sample(kind: str, shape: tuple[int, ...]) -> Inputs:
    """Return inputs of a kind, to build an encoder for."""
    if kind == "texts":
        return Texts(("",))
    return Images((Path("x"),)) if kind == "images" else Arrays(torch.zeros(1, *shape))
