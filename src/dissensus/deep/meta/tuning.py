"""Tuning of an adapter's parameters on fixed embeddings, and the choice of an adapter.

An adapter has few parameters (priors, scale, temperature), so a few hundred batches of episodes are
enough. They are tuned on classes that the embedding was not trained on, where it is not
overconfident. The scale of distances and the priors of means and shares matter most, and gradient
steps would not get far in them, so there is a grid search over their range first.

All this is on episodes of equally frequent classes. Only the weight of class frequencies in
predictions is searched for on uneven ones, last: on these, EM would learn to follow the votes into
one class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...base.time_limit import out_of_time
from ..nn import Training, train
from .base import Adapter
from .em import Em
from .embedding import Embedding
from .episodes import Episodes, EpisodeSource
from .evaluation import Scores, score
from .learner import EpisodeLearner

_SCALES = [0.05 * 2**power for power in range(10)]  # 0.05 to 26
_TAUS = [0.001, 0.1, 1, 3, 10, 30, 100]  # in items
_BS = [1, 10, 100]
_WEIGHTS = [0.01, 0.25, 0.5, 1, 1.5, 2, 3]  # of class frequencies
_BATCH, _LR = 64, 0.01
_ITEMS = 3200  # in the supports of a batch, at most


class Choice(NamedTuple):
    """Tuned adapters, with their scores on validation episodes."""

    best: str  # as the registry writes it
    adapters: dict[str, Adapter]
    scores: dict[str, Scores]


def tune(adapter: Adapter, source: EpisodeSource, *, steps: int = 300, seed: int = 0) -> None:
    """Tune an adapter's parameters, in place.

    Parameters
    ----------
    adapter
        The adapter.
    source
        Episodes whose inputs are embeddings.
    steps
        Number of batches: of 64 episodes, or fewer where supports are large.
    seed
        Random seed.
    """
    if not list(adapter.parameters()):
        return
    size = _size(source)
    small = max(size // 8, 1)  # many pools, so many tasks
    even = replace(source, sizes=replace(source.sizes, uneven=0.0))
    weight = adapter.log_share_weight if isinstance(adapter, Em) else None
    if weight is not None:
        weight.requires_grad_(False).fill_(log(_WEIGHTS[0]))
    if isinstance(adapter, Em):
        _grid_search(adapter, list(_resized(even, 16 * small).batches(small, seed, 10**6)))
    width = source.tasks.x.shape[1]  # type: ignore[union-attr]
    learner = EpisodeLearner(Embedding(nn.Identity(), width), adapter, lr=_LR)
    settings = Training(
        epochs=1, batch=size, lr=_LR, scheduler="cosine", held_out=0.0, clip=5.0, seed=seed
    )
    train(learner, _resized(even, steps * size), settings)
    if weight is not None and source.sizes.uneven:
        batches = _resized(source, 32 * small).batches(small, seed, 10**6 + 2)
        _search(adapter, weight, _WEIGHTS, list(batches))


def _size(source: EpisodeSource) -> int:
    """Return the number of episodes in a batch."""
    largest = max(source.sizes.ways) * (max(source.sizes.shots) + source.sizes.unlabelled)
    return min(max(_ITEMS // largest, 4), _BATCH)


def _resized(source: EpisodeSource, n_episodes: int) -> EpisodeSource:
    return replace(source, per_epoch=n_episodes)


def _grid_search(adapter: Em, batches: list[Episodes]) -> None:
    """Set the parameters of highest query likelihood, one after the other, twice."""
    classes = adapter.classes
    for _ in range(2):
        _search(adapter, adapter.log_scale, _SCALES, batches)
        _search(adapter, classes.log_tau, _TAUS, batches)
        _search(adapter, classes.log_b, _BS, batches)


@torch.no_grad()
def _search(
    adapter: Adapter, parameter: Tensor, values: Sequence[float], batches: list[Episodes]
) -> None:
    """Set the value of highest query likelihood, of these and the present one."""
    loss = {float(parameter): float(score(adapter, batches).log_loss.mean())}
    for value in map(log, values):
        if out_of_time():
            break
        parameter.fill_(value)
        loss[value] = float(score(adapter, batches).log_loss.mean())
    parameter.fill_(min(loss, key=lambda value: loss[value]))


def choose(
    adapters: Mapping[str, Adapter],
    source: EpisodeSource,
    *,
    steps: int = 300,
    episodes: int = 1280,
    seed: int = 0,
) -> Choice:
    """Tune several adapters and choose the most accurate, on other episodes of the same source.

    Parameters
    ----------
    adapters
        Adapters by name.
    source
        Episodes whose inputs are embeddings, of classes that these were not trained on.
    steps
        Number of batches for tuning.
    episodes
        Number of validation episodes.
    seed
        Random seed.
    """
    validation = list(_resized(source, episodes).batches(_size(source), seed, 10**6 + 1))
    scores: dict[str, Scores] = {}
    for name, adapter in adapters.items():
        if scores and out_of_time():
            break
        tune(adapter, source, steps=steps, seed=seed)
        adapter.eval()
        scores[name] = score(adapter, validation)
    best = max(scores, key=lambda name: scores[name].mean)
    return Choice(best, dict(adapters), scores)
