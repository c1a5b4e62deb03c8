"""`report`: everything about a data set, from the verbs that anybody could call.

    report → check · aggregate · identify · agree · evaluate · camps · judge · errors
           → Report(results) → sections → page | terminal | JSON | workbench

Large data are sampled where that changes nothing a reader would see; the report says where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..aggregation import aggregate
from ..aggregation.aggregation import Aggregation, AnswerAggregation
from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..base.names import as_names
from ..base.storage import as_plain, as_rows
from ..dispatch import by_kind
from ..errors import DataError, OptionError
from ..formats import as_truth, examine
from ..formats.side_tables import read_attributes, read_texts, read_waum
from ..judging import Judging, judge
from ..metrics import Evaluation, Pairs, Things, agree, evaluate, pairwise
from ..metrics.agreement import By
from ..metrics.distances import Distances
from ..pages.charts import Figure
from ..pages.page import PageReport
from ..pages.sections import Page, Section
from ..planning.label_errors import Checked, LabelErrors, label_errors
from ..quality import AnnotatorScores, Camps, GroupDifferences, camps, group_differences, identify
from ..quality.answers import FEW, LIKE_OTHERS, AnswerScores
from ..quality.checks import Check, check
from ..quality.items import item_causes
from ..quality.verdicts import FLAGGED, LEFT_OUT
from ..result import Result, Table
from .actions import actions, effect
from .details import annotator_rows, downloads, item_rows
from .doubt import AnswerDoubt, LabelDoubt, ValueDoubt
from .figures import figures
from .parts import LABELS, MARKS, OTHERS, part
from .sections import page_of, sections_of
from .sentences import ANSWER_VERDICTS, opening
from .summary import summarise
from .tendency_section import Predictions, read_predictions

_ONE_METHOD = 300_000  # labels above which one method replaces `auto`
_FAST = "hierarchical"
_PAIRS = 2_000_000  # pairs of labels above which pairs of annotators are left out
_CAMPS = 200_000  # labels above which camps are not looked for
_MOST_CLASSES = 50  # above which agreement is not measured class by class
_STEPS = 6
TARGET = 0.95  # accuracy to reach
_NOTES = {
    "sets": "Several options could be chosen; every combination counts as a class of its own here."
}
_CONTENT = {"classes": "labels", "numbers": "numbers"}  # what there may be none of
_UNNAMED = {"classes": "annotations"}  # what data are called, unless by their kind
_NOUNS = {"classes": "label", "numbers": "value", "boxes": "box", "rankings": "thing"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Report(PageReport, Result):
    """Everything about a data set: the results of the verbs, and what to do.

    Attributes
    ----------
    name
        Of the data set.
    reading
        The answers with format and notes, and the gold labels that methods used.
    result, annotator_scores, check
        Results of `aggregate`, `identify` and `check`.
    agreement, evaluation, camps, groups, pairs, judging
        Results of `agree`, `evaluate`, `camps`, `group_differences`, `pairwise` and `judge`; `None`
        where a kind has none, or there is nothing to report.
    doubt
        How sure what was inferred is, item by item: a `LabelDoubt`, `ValueDoubt` or `AnswerDoubt`.
    without
        The result without unreliable annotators; `None` without any.
    texts
        The texts of items, by name, or the names of their images.
    truth
        Known labels or values that were only used to score.
    samples
        A sentence for every part that was computed on a sample; `None` where no part ever is.
    folder
        Where images that texts name are looked for.
    predictions
        Results of `tendency evaluate`, if given.
    hardness
        WAUM by item, if given.
    """

    name: str
    reading: Any
    result: Any
    annotator_scores: Any
    doubt: Any
    check: Check
    agreement: Any = None
    evaluation: Evaluation | None = None
    without: Any = None
    camps: Camps | None = None
    groups: GroupDifferences | None = None
    pairs: Pairs | None = None
    judging: Judging | None = None
    predictions: Predictions | None = None
    hardness: Mapping[str, float] = field(default_factory=dict)
    truth: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    samples: tuple[str, ...] | None = None
    seed: int = 0
    folder: Path | None = None

    @property
    def answers(self) -> Any:
        """The answers."""
        return self.result.answers

    annotations = answers  # what tables of labels call them

    @property
    def kind(self) -> str:
        """The kind of the answers."""
        return str(self.answers.kind)

    @property
    def noun(self) -> str:
        """What was inferred, one of it."""
        return _NOUNS.get(self.kind, self.kind[:-1])

    @property
    def known(self) -> Mapping[str, str]:
        """Known labels or values of items, by name: gold and truth."""
        return {**self.reading.gold, **self.truth}

    @property
    def errors(self) -> LabelErrors | None:
        """How many labels are wrong; `None` where that cannot be said of a kind."""
        errors: LabelErrors | None = self.doubt.errors
        return errors

    @property
    def has_camps(self) -> bool:
        """Whether annotators fall into camps."""
        return self.camps is not None and self.camps.verdict == "camps"

    @cached_property
    def judged(self) -> dict[str, list[str]]:
        """Names of annotators by verdict, without those who are like others or gave too little."""
        verdict, names = self.annotator_scores.verdict, self.answers.annotators
        words = dict.fromkeys(word for word in verdict.tolist() if word not in (FEW, LIKE_OTHERS))
        return {word: names[verdict == word].tolist() for word in words}

    effect = cached_property(effect)
    sentences = cached_property(opening)
    actions = cached_property(actions)
    annotator_rows = cached_property(annotator_rows)
    item_rows = cached_property(item_rows)
    downloads = cached_property(downloads)

    @property
    def tables(self) -> Mapping[str, Table]:
        """The items, and the annotators with all their scores."""
        return {"items": self.items, "annotators": self.annotators}

    @property
    def items(self) -> Table:
        """Every item, or row of the consensus, with how sure it is."""
        return {**self.result.items, **self.doubt.columns}

    @property
    def annotators(self) -> Table:
        """Every score of every annotator, as columns."""
        return annotators(self)

    @cached_property
    def charts(self) -> dict[str, Figure]:
        """Every chart for which there are numbers, by name."""
        return {name: figure for name, figure in figures(self).items() if figure is not None}

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The charts."""
        return self.charts

    def sections(self) -> tuple[Section, ...]:
        """Return what every view shows: the opening, and the sections of the results."""
        return (self.opening, *sections_of(self))

    def layout(self) -> Page:
        """Return what the page shows."""
        return page_of(self)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        answers = self.answers
        return {
            "name": self.name,
            "kind": self.kind,
            "sentences": list(self.sentences),
            "actions": [action.sentence for action in self.actions],
            "method": self.result.method,
            "n_items": answers.n_items,
            "n_annotators": answers.n_annotators,
            "n_answers": len(answers),
            "check": self.check.as_dict(),
            "camps": None if self.camps is None else self.camps.as_dict(),
            "groups": None if self.groups is None else self.groups.as_dict(),
            "errors": as_plain(self.errors),
            "evaluation": as_plain(self.evaluation),
            "tendency": None if self.predictions is None else self.predictions.scores,
            "judging": None if self.judging is None else self.judging.as_dict(),
            "samples": list(self.samples or ()),
            self.doubt.listed_as: answers.items[self.doubt.again].tolist(),
            **plain(self),
        }


