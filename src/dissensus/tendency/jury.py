"""Gordon et al. (2022), jury learning: the composition of the jury decides the verdict.

Every group of annotators has a number of members on the jury. Juries are sampled many times; each
gives the mean of its members' predictions, and the median over juries is the verdict. Any fitted
model of annotators can be used.

    M. L. Gordon et al. Jury learning: integrating dissenting voices into machine learning models.
    CHI 2022. doi:10.1145/3491102.3502004
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._relation import Floats, Integers, frozen
from ..errors import DataError, OptionError
from ..nn.features import Features
from ._base import Tendency, pieces


@dataclass(frozen=True, eq=False)
class Verdict:
    """The predictions of juries."""

    median: Floats  # (item, class): over juries, normalized
    low: Floats  # (item, class): 10th percentile over juries
    high: Floats  # (item, class): 90th percentile
    label: Integers  # (item)
    share: Floats  # (item, class): juries whose prediction it is


def jury(
    model: Tendency,
    features: Features,
    groups: Sequence[str | None],
    quota: Mapping[str, int],
    *,
    juries: int = 100,
    seed: int = 0,
) -> Verdict:
    """Return the predictions of juries with a given composition.

    Parameters
    ----------
    model
        Predicts the members.
    features
        The items.
    groups
        The group of every annotator, `None` for those in none.
    quota
        Members of every group, sampled without replacement if the group is large enough.
    juries
        Number of juries; the same ones judge every item.
    seed
        Random seed.
    """
    if len(groups) != model.n_annotators:
        raise DataError(
            f"groups of {len(groups)} annotators, but the model has {model.n_annotators}"
        )
    if sum(quota.values()) < 1 or min(quota.values()) < 0:
        raise OptionError("a jury needs a number of members for every group, and one at least")
    random = np.random.default_rng([seed, 0x7041])
    parts = []
    for name, count in quota.items():
        members = np.flatnonzero([each == name for each in groups])
        if count and not len(members):
            raise DataError(f"no annotator is in group {name!r}, which has {count} members")
        again = count > len(members)
        parts.append([random.choice(members, count, again) for _ in range(juries if count else 0)])
    drawn = np.concatenate([part for part in parts if part], axis=1)  # (jury, member)
    codes, index = np.unique(drawn, return_inverse=True)
    weight = np.zeros((juries, len(codes)))
    np.add.at(weight, (np.arange(juries)[:, None], index.reshape(drawn.shape)), 1 / drawn.shape[1])
    out = np.empty((4, len(features), model.n_classes))
    for items in pieces(len(features), max(len(codes), juries) * model.n_classes):
        probability = np.exp(model.log_proba(features.take(items), codes))
        means = np.einsum("ja,iac->jic", weight, probability)
        out[:3, items] = np.quantile(means, [0.5, 0.1, 0.9], axis=0)
        best = means.argmax(axis=2)
        out[3, items] = (best[:, :, None] == np.arange(model.n_classes)).mean(axis=0)
    median = out[0] / out[0].sum(axis=1, keepdims=True)
    low, high, share = map(frozen, out[1:])
    return Verdict(frozen(median), low, high, frozen(median.argmax(axis=1)), share)
