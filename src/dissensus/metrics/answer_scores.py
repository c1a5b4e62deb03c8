"""How close answers are to known ones, by kind.

    spans      F1, precision and recall of exactly the same spans with the same label; overlap_f1
               of spans with an intersection over union of one half
    boxes      F1 at an intersection over union of .5, with precision and recall, and at .75
    points     F1 of points with a similarity of one half
    masks      mean intersection over union
    texts      word error rate: edits of all texts over the words of all references
    rankings   Kendall's tau-b, mean over items; of scored things, one tau over all of them
    sets       Jaccard index, mean over items; F1 of all options; share of equal sets

Every score is a ratio of sums over items, so that intervals can resample items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..answers import Answers
from ..answers.marks import Marks
from ..answers.masks import Masks
from ..answers.matching import best_match
from ..answers.rankings import Rankings
from ..answers.sets import Sets
from ..answers.texts import Texts
from ..base.arrays import Floats, Integers
from ..base.names import as_names, indices_of
from ..errors import DataError

_TIE = 1e-6  # what similarity counts beside being matched at all


class Found(NamedTuple):
    """Marks that were found, by item."""

    matched: Integers  # (item): marks that match a known one
    predicted: Integers  # (item)
    true: Integers  # (item)

    @property
    def precision(self) -> float:
        """The share of marks that match a known one."""
        return float(self.matched.sum() / max(self.predicted.sum(), 1))

    @property
    def recall(self) -> float:
        """The share of known marks that were found."""
        return float(self.matched.sum() / max(self.true.sum(), 1))

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1 where there is nothing to find."""
        n_marks = self.predicted.sum() + self.true.sum()
        return float(2 * self.matched.sum() / n_marks) if n_marks else 1.0

    def take(self, items: Integers) -> Found:
        """Return the counts of these items, which may repeat."""
        return Found(*(count[items] for count in self))


def found_marks(marks: Marks, gold: Marks, least: float = 1.0) -> Found:
    """Return how many marks match known ones one to one, with the same label.

    A match is at least this similar; 1 asks for the same coordinates. Items are those of `marks`;
    of several answers to an item, all marks count.
    """
    gold = marks.align(gold)
    place = np.vstack([marks.place, gold.place])
    item = np.concatenate([marks.mark_item, gold.mark_item])
    is_gold = np.arange(len(item)) >= marks.n_elements
    corners = marks.corners(place)
    pairs = marks.similar_pairs(corners, item, is_gold.astype(np.int64), least)
    first, second = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    names = [marks.classes[marks.label], gold.classes[gold.label]]
    label = np.concatenate(names) if marks.n_elements and gold.n_elements else np.zeros(len(item))
    same_label = label[first] == label[second]
    first, second, value = (
        first[same_label],
        second[same_label],
        1 + _TIE * pairs.similarity[same_label],
    )
    order = np.argsort(item[first], kind="stable")
    first, second, value = first[order], second[order], value[order]
    matched = best_match(item[first], first, second, value=value, n_pairs=marks.n_items)
    sizes = [np.bincount(side.mark_item, minlength=marks.n_items) for side in (marks, gold)]
    return Found(np.floor(matched + _TIE / 2).astype(np.int64), *sizes)


def mask_overlaps(masks: Masks, gold: Masks) -> Floats:
    """Return intersection over union with the known mask of every item, NaN without one."""
    gold = masks.align(gold)
    annotator = np.concatenate([np.zeros(len(masks), np.int64), np.ones(len(gold), np.int64)])
    merged = Masks.from_codes(
        np.concatenate([masks.item, gold.item]),
        annotator,
        items=masks.items,
        annotators=2,
        starts=np.concatenate([masks.starts, masks.starts[-1] + gold.starts[1:]]),
        runs=np.concatenate([masks.runs, gold.runs]),
        size=masks.size,
    )
    first, second = merged.within_item_pairs()
    paired = merged.annotator[first] != merged.annotator[second]
    overlap = np.full(masks.n_items, np.nan)
    overlap[merged.item[first[paired]]] = 1 - merged.distance(first[paired], second[paired])
    return overlap


class Ratio(NamedTuple):
    """A score by item: its value is the sum of the first over the sum of the second."""

    part: Floats  # (item)
    whole: Floats  # (item)

    @property
    def n_units(self) -> int:
        """Number of items."""
        return len(self.part)

    def values(self, weights: Floats) -> Floats:
        """Return the score for weights of items: (sample, item) to (sample)."""
        whole = weights @ self.whole
        return np.divide(
            weights @ self.part, whole, out=np.full(len(weights), np.nan), where=whole > 0
        )


