"""Gordon et al. (2022), jury learning: who is asked decides what comes out.

A jury has seats, and every group of annotators its share of them. Juries are drawn many times;
each gives the mean of what its members would say, and the median over juries is the verdict. Any
fitted model of annotators can sit on a jury.

    M. L. Gordon et al. Jury learning: integrating dissenting voices into machine learning models.
    CHI 2022. doi:10.1145/3491102.3502004
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._relation import Floats, Integers, frozen
from ..errors import DataError, OptionError
from ._base import Tendency, Views

__all__ = ["Verdict", "indices", "jury"]

_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Verdict:
    """What juries say."""

    median: Floats  # (item, class): of the juries' means, brought to sum one
    low: Floats  # (item, class): a tenth of the juries is below
    high: Floats  # (item, class): a tenth is above
    label: Integers  # (item)
    share: Floats  # (item, class): juries whose mean is highest there


def indices(quota: Mapping[str, float], n_seats: int) -> dict[str, int]:
    """Return seats of every group, in proportion; the largest remainders get what is left.

    >>> indices({"x": 2, "y": 1}, 4)
    {'x': 3, 'y': 1}
    """
    total = sum(quota.values())
    if not quota or total <= 0 or min(quota.values()) < 0:
        raise OptionError("a jury needs shares of groups, none below 0 and not all 0")
    exact = {name: share * n_seats / total for name, share in quota.items()}
    out = {name: int(each) for name, each in exact.items()}
    rest = sorted(exact, key=lambda name: out[name] - exact[name])
    for name in rest[: n_seats - sum(out.values())]:
        out[name] += 1
    return out


def jury(
    model: Tendency,
    views: Views,
    groups: Sequence[str | None],
    quota: Mapping[str, float],
    *,
    n_seats: int = 12,
    juries: int = 100,
    seed: int = 0,
) -> Verdict:
    """Return what juries of some composition say of items.

    Parameters
    ----------
    model
        Who says what.
    views
        The items.
    groups
        The group of every annotator, `None` for those in none.
    quota
        Shares of the groups among the seats, in any unit.
    n_seats
        Seats of a jury. Members are drawn without repeats while a group has enough of them.
    juries
        How many juries are drawn; the same ones judge every item.
    seed
        Decides who is drawn.
    """
    if len(groups) != model.n_annotators:
        raise DataError(
            f"groups of {len(groups)} annotators, but the model knows {model.n_annotators}"
        )
    random = np.random.default_rng([seed, 0x7041])
    wanted = {name: count for name, count in indices(quota, n_seats).items() if count}
    members = {name: np.flatnonzero([each == name for each in groups]) for name in wanted}
    for name, found in members.items():
        if not len(found):
            raise DataError(f"no annotator is in group {name!r}, which has {wanted[name]} seats")
    drawn = np.array(
        [
            np.concatenate(
                [
                    random.choice(members[name], count, replace=count > len(members[name]))
                    for name, count in wanted.items()
                ]
            )
            for _ in range(juries)
        ]
    )  # (jury, seat)
    asked, position = np.unique(drawn, return_inverse=True)
    sits = np.zeros((juries, len(asked)))
    np.add.at(sits, (np.arange(juries)[:, None], position.reshape(drawn.shape)), 1 / drawn.shape[1])
    out = np.empty((4, len(views), model.n_classes))
    step = max(_CELLS // (max(len(asked), juries) * model.n_classes), 1)
    for at in range(0, len(views), step):
        items = np.arange(at, min(at + step, len(views)))
        chance = np.exp(model.log_proba(views.take(items), asked))  # (item, annotator, class)
        means = np.einsum("ja,iac->jic", sits, chance)
        out[:3, items] = np.quantile(means, [0.5, 0.1, 0.9], axis=0)
        best = means.argmax(axis=2)
        out[3, items] = (best[:, :, None] == np.arange(model.n_classes)).mean(axis=0)
    median = out[0] / out[0].sum(axis=1, keepdims=True)
    low, high, share = map(frozen, out[1:])
    return Verdict(frozen(median), low, high, frozen(median.argmax(axis=1)), share)
