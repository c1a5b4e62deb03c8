"""Everything about a data set, computed once; `class_page.py` lays it out as a page.

A report checks, aggregates, scores annotators and items, looks for camps, measures agreement, and
says how many labels are wrong and what to do about it. Large data are sampled where that changes
nothing a reader would see; the report says where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ..aggregation import aggregate
from ..aggregation.aggregation import ClassAggregation
from ..answers import KINDS, Answers
from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..base.names import Names
from ..base.storage import as_plain
from ..errors import DataError, OptionError
from ..formats import Reading, as_truth, examine
from ..formats.side_tables import read_attributes, read_texts, read_waum
from ..judging import Judging, judge
from ..metrics import Agreement, Evaluation, Pairs, agree, evaluate, pairwise
from ..pages.page import PageReport
from ..pages.wording import amount
from ..planning.label_errors import Checked, LabelErrors, checked_errors, doubts, label_errors
from ..quality import AnnotatorScores, Camps, GroupDifferences, camps, group_differences, identify
from ..quality.checks import Check, check
from ..quality.items import item_causes
from ..quality.verdicts import FLAGGED, LEFT_OUT
from ..registry import aggregators
from ..result import Table
from .actions import actions
from .answer_report import AnswerReport, report_answers
from .class_page import class_page
from .figures import figures
from .sentences import opening
from .summary import summarise
from .tendency_section import Predictions, read_predictions

_ONE_METHOD = 300_000  # labels above which one method replaces `auto`
_FAST = "hierarchical"
_PAIRS = 2_000_000  # pairs of labels above which pairs of annotators are left out
_CAMPS = 200_000  # labels above which camps are not looked for
_STEPS = 6
TARGET = 0.95  # accuracy to reach
_MULTIPLE = "Several options could be chosen; every combination counts as a class of its own here."


class DataReport(PageReport):
    """What reports on classes and on numbers share."""

    reading: Reading
    annotator_scores: AnnotatorScores
    truth: Mapping[str, str]

    @cached_property
    def annotators(self) -> Table:
        """Every score of every annotator, as columns."""
        return self.annotator_scores.table()

    @cached_property
    def texts(self) -> dict[str, str]:
        """The texts of items, by name."""
        table = self.reading.texts
        return {} if table is None else dict(table.select("item", "text").iter_rows())

    @cached_property
    def known(self) -> dict[str, str]:
        """Known labels or values of items, by name: gold and truth."""
        return {**self.reading.gold, **self.truth}


@dataclass(frozen=True, eq=False, repr=False)
class Report(DataReport):
    """Everything about a data set, as numbers.

    Attributes
    ----------
    name
        Of the data set.
    reading
        The annotations with gold, texts and notes found in the file.
    result
        The inferred labels.
    check, agreement, pairs, camps, groups, evaluation
        Results of `check`, `agree`, `camps`, `group_differences` and `evaluate`; `None` where there
        is nothing to report.
    annotator_scores
        Results of `identify`.
    cause
        Why annotators disagree on every item.
    n_changed
        How many labels change without random and constant annotators; `None` without any.
    target
        The share of right labels to reach.
    truth
        Known labels that were only used to score.
    samples
        A sentence for every part that was computed on a sample.
    folder
        Where images that texts name are looked for.
    predictions
        Results of `tendency evaluate`, if given.
    judging
        Results of `judge`, where people and models labelled.
    checked
        Labels that were checked one by one, where gold is no random sample.
    hardness
        WAUM by item, if given.
    """

    name: str
    reading: Reading
    result: ClassAggregation
    check: Check
    agreement: Agreement
    pairs: Pairs | None
    camps: Camps | None
    annotator_scores: AnnotatorScores
    cause: Names  # (item)
    evaluation: Evaluation | None
    groups: GroupDifferences | None = None
    n_changed: int | None = None
    target: float = TARGET
    truth: Mapping[str, str] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    seed: int = 0
    folder: Path | None = None
    predictions: Predictions | None = None
    judging: Judging | None = None
    checked: Checked | None = None
    hardness: Mapping[str, float] = field(default_factory=dict)

    @property
    def annotations(self) -> Annotations:
        """The annotations."""
        return self.reading.annotations

    @property
    def items(self) -> Table:
        """Every item: its label, certainty, number of labels and the cause of disagreement."""
        columns = {"certainty": self.certainty, "cause": self.cause}
        return {**self.result.items, **columns}

    @cached_property
    def is_wrong(self) -> npt.NDArray[np.bool_]:
        """Which items have a label that differs from the known one."""
        known_labels = self.known
        if not known_labels:
            return np.zeros(self.annotations.n_items, dtype=bool)
        pairs = zip(self.annotations.items.tolist(), self.result.labels.tolist(), strict=True)
        return np.array(
            [known_labels.get(item, label) != label for item, label in pairs], dtype=bool
        )

    @property
    def effect(self) -> str:
        """What leaving out random and constant annotators changes; empty without any."""
        if self.n_changed is None:
            return ""
        return f"this changes {amount(self.n_changed, 'label') if self.n_changed else 'no label'}"

    @property
    def has_camps(self) -> bool:
        """Whether annotators fall into camps."""
        return self.camps is not None and self.camps.verdict == "camps"

    @cached_property
    def certainty(self) -> Floats:
        """Confidence in every label; that it is right within one step, if classes are ordered.

        NaN where it cannot be told.
        """
        if self.annotations.scale != "ordinal":
            return self.result.confidence
        return _within_one_step(self.result)

    @cached_property
    def certainty_without_gold(self) -> Floats:
        """The same, without the factor that gold gives its temperature: alike in all fits."""
        result = self.result
        if not result.n_gold:
            return self.certainty
        method = aggregators.create(result.method)
        temperature = method.temperature(self.annotations.labels_per_item)
        plain = replace(result, temperature=temperature)
        if self.annotations.scale == "ordinal":
            return _within_one_step(plain)
        return plain.confidence

    @cached_property
    def unchecked(self) -> Integers:
        """Labelled items without gold that can be judged, by code, the least certain first."""
        return self._open[~np.isnan(self.certainty[self._open])]

    @cached_property
    def _open(self) -> Integers:
        """Labelled items without gold, by code; after those that can be judged, all others."""
        has_gold = np.array([item in self.reading.gold for item in self.annotations.items.tolist()])
        open_items = (self.annotations.labels_per_item > 0) & ~has_gold
        order = np.argsort(self.certainty, kind="stable")
        return order[open_items[order]]

    @cached_property
    def errors(self) -> LabelErrors:
        """How many labels are wrong."""
        if self.checked is not None:
            return checked_errors(self.certainty_without_gold[self._open], self.checked)
        return label_errors(self.certainty[self._open], **self.checks)

    @property
    def should_stop(self) -> bool:
        """Whether the labels are good enough, at the lower end of the interval."""
        return self.errors.reaches(self.target)

    @cached_property
    def to_relabel(self) -> Integers:
        """Items to label again, so that the target is expected to be reached."""
        if self.should_stop or self.has_camps or not self.errors.n_items:
            return np.zeros(0, dtype=np.int64)
        doubt = doubts(self.certainty[self.unchecked], self.errors.expected)
        doubt_left = doubt.sum() - np.cumsum(doubt)
        allowed = (1 - self.target) * len(doubt)
        if doubt.sum() <= allowed:
            return np.zeros(0, dtype=np.int64)
        return self.unchecked[: int(np.argmax(doubt_left <= allowed)) + 1]

    @property
    def errors_after(self) -> LabelErrors:
        """How many labels are wrong outside the list to label again."""
        n_listed = len(self.to_relabel)
        if self.checked is not None:
            unlisted = self.unchecked[n_listed:]
            return checked_errors(self.certainty_without_gold[unlisted], self.checked)
        return label_errors(self.certainty[self.unchecked], n_listed, **self.checks)

    @property
    def checks(self) -> dict[str, Any]:
        """How many labels were checked against known ones, and how many were wrong."""
        if self.evaluation is None or self.annotations.scale == "ordinal":
            return {"n_checked": self.result.n_gold, "n_wrong": self.result.gold_errors}
        right = self.evaluation.scores["accuracy"]
        n_checked = self.evaluation.n_scored
        wrong = 0 if right is None else round((1 - right.value) * n_checked)
        return {"n_checked": n_checked, "n_wrong": wrong}

    @cached_property
    def odd_items(self) -> dict[str, int]:
        """How many items have a split vote, and how many a label that nobody gave."""
        votes = self.annotations.votes()
        most = votes.max(axis=1)
        tied = ((votes == most[:, None]).sum(axis=1) > 1) & (most > 0)
        label = self.result.label
        nobody = (label >= 0) & (most > 0) & (votes[np.arange(len(label)), label] == 0)
        counts = {"with a split vote": int(tied.sum())}
        counts["with a label that nobody gave"] = int(nobody.sum())
        return {reason: count for reason, count in counts.items() if count}

    @cached_property
    def crowd_confusion(self) -> Floats:
        """How many labels of every class items have: (inferred class, given class)."""
        label = self.result.label
        is_inferred = np.eye(self.annotations.n_classes)[label] * (label >= 0)[:, None]
        return is_inferred.T @ self.annotations.votes()

    noun = "label"
    sentences = cached_property(opening)
    actions = cached_property(actions)
    charts = cached_property(figures)
    layout = class_page

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        summary = summarise(self.annotations, self.result, truth=dict(self.truth) or None)
        unidentifiable = self.result.unidentifiable
        return {
            **({} if unidentifiable is None else {"cannot_be_told": " ".join(unidentifiable)}),
            "name": self.name,
            "sentences": self.sentences,
            "summary": summary.as_dict(),
            "check": self.check.as_dict(),
            "agreement": self.agreement.as_dict(),
            "camps": None if self.camps is None else self.camps.as_dict(),
            "annotators": self.annotator_scores.as_dict(),
            "groups": None if self.groups is None else self.groups.as_dict(),
            "actions": [action.sentence for action in self.actions],
            "errors": as_plain(self.errors),
            "relabel": self.annotations.items[self.to_relabel].tolist(),
            "target": self.target,
            "stop": self.should_stop,
            "tendency": None if self.predictions is None else self.predictions.scores,
            "judging": None if self.judging is None else self.judging.as_dict(),
            "samples": list(self.samples),
        }


def _within_one_step(result: ClassAggregation) -> Floats:
    """Return the probability that labels are right within one step, NaN if unknown: (item)."""
    padded = np.pad(result.probabilities, ((0, 0), (1, 1)))
    near = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    certainty = near[np.arange(len(near)), np.maximum(result.label, 0)]
    return np.where(result.is_identifiable, certainty, np.nan)


@overload
def report(source: Answers, method: str = ..., **settings: Any) -> AnswerReport: ...


@overload
def report(source: Any, method: str = ..., **settings: Any) -> Report: ...


def report(source: Any, method: str = "auto", **settings: Any) -> Report | AnswerReport:
    """Return everything about a data set: labels, or answers of another kind.

    Answers of other kinds than classes and numbers go to `report_answers`, everything else to
    `report_labels`; both take `name`, `gold`, `truth`, `texts`, `show`, `folder`, `seed` and
    `progress`. A file is recognised by its columns.

    Examples
    --------
    >>> from dissensus import demo
    >>> report(demo()[0], "majority", name="demo").sentences[0]
    '40 annotators gave 2527 labels to 500 items, 5.1 each on average.'
    """
    reading = examine(source)
    if reading.answers.kind in KINDS:
        return report_answers(reading, method, **settings)
    return report_labels(reading, method, **settings)


def report_labels(
    source: Any,
    method: str = "auto",
    *,
    name: str | None = None,
    gold: Any = None,
    truth: Any = None,
    texts: str | Path | None = None,
    show: Sequence[str] | None = None,
    annotators: str | Path | None = None,
    target: float = TARGET,
    tendency: str | Path | None = None,
    waum: str | Path | Mapping[str, float] | None = None,
    folder: Path | None = None,
    checked: Checked | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Return everything about a data set of labels.

    Parameters
    ----------
    source
        `Annotations`, what `readers.examine` returned, or what `read` takes: a path, a pandas or
        polars table, an export of a labelling tool.
    method
        How to aggregate.
    name
        Of the data set, for titles; by default that of the file.
    gold
        Known labels that methods may use, `{item: label}` or a table; by default those in the
        file.
    truth
        Known labels to score with; no method uses them.
    texts
        A file with the text of every item, or with the name of an image next to it.
    show
        Columns of this file to show, by default the one that is known to hold texts.
    annotators
        A table about annotators: groups of every column are compared.
    target
        The share of right labels to reach; advice to stop needs it.
    tendency
        Output of `dissensus tendency evaluate --json`, as a file.
    waum
        WAUM of the items, drawn against the entropy of their labels: `{item: value}`, or a file
        of `dissensus identify -s waum`.
    folder
        Where images that texts name are looked for; by default the folder of the file.
    checked
        Labels that were checked one by one; by default gold is taken for a random sample.
    seed
        Random seed.
    progress
        Called with the number of completed steps and their total.

    Examples
    --------
    >>> from dissensus import demo
    >>> report_labels(demo()[0], "majority", name="demo").sentences[0]
    '40 annotators gave 2527 labels to 500 items, 5.1 each on average.'
    """
    progress = progress or (lambda _completed, _total: None)
    predictions = None if tendency is None else read_predictions(tendency)
    hardness = read_waum(waum) if isinstance(waum, (str, Path)) else dict(waum or {})
    reading = _reading_of(source, texts, show)
    annotations = reading.annotations
    _check_input(annotations, hardness, target)
    gold_labels = (dict(reading.gold) if gold is None else as_truth(gold)) or None
    reading = replace(reading, gold=gold_labels or {})
    truth = None if truth is None else as_truth(truth)
    annotations.check_classes("report", "`report_numbers` reports on numbers")
    findings = check(reading, gold=gold_labels)
    progress(1, _STEPS)
    samples: tuple[str, ...] = ()
    if method == "auto" and len(annotations) > _ONE_METHOD:
        method = _FAST
        samples = (f"With so many labels, {method} was used instead of a pool of methods.",)
    result = aggregate(annotations, method, gold=gold_labels, seed=seed)
    progress(2, _STEPS)
    known_labels = _of_classes(annotations, truth or {}) | (gold_labels or {})
    scores = identify(annotations, result, gold=known_labels, seed=seed)
    progress(3, _STEPS)
    _, cause = item_causes(annotations, result)
    agreement = agree(annotations, by="class" if annotations.n_classes <= 50 else None, seed=seed)
    progress(4, _STEPS)
    camps_found = _camps_among(annotations, scores, seed)
    groups = None if annotators is None else _groups_of(annotators, annotations, scores)
    progress(5, _STEPS)
    remaining, n_changed = _without_unreliable(annotations, scores), None
    if remaining is not None:
        without = aggregate(remaining, method, gold=gold_labels, seed=seed)
        n_changed = int((without.label != result.label).sum())
    size = annotations.labels_per_item.astype(np.int64)
    has_many_pairs = int((size * (size - 1)).sum()) > _PAIRS
    if has_many_pairs:
        samples += ("There are too many pairs of labels to compare annotators in pairs.",)
    pairs = None if has_many_pairs else _pairs_of(annotations)
    progress(6, _STEPS)
    path = Path(source) if isinstance(source, (str, Path)) and str(source) != "-" else None
    place = path if texts is None else Path(texts)
    return Report(
        name=name or ("annotations" if path is None else path.name),
        reading=reading,
        result=result,
        check=findings,
        agreement=agreement,
        pairs=pairs,
        camps=camps_found,
        annotator_scores=scores,
        cause=cause,
        evaluation=None if truth is None else evaluate(result, truth, seed=seed),
        groups=groups,
        n_changed=n_changed,
        target=target,
        truth=truth or {},
        samples=samples,
        seed=seed,
        folder=place.parent if place is not None and place.is_file() else folder,
        predictions=predictions,
        judging=judge(annotations, truth=truth, seed=seed) if annotations.mixed_kinds else None,
        checked=checked,
        hardness=hardness,
    )


