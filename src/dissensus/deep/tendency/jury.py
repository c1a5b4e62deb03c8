"""Gordon et al. (2022), jury learning: the composition of the jury decides the verdict.

Every group of annotators gets its share of the jury's members. Juries are sampled many times; each
gives the mean of its members' predictions, and the median over juries is the verdict. Any fitted
model of annotators can be used.

    M. L. Gordon et al. Jury learning: integrating dissenting voices into machine learning models.
    CHI 2022. doi:10.1145/3491102.3502004
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...base.arrays import Floats, Integers, frozen
from ...errors import DataError, OptionError
from ..nn.features import Features
from .base import Tendency, pieces


@dataclass(frozen=True, eq=False)
class Verdict:
    """The predictions of juries."""

    median: Floats  # (item, class): over juries, normalized
    low: Floats  # (item, class): 10th percentile over juries
    high: Floats  # (item, class): 90th percentile
    label: Integers  # (item)
    share: Floats  # (item, class): juries whose prediction it is


def apportion(quota: Mapping[str, float], size: int) -> dict[str, int]:
    """Return how many of `size` members every group gets, by the largest remainders.

    >>> apportion({"x": 2, "y": 1}, 4)
    {'x': 3, 'y': 1}
    """
    total = sum(quota.values())
    if not quota or total <= 0 or min(quota.values()) < 0:
        raise OptionError("a jury needs shares of groups, none below 0 and not all 0")
    exact = {name: share * size / total for name, share in quota.items()}
    out = {name: int(each) for name, each in exact.items()}
    rest = sorted(exact, key=lambda name: out[name] - exact[name])
    for name in rest[: size - sum(out.values())]:
        out[name] += 1
    return out


def jury(
    model: Tendency,
    features: Features,
    groups: Sequence[str | None],
    quota: Mapping[str, float],
    *,
    size: int = 12,
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
        Shares of the groups among the members, in any unit.
    size
        Members of a jury, sampled without replacement if a group is large enough.
    juries
        Number of juries; the same ones judge every item.
    seed
        Random seed.
    """
    if len(groups) != model.n_annotators:
        raise DataError(
            f"groups of {len(groups)} annotators, but the model has {model.n_annotators}"
        )
    random = np.random.default_rng([seed, 0x7041])
    counts = {name: count for name, count in apportion(quota, size).items() if count}
    members = {name: np.flatnonzero([each == name for each in groups]) for name in counts}
    for name, codes in members.items():
        if not len(codes):
            raise DataError(f"no annotator is in group {name!r}, which has {counts[name]} members")

    def sample() -> Integers:
        chosen = [
            random.choice(members[name], count, replace=count > len(members[name]))
            for name, count in counts.items()
        ]
        return np.concatenate(chosen)

    drawn = np.array([sample() for _ in range(juries)])  # (jury, member)
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
