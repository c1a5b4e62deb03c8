"""Few-shot studies: active learning, sources with noisy labels, and hard items.

Losses on queries that need no clean labels, as functions of log-probabilities (episode, query,
class):

    forward     one label that is wrong at a known rate: −log Σ_k p_k flip[k, label]
    annotated   labels of the annotators of the support: −log Σ_k p_k confusion[r, k, label], with
                the confusion that EM has estimated on the support; nothing clean anywhere
    soft        the posterior of Dawid & Skene on the queries' labels as a target
    small-loss  as if labels were clean, but only the share of queries with the smallest loss
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dissensus.deep.meta.base import AdaptedTasks, Embedding, EpisodeLearner
from dissensus.deep.meta.em import EmFull, safe_log
from dissensus.deep.meta.episodes import Episodes, EpisodeSource, Items, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tasks import Tasks
from dissensus.deep.meta.tuning import embedded, score, tune
from dissensus.deep.nn import Training, encoder_for, train
from dissensus.registry import adapters
from kept import kept
from omniglot import characters
from revealing import reveal

__all__ = ["LOSSES", "SHARES", "active", "hard_items", "noisy_source"]

SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
LOSSES = ("clean", "as if clean", "forward", "annotated", "soft", "small-loss")


def active(
    name: str, adapter: Any, test: Tasks, policy: str, ratio: float, n: int = 200
) -> dict[str, Any]:
    """Return query accuracies at shares of all labels, asked for one by one: (share, episode)."""

    def measure() -> dict[str, Any]:
        sizes = Sizes(shots=(5,), annotators=(5,), queries=10, pool_classes=10**6, pool_items=20)
        annotators = PseudoAnnotators(spammers=(ratio, ratio), fixed=True)
        some = EpisodeSource(test, sizes, annotators, n).draw(np.random.default_rng(5), n)
        u = some.x[some.support]
        n_labels = some.label[0].numel()
        budgets = [round(share * n_labels) for share in SHARES]
        result = []
        for label in reveal(adapter, u, some.label, 5, budgets, policy=policy):
            with torch.no_grad():
                task = adapter.adapt(Items.of(u, label, n_classes=5))
                log = task.log_truth(Items.of(some.x[some.query], n_classes=5))
            right = (log.argmax(dim=2) == some.truth).double().mean(dim=1)
            result.append(np.round(right.numpy(), 4).tolist())
        return {"accuracy": result}

    return kept("meta", f"active {name} {policy} {ratio}", measure)


class NoisyLearner(EpisodeLearner):
    """An embedding and an adapter, trained on another loss of the queries."""

    loss_of: Callable[[torch.Tensor, Episodes, Any], torch.Tensor]

    def query_loss(
        self, log_truth: torch.Tensor, batch: Episodes, tasks: AdaptedTasks | None
    ) -> torch.Tensor:
        return self.loss_of(log_truth, batch, tasks)


def loss_of(name: str, rate: float) -> Callable[[torch.Tensor, Episodes, Any], torch.Tensor]:
    """Return a loss by its name, for labels that are wrong at a rate."""
    aggregator = EmFull(steps=20).build(0, 2)

    def clean(log: torch.Tensor, batch: Episodes, _: Any) -> torch.Tensor:
        return -log.gather(2, batch.truth[:, :, None]).mean()

    def forward(log: torch.Tensor, batch: Episodes, _: Any) -> torch.Tensor:
        wrong = rate if name == "forward" else 0.0
        size = log.shape[2]
        flip = torch.full((size, size), wrong / max(size - 1, 1)).fill_diagonal_(1 - wrong)
        given = torch.logsumexp(log[..., None] + safe_log(flip.to(log)), dim=2)
        return -given.gather(2, batch.query_label[:, :, :1]).mean()

    def annotated(log: torch.Tensor, batch: Episodes, tasks: Any) -> torch.Tensor:
        episode, query, annotator = torch.nonzero(batch.query_label >= 0, as_tuple=True)
        label = batch.query_label[episode, query, annotator]
        given = safe_log(tasks.confusion)[episode, annotator, :, label]  # (annotation, true)
        return -torch.logsumexp(log[episode, query] + given, dim=1).mean()

    def soft(log: torch.Tensor, batch: Episodes, _: Any) -> torch.Tensor:
        label = torch.cat([batch.label, batch.query_label], dim=1)
        items = Items.of(torch.zeros(*label.shape[:2], 0), label, n_classes=log.shape[2])
        with torch.no_grad():
            target = aggregator.adapt(items).posterior[:, batch.label.shape[1] :]
        return -(target.to(log) * log).sum(dim=2).mean()

    def small(log: torch.Tensor, batch: Episodes, _: Any) -> torch.Tensor:
        loss = -log.gather(2, batch.query_label[:, :, :1])[:, :, 0]  # (episode, query)
        return loss.sort(dim=1).values[:, : max(round((1 - rate) * loss.shape[1]), 1)].mean()

    losses = (clean, forward, forward, annotated, soft, small)
    return dict(zip(LOSSES, losses, strict=True))[name]


def noisy_source(loss: str, rate: float, seed: int = 0) -> dict[str, Any]:
    """Return test accuracy after training a small network on sources labelled at an error rate.

    Supports and queries are labelled by the same three annotators; every label is wrong at the
    rate. Only `clean` uses the truth.
    """

    def measure() -> dict[str, Any]:
        every = characters()
        encoder = encoder_for("conv4[size=20,channels=1,hidden=32]", seed=seed)
        embedding = Embedding(encoder.to(memory_format=torch.channels_last), encoder.width)
        annotators = PseudoAnnotators(spammers=(0.0, 0.0), accuracy=(1 - rate, 1 - rate))
        sizes = Sizes(annotators=(3,))
        adapter = adapters.create("em-full[scale=0.3]").build(encoder.width, 5)
        settings = Training(
            epochs=4,
            batch=32,
            lr=2e-3,
            scheduler="cosine",
            precision="bf16",
            held_out=0.0,
            seed=seed,
        )
        learner = NoisyLearner(embedding, adapter, settings.lr)
        learner.loss_of = loss_of(loss, rate)
        train(learner, EpisodeSource(every.train, sizes, annotators, 3200), settings)
        valid, test = embedded(embedding, every.valid), embedded(embedding, every.test)
        tune(adapter, EpisodeSource(valid, Sizes(), PseudoAnnotators(), 640), steps=150)
        adapter.eval()
        result = score(
            adapter, EpisodeSource(test, Sizes(), PseudoAnnotators(), 1280).batches(64, 3, 3)
        )
        clean = PseudoAnnotators(spammers=(0.0, 0.0), accuracy=(1.0, 1.0))
        best = score(adapter, EpisodeSource(test, Sizes(), clean, 1280).batches(64, 3, 3))
        return {"accuracy": result.mean, "half": result.half, "clean": best.mean}

    return kept("meta", f"source {loss} {rate} {seed}", measure)


def hard_items(spec: str, share: float) -> dict[str, Any]:
    """Return accuracies where every annotator guesses on some items, in Gaussian tasks.

    One direction that all tasks share is the difficulty of an item; on the hardest `share` of items
    every annotator guesses.
    """

    def measure() -> dict[str, Any]:
        rng = np.random.default_rng(0)
        adapter = adapters.create(spec).build(9, 5)
        tune(adapter, _with_hard_items(rng, 200, share), steps=300)
        adapter.eval()
        scores = score(adapter, _with_hard_items(rng, 100, share).batches(64, 4, 4))
        log_loss = float(scores.log_loss.mean())
        return {"accuracy": scores.mean, "half": scores.half, "log_loss": log_loss}

    return kept("meta", f"hard items {spec} {share}", measure)


def _with_hard_items(rng: np.random.Generator, n_classes: int, share: float) -> _HardItems:
    """Return episodes of Gaussian classes in eight features; the ninth is the difficulty."""
    label = np.repeat(np.arange(n_classes), 20)
    x = 1.2 * rng.normal(size=(n_classes, 8))[label] + rng.normal(size=(len(label), 8))
    hard = rng.normal(size=len(label))
    tasks = Tasks(torch.from_numpy(np.column_stack([x, hard]).astype(np.float32)), label)
    annotators, limit = PseudoAnnotators(spammers=(0.0, 0.4)), float(np.quantile(hard, 1 - share))
    return _HardItems(tasks, Sizes(shots=(3, 5)), annotators, 1280, limit=limit)


@dataclass(frozen=True, eq=False)
class _HardItems(EpisodeSource):
    """Episodes in which every annotator guesses on hard items."""

    limit: float = 0.0

    def draw(self, rng: np.random.Generator, n_episodes: int) -> Episodes:
        episodes = super().draw(rng, n_episodes)
        hard = episodes.x[episodes.support][:, :, -1] > self.limit
        guess = rng.integers(episodes.classes.shape[1], size=episodes.label.shape)
        label = torch.where(hard[:, :, None], torch.from_numpy(guess), episodes.label)
        return episodes._replace(label=label)