def _reading_of(source: Any, texts: str | Path | None, show: Sequence[str] | None) -> Reading:
    """Return what is read of a source, with the texts of a table."""
    reading = examine(source, kind="single")
    if reading.kind == "sets":
        reading = replace(reading, notes=(*reading.notes, _MULTIPLE))
    if texts is not None:
        reading = replace(reading, texts=read_texts(str(texts), show))
    return reading


def _check_input(annotations: Annotations, hardness: Mapping[str, float], target: float) -> None:
    if len(annotations) == 0:
        raise DataError("there are no labels to report on")
    if hardness and hardness.keys().isdisjoint(annotations.items.tolist()):
        raise DataError(f"WAUM is of other items: {next(iter(hardness))!r} has no labels here")
    if not 0 < target < 1:
        raise OptionError(f"target = {target}, but it must be above 0 and below 1")


def _of_classes(annotations: Annotations, truth: Mapping[str, str]) -> dict[str, str]:
    """Return the known labels that are classes of the annotations."""
    classes = set(annotations.classes.tolist())
    return {item: label for item, label in truth.items() if label in classes}


def _camps_among(annotations: Annotations, scores: AnnotatorScores, seed: int) -> Camps | None:
    """Return the camps of annotators whose answers follow the items, unless labels are too many."""
    if annotations.n_classes < 2 or len(annotations) > _CAMPS:
        return None
    unreliable = scores.judged("random", "constant", "reversed")
    ordered = annotations.scale == "ordinal"
    return camps(annotations, left_out=unreliable, ordered=ordered, seed=seed)


def _groups_of(
    table: str | Path, annotations: Annotations, scores: AnnotatorScores
) -> GroupDifferences:
    """Return how groups of annotators differ, which a table names."""
    attributes = read_attributes(table, annotations.annotators.tolist())
    flagged, ordered = scores.judged(*FLAGGED), annotations.scale == "ordinal"
    return group_differences(annotations, attributes, flagged, ordered=ordered)


def _without_unreliable(annotations: Annotations, scores: AnnotatorScores) -> Annotations | None:
    """Return the labels of all but random and constant annotators; `None` if that changes none."""
    left_out = scores.judged(*LEFT_OUT)
    if left_out.all() or not left_out.any():
        return None
    return annotations.subset(annotators=~left_out)


def _pairs_of(annotations: Annotations) -> Pairs | None:
    """Return how much pairs of annotators agree; `None` where none can be compared."""
    if annotations.n_annotators < 2 or annotations.n_classes < 2:
        return None
    pairs = pairwise(annotations, "cohen", min_overlap=5)
    return pairs if pairs.known.any() else None
