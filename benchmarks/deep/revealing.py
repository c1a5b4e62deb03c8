"""Few-shot tasks whose labels are asked for one by one.

joint       the pair of the largest expected information
item        the item of the largest entropy, and any annotator
annotator   the annotator of the largest gain on an item with a uniform posterior, and any item
random      any pair
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dissensus.deep.meta.base import Adapter
from dissensus.deep.meta.episodes import Items
from dissensus.deep.meta.target import entropy, information


def _item(posterior: Tensor, confusion: Tensor) -> Tensor:
    return entropy(posterior)[:, :, None].expand(-1, -1, confusion.shape[1])


def _annotator(posterior: Tensor, confusion: Tensor) -> Tensor:
    return information(torch.full_like(posterior, 1 / posterior.shape[2]), confusion)


def _random(posterior: Tensor, confusion: Tensor) -> Tensor:
    return posterior.new_zeros(*posterior.shape[:2], confusion.shape[1])


# Utility of a pair: (episode, item, annotator).
POLICIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "joint": information,
    "item": _item,
    "annotator": _annotator,
    "random": _random,
}


def reveal(
    adapter: Adapter,
    u: Tensor,
    label: Tensor,
    n_classes: int,
    budgets: list[int],
    *,
    policy: str = "joint",
    explore: float = 0.1,
    seed: int = 0,
) -> list[Tensor]:
    """Simulate active learning: return the labels known at every budget.

    Parameters
    ----------
    adapter
        Adapted again after every label.
    u
        Embeddings: (episode, item, feature).
    label
        Labels of all annotators: (episode, item, annotator).
    n_classes
        Number of classes.
    budgets
        Total numbers of labels, rising; every item starts with one, of a random annotator.
    policy, explore, seed
        How pairs are chosen.

    Returns
    -------
    For every budget, labels as an adapter takes them: (episode, item, annotator), -1 for unknown.
    """
    rng = torch.Generator().manual_seed(seed)
    n_episodes, n_items, n_annotators = label.shape
    first = torch.rand(n_episodes, n_items, n_annotators, generator=rng).argmax(dim=2, keepdim=True)
    known = torch.zeros_like(label, dtype=torch.bool).scatter(2, first, True)
    revealed, episode = [], torch.arange(n_episodes)
    for total in range(n_items, max(budgets) + 1):
        visible = torch.where(known, label, -1)
        if total in budgets:
            revealed.append(visible)
        if total == max(budgets):
            break
        with torch.no_grad():
            task = adapter.adapt(Items.of(u, visible, n_classes=n_classes))
            value = POLICIES[policy](task.posterior, task.confusion)
        value = value + 1e-6 * torch.rand(value.shape, generator=rng)
        if policy != "random":
            load = known.sum(dim=1).double()  # (episode, annotator)
            load = load.masked_fill(known.all(dim=1), torch.inf)
            least = load == load.min(dim=1, keepdim=True).values
            explores = torch.rand(n_episodes, 1, generator=rng) < explore
            value = value.masked_fill((explores & ~least)[:, None], -1e9)
        pick = value.masked_fill(known, -torch.inf).flatten(1).argmax(dim=1)
        known[episode, pick // n_annotators, pick % n_annotators] = True
    return revealed
