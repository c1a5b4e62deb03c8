"""Agreement as a result: estimates, their breakdown, remarks, and the words of Landis and Koch.

Agreement is broken down by item, by annotator, by class, and by option of multi-label answers.

    J. R. Landis, G. G. Koch. The measurement of observer agreement for categorical data.
    Biometrics 33(1), 1977. doi:10.2307/2529310
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers.annotations import Annotations
from ..base.arrays import Floats
from ..base.storage import as_plain
from ..base.tables import Table, columns_of
from ..errors import OptionError
from ..pages.wording import titles
from ..result import Result
from .coefficients import find_measure
from .joint import JointMeasures
from .pairs import KindAgreement
from .statistics import (
    Difference,
    Votes,
    WeightsLike,
    class_values,
    count_votes,
    own_votes,
    weights_to_difference,
)

if TYPE_CHECKING:
    from ..pages.charts import Figure
    from ..pages.sections import Section


_HIGH, _LOW = 0.8, 0.4  # much agreement, but little beyond chance
_FEW = 5  # common items below which the kappa of two annotators is unreliable
# Below the number, the word.
_WORDS = {
    0.0: "poor",
    0.2: "slight",
    0.4: "fair",
    0.6: "moderate",
    0.8: "substantial",
    math.inf: "almost perfect",
}
_CELLS = 2**22


class Estimate(NamedTuple):
    """A measure, its confidence interval and standard error; NaN where there is none."""

    measure: str
    value: float
    low: float
    high: float
    error: float
    dropped: int  # resamples that gave no value


class ClassAgreement(NamedTuple):
    """A class against the rest, or an option of several that can be chosen."""

    name: str
    n_labels: int
    estimates: tuple[Estimate, ...]

    @property
    def values(self) -> dict[str, float]:
        """What a row about it shows, by the title of its column."""
        return {estimate.measure: estimate.value for estimate in self.estimates}

    def rows(self) -> list[dict[str, Any]]:
        """Return what a table of all parts has about it, a row for each measure."""
        return [as_plain(estimate) for estimate in self.estimates]


class AnnotatorAgreement(NamedTuple):
    """An annotator: agreement with others on common items, and that of the others alone."""

    name: str
    n_labels: int
    with_others: float
    without: dict[str, float]  # measure → value without this annotator

    @property
    def values(self) -> dict[str, float]:
        """What a row about it shows, by the title of its column."""
        return {"with others": self.with_others, **self.without}

    def rows(self) -> list[dict[str, Any]]:
        """Return what a table of all parts has about it."""
        without = {f"without:{name}": value for name, value in self.without.items()}
        return [as_plain({"with_others": self.with_others, **without})]


class ItemAgreement(NamedTuple):
    """An item, and the share of its pairs of labels that agree."""

    name: str
    n_labels: int
    agreement: float

    @property
    def values(self) -> dict[str, float]:
        """What a row about it shows, by the title of its column."""
        return {"agreement": self.agreement}

    def rows(self) -> list[dict[str, Any]]:
        """Return what a table of all parts has about it."""
        return [as_plain(self.values)]


class MeanDistance(NamedTuple):
    """An item or annotator, and the mean distance of its answers to those of others."""

    name: str
    n_answers: int
    distance: float

    @property
    def n_labels(self) -> int:
        """Number of answers."""
        return self.n_answers

    @property
    def values(self) -> dict[str, float]:
        """What a row about it shows, by the title of its column."""
        return {"distance": self.distance}

    def rows(self) -> list[dict[str, Any]]:
        """Return what a table of all parts has about it."""
        return [as_plain(self.values)]


Part = ClassAgreement | AnnotatorAgreement | ItemAgreement | MeanDistance
_OF_LABELS = ("scale", "weights", "word", "kinds")  # attributes that other answers do not have
_OF_ANSWERS = ("summary", "annotators", "items")  # and those that labels do not have


@dataclass(frozen=True, repr=False, kw_only=True)
class Agreement(Result):
    """How much annotators agree.

    Attributes
    ----------
    kind
        The kind of the answers.
    estimates
        The measures in the order of the request; with several options, means over them. Of answers
        with a distance, `observed` is D_o and `expected` is D_e.
    by, parts
        The breakdown: `item`, `annotator`, `class` or `option`, and its parts.
    n_labels
        Number of answers.
    n_paired
        Items with two answers or more, on which all measures rest.
    scale, weights, word
        The scale of labels, the weights of measures, and the usual word for alpha, or for the first
        chance-corrected measure; empty for answers with a distance.
    kinds
        Agreement among people, among models and across, where both gave labels.
    summary, annotators, items
        Of answers with a distance: how many there are, in words, and the mean distances by
        annotator and by item, the largest first.
    notes
        Remarks for the reader, a sentence each.
    """

    kind: str
    estimates: tuple[Estimate, ...]
    by: str | None = None
    parts: tuple[Part, ...] = ()
    n_items: int
    n_annotators: int
    n_labels: int
    n_paired: int
    resamples: int
    confidence: float
    interval: str = "percentile"
    scale: str = ""
    weights: str | None = None
    word: str = ""
    kinds: tuple[KindAgreement, ...] = ()
    summary: str = ""
    annotators: tuple[MeanDistance, ...] = ()
    items: tuple[MeanDistance, ...] = ()

    def __repr__(self) -> str:
        values = ", ".join(
            f"{estimate.measure} {estimate.value:.3f}" for estimate in self.estimates
        )
        return f"<Agreement of {self.n_annotators} annotators on {self.n_paired} items: {values}>"

    @property
    def tables(self) -> Mapping[str, Table]:
        """The breakdown, if there is one, and the measures."""
        parts = {self.by or "": columns_of(self.rows())} if self.parts else {}
        return parts | {"measures": columns_of(as_plain(self.estimates))}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The usual word for the agreement beyond chance."""
        names = [estimate.measure for estimate in self.estimates]
        corrected = [name for name in names if name != "percent"]
        if not (self.word and corrected):
            return ()
        name = "alpha" if "alpha" in corrected else corrected[0]
        return (f"In the usual words, {name} is {self.word}.",)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The measures as dots with their intervals."""
        from .sections import agreement_figure

        figure = agreement_figure(self)
        return {} if figure is None else {"agreement": figure}

    def sections(self) -> tuple[Section, ...]:
        """Return the measures with the breakdown, what they are called, and people and models."""
        from .sections import agreement_sections

        return agreement_sections(self)

    def _chart(self) -> tuple[Figure | None, str]:
        return self.figures.get("agreement"), "there is nothing to draw: no measure has a value"

    def __getitem__(self, measure: str) -> Estimate:
        """Return one of the estimates by name."""
        names = [estimate.measure for estimate in self.estimates]
        if measure not in names and self.scale:
            measure = find_measure(measure).name
        if measure not in names:
            raise KeyError(f"no {measure!r}; there are {', '.join(names)}")
        return self.estimates[names.index(measure)]

    def title_of(self, measure: str) -> str:
        """Return what a measure is called."""
        if measure == "ac1" and (self.scale != "nominal" or self.weights not in (None, "identity")):
            return titles("agreement", short=True)["ac2"]
        family = "agreement" if self.scale else "distances"
        return titles(family, short=True).get(measure, measure)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        unused = _OF_ANSWERS if self.scale else _OF_LABELS
        return {name: value for name, value in as_plain(self).items() if name not in unused}

    def rows(self) -> list[dict[str, Any]]:
        """Return the breakdown as a table, or the measures where there is none."""
        if not self.parts:
            return as_plain(self.estimates)
        return [
            {self.by or "class": part.name, "n_labels": part.n_labels, **row}
            for part in self.parts
            for row in part.rows()
        ]


def in_words(alpha: float) -> str:
    """Return the usual word for an alpha: below 0 poor, 0.2 slight, and so on in steps of 0.2.

    >>> in_words(0.7), in_words(math.nan)
    ('substantial', 'undefined')
    """
    return next((word for limit, word in _WORDS.items() if alpha < limit), "undefined")


def notes_on(
    annotations: Annotations,
    estimates: Sequence[Estimate],
    scale: WeightsLike,
    weights: WeightsLike | None,
    joint: JointMeasures,
    min_overlap: int,
) -> tuple[str, ...]:
    """Return remarks on the data and the measures."""
    out = []
    value = {estimate.measure: estimate.value for estimate in estimates}
    beyond = [(n, v) for n, v in value.items() if n in ("alpha", "fleiss", "cohen", "conger")]
    # With weights, near labels agree in part.
    equal = weights is None and isinstance(scale, str) and scale == "nominal"
    if equal and beyond and value.get("percent", 0) >= _HIGH and beyond[0][1] < _LOW:
        most = np.bincount(annotations.label, minlength=annotations.n_classes)
        out.append(
            f"{value['percent']:.0%} of pairs agree, but {beyond[0][0]} is {beyond[0][1]:.2f}: "
            f"{most.max() / most.sum():.0%} of labels are {annotations.classes[most.argmax()]}, so "
            "agreement by chance is high; compare ac1"
        )
    schemes = {scheme for scheme in (scale, weights) if isinstance(scheme, str)}
    if schemes & {"interval", "ratio", "linear", "quadratic", "circular", "bipolar"}:
        if class_values(annotations.classes)[1]:
            out.append("classes are not all numbers, so their positions are used: 1, 2, 3 …")
    elif "ordinal" in schemes and class_values(annotations.classes)[1]:
        ending = " …" if annotations.n_classes > 6 else ""
        order = ", ".join(annotations.classes[:6].tolist()) + ending
        out.append(f"the order of classes is {order}; declare classes for another")
    n_single = int((annotations.labels_per_item == 1).sum())
    if n_single:
        out.append(
            f"{n_single} of {annotations.n_items} items have one label only and do not count"
        )
    for estimate in estimates:
        if estimate.dropped:
            out.append(f"{estimate.dropped} resamples gave no {estimate.measure} and were left out")
    if joint.by_pairs:
        overlap = joint.co_annotations.overlap
        middle = (
            np.median(overlap[overlap >= min_overlap]) if (overlap >= min_overlap).any() else _FEW
        )
        if middle < _FEW:
            names = " and ".join(measure.name for measure in joint.measures if measure.by_pairs)
            out.append(
                f"half of the pairs of annotators share {middle:.0f} items or fewer, too "
                f"few for a kappa: give {names} a min_overlap, or take alpha"
            )
    return tuple(out)


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
    names = [measure.name for measure in joint.measures]
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
    present = np.flatnonzero(np.bincount(annotations.label, minlength=annotations.n_classes))
    names = annotations.classes[present].tolist()
    return {
        name: annotations.with_codes(
            label=annotations.label == code, classes=[f"not {name}", name], scale="nominal"
        )
        for code, name in zip(present.tolist(), names, strict=True)
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
    options_of = [
        {part.strip() for part in name.split(mark)} - {""} for name in annotations.classes.tolist()
    ]
    return {
        option: annotations.with_codes(
            label=np.array([option in names for names in options_of])[annotations.label],
            classes=["no", "yes"],
            scale="nominal",
        )
        for option in sorted(set().union(*options_of))
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
    distance = np.zeros(len(annotations))  # from all labels on the item, own ones included
    step = max(_CELLS // max(annotations.n_classes, 1), 1)
    for start in range(0, annotations.n_items, step):
        stop = min(start + step, annotations.n_items)
        rows = slice(annotations.index[start], annotations.index[stop])
        toward = difference.toward(votes.table[start:stop].toarray())  # (item, class)
        position = np.repeat(np.arange(stop - start), annotations.labels_per_item[start:stop])
        distance[rows] = toward[position, annotations.label[rows]]
    own_counts = Votes(own, np.ones(len(item), dtype=np.int64))
    pairs = own_counts.size * (votes.size[item] - own_counts.size)
    n = annotations.n_annotators
    total = np.bincount(annotations.annotator, distance, minlength=n)
    total -= np.bincount(annotator, difference.within(own_counts), minlength=n)
    count = np.bincount(annotator, pairs, minlength=n)
    return 1 - np.divide(total, count, out=np.full(n, np.nan), where=count > 0)
