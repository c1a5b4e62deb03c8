"""Active learning in a small task: which annotator to ask about which item.

With the posterior[n, k] of item n and the confusion[r, k, l] of annotator r, the expected
information of a label about the truth is, in nats (H is the entropy):

    gain[n, r] = H(Σ_k posterior[n, k] confusion[r, k]) − Σ_k posterior[n, k] H(confusion[r, k])

The pair of the largest gain is asked for. Annotators with few labels look average, so this soon
settles on the first who seems good. A
share of the questions, `explore`, goes to the pair of the largest gain among the annotators with
the fewest labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ...base.arrays import Array
from .em import safe_log

if TYPE_CHECKING:
    from .target import FewShotTask


def entropy(p: Tensor) -> Tensor:
    """Return the entropy along the last axis, in nats."""
    return -(p * safe_log(p)).sum(dim=-1)


def information(posterior: Tensor, confusion: Tensor) -> Tensor:
    """Return the expected information gain of a label: (episode, item, annotator), in nats.

    Parameters
    ----------
    posterior
        Of the items: (episode, item, class).
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


def plan(
    task: FewShotTask, budget: int, *, explore: float = 0.1, seed: int = 0
) -> dict[str, Array]:
    """Return which annotators to ask about which items, the most informative pairs first.

    Parameters
    ----------
    task
        The task so far; pairs with a label are left out.
    budget
        Number of labels to ask for.
    explore
        Share of questions for the annotators with the fewest labels.
    seed
        Random seed.
    """
    annotations, rng = task.annotations, np.random.default_rng(seed)
    posterior = torch.from_numpy(task.posterior)[None]
    confusion = torch.from_numpy(task.confusion)[None]
    gain = information(posterior, confusion)[0].numpy()
    value = gain + 1e-9 * rng.random(gain.shape)
    value[annotations.item, annotations.annotator] = -np.inf
    load = annotations.labels_per_annotator.astype(float)
    item, annotator = [], []
    for _ in range(min(budget, int(np.isfinite(value).sum()))):
        eligible = value
        if rng.random() < explore:
            free = np.isfinite(value).any(axis=0)
            least = load == load[free].min()
            eligible = np.where(least & free, value, -np.inf)
        n, r = np.unravel_index(eligible.argmax(), value.shape)
        item.append(n)
        annotator.append(r)
        load[r] += 1
        value[n, r] = -np.inf
        value[n] -= np.where(np.isfinite(value[n]), abs(gain).max() + 1, 0)  # other items first
    pairs = np.array(item, dtype=int), np.array(annotator, dtype=int)
    return {
        "item": annotations.items[pairs[0]],
        "annotator": annotations.annotators[pairs[1]],
        "gain": gain[pairs],
    }
