"""Omniglot's background set as few-shot tasks: images, the split by alphabet, and a test grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from crowds import OUT
from dissensus.deep.meta.episodes import Episodes, EpisodeSource, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tasks import Tasks

__all__ = ["ANNOTATORS", "CONDITIONS", "RATIOS", "SHOTS", "Characters", "cells", "characters"]

DATA = Path(__file__).parents[3] / "shared" / "data" / "omniglot_background" / "images.npz"
RATIOS, SHOTS, ANNOTATORS = (0.1, 0.3, 0.5, 0.7), (1, 3, 5), (3, 5, 7)
_SIDE = 20

# What the crowds of a condition are like, besides their share of spammers.
CONDITIONS: dict[str, dict[str, Any]] = {
    "independent": {},
    "fixed": {"fixed": True},
    "half": {"half": True},
    "mixed": {"class_spammers": 0.5, "flippers": 1 / 3},
    "weak": {"accuracy": (0.5, 1.0)},
    **{f"{count} labels": {"per_item": float(count)} for count in (1, 2, 3, 5)},
}


class Characters(NamedTuple):
    """Tasks of alphabets that share none: 19 to train, 5 to validate, 6 to test."""

    train: Tasks
    valid: Tasks
    test: Tasks


def characters() -> Characters:
    """Return 645, 125 and 194 characters of 20 drawings, 20 × 20 pixels each."""
    with np.load(DATA) as stored:
        bits, character, alphabet = stored["bits"], stored["character"], stored["alphabet"]
    kept = OUT / f"omniglot-{_SIDE}.npy"
    if not kept.exists():
        OUT.mkdir(exist_ok=True)
        np.save(kept, np.concatenate([_small(part) for part in np.array_split(bits, 20)]))
    of = np.zeros(character.max() + 1, dtype=int)
    of[character] = alphabet
    order = np.random.RandomState(0).permutation(of.max() + 1)  # a split that stands
    every = Tasks(torch.from_numpy(np.load(kept)), character)
    test, valid, train = (
        every.keep(np.flatnonzero(np.isin(of, some))) for some in np.split(order, [6, 11])
    )
    return Characters(replace(train, rotations=4), valid, test)


def _small(bits: Any) -> Any:
    """Return drawings, made smaller: (item, 1, side, side)."""
    ink = np.unpackbits(bits, axis=1)[:, : 105 * 105].reshape(-1, 1, 105, 105)
    x = torch.from_numpy(ink.astype(np.float32))
    return torch.nn.functional.interpolate(
        x, (_SIDE, _SIDE), mode="bilinear", antialias=True
    ).numpy()


def cells(
    tasks: Tasks, condition: str, episodes: int, seed: int = 0, queries: int = 10
) -> Iterator[tuple[tuple[int, int, float], Episodes]]:
    """Yield every cell of the test grid: (shots, annotators, ratio), and its episodes."""
    summary = dict(CONDITIONS[condition])
    half = summary.pop("half", False)
    number = 0
    for shots in SHOTS:
        for annotators in ANNOTATORS:
            for ratio in RATIOS:
                sizes = Sizes(
                    shots=(shots,),
                    annotators=(annotators,),
                    queries=queries,
                    pool_classes=10**6,
                    pool_items=20,
                )
                if half:
                    summary["per_item"] = annotators / 2
                crowd = PseudoAnnotators(spammers=(ratio, ratio), **summary)
                source = EpisodeSource(tasks, sizes, crowd, episodes)
                rng = np.random.default_rng([seed, number])
                yield (shots, annotators, ratio), source.draw(rng, episodes)
                number += 1