def answer_scores(predicted: Answers, truth: Answers) -> tuple[dict[str, Ratio], int, int]:
    """Return the scores of a kind, and how many items had no truth and no prediction.

    One answer to an item is expected in both. Of marks, an item that is in the truth alone has no
    predicted marks: a consensus lists only what it holds.
    """
    if predicted.kind != truth.kind:
        raise DataError(f"{predicted.kind} were predicted, but the truth is {truth.kind}")
    has_truth = truth.labels_per_item > 0
    has_prediction = predicted.labels_per_item > 0
    without_truth = int(
        (indices_of(predicted.items[has_prediction], truth.items[has_truth]) < 0).sum()
    )
    missing = indices_of(truth.items[has_truth], predicted.items[has_prediction]) < 0
    scores, lists_all = _SCORES[truth.kind]
    without = int(missing.sum()) if lists_all else 0
    if (lists_all and missing.all()) or not has_truth.any():
        raise DataError(
            f"nothing to score: none of the {int(has_truth.sum())} items with a known answer is "
            f"among the {int(has_prediction.sum())} predicted; are they named alike?"
        )
    truth = truth.subset(items=has_truth)
    if lists_all:
        truth = truth.subset(items=~missing)
    predicted = truth.align(predicted)
    for answers, subject in ((truth, "the truth has"), (predicted, "there are")):
        if lists_all and answers.labels_per_item.max(initial=0) > 1:
            item = answers.items[answers.labels_per_item.argmax()]
            raise DataError(f"{subject} several answers to item {item!r}; keep one of them")
    return scores(predicted, truth), without_truth, without


def _f1(counts: Found) -> Ratio:
    return Ratio(2 * counts.matched.astype(float), (counts.predicted + counts.true).astype(float))


def _span_scores(spans: Any, gold: Any) -> dict[str, Ratio]:
    exact = found_marks(spans, gold)
    return {
        "f1": _f1(exact),
        "precision": Ratio(exact.matched.astype(float), exact.predicted.astype(float)),
        "recall": Ratio(exact.matched.astype(float), exact.true.astype(float)),
        "overlap_f1": _f1(found_marks(spans, gold, 0.5)),
    }


def _box_scores(boxes: Any, gold: Any) -> dict[str, Ratio]:
    half = found_marks(boxes, gold, 0.5)
    return {
        "f1_50": _f1(half),
        "precision": Ratio(half.matched.astype(float), half.predicted.astype(float)),
        "recall": Ratio(half.matched.astype(float), half.true.astype(float)),
        "f1_75": _f1(found_marks(boxes, gold, 0.75)),
    }


def _point_scores(points: Any, gold: Any) -> dict[str, Ratio]:
    scores = _box_scores(points, gold)
    return {"f1": scores["f1_50"]} | {name: scores[name] for name in ("precision", "recall")}


def _mean(value: Floats) -> Ratio:
    has_value = ~np.isnan(value)
    return Ratio(np.where(has_value, value, 0.0), has_value.astype(float))


def _mask_scores(masks: Masks, gold: Masks) -> dict[str, Ratio]:
    return {"iou": _mean(mask_overlaps(masks, gold))}


def joined(answers: Any, reference: Any) -> tuple[Any, Integers, Integers]:
    """Return two sets of answers in one, and the rows of all pairs between them on an item."""
    sides = [
        replace(
            relation,
            annotators=as_names([f"{side}{name}" for name in relation.annotators.tolist()]),
        )
        for side, relation in (("1 ", answers), ("2 ", reference))
    ]
    merged = sides[0].merge(sides[1])
    of_second = [name.startswith("2 ") for name in merged.annotators.tolist()]
    second = np.array(of_second, dtype=bool)[merged.annotator]
    left, right = merged.within_item_pairs()
    across = second[left] != second[right]
    left, right = left[across], right[across]
    swap = second[left]
    return merged, np.where(swap, right, left), np.where(swap, left, right)


def _text_scores(texts: Texts, gold: Texts) -> dict[str, Ratio]:
    merged, first, second = joined(texts, gold)
    edits = merged.edits(first, second).astype(float)
    item = indices_of(merged.items, gold.items)[merged.item[first]]
    part, whole = np.zeros(gold.n_items), np.zeros(gold.n_items)
    part[item], whole[item] = edits, merged.tokens.sizes[second]
    equal = np.zeros(gold.n_items)
    equal[item] = edits == 0
    return {"wer": Ratio(part, whole), "exact": Ratio(equal, np.ones(gold.n_items))}


