"""Tuning of an adapter's parameters on fixed embeddings, and the choice of an adapter.

An adapter has few parameters (priors, scale, temperature), so a few hundred batches of episodes are
enough. They are tuned on classes that the embedding was not trained on, where it is not
overconfident. The scale of distances and the priors of means and shares matter most, and gradient
steps would not get far in them, so there is a grid search over their range first.

All this is on episodes of equally frequent classes. Only the weight of class frequencies in
predictions is searched for on uneven ones, last: on these, EM would learn to follow the votes into
one class. The adapter that is most accurate on other episodes is chosen.

The validation split is for early stopping, tuning and choosing. Whole tasks are held out where
there are at least four, otherwise whole classes of every task, where enough are left on both sides;
otherwise some items of every class. Without a trainable embedding nothing is held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...base.arrays import Array, Floats
from ...base.progress import out_of_time
from ...errors import DataError
from ..nn import Training, train
from ..nn.batches import chunks
from .base import Adapter, Embedding, EpisodeLearner
from .em import Em
from .episodes import Episodes, EpisodeSource, Sizes
from .tasks import Tasks

_QUERY_BATCH = 512  # inputs embedded at a time
_SCALES = [0.05 * 2**power for power in range(10)]  # 0.05 to 26
_TAUS = [0.001, 0.1, 1, 3, 10, 30, 100]  # in items
_BS = [1, 10, 100]
_WEIGHTS = [0.01, 0.25, 0.5, 1, 1.5, 2, 3]  # of class frequencies
_BATCH, _LR = 64, 0.01
_ITEMS = 3200  # in the supports of a batch, at most
_LEAST_TASKS = 4  # of which whole ones are held out


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the queries of every episode."""

    accuracy: Floats  # (episode): accuracy on its queries
    log_loss: Floats  # (episode)
    confidence: Floats  # (query of all episodes): of the predicted class
    right: Floats  # (query of all episodes): 1 if the prediction is right, else 0

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return float(self.accuracy.mean())

    @property
    def half(self) -> float:
        """Half of the 95 % interval of the mean accuracy, over episodes."""
        return float(1.96 * self.accuracy.std(ddof=1) / len(self.accuracy) ** 0.5)

    def __add__(self, other: Scores) -> Scores:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Scores(*(np.concatenate(pair) for pair in pairs))


@torch.no_grad()
def score(
    adapter: Adapter, batches: Iterable[Episodes], embedding: nn.Module | None = None
) -> Scores:
    """Return the scores of the queries of episodes.

    Parameters
    ----------
    adapter
        The adapter.
    batches
        Episodes, one pool at a time.
    embedding
        The embedding network; without it the inputs are embeddings.
    """
    network = nn.Identity() if embedding is None else embedding
    scores = [_scores_of(adapter.classify(network, batch)[0], batch.truth) for batch in batches]
    return sum(scores[1:], start=scores[0])


def _scores_of(log_truth: Tensor, truth: Tensor) -> Scores:
    log_loss = -log_truth.gather(2, truth[:, :, None])[:, :, 0].double()
    best = log_truth.max(dim=2)
    right = (best.indices == truth).double()
    return Scores(
        accuracy=right.mean(dim=1).numpy(),
        log_loss=log_loss.mean(dim=1).numpy(),
        confidence=best.values.double().exp().flatten().numpy(),
        right=right.flatten().numpy(),
    )


