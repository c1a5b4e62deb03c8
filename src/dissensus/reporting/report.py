"""Everything about a data set, computed once; `class_page.py` lays it out as a page.

A report checks, compares methods, aggregates, scores annotators and items, measures agreement and
plans further labels. Large data are sampled where that changes nothing a reader would see; the
report says where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._relation import Floats, Integers
from ..aggregation import aggregate
from ..agreement import Agreement, Pairs, agree, pairwise
from ..annotations import Annotations
from ..answers.numbers import Numbers
from ..checking import Check, check
from ..comparison import Comparison, compare
from ..errors import DataError, OptionError
from ..identification import AnnotatorScores, Camps, ItemScores, camps, identify, item_scores
from ..metrics import Evaluation, evaluate
from ..planning import Plan, plan
from ..readers import Reading, as_truth, examine
from ..readers.side_tables import read_texts
from ..result import Aggregation, Table
from .class_page import class_page
from .figures import figures
from .sections import PageReport
from .sentences import opening
from .summary import CONFIDENT, summarise
from .tendency_section import Predictions, read_predictions

METHODS = ("majority", "dawid-skene", "one-coin", "mace", "glad")  # compared
_COMPARED = 100_000  # labels above which methods are compared on a sample of items
_ONE_METHOD = 300_000  # labels above which the best method replaces `auto`
_PAIRS = 20_000_000  # pairs of labels above which pairs of annotators are left out
_PLANNED = 20_000  # items up to which further labels are planned
_BUDGET = 500  # labels in a plan at most
_DRAWS = 5  # behind the budget curve
_STEPS = 7
_MULTIPLE = "Several options could be chosen; every combination counts as a class of its own here."


@dataclass(frozen=True, eq=False, repr=False)
class Report(PageReport):
    """Everything about a data set, as numbers.

    Attributes
    ----------
    name
        Of the data set.
    reading
        The annotations with gold, texts and notes found in the file.
    result
        The inferred labels.
    check, agreement, pairs, camps, comparison, evaluation, plan
        Results of `check`, `agree`, `camps`, `compare`, `evaluate` and `next`; `None` where there
        is nothing to report.
    annotator_scores, item_scores
        Results of `identify`.
    truth
        Known labels that were only used to score.
    samples
        A sentence for every part that was computed on a sample.
    folder
        Where images that texts name are looked for.
    predictions
        Results of `tendency evaluate`, if given.
    """

    name: str
    reading: Reading
    result: Aggregation
    check: Check
    agreement: Agreement
    pairs: Pairs | None
    camps: Camps | None
    annotator_scores: AnnotatorScores
    item_scores: ItemScores
    comparison: Comparison | None
    evaluation: Evaluation | None
    plan: Plan | None
    truth: Mapping[str, str] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    seed: int = 0
    folder: Path | None = None
    predictions: Predictions | None = None

    @property
    def annotations(self) -> Annotations:
        """The annotations."""
        return self.reading.annotations

    @cached_property
    def annotators(self) -> Table:
        """Every score of every annotator, as columns."""
        return self.annotator_scores.table()

    @property
    def items(self) -> Table:
        """Every score of every item with its label, as columns."""
        scores = self.item_scores.table()
        return {"item": self.annotations.items, "label": self.result.labels, **scores}

    @cached_property
    def doubtful(self) -> Integers:
        """Labelled items that need review, by code, the most doubtful first."""
        confidence = self.result.confidence
        order = np.argsort(confidence, kind="stable")
        doubtful = (self.annotations.labels_per_item > 0) & (confidence < CONFIDENT)
        return order[doubtful[order]]

    @cached_property
    def crowd_confusion(self) -> Floats:
        """The confusion matrix of all annotators together: (true class, given class)."""
        counts = self.result.posterior.T @ self.annotations.votes()
        with np.errstate(invalid="ignore"):
            shares = counts / counts.sum(axis=1, keepdims=True)
        return np.where(np.isnan(shares), 1 / len(counts), shares)

    sentences = cached_property(opening)
    charts = cached_property(figures)
    layout = class_page

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        summary = summarise(self.annotations, self.result, truth=dict(self.truth) or None)
        return {
            "name": self.name,
            "sentences": self.sentences,
            "summary": summary.as_dict(),
            "check": self.check.as_dict(),
            "agreement": self.agreement.as_dict(),
            "camps": None if self.camps is None else self.camps.as_dict(),
            "annotators": self.annotator_scores.as_dict(),
            "doubtful": self.annotations.items[self.doubtful].tolist(),
            "comparison": None if self.comparison is None else self.comparison.as_dict(),
            "plan": None if self.plan is None else self.plan.as_dict(),
            "tendency": None if self.predictions is None else self.predictions.scores,
            "samples": list(self.samples),
        }


def report(
    source: Any,
    method: str = "auto",
    *,
    name: str | None = None,
    gold: Any = None,
    truth: Any = None,
    texts: str | Path | None = None,
    tendency: str | Path | None = None,
    folder: Path | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Return everything about a data set.

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
    tendency
        Output of `dissensus tendency evaluate --json`, as a file.
    folder
        Where images that texts name are looked for; by default the folder of the file.
    seed
        Random seed.
    progress
        Called with the number of completed steps and their total.

    Examples
    --------
    >>> from dissensus import demo
    >>> report(demo()[0], "majority", name="demo").sentences[0]
    '40 annotators gave 2527 labels to 500 items, 5.1 each on average.'
    """
    progress = progress or (lambda _done, _total: None)
    predictions = None if tendency is None else read_predictions(tendency)
    if isinstance(source, Numbers):
        raise OptionError("these are numbers; `report_numbers` reports on them")
    reading = source if isinstance(source, Reading) else examine(source)
    if reading.kind == "multiple":
        reading = replace(reading, notes=(*reading.notes, _MULTIPLE))
    if texts is not None:
        reading = replace(reading, texts=read_texts(str(texts)))
    annotations = reading.annotations
    if len(annotations) == 0:
        raise DataError("there are no labels to report on")
    known = (dict(reading.gold) if gold is None else as_truth(gold)) or None
    truth = None if truth is None else as_truth(truth)
    annotations.check_classes("report", "`report_numbers` reports on numbers")
    checked = check(reading, gold=known)
    progress(1, _STEPS)
    comparison, samples = _compare(annotations, truth, known, seed)
    progress(2, _STEPS)
    if method == "auto" and len(annotations) > _ONE_METHOD and comparison is not None:
        method = comparison.methods[0].method
        samples += (f"With so many labels, {method}, which predicts best, was used for all.",)
    fitted = {} if samples or comparison is None else comparison.results
    result = fitted.get(method)
    if result is None:
        result = aggregate(annotations, method, gold=known, seed=seed)
    progress(3, _STEPS)
    classes = set(annotations.classes.tolist())
    judged_by = {item: label for item, label in (truth or {}).items() if label in classes}
    judged_by |= known or {}
    annotator_scores = identify(annotations, result, gold=judged_by, seed=seed)
    progress(4, _STEPS)
    scores = item_scores(annotations, result, difficulty=False, seed=seed)
    if "glad" in fitted:  # fitted for the comparison, so not again for the scores
        glad, competence = fitted["glad"].params, fitted["mace"].params.competence
        annotator_scores = replace(annotator_scores, ability=glad.ability, competence=competence)
        scores = replace(scores, difficulty=glad.difficulty)
    progress(5, _STEPS)
    agreement = agree(annotations, by="class" if annotations.n_classes <= 50 else None, seed=seed)
    pairs = _pairs(annotations)
    progress(6, _STEPS)
    further = None
    if annotations.n_classes > 1 and annotations.n_items <= _PLANNED:
        budget = min(max(20, annotations.n_items // 2), _BUDGET)
        further = plan(annotations, result, budget=budget, draws=_DRAWS, seed=seed)
    progress(7, _STEPS)
    path = Path(source) if isinstance(source, (str, Path)) and str(source) != "-" else None
    place = path if texts is None else Path(texts)
    return Report(
        name or ("annotations" if path is None else path.name),
        reading,
        result,
        checked,
        agreement,
        pairs,
        None if pairs is None else camps(annotations, seed=seed),
        annotator_scores,
        scores,
        comparison,
        None if truth is None else evaluate(result, truth, seed=seed),
        further,
        truth or {},
        samples,
        seed,
        place.parent if place is not None and place.is_file() else folder,
        predictions,
    )


def _compare(
    annotations: Annotations, truth: Any, gold: Any, seed: int
) -> tuple[Comparison | None, tuple[str, ...]]:
    """Return methods side by side, on a sample of the items of large data."""
    if annotations.n_classes < 2 or not (annotations.labels_per_item > 1).any():
        return None, ()
    if len(annotations) <= _COMPARED:
        return compare(annotations, METHODS, truth=truth, gold=gold, seed=seed), ()
    n_items = max(1, annotations.n_items * _COMPARED // len(annotations))
    drawn = np.random.default_rng(seed).choice(annotations.n_items, n_items, replace=False)
    sample = annotations.subset(items=np.isin(np.arange(annotations.n_items), drawn))
    note = f"Methods were compared on {n_items} of {annotations.n_items} items, drawn at random."
    fast = [method for method in METHODS if method != "glad"]
    return compare(sample, fast, truth=truth, seed=seed), (note,)


def _pairs(annotations: Annotations) -> Pairs | None:
    """Return the agreement of pairs of annotators, unless there are too many or none."""
    size = annotations.labels_per_item.astype(np.int64)
    too_many = int((size * (size - 1)).sum()) > _PAIRS
    if annotations.n_annotators < 2 or annotations.n_classes < 2 or too_many:
        return None
    pairs = pairwise(annotations, "cohen", min_overlap=5)
    return pairs if pairs.known.any() else None