def _ranking_scores(rankings: Rankings, gold: Rankings) -> dict[str, Ratio]:
    merged, first, second = joined(rankings, gold)
    tau = np.full(gold.n_items, np.nan)
    item = indices_of(merged.items, gold.items)[merged.item[first]]
    tau[item] = 1 - 2 * merged.distance(first, second)
    return {"tau": _mean(tau)}


def _set_scores(sets: Sets, gold: Sets) -> dict[str, Ratio]:
    merged, first, second = joined(sets, gold)
    item = indices_of(merged.items, gold.items)[merged.item[first]]
    similar = np.zeros(gold.n_items)
    similar[item] = 1 - merged.distance(first, second, "jaccard")
    holds = merged.chosen()
    shared = np.zeros(gold.n_items)
    shared[item] = np.asarray(holds[first].multiply(holds[second]).sum(axis=1)).ravel()
    size = np.zeros(gold.n_items)
    size[item] = (merged.sizes[first] + merged.sizes[second]).astype(float)
    units = np.ones(gold.n_items)
    return {
        "jaccard": Ratio(similar, units),
        "f1": Ratio(2 * shared, size),
        "exact": Ratio((similar == 1).astype(float), units),
    }


class _Scoring(NamedTuple):
    """The scores of a kind, and whether a consensus lists every item, not only those with marks."""

    scores: Callable[[Any, Any], dict[str, Ratio]]
    lists_all: bool = True


_SCORES: Mapping[str, _Scoring] = {
    "spans": _Scoring(_span_scores, lists_all=False),
    "boxes": _Scoring(_box_scores, lists_all=False),
    "points": _Scoring(_point_scores, lists_all=False),
    "masks": _Scoring(_mask_scores),
    "texts": _Scoring(_text_scores),
    "rankings": _Scoring(_ranking_scores),
    "sets": _Scoring(_set_scores),
}


class Things(NamedTuple):
    """Things that were ranked, with their scores."""

    scores: Mapping[str, float]

    @property
    def kind(self) -> str:
        """The kind of the answers that scored them."""
        return "rankings"


def scores_of_things(predicted: Any) -> Mapping[str, float] | None:
    """Return the scores of things that a result, or `Things`, has; nothing for rankings."""
    if not hasattr(predicted, "truth"):
        return getattr(predicted, "scores", None)
    if "thing" not in predicted.items:
        return None
    names, scores = (predicted.items[name].tolist() for name in ("thing", "score"))
    return dict(zip(names, scores, strict=True))


def ranked_by(scores: Mapping[str, float], truth: Rankings) -> Rankings:
    """Return how scores order what the truth has on every item."""
    ranked = set(truth.things.tolist())
    score_of = {name: score for name, score in scores.items() if name in ranked}
    table = {"thing": as_names(list(score_of)), "score": np.array(list(score_of.values()))}
    return truth.as_answers(table)


class Tau(NamedTuple):
    """Kendall's tau-b of two scores of the same things, by the signs of their differences."""

    predicted: Floats  # (thing, thing)
    true: Floats  # (thing, thing)

    @property
    def n_units(self) -> int:
        """Number of things."""
        return len(self.predicted)

    def values(self, weights: Floats) -> Floats:
        """Return tau for weights of things: (sample, thing) to (sample)."""
        products = self.predicted * self.true, self.predicted**2, self.true**2
        joint, norm, true_norm = (
            ((weights @ product) * weights).sum(axis=1) for product in products
        )
        scale = np.sqrt(norm * true_norm)
        return np.divide(joint, scale, out=np.full(len(weights), np.nan), where=scale > 0)


def thing_scores(predicted: Mapping[str, float], truth: Mapping[str, float]) -> dict[str, Tau]:
    """Return Kendall's tau-b of the scores of things that are in both."""
    names = [name for name in truth if name in predicted]
    if not names:
        raise DataError("nothing to score: no thing is in both tables; are they named alike?")
    score = np.array([predicted[name] for name in names])
    true_score = np.array([truth[name] for name in names])
    return {"tau": Tau(np.sign(score[:, None] - score), np.sign(true_score[:, None] - true_score))}
