"""Few-shot studies beside the grid: choosing labels, noisy sources, items that fool everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dissensus.meta.active import reveal
from dissensus.meta.embedding import Embedding
from dissensus.meta.episodes import EpisodeSource, Sizes
from dissensus.meta.evaluation import embedded, score
from dissensus.meta.items import Items
from dissensus.meta.learner import EpisodeLearner
from dissensus.meta.losses import Annotated, Clean, Forward, SmallLoss, Soft
from dissensus.meta.pseudo import PseudoCrowd
from dissensus.meta.tasks import Tasks
from dissensus.meta.tuning import tune
from dissensus.nn import Training, encoder_for, train
from dissensus.registry import adapters
from kept import kept
from omniglot import characters

__all__ = ["LOSSES", "SHARES", "active", "fooled", "noisy_source"]

SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
LOSSES = ("clean", "as if clean", "forward", "annotated", "soft", "small-loss")


def active(
    name: str, adapter: Any, test: Tasks, policy: str, ratio: float, n: int = 200
) -> dict[str, Any]:
    """Return query accuracies at shares of all labels, asked for one by one: (share, episode)."""

    def measure() -> dict[str, Any]:
        sizes = Sizes(shots=(5,), annotators=(5,), queries=10, pool_classes=10**6, pool_items=20)
        crowd = PseudoCrowd(spammers=(ratio, ratio), fixed=True)
        some = EpisodeSource(test, sizes, crowd, n).draw(np.random.default_rng(5), n)
        u = some.x[some.support]
        n_labels = some.label[0].numel()
        budgets = [round(share * n_labels) for share in SHARES]
        found = []
        for label in reveal(adapter, u, some.label, 5, budgets, policy=policy):
            with torch.no_grad():
                task = adapter.adapt(Items.of(u, label, n_classes=5))
                log = task.log_truth(Items.of(some.x[some.query], n_classes=5))
            right = (log.argmax(dim=2) == some.truth).double().mean(dim=1)
            found.append(np.round(right.numpy(), 4).tolist())
        return {"accuracy": found}

    return kept("meta", f"active {name} {policy} {ratio}", measure)


def noisy_source(loss: str, rate: float, seed: int = 0) -> dict[str, Any]:
    """Return test accuracy after training a small network on sources labelled at an error rate.

    Supports are labelled by three annotators and queries by the same; every label is wrong at the
    rate. What is known of the truth differs: nothing, but for `clean`.
    """

    def measure() -> dict[str, Any]:
        every = characters()
        encoder = encoder_for("conv4[size=20,channels=1,hidden=32]", seed=seed)
        embedding = Embedding(encoder.to(memory_format=torch.channels_last), encoder.width)
        losses: dict[str, Any] = {
            "clean": Clean(),
            "as if clean": Forward(0.0),
            "forward": Forward(rate),
            "annotated": Annotated(),
            "soft": Soft(),
            "small-loss": SmallLoss(1 - rate),
        }
        crowd = PseudoCrowd(spammers=(0.0, 0.0), accuracy=(1 - rate, 1 - rate))
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
        learner = EpisodeLearner(embedding, adapter, settings.lr, losses[loss])
        train(learner, EpisodeSource(every.train, sizes, crowd, 3200), settings)
        valid, test = embedded(embedding, every.valid), embedded(embedding, every.test)
        tune(adapter, EpisodeSource(valid, Sizes(), PseudoCrowd(), 640), steps=150)
        adapter.eval()
        found = score(adapter, EpisodeSource(test, Sizes(), PseudoCrowd(), 1280).batches(64, 3, 3))
        clean = PseudoCrowd(spammers=(0.0, 0.0), accuracy=(1.0, 1.0))
        best = score(adapter, EpisodeSource(test, Sizes(), clean, 1280).batches(64, 3, 3))
        return {"accuracy": found.mean, "half": found.half, "clean": best.mean}

    return kept("meta", f"source {loss} {rate} {seed}", measure)


def fooled(spec: str, share: float) -> dict[str, Any]:
    """Return accuracies where some items fool everybody, in a family of Gaussian tasks.

    One direction that all tasks share tells how hard an item is; on the hardest `share` of items
    everybody guesses.
    """

    def measure() -> dict[str, Any]:
        rng = np.random.default_rng(0)
        adapter = adapters.create(spec).build(9, 5)
        tune(adapter, _fooling(rng, 200, share), steps=300)
        adapter.eval()
        found = score(adapter, _fooling(rng, 100, share).batches(64, 4, 4))
        return {
            "accuracy": found.mean,
            "half": found.half,
            "log_loss": float(found.log_loss.mean()),
        }

    return kept("meta", f"fooled {spec} {share}", measure)


def _fooling(rng: np.random.Generator, n_classes: int, share: float) -> _Fooling:
    """Return episodes of Gaussian classes in eight features; a ninth tells how hard items are."""
    label = np.repeat(np.arange(n_classes), 20)
    x = 1.2 * rng.normal(size=(n_classes, 8))[label] + rng.normal(size=(len(label), 8))
    hard = rng.normal(size=len(label))
    tasks = Tasks(torch.from_numpy(np.column_stack([x, hard]).astype(np.float32)), label)
    crowd, limit = PseudoCrowd(spammers=(0.0, 0.4)), float(np.quantile(hard, 1 - share))
    return _Fooling(tasks, Sizes(shots=(3, 5)), crowd, 1280, limit=limit)


@dataclass(frozen=True, eq=False)
class _Fooling(EpisodeSource):
    """Episodes in which everybody guesses on hard items."""

    limit: float = 0.0

    def draw(self, rng: np.random.Generator, n_episodes: int) -> Any:
        made = super().draw(rng, n_episodes)
        fools = made.x[made.support][:, :, -1] > self.limit
        guess = torch.from_numpy(rng.integers(made.classes.shape[1], size=made.label.shape))
        return made._replace(label=torch.where(fools[:, :, None], guess, made.label))
