"""What to ask next of a small task: which annotator about which item.

With posterior[n, k] what is believed of item n, and confusion[r, k, l] of annotator r, an answer is
worth what it tells about the truth, in nats (H is the entropy):

    gain[n, r] = H(Σ_k posterior[n, k] confusion[r, k]) − Σ_k posterior[n, k] H(confusion[r, k])

    joint       the pair of the largest gain
    item        the item in most doubt, and anybody
    annotator   whoever tells most about an item on which nothing is known, and any item
    random      any pair

An annotator of whom little is known is taken for one of the crowd, so `joint` soon settles on the
first who seems good. A share of the questions, `explore`, goes to the pair of the largest gain
among those whose annotator has labelled least.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .._relation import Array
from ..errors import MethodError
from .em import logs

if TYPE_CHECKING:
    from .adapter import Adapter
    from .target import FewShotTask

__all__ = ["POLICIES", "ask", "entropy", "information", "reveal"]

_NEVER = -torch.inf


def entropy(chance: Tensor) -> Tensor:
    """Return the entropy along the last axis, in nats."""
    return -(chance * logs(chance)).sum(dim=-1)


def information(posterior: Tensor, confusion: Tensor) -> Tensor:
    """Return what an answer tells about the truth: (episode, item, annotator), in nats.

    Parameters
    ----------
    posterior
        What is believed of the items: (episode, item, class).
    confusion
        Of the annotators: (episode, annotator, true, given).

    Examples
    --------
    >>> knows, guesses = torch.eye(2), torch.full((2, 2), 0.5)
    >>> information(torch.full((1, 1, 2), 0.5), torch.stack([knows, guesses])[None]).exp()
    tensor([[[2., 1.]]])
    """
    given = torch.einsum("enk,erkl->enrl", posterior, confusion)
    noise = torch.einsum("enk,erk->enr", posterior, entropy(confusion))
    return entropy(given) - noise


def _joint(posterior: Tensor, confusion: Tensor) -> Tensor:
    return information(posterior, confusion)


def _item(posterior: Tensor, confusion: Tensor) -> Tensor:
    return entropy(posterior)[:, :, None].expand(-1, -1, confusion.shape[1])


def _annotator(posterior: Tensor, confusion: Tensor) -> Tensor:
    even = torch.full_like(posterior, 1 / posterior.shape[2])
    return information(even, confusion)


def _random(posterior: Tensor, confusion: Tensor) -> Tensor:
    return posterior.new_zeros(*posterior.shape[:2], confusion.shape[1])


# What every policy expects of a pair: (episode, item, annotator).
POLICIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "joint": _joint,
    "item": _item,
    "annotator": _annotator,
    "random": _random,
}


def worth(posterior: Tensor, confusion: Tensor, policy: str) -> Tensor:
    """Return what a policy expects of every pair: (episode, item, annotator)."""
    if policy not in POLICIES:
        raise MethodError(f"no policy {policy!r}; there are {', '.join(POLICIES)}")
    return POLICIES[policy](posterior, confusion)


def ask(
    task: FewShotTask, budget: int, *, policy: str = "joint", explore: float = 0.1, seed: int = 0
) -> dict[str, Array]:
    """Return whom to ask about which item next, the worthiest first; no pair that is known.

    Parameters
    ----------
    task
        What is known so far.
    budget
        How many labels to ask for.
    policy
        How pairs are chosen.
    explore
        Share of questions for those who have labelled least.
    seed
        Decides what is random.
    """
    annotations, rng = task.annotations, np.random.default_rng(seed)
    posterior = torch.from_numpy(task.posterior)[None]
    confusion = torch.from_numpy(task.confusion)[None]
    gain = information(posterior, confusion)[0].numpy()
    value = worth(posterior, confusion, policy)[0].numpy() + 1e-9 * rng.random(gain.shape)
    value[annotations.item, annotations.annotator] = -np.inf
    load = annotations.labels_per_annotator.astype(float)
    item, annotator = [], []
    for _ in range(min(budget, int(np.isfinite(value).sum()))):
        open_to = value
        if rng.random() < explore:
            free = np.isfinite(value).any(axis=0)
            least = load == load[free].min()
            open_to = np.where(least & free, value, -np.inf)
        n, r = np.unravel_index(open_to.argmax(), value.shape)
        item.append(n)
        annotator.append(r)
        load[r] += 1
        value[n, r] = -np.inf
        value[n] -= np.where(np.isfinite(value[n]), abs(gain).max() + 1, 0)  # other items first
    chosen = np.array(item, dtype=int), np.array(annotator, dtype=int)
    return {
        "item": annotations.items[chosen[0]],
        "annotator": annotations.annotators[chosen[1]],
        "gain": gain[chosen],
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
    """Return which labels are known at every budget, asked for one by one in each episode.

    Parameters
    ----------
    adapter
        What is learned from the labels so far, after every answer.
    u
        Embeddings: (episode, item, feature).
    label
        What every annotator would say: (episode, item, annotator).
    n_classes
        How many classes there are.
    budgets
        Labels in all, rising; every item begins with one, of anybody.
    policy, explore, seed
        How pairs are chosen.

    Returns
    -------
    For every budget, labels as an adapter takes them: (episode, item, annotator), -1 for unknown.
    """
    from .items import Items

    rng = torch.Generator().manual_seed(seed)
    n_episodes, n_items, n_annotators = label.shape
    first = torch.rand(n_episodes, n_items, n_annotators, generator=rng).argmax(dim=2, keepdim=True)
    known = torch.zeros_like(label, dtype=torch.bool).scatter(2, first, True)
    found, episode = [], torch.arange(n_episodes)
    for total in range(n_items, max(budgets) + 1):
        shown = torch.where(known, label, -1)
        if total in budgets:
            found.append(shown)
        if total == max(budgets):
            break
        with torch.no_grad():
            task = adapter.adapt(Items.of(u, shown, n_classes=n_classes))
            value = worth(task.posterior, task.confusion, policy)
        value = value + 1e-6 * torch.rand(value.shape, generator=rng)
        if policy != "random":
            load = known.sum(dim=1).double()  # (episode, annotator)
            load = load.masked_fill(known.all(dim=1), torch.inf)
            least = load == load.min(dim=1, keepdim=True).values
            search = torch.rand(n_episodes, 1, generator=rng) < explore
            value = value.masked_fill((search & ~least)[:, None], -1e9)
        pick = value.masked_fill(known, _NEVER).flatten(1).argmax(dim=1)
        known[episode, pick // n_annotators, pick % n_annotators] = True
    return found