@part
def annotators(report: Report) -> Table:
    """Return every score of every annotator, as columns."""
    raise NotImplementedError


@annotators.for_kind(*LABELS)
def _who_labelled(report: Report) -> Table:
    table: Table = report.annotator_scores.table()
    return table


@annotators.for_kind(*OTHERS)
def _who_answered(report: Report) -> Table:
    table: Table = report.annotator_scores.annotators
    return table


@part
def plain(report: Report) -> dict[str, Any]:
    """Return what JSON has beside what is the same for every kind."""
    raise NotImplementedError


@plain.for_kind("numbers")
def _plain_values(report: Report) -> dict[str, Any]:
    scores: AnnotatorScores = report.annotator_scores
    return {"agreement": report.agreement.as_dict(), "annotators": scores.as_dict()}


@plain.for_kind("classes")
def _plain_labels(report: Report) -> dict[str, Any]:
    summary = summarise(report.answers, report.result, truth=dict(report.truth) or None)
    unidentifiable = report.result.unidentifiable
    return {
        **({} if unidentifiable is None else {"cannot_be_told": " ".join(unidentifiable)}),
        **_plain_values(report),
        "summary": summary.as_dict(),
        "target": report.doubt.target,
        "stop": report.doubt.should_stop,
    }


@plain.for_kind(*OTHERS)
def _plain_answers(report: Report) -> dict[str, Any]:
    agreement = report.agreement
    return {
        "n_empty": int(report.answers.empty.sum()),
        "agreement": None if agreement is None else as_plain(agreement.estimates),
        "annotators": as_rows(report.annotators),
        "evidence": report.annotator_scores.evidence,
    }


class ToReport(NamedTuple):
    """Answers to report on, with what was read beside them."""

    answers: Any
    reading: Any
    name: str
    texts: Mapping[str, str]
    folder: Path | None

    @property
    def kind(self) -> str:
        """The kind of the answers."""
        return str(self.answers.kind)

    def report(self, **results: Any) -> Report:
        """Return a report with the results of verbs, and what was read."""
        return Report(name=self.name, texts=self.texts, folder=self.folder, **results)


