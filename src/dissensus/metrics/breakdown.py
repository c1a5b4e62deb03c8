"""Agreement broken down: by item, by annotator, by class, and by option of multi-label answers."""

from __future__ import annotations

import numpy as np

from ..base.arrays import Floats
from ..answers.annotations import Annotations
from ..errors import OptionError
from .statistics import Difference, WeightsLike, weights_to_difference
from .joint import JointMeasures
from .agreement_result import AnnotatorAgreement, ItemAgreement
from .sufficient_statistics import own_votes
from .votes import Votes, count_votes

_CELLS = 2**22


def item_agreement(annotations: Annotations, *, weights: WeightsLike = "identity") -> Floats:
    """Return for every item the share of its label pairs that agree; NaN without a pair.

    >>> item_agreement(Annotations.from_columns("aaabbc", "xyzxyx", "001111")).round(3).tolist()
    [0.333, 1.0, nan]
    """
    return _item_agreement(annotations, weights_to_difference(weights, annotations.classes))


def item_breakdown(annotations: Annotations, joint: JointMeasures) -> list[ItemAgreement]:
    """Return every item, those with least agreement first."""
    shares = _item_agreement(annotations, joint.difference("weighted"))
    order = np.argsort(shares, kind="stable")
    columns = annotations.items[order], annotations.labels_per_item[order], shares[order]
    return list(map(ItemAgreement, *(column.tolist() for column in columns)))


def annotator_breakdown(annotations: Annotations, joint: JointMeasures) -> list[AnnotatorAgreement]:
    """Return every annotator with a label, those who agree least with others first."""
    with_others = _agreement_with_others(annotations, joint.difference("weighted"))
    without = joint.without_each()
    names = [one.name for one in joint.chosen]
    count = annotations.labels_per_annotator
    return [
        AnnotatorAgreement(
            annotations.annotators[annotator],
            int(count[annotator]),
            float(with_others[annotator]),
            dict(zip(names, without[:, annotator].tolist(), strict=True)),
        )
        for annotator in np.argsort(with_others, kind="stable").tolist()  # NaN last
        if count[annotator]
    ]


def one_vs_rest(annotations: Annotations) -> dict[str, Annotations]:
    """Return for every class in use the annotations with the classes `rest` and this one."""
    used = np.flatnonzero(np.bincount(annotations.label, minlength=annotations.n_classes))
    names = annotations.classes[used].tolist()
    return {
        name: annotations.with_codes(
            label=annotations.label == code, classes=[f"not {name}", name], scale="nominal"
        )
        for code, name in zip(used.tolist(), names, strict=True)
    }


def split_options(annotations: Annotations, mark: str = "|") -> dict[str, Annotations]:
    """Return for every option the annotations with the classes no and yes.

    Labels are names of options with a mark between them; an empty label chooses nothing.

    >>> annotations = Annotations.from_columns("aabb", "xyxy", ["cat|dog", "dog", "cat", "cat"])
    >>> split_options(annotations)["dog"].to_dict()
    {'a': {'x': 'yes', 'y': 'yes'}, 'b': {'x': 'no', 'y': 'no'}}
    """
    if not mark:
        raise OptionError("the mark between options is empty; give one, such as |")
    chosen = [
        {part.strip() for part in name.split(mark)} - {""} for name in annotations.classes.tolist()
    ]
    return {
        option: annotations.with_codes(
            label=np.array([option in names for names in chosen])[annotations.label],
            classes=["no", "yes"],
            scale="nominal",
        )
        for option in sorted(set().union(*chosen))
    }


def _item_agreement(annotations: Annotations, difference: Difference) -> Floats:
    """Return 1 minus the mean difference between two labels of an item; NaN without a pair."""
    size = annotations.labels_per_item.astype(np.float64)
    pairs = size * (size - 1)
    within = difference.within(count_votes(annotations))
    return 1 - np.divide(within, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def _agreement_with_others(annotations: Annotations, difference: Difference) -> Floats:
    """Return how much annotators agree with the labels of others on their items: (annotator)."""
    votes = count_votes(annotations)
    own, item, annotator = own_votes(annotations)
    apart = np.zeros(len(annotations))  # from all labels on the item, own ones included
    step = max(_CELLS // max(annotations.n_classes, 1), 1)
    for start in range(0, annotations.n_items, step):
        stop = min(start + step, annotations.n_items)
        rows = slice(annotations.index[start], annotations.index[stop])
        toward = difference.toward(votes.table[start:stop].toarray())  # (item, class)
        position = np.repeat(np.arange(stop - start), annotations.labels_per_item[start:stop])
        apart[rows] = toward[position, annotations.label[rows]]
    own_counts = Votes(own, np.ones(len(item), dtype=np.int64))
    pairs = own_counts.size * (votes.size[item] - own_counts.size)
    n = annotations.n_annotators
    total = np.bincount(annotations.annotator, apart, minlength=n)
    total -= np.bincount(annotator, difference.within(own_counts), minlength=n)
    count = np.bincount(annotator, pairs, minlength=n)
    return 1 - np.divide(total, count, out=np.full(n, np.nan), where=count > 0)
