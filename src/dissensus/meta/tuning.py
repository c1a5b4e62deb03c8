"""The numbers of an adapter, fitted to embeddings that stand fast; and which adapter is the best.

An adapter has few numbers (priors, scale, temperature), so a few hundred batches of episodes are
enough. They are fitted on classes that the embedding has not learned from: on others it is surer
than it will be. What matters most is the scale of distances and how much is believed of means and
shares before anything is seen; steps would not get far in them, so they are sought over their whole
range first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log
from typing import NamedTuple

import torch
from torch import nn

from ..nn.settings import Training
from ..nn.training import train
from .adapter import Adapter
from .em import Em
from .embedding import Embedding
from .episodes import Episodes, EpisodeSource
from .evaluation import Scores, score
from .learner import EpisodeLearner

__all__ = ["Choice", "choose", "tune"]

_SCALES = [0.05 * 2**power for power in range(10)]  # 0.05 to 26
_TAUS = [0.001, 0.1, 1, 3, 10, 30, 100]  # as so many items
_BS = [1, 10, 100]  # the same
_BATCH, _LR = 64, 0.01
_ITEMS = 3200  # in the supports of a batch, at most


class Choice(NamedTuple):
    """Adapters that were fitted, and how good each is on episodes of validation classes."""

    best: str  # as the registry writes it
    adapters: dict[str, Adapter]
    scores: dict[str, Scores]


def tune(adapter: Adapter, source: EpisodeSource, *, steps: int = 300, seed: int = 0) -> None:
    """Fit an adapter's numbers, in place.

    Parameters
    ----------
    adapter
        What to fit.
    source
        Episodes whose inputs are embeddings.
    steps
        Batches of episodes to learn from: 64 each, or fewer where supports are large.
    seed
        Decides what is random.
    """
    if not list(adapter.parameters()):
        return
    size = _size(source)
    if isinstance(adapter, Em):
        few = max(size // 8, 1)  # of many pools, so of many tasks
        _seek(adapter, list(_some(source, 16 * few).batches(few, seed, 10**6)))
    width = source.tasks.x.shape[1]  # type: ignore[union-attr]
    learner = EpisodeLearner(Embedding(nn.Identity(), width), adapter, lr=_LR)
    settings = Training(
        epochs=1, batch=size, lr=_LR, scheduler="cosine", held_out=0.0, clip=5.0, seed=seed
    )
    train(learner, _some(source, steps * size), settings)


def _size(source: EpisodeSource) -> int:
    """Return how many episodes a batch has."""
    largest = max(source.sizes.ways) * (max(source.sizes.shots) + source.sizes.unlabelled)
    return min(max(_ITEMS // largest, 4), _BATCH)


def _some(source: EpisodeSource, n_episodes: int) -> EpisodeSource:
    return replace(source, per_epoch=n_episodes)


@torch.no_grad()
def _seek(adapter: Em, batches: list[Episodes]) -> None:
    """Take the numbers under which queries are most likely, one after the other, twice."""
    classes = adapter.classes
    for _ in range(2):
        for number, values in (
            (adapter.log_scale, _SCALES),
            (classes.log_tau, _TAUS),
            (classes.log_b, _BS),
        ):
            loss = {float(number): float(score(adapter, batches).log_loss.mean())}
            for value in map(log, values):
                number.fill_(value)
                loss[value] = float(score(adapter, batches).log_loss.mean())
            number.fill_(min(loss, key=lambda value: loss[value]))


def choose(
    rules: Mapping[str, Adapter],
    source: EpisodeSource,
    *,
    steps: int = 300,
    episodes: int = 1280,
    seed: int = 0,
) -> Choice:
    """Fit several adapters and say which is right most often, on other episodes of the same source.

    Parameters
    ----------
    rules
        Adapters by name.
    source
        Episodes whose inputs are embeddings, of classes that these were not learned from.
    steps
        Batches of episodes that every adapter is fitted to.
    episodes
        By how many to choose.
    seed
        Decides what is random.
    """
    judged = list(_some(source, episodes).batches(_size(source), seed, 10**6 + 1))
    scores = {}
    for name, adapter in rules.items():
        tune(adapter, source, steps=steps, seed=seed)
        adapter.eval()
        scores[name] = score(adapter, judged)
    best = max(scores, key=lambda name: scores[name].mean)
    return Choice(best, dict(rules), scores)