@torch.no_grad()
def embedded(embedding: nn.Module, tasks: Tasks) -> Tasks:
    """Return the same tasks with their embeddings as inputs."""
    embedding.eval()
    vectors = [embedding(x).float() for x in chunks(tasks.x, _QUERY_BATCH)]
    return Tasks(torch.cat(vectors), tasks.label, tasks.task, annotations=tasks.annotations)


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
    even_source = replace(source, sizes=replace(source.sizes, uneven=0.0))
    weight = adapter.log_share_weight if isinstance(adapter, Em) else None
    if weight is not None:
        weight.requires_grad_(False).fill_(log(_WEIGHTS[0]))
    if isinstance(adapter, Em):
        _grid_search(adapter, _small_batches(even_source, 16, seed, 10**6))
    width = source.tasks.x.shape[1]  # type: ignore[union-attr]
    learner = EpisodeLearner(Embedding(nn.Identity(), width), adapter, lr=_LR)
    settings = Training(
        epochs=1, batch=size, lr=_LR, scheduler="cosine", held_out=0.0, clip=5.0, seed=seed
    )
    train(learner, _resized(even_source, steps * size), settings)
    if weight is not None and source.sizes.uneven:
        batches = _small_batches(source, 32, seed, 10**6 + 2)
        _search(adapter, weight, _WEIGHTS, batches)


def _size(source: EpisodeSource) -> int:
    """Return the number of episodes in a batch."""
    largest = max(source.sizes.ways) * (max(source.sizes.shots) + source.sizes.unlabelled)
    return min(max(_ITEMS // largest, 4), _BATCH)


def _small_batches(source: EpisodeSource, count: int, seed: int, epoch: int) -> list[Episodes]:
    """Return batches an eighth as large: many pools, so many tasks."""
    size = max(_size(source) // 8, 1)
    return list(_resized(source, count * size).batches(size, seed, epoch))


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


class Split(NamedTuple):
    """Source tasks for training, and those held out."""

    train: Tasks
    held_out: Tasks
    description: str  # of the held-out part


def split(tasks: Tasks, share: float, sizes: Sizes, seed: int) -> Split:
    """Return training and held-out tasks; the latter without rotations."""
    rng = np.random.default_rng([seed, 0x5E1D])
    task = np.zeros(tasks.n_classes, dtype=int) if tasks.task is None else tasks.task
    large_enough = [len(items) >= sizes.least for items in tasks.members]
    names = [name for name in np.unique(task) if sum(np.array(large_enough)[task == name]) > 1]
    if not names:
        raise DataError(
            f"no task has two classes of {sizes.least} items or more; give more items, or smaller "
            "episodes"
        )
    if len(names) >= _LEAST_TASKS:
        held_out = rng.permutation(names)[: max(round(share * len(names)), 1)]
        held_out_class = np.isin(task, held_out)
        return _by_class(tasks, held_out_class, f"{len(held_out)} of {len(names)} tasks")
    held_out_class = np.zeros(tasks.n_classes, dtype=bool)
    ways = max(sizes.ways)
    for name in names:
        classes = np.flatnonzero((task == name) & large_enough)
        count = max(round(share * len(classes)), ways)
        if len(classes) - count >= ways:
            held_out_class[rng.permutation(classes)[:count]] = True
    if held_out_class.any() and all((~held_out_class & (task == name)).any() for name in names):
        return _by_class(
            tasks, held_out_class, f"{held_out_class.sum()} of {len(held_out_class)} classes"
        )
    return _by_item(tasks, share, sizes.least, rng)


def without_split(tasks: Tasks) -> Split:
    """Return all tasks on both sides, for an embedding that is not trained."""
    return Split(tasks, tasks.unrotated(), "nothing")


def _by_class(tasks: Tasks, held_out: Array, description: str) -> Split:
    train = tasks.keep(np.flatnonzero(~held_out))
    validation = tasks.keep(np.flatnonzero(held_out))
    return Split(train, validation.unrotated(), description)


def _by_item(tasks: Tasks, share: float, least: int, rng: np.random.Generator) -> Split:
    held_out = np.zeros(len(tasks.label), dtype=bool)
    for items in tasks.members:
        count = max(round(share * len(items)), least)
        if len(items) - count < least:
            count = len(items) // 2
        held_out[rng.permutation(items)[:count]] = True
    description = f"{held_out.sum()} of {len(held_out)} items"
    train = tasks.items(np.flatnonzero(~held_out))
    validation = tasks.items(np.flatnonzero(held_out))
    return Split(train, validation.unrotated(), description)
