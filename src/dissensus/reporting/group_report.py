"""Two rounds of annotation, or two groups of annotators, side by side.

Before and after a training, people and models: each side is aggregated for itself, and what
differs is told with intervals. Whether labels are right is judged by both sides together, less the
annotator's own labels, so that nobody seems to change because others did. An annotator's change is
the difference of two shares of right labels (Agresti and Caffo); that of alpha takes the sides for
independent, which errs towards caution where they share items. A change of an annotator is called
clear if it is so improbable that among all of them none is expected by chance (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._relation import Floats, Integers, indices_of, union
from ..aggregation import aggregate
from ..agreement import Estimate, agree
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..identification import AnnotatorScores, identify
from ..identification.proportions import Proportion, proportion
from ..metrics import evaluate
from ..readers import examine
from .group_comparison import Change, ChangedAnnotator, ChangedItem, Rounds, Side, Z

__all__ = ["report_groups", "split_by"]

_STEPS = 3


def report_groups(
    first: Any,
    second: Any,
    method: str = "auto",
    *,
    names: tuple[str, str] = ("first", "second"),
    truth: Mapping[Any, Any] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **reading: Any,
) -> Rounds:
    """Lay two rounds of annotation, or two groups of annotators, side by side.

    Parameters
    ----------
    first, second
        Annotations, or what `read` takes.
    method
        How to aggregate each of the two.
    names
        What to call them.
    truth
        Known labels to score both with.
    seed
        Decides what is random.
    progress
        Called with the steps that are done and how many there are.

    Further words go to `read`.

    Examples
    --------
    >>> from dissensus import demo
    >>> annotations, _ = demo()
    >>> rounds = report_groups(annotations, annotations, "majority", names=("before", "after"))
    >>> rounds.sentences[-2:]
    ['Of 500 items in both, 0 (0%) got another label.',
     'Of 40 annotators in both, nobody got clearly better or worse.']
    """
    progress = progress or (lambda _done, _total: None)
    both = [
        what if isinstance(what, Annotations) else examine(what, **reading).annotations
        for what in (first, second)
    ]
    classes = union(both[0].classes, both[1].classes)
    for name, group in zip(names, both, strict=True):
        if len(group) == 0:
            raise DataError(f"there are no labels in {name}")
    both = [annotations.recode(classes) for annotations in both]
    joint = _joint(*both)
    judged = identify(
        joint, aggregate(joint, method, seed=seed), models=False, copying=False, seed=seed
    )
    progress(1, _STEPS)
    sides = []
    for position, (name, annotations) in enumerate(zip(names, both, strict=True)):
        first_one = position * both[0].n_annotators
        mine = slice(first_one, first_one + annotations.n_annotators)
        sides.append(_side(name, annotations, judged, mine, method, truth, seed))
        progress(position + 2, _STEPS)
    one, two = sides
    at = indices_of(one.annotations.items, two.annotations.items)
    common = np.flatnonzero((at >= 0) & (one.result.label >= 0))
    common = common[two.result.label[at[common]] >= 0]
    labels = one.result.label[common], two.result.label[at[common]]
    alike = np.array([float((labels[0] == labels[1]).sum())])
    share = proportion(alike, np.array([float(len(common))]))
    return Rounds(
        one,
        two,
        len(common),
        Change(*(float(each[0]) for each in (share.value, share.low, share.high))),
        _kappa(*labels, len(classes)),
        _difference(one.alpha, two.alpha),
        _changed_annotators(one, two),
        _changed_items(one, two, common, at[common]),
        seed,
    )


def split_by(annotations: Annotations, column: str) -> dict[str, Annotations]:
    """Return the annotations of both values of a column, by value.

    >>> annotations = Annotations.from_columns("aabb", "xyxy", "0110", source=["person", "model"] * 2)
    >>> list(split_by(annotations, "source"))
    ['model', 'person']
    """
    if column not in annotations.columns:
        told = ", ".join(annotations.columns) or "none"
        raise OptionError(f"no column {column!r} beside the labels; there are: {told}")
    values = np.asarray([str(value) for value in annotations.columns[column].tolist()])
    found = sorted(set(values.tolist()))
    if len(found) != 2:
        some = ", ".join(found[:5])
        raise OptionError(f"{column} has {len(found)} values ({some}), but two are compared")
    return {value: _used(annotations.keep(values == value)) for value in found}


def _used(annotations: Annotations) -> Annotations:
    """Return annotations without items and annotators that have no label."""
    return annotations.subset(
        items=annotations.labels_per_item > 0, annotators=annotations.labels_per_annotator > 0
    )


def _joint(one: Annotations, two: Annotations) -> Annotations:
    """Return both together; who is in both counts as two annotators."""
    items = union(one.items, two.items)
    item = [indices_of(annotations.items, items)[annotations.item] for annotations in (one, two)]
    annotator = one.annotator.astype(np.int64), two.annotator.astype(np.int64) + one.n_annotators
    return Annotations.from_codes(
        np.concatenate(item),
        np.concatenate(annotator),
        np.concatenate([one.label, two.label]),
        items=items,
        annotators=one.n_annotators + two.n_annotators,
        classes=one.classes,
    )


def _side(
    name: str,
    annotations: Annotations,
    judged: AnnotatorScores,
    mine: slice,
    method: str,
    truth: Any,
    seed: int,
) -> Side:
    result = aggregate(annotations, method, seed=seed)
    return Side(
        name,
        annotations,
        result,
        Proportion(*(column[mine] for column in judged.accuracy)),
        int((judged.verdict[mine] == "spammer").sum()),
        agree(annotations, seed=seed),
        None if truth is None else evaluate(result, truth, seed=seed),
    )


def _kappa(one: Integers, other: Integers, n_classes: int) -> float:
    """Return Cohen's kappa of two columns of labels."""
    if not len(one):
        return math.nan
    shares = [np.bincount(each, minlength=n_classes) / len(one) for each in (one, other)]
    chance = float(shares[0] @ shares[1])
    return math.nan if chance >= 1 else (float((one == other).mean()) - chance) / (1 - chance)


