"""The networks of the few-shot benchmark, trained once and kept: `python few_shot_nets.py NAME`."""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from crowds import OUT
from dissensus.deep.meta.base import Adapter, ClassLearner, Embedding, EpisodeLearner
from dissensus.deep.meta.episodes import EpisodeSource, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tasks import labelled
from dissensus.deep.meta.tuning import embedded
from dissensus.deep.nn import Augment, Training, encoder_for, train
from dissensus.registry import adapters
from omniglot import characters

__all__ = ["NETS", "net", "trained_with"]

NETS = {
    "clean": "Trained on clean supports (prototypical network).",
    "noisy": (
        "Trained as in the paper: on supports labelled by pseudo-annotators, through EM (em-full, "
        "two steps, class means around zero)."
    ),
    "classes": "Trained as a classifier of all source classes; no episodes.",
}
ENCODER = "conv4[size=20,channels=1,hidden=64]"
WAYS, CROP = 5, 0.0
EPOCHS = {"clean": 20, "noisy": 20, "classes": 5}
OBJECTIVES = {
    "clean": "em-full[steps=1,scale=0.3]",
    "noisy": "em-full[steps=2,scale=0.3,centred=False,share_weight=None]",
}
TRAINING = {"batch": 32, "lr": 2e-3, "scheduler": "cosine", "precision": "bf16", "held_out": 0.0}


def net(name: str) -> Embedding:
    """Return a standardized embedding, from the disk or trained now."""
    path = _path(name)
    embedding = _untrained()
    if not path.exists():
        _train(name, embedding, path)
    embedding.load_state_dict(load_file(path))
    return embedding.eval()


def trained_with(name: str) -> tuple[Embedding, Adapter]:
    """Return an embedding as it was trained, and the adapter that was trained with it."""
    embedding = net(name)
    embedding.mean.zero_()
    embedding.length.fill_(1.0)
    adapter = adapters.create(OBJECTIVES[name]).build(embedding.width, WAYS)
    adapter.load_state_dict(load_file(_path(f"{name}-adapter")))
    return embedding, adapter.eval()


def _path(name: str) -> Path:
    return OUT / "meta" / "nets" / f"{name}.safetensors"


def _untrained() -> Embedding:
    encoder = encoder_for(ENCODER, seed=0)
    return Embedding(encoder.to(memory_format=torch.channels_last), encoder.width)


def _train(name: str, embedding: Embedding, path: Path) -> None:
    every, began = characters(), process_time()
    path.parent.mkdir(parents=True, exist_ok=True)
    augment = Augment(flip=0, crop=CROP, colour=0) if CROP else None

    def progress(done: int, total: int, words: str) -> None:
        if done % 100 == 0:
            print(f"{name}: {done} of {total}, {words}, {process_time() - began:.0f} s", flush=True)

    shared: dict[str, Any] = {"folder": path.with_suffix(""), "resume": True, "progress": progress}
    if name == "classes":
        examples = labelled(every.train)
        examples = type(examples)(examples.x, examples.annotations, augment)
        learner: Any = ClassLearner(embedding, examples.annotations.n_classes)
        settings = Training(epochs=EPOCHS[name], **{**TRAINING, "batch": 128})
        train(learner, examples, settings, **shared)
    else:
        clean = name == "clean"
        crowd = (
            PseudoAnnotators(spammers=(0.0, 0.0), accuracy=(1.0, 1.0))
            if clean
            else PseudoAnnotators()
        )
        more = {"annotators": (1,)} if clean else {}
        adapter = adapters.create(OBJECTIVES[name]).build(embedding.width, WAYS)
        learner = EpisodeLearner(embedding, adapter, TRAINING["lr"])
        source = EpisodeSource(every.train, Sizes(ways=(WAYS,), **more), crowd, 3200, augment)
        valid = EpisodeSource(every.valid, Sizes(**more), crowd, 640)
        train(learner, source, Training(epochs=EPOCHS[name], **TRAINING), valid=valid, **shared)
        save_file(adapter.state_dict(), path.with_name(f"{name}-adapter.safetensors"))
    embedding.eval()
    rows = torch.randperm(len(every.train.label), generator=torch.Generator().manual_seed(0))[:4096]
    seen = embedded(embedding, every.train.items(rows.numpy())).x
    embedding.fit_scale(seen[torch.arange(len(rows))])
    state = {key: value.contiguous() for key, value in embedding.state_dict().items()}
    save_file(state, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in sys.argv[1:] or NETS:
        net(each)
