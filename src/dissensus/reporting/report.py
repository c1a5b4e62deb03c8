"""Everything there is to know about a data set, gathered once; `page.py` gives it a look.

A report reads, checks, aggregates, scores annotators and items, measures agreement and compares
methods. Large data are looked at in samples where that changes nothing a reader would see; the
report says where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._relation import Floats, Integers
from ..aggregation import aggregate
from ..agreement import Agreement, Clusters, Pairs, agree, cluster
from ..annotations import Annotations
from ..answers.numbers import Numbers
from ..checking import Check, check
from ..comparison import Comparison
from ..errors import DataError, OptionError
from ..identification import AnnotatorScores, ItemScores, identify, item_scores
from ..metrics import evaluate
from ..readers import Reading, examine
from ..readers.side_tables import read_texts
from ..result import Aggregation, Table
from ._steps import compared, met, planned
from .summary import SURE
from .tendency_section import Foresight, read_foresight

if TYPE_CHECKING:
    from ..metrics import Evaluation
    from ..planning import Plan
    from .figures import Figure

__all__ = ["Report", "report"]

_DIFFICULT = 100_000  # labels up to which the difficulty of items is fitted
_STACKED = 300_000  # labels above which one method is taken instead of many together
_STEPS = 7
_MULTIPLE = "Several options could be chosen; every combination counts as a class of its own here."


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What a report tells, as numbers.

    Attributes
    ----------
    name
        Of the data set.
    reading
        The annotations and what was found beside them.
    result
        The labels that were inferred.
    check, agreement, pairs, clusters, comparison, evaluation, plan
        What the verbs `check`, `agree`, `compare`, `evaluate` and `next` say; `None` where there
        is nothing to say.
    annotator_scores, item_scores
        What `identify` says.
    truth
        Known labels that were only used to score.
    samples
        A sentence for every part that was looked at in a sample.
    folder
        Where images that texts name are looked for.
    foresight
        What `tendency evaluate` says, if that was given.
    """

    name: str
    reading: Reading
    result: Aggregation
    check: Check
    agreement: Agreement
    pairs: Pairs | None
    clusters: Clusters | None
    annotator_scores: AnnotatorScores
    item_scores: ItemScores
    comparison: Comparison | None
    evaluation: Evaluation | None
    plan: Plan | None
    truth: Mapping[str, str] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    seed: int = 0
    folder: Path | None = None
    foresight: Foresight | None = None

    def __repr__(self) -> str:
        return f"<Report on {self.name}: {' '.join(self.sentences)}>"

    @property
    def annotations(self) -> Annotations:
        """The annotations."""
        return self.reading.annotations

    @property
    def annotators(self) -> Table:
        """Every score of every annotator, as columns."""
        return self.annotator_scores.table()

    @cached_property
    def items(self) -> Table:
        """Every score of every item with its label, as columns."""
        return {
            "item": self.annotations.items,
            "label": self.result.labels,
            **self.item_scores.table(),
        }

    @cached_property
    def doubtful(self) -> Integers:
        """Labelled items that deserve a second look, by code, the most doubtful first."""
        confidence = self.result.confidence
        labelled = self.annotations.labels_per_item > 0
        order = np.argsort(confidence, kind="stable")
        return order[(labelled & (confidence < SURE))[order]]

    @cached_property
    def crowd_confusion(self) -> Floats:
        """What all annotators together make of every class: (true class, given class)."""
        from ..aggregation._base import share

        return share(self.result.posterior.T @ self.annotations.votes())

    @cached_property
    def sentences(self) -> list[str]:
        """The report in a few sentences."""
        from .sentences import opening

        return opening(self)

    @cached_property
    def charts(self) -> dict[str, Figure]:
        """Every picture of the report, by name."""
        from .figures import figures

        return figures(self)

    def page(self) -> str:
        """Return the report as one self-contained page."""
        from .page import render

        return render(self)

    def save(self, path: str | Path) -> None:
        """Write the page."""
        from .._files import atomic_file

        body = self.page()
        with atomic_file(path) as draft:
            draft.write_text(body, encoding="utf-8")

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        from .summary import summarise

        summary = summarise(self.annotations, self.result, truth=dict(self.truth) or None)
        return {
            "name": self.name,
            "sentences": self.sentences,
            "summary": summary.as_dict(),
            "check": self.check.as_dict(),
            "agreement": self.agreement.as_dict(),
            "annotators": self.annotator_scores.as_dict(),
            "doubtful": [self.annotations.items[item] for item in self.doubtful.tolist()],
            "comparison": None if self.comparison is None else self.comparison.as_dict(),
            "plan": None if self.plan is None else self.plan.as_dict(),
            "tendency": None if self.foresight is None else self.foresight.scores,
            "samples": list(self.samples),
        }

    def _repr_html_(self) -> str:
        from .embedding import framed

        return framed(self.page())