def _difference(one: Estimate, two: Estimate) -> Change:
    value, error = two.value - one.value, math.hypot(one.error, two.error)
    return Change(value, value - Z * error, value + Z * error)


def _changed_annotators(one: Side, two: Side) -> tuple[ChangedAnnotator, ...]:
    at = indices_of(one.annotations.annotators, two.annotations.annotators)
    here = np.flatnonzero(at >= 0)
    scores = one.accuracy, two.accuracy
    who = np.stack([here, at[here]])  # (side, annotator)
    heard = np.stack([score.among[position] for score, position in zip(scores, who, strict=True)])
    share = np.stack([score.value[position] for score, position in zip(scores, who, strict=True)])
    kept = (heard > 0).all(axis=0)
    who, heard, share = who[:, kept], heard[:, kept], share[:, kept]
    change, reach = _agresti_caffo(share * heard, heard)
    order = np.argsort(change, kind="stable")
    wider = float(ndtri(1 - 0.025 / max(len(change), 1))) / Z
    return tuple(
        ChangedAnnotator(
            one.annotations.annotators[who[0, k]],
            (int(heard[0, k]), int(heard[1, k])),
            (float(share[0, k]), float(share[1, k])),
            _around(change[k], reach[k]),
            _around(change[k], wider * reach[k]).word,
        )
        for k in order.tolist()
    )


def _around(value: float, reach: float) -> Change:
    return Change(float(value), float(value - reach), float(value + reach))


def _agresti_caffo(right: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Return how much larger second shares are than first ones, and the reach: from (2, …)."""
    share = (right + 1) / (count + 2)
    reach = Z * np.sqrt((share * (1 - share) / (count + 2)).sum(axis=0))
    return share[1] - share[0], reach


def _changed_items(
    one: Side, two: Side, here: Integers, there: Integers
) -> tuple[ChangedItem, ...]:
    labels = one.result.label[here], two.result.label[there]
    posterior = one.result.confidence[here], two.result.confidence[there]
    moved = np.flatnonzero(labels[0] != labels[1])
    order = moved[np.argsort(-np.minimum(*posterior)[moved], kind="stable")]
    names, classes = one.annotations.items, one.annotations.classes
    return tuple(
        ChangedItem(
            names[here[k]],
            (classes[labels[0][k]], classes[labels[1][k]]),
            (float(posterior[0][k]), float(posterior[1][k])),
        )
        for k in order.tolist()
    )