def to_report(
    source: Any,
    name: str | None = None,
    texts: str | Path | None = None,
    show: Sequence[str] | None = None,
    folder: Path | None = None,
) -> ToReport:
    """Return answers of any kind from what holds them, with the texts of their items."""
    reading = examine(source)
    answers: Any = reading.answers
    if not len(answers):
        raise DataError(f"there are no {_CONTENT.get(answers.kind, 'answers')} to report on")
    if answers.kind == Annotations.kind and (note := _NOTES.get(reading.kind)):
        reading = replace(reading, notes=(*reading.notes, note))
    path = Path(source) if isinstance(source, (str, Path)) and str(source) != "-" else None
    table = getattr(reading, "texts", None) if texts is None else read_texts(texts, show)
    place = path if texts is None else Path(texts)
    return ToReport(
        answers=answers,
        reading=reading,
        name=name or (_UNNAMED.get(answers.kind, answers.kind) if path is None else path.name),
        texts={} if table is None else dict(table.select("item", "text").iter_rows()),
        folder=place.parent if place is not None and place.is_file() else folder,
    )


@by_kind(read=to_report)
def report(
    answers: Any,
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
    """Return everything about a data set of any kind.

    Parameters
    ----------
    answers
        Answers, what `readers.examine` returned, or what `read` takes: a path, a pandas or polars
        table, an export of a labelling tool.
    method
        How to aggregate.
    name
        Of the data set, for titles; by default that of the file.
    gold
        What is known and methods may use, `{item: answer}` or a table; of labels by default those
        in the file.
    truth
        What is known to score with; no method uses it.
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
    >>> from dissensus import Numbers, Spans, demo
    >>> report(demo()[0], "majority", name="demo").sentences[0]
    '40 annotators gave 2527 labels to 500 items, 5.1 each on average.'
    >>> report(Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 9, 4, 5, 6])).sentences[0]
    '3 annotators gave 6 numbers to 2 items, 3.0 each on average, from 1 to 9.'
    >>> report(Spans.from_columns("aabb", "xyxy", [0, 0, 3, None], [2, 2, 5, None])).sentences[0]
    '2 annotators gave 4 answers to 2 items, 2.0 each on average.'
    """
    raise NotImplementedError


@report.for_kind("classes")
def report_on_classes(
    data: ToReport,
    method: str,
    *,
    gold: Any,
    truth: Any,
    annotators: str | Path | None,
    target: float,
    tendency: str | Path | None,
    waum: str | Path | Mapping[str, float] | None,
    checked: Checked | None,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Report:
    """Report on classes: with camps, groups and pairs of annotators, and models."""
    labels: Annotations = data.answers
    hardness = read_waum(waum) if isinstance(waum, (str, Path)) else dict(waum or {})
    _check_settings(labels, hardness, target)
    predictions = None if tendency is None else read_predictions(tendency)
    progress = progress or _no_progress
    gold = dict(data.reading.gold) if gold is None else as_truth(gold) or {}
    truth = None if truth is None else as_truth(truth)
    reading, samples = replace(data.reading, gold=gold), []
    findings = check(reading, gold=gold or None)
    progress(1, _STEPS)
    if method == "auto" and len(labels) > _ONE_METHOD:
        method = _FAST
        samples.append(f"With so many labels, {method} was used instead of a pool of methods.")
    known_labels = _of_classes(labels, truth or {}) | gold
    results = _results(
        labels, method, gold=gold or None, truth=truth, judged_by=known_labels, seed=seed
    )
    result, scores = results["result"], results["annotator_scores"]
    progress(2, _STEPS)
    _, cause = item_causes(labels, result)
    by: By | None = "class" if labels.n_classes <= _MOST_CLASSES else None
    agreement = agree(labels, by=by, seed=seed)
    progress(3, _STEPS)
    dividing = _camps_among(labels, scores, seed)
    groups = None if annotators is None else _groups_of(annotators, labels, scores)
    progress(4, _STEPS)
    size = labels.labels_per_item.astype(np.int64)
    has_many_pairs = int((size * (size - 1)).sum()) > _PAIRS
    if has_many_pairs:
        samples.append("There are too many pairs of labels to compare annotators in pairs.")
    pairs = None if has_many_pairs else _pairs_of(labels)
    progress(_STEPS, _STEPS)
    doubt = LabelDoubt(
        result=result,
        cause=cause,
        gold=gold,
        target=target,
        evaluation=results["evaluation"],
        checked=checked,
        has_camps=dividing is not None and dividing.verdict == "camps",
    )
    return data.report(
        **results,
        reading=reading,
        doubt=doubt,
        check=findings,
        agreement=agreement,
        camps=dividing,
        groups=groups,
        pairs=pairs,
        judging=judge(labels, truth=truth, seed=seed) if labels.mixed_kinds else None,
        predictions=predictions,
        hardness=hardness,
        truth=truth or {},
        samples=tuple(samples),
        seed=seed,
    )


@report.for_kind("numbers")
def report_on_numbers(
    data: ToReport,
    method: str,
    *,
    gold: Any,
    truth: Any,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Report:
    """Report on numbers."""
    numbers: Numbers = data.answers
    progress = progress or _no_progress
    gold, truth = as_truth(gold), as_truth(truth)
    findings = check(numbers)
    progress(1, _STEPS)
    known_values = {**(truth or {}), **(gold or {})}
    results = _results(numbers, method, gold=gold, truth=truth, judged_by=known_values, seed=seed)
    progress(2, _STEPS)
    agreement = agree(numbers, seed=seed)
    progress(_STEPS, _STEPS)
    return data.report(
        **results,
        reading=replace(data.reading, gold=gold or {}),
        doubt=ValueDoubt(results["result"]),
        check=findings,
        agreement=agreement,
        truth=truth or {},
        seed=seed,
    )


@report.for_kind(*OTHERS)
def report_on_answers(
    data: ToReport,
    method: str,
    *,
    gold: Any,
    truth: Any,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Report:
    """Report on answers of other kinds."""
    answers = data.answers
    progress = progress or _no_progress
    findings = check(answers)
    progress(1, _STEPS)
    results = _results(answers, method, gold=gold, truth=truth, judged_by=None, seed=seed)
    progress(2, _STEPS)
    has_pairs = bool((answers.labels_per_item > 1).any())
    agreement = agree(answers, seed=seed) if has_pairs else None
    progress(3, _STEPS)
    result = results["result"]
    doubt = AnswerDoubt(
        result=result,
        agreement=agreement,
        distance=Distances.of(answers).by_item(answers),
        errors=_wrong_marks(result) if answers.kind in MARKS else None,
    )
    progress(_STEPS, _STEPS)
    return data.report(
        **results, reading=data.reading, doubt=doubt, check=findings, agreement=agreement, seed=seed
    )


def _results(
    answers: Any, method: str, *, gold: Any, truth: Any, judged_by: Any, seed: int
) -> dict[str, Any]:
    """Return the results of the verbs that report on every kind alike."""
    result = aggregate(answers, method, gold=gold, seed=seed)
    scores = identify(answers, result, gold=judged_by, seed=seed)
    left_out, without = _unreliable(scores), None
    if left_out.any() and not left_out.all():
        without = aggregate(_only(answers, ~left_out), method, gold=gold, seed=seed)
    return {
        "result": result,
        "annotator_scores": scores,
        "evaluation": None if truth is None else _evaluated(result, truth, seed),
        "without": without,
    }


def _unreliable(scores: AnnotatorScores | AnswerScores) -> npt.NDArray[np.bool_]:
    """Return whose answers a result is computed without, to say what they change: (annotator)."""
    return np.isin(scores.verdict, as_names([*LEFT_OUT, *ANSWER_VERDICTS]))


def _only(answers: Any, is_left: npt.NDArray[np.bool_]) -> Any:
    """Return the answers of some annotators alone; numbers keep the names of the others."""
    if hasattr(answers, "subset"):
        return answers.subset(annotators=is_left)
    return answers.keep(is_left[answers.annotator])


def _evaluated(result: Aggregation, truth: Any, seed: int) -> Evaluation:
    """Return scores against what is known, of rankings also against known scores of things."""
    if isinstance(truth, Mapping) and "thing" in result.items:
        names, score = (result.items[name].tolist() for name in ("thing", "score"))
        return evaluate(Things(dict(zip(names, score, strict=True))), truth, seed=seed)
    return evaluate(result, truth, seed=seed)


def _wrong_marks(result: AnswerAggregation) -> LabelErrors | None:
    """Return how many marks are wrong; `None` where their confidence is no probability."""
    if result.inner is None:
        return None
    return label_errors(result.confidence[result.confidence < 1])


def _no_progress(_completed: int, _total: int) -> None:
    """Report nothing."""


def _check_settings(labels: Annotations, hardness: Mapping[str, float], target: float) -> None:
    if hardness and hardness.keys().isdisjoint(labels.items.tolist()):
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


def _pairs_of(annotations: Annotations) -> Pairs | None:
    """Return how much pairs of annotators agree; `None` where none can be compared."""
    if annotations.n_annotators < 2 or annotations.n_classes < 2:
        return None
    pairs = pairwise(annotations, "cohen", min_overlap=5)
    return pairs if pairs.known.any() else None