def report(
    what: Any,
    method: str = "auto",
    *,
    name: str | None = None,
    gold: Mapping[Any, Any] | None = None,
    truth: Mapping[Any, Any] | None = None,
    texts: str | Path | None = None,
    tendency: str | Path | None = None,
    folder: Path | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **reading: Any,
) -> Report:
    """Return everything there is to know about a data set.

    Parameters
    ----------
    what
        Annotations, or what `read` takes: a path, a table, an export of a labelling tool.
    method
        How to aggregate.
    name
        Of the data set, for titles; by default that of the file.
    gold
        Known labels that may be used, `{item: label}`; by default those found in the file.
    truth
        Known labels to score with; nothing learns from them.
    texts
        A file with the text of every item, or with the name of an image beside it.
    tendency
        What `dissensus tendency evaluate --json` printed, as a file.
    folder
        Where images that texts name are looked for; by default beside the file.
    seed
        Decides what is random.
    progress
        Called with the steps that are done and how many there are.

    Further words go to `read`.

    Examples
    --------
    >>> from dissensus import demo
    >>> told = report(demo()[0], "majority", name="demo")
    >>> told.sentences[0]
    '40 annotators gave 2527 labels to 500 items, 5.1 each on average.'
    """
    progress = progress or (lambda _done, _total: None)
    foresight = None if tendency is None else read_foresight(tendency)
    if isinstance(what, Numbers):
        raise OptionError("these are numbers; `report_numbers` reports on them")
    found = what if isinstance(what, Reading) else examine(what, **reading)
    if found.kind == "multiple":
        found = replace(found, notes=(*found.notes, _MULTIPLE))
    if texts is not None:
        found = replace(found, texts=read_texts(str(texts)))
    annotations = found.annotations
    if len(annotations) == 0:
        raise DataError("there are no labels to report on")
    known = dict(gold) if gold is not None else dict(found.gold)
    looked = check(found, gold=known or None, labels="nominal")
    progress(1, _STEPS)
    comparison, samples = compared(annotations, truth, known or None, seed)
    progress(2, _STEPS)
    if method == "auto" and len(annotations) > _STACKED and comparison is not None:
        method = comparison.methods[0].method
        samples += (f"With so many labels, {method}, which foresaw best, was taken for all.",)
    result = aggregate(annotations, method, gold=known or None, seed=seed)
    progress(3, _STEPS)
    annotators = identify(annotations, result, gold=known or None, seed=seed)
    progress(4, _STEPS)
    items = item_scores(annotations, result, difficulty=len(annotations) <= _DIFFICULT, seed=seed)
    progress(5, _STEPS)
    agreement = agree(annotations, by="class" if annotations.n_classes <= 50 else None, seed=seed)
    pairs = met(annotations)
    progress(6, _STEPS)
    further = planned(annotations, result, seed)
    progress(7, _STEPS)
    return Report(
        name or _name(what),
        found,
        result,
        looked,
        agreement,
        pairs,
        None if pairs is None else cluster(pairs),
        annotators,
        items,
        comparison,
        None if truth is None else evaluate(result, truth, seed=seed),
        further,
        {} if truth is None else {str(item): str(label) for item, label in truth.items()},
        samples,
        seed,
        _folder(what if texts is None else texts) or folder,
        foresight,
    )


def _name(what: Any) -> str:
    return Path(what).name if isinstance(what, (str, Path)) and str(what) != "-" else "annotations"


def _folder(what: Any) -> Path | None:
    return Path(what).parent if isinstance(what, (str, Path)) and Path(what).is_file() else None
