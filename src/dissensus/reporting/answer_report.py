"""A report on answers that are sets, rankings, spans, boxes, points, masks or texts.

An item is disputed if it has three answers or more, which differ as much as answers to different
items do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..aggregation import aggregate
from ..aggregation.aggregation import AnswerAggregation
from ..answers import KINDS
from ..answers.marks import Marks, Spans
from ..base.arrays import Floats, Integers
from ..base.names import as_names
from ..base.storage import as_plain, as_rows
from ..errors import DataError
from ..formats import Reading, examine
from ..formats.side_tables import read_texts
from ..metrics import Agreement, Evaluation, agree, evaluate
from ..metrics.answer_scores import joined
from ..metrics.distances import Distances
from ..pages.page import PageReport
from ..pages.sections import CONFIDENT
from ..planning.label_errors import LabelErrors, label_errors
from ..quality import identify
from ..quality.answers import FEW, LIKE_OTHERS, AnswerScores
from .answer_page import answer_page
from .answer_sentences import answer_actions, answer_opening

_STEPS = 5
_DRAWN = 10  # most disputed items
_CHANGED = 0.1  # distance above which the consensus on an item has changed


@dataclass(frozen=True, eq=False, repr=False)
class AnswerReport(PageReport):
    """Everything about answers of a kind, as numbers.

    Attributes
    ----------
    name, reading
        The data set, and its answers with format and notes.
    result
        The consensus.
    agreement
        Result of `agree`; `None` if no item has two answers.
    distance
        The mean distance of the answers to every item, NaN with fewer than two.
    scores
        Result of `identify`.
    evaluation
        Scores against known answers; `None` without them.
    n_changed
        On how many items the consensus changes without the annotators with a verdict; `None`
        without any.
    texts
        The text of every item, or the name of its image.
    folder
        Where these images are looked for.
    """

    name: str
    reading: Reading
    result: AnswerAggregation
    agreement: Agreement | None
    distance: Floats  # (item)
    scores: AnswerScores
    evaluation: Evaluation | None
    n_changed: int | None
    texts: Mapping[str, str]
    seed: int = 0
    folder: Path | None = None

    @property
    def answers(self) -> Any:
        """The answers."""
        return self.reading.answers

    @property
    def kind(self) -> str:
        """The kind of the answers."""
        return self.answers.kind

    @property
    def noun(self) -> str:
        """What the consensus has rows of."""
        return {"boxes": "box", "rankings": "thing"}.get(self.kind, self.kind[:-1])

    @cached_property
    def disputed(self) -> Integers:
        """Items of three answers or more that differ as much as those to different items do."""
        if self.agreement is None:
            return np.zeros(0, dtype=np.int64)
        expected = self.agreement["expected"].value
        order = self._by_distance
        wide = (self.distance >= expected) & (self.answers.labels_per_item > 2) & (expected > 0)
        return order[wide[order]]

    @property
    def most_disputed(self) -> Integers:
        """The items whose answers differ most, by code, at most ten."""
        order = self._by_distance
        return order[self.distance[order] > 0][:_DRAWN]

    @cached_property
    def _by_distance(self) -> Integers:
        """Items by distance, the largest first; of equal ones, those with more answers."""
        distance = np.nan_to_num(self.distance, nan=-1.0)
        return np.lexsort((-self.answers.labels_per_item, -distance))

    @cached_property
    def judged(self) -> dict[str, list[str]]:
        """Names of annotators by verdict, without those who are like others or gave too little."""
        verdict, names = self.scores.verdict, self.answers.annotators
        words = dict.fromkeys(word for word in verdict.tolist() if word not in (FEW, LIKE_OTHERS))
        return {word: names[verdict == word].tolist() for word in words}

    @cached_property
    def errors(self) -> LabelErrors | None:
        """How many marks are wrong, by their confidence; `None` where that is no probability."""
        if not isinstance(self.answers, Marks) or self.result.inner is None:
            return None
        return label_errors(self.result.confidence[self.result.confidence < 1])

    @property
    def less_certain(self) -> Integers:
        """Rows of the consensus with little confidence, the least first."""
        confidence = self.result.confidence
        order = np.argsort(confidence, kind="stable")
        return order[confidence[order] < CONFIDENT]

    @cached_property
    def tokens(self) -> bool:
        """Whether spans count tokens: every one ends within the tokens of its text."""
        answers = self.answers
        if not isinstance(answers, Spans):
            return False
        size = np.array([len(self.texts.get(name, "").split()) for name in answers.items.tolist()])
        has_text = np.array([name in self.texts for name in answers.items.tolist()], dtype=bool)
        marked = has_text[answers.mark_item]
        end = answers.place[marked, 1]
        return bool(len(end)) and bool((end <= size[answers.mark_item][marked]).all())

    sentences = cached_property(answer_opening)
    actions = cached_property(answer_actions)
    layout = answer_page

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        answers = self.answers
        return {
            "name": self.name,
            "kind": self.kind,
            "sentences": self.sentences,
            "actions": [action.sentence for action in self.actions],
            "method": self.result.method,
            "n_items": answers.n_items,
            "n_annotators": answers.n_annotators,
            "n_answers": len(answers),
            "n_empty": int(answers.empty.sum()),
            "agreement": None if self.agreement is None else as_plain(self.agreement.estimates),
            "annotators": as_rows(self.scores.annotators),
            "evidence": self.scores.evidence,
            "disputed": answers.items[self.disputed].tolist(),
            "errors": as_plain(self.errors),
            "evaluation": as_plain(self.evaluation),
        }


def report_answers(
    source: Any,
    method: str = "auto",
    *,
    name: str | None = None,
    gold: Any = None,
    truth: Any = None,
    texts: str | Path | None = None,
    show: Sequence[str] | None = None,
    folder: Path | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AnswerReport:
    """Return everything about answers of any kind but classes and numbers.

    Parameters
    ----------
    source
        Answers, what `examine` returned, or what `read` takes.
    method
        How to find the consensus.
    name
        Of the data set, for titles; by default the kind.
    gold
        Known answers that methods may use: `{item: value}`, or answers of one annotator.
    truth
        Known answers to score with; no method uses them.
    texts
        A file with the text of every item, or with the name of its image.
    show
        Columns of this file to show, by default the one that is known to hold texts.
    folder
        Where images that texts name are looked for; by default the folder of the texts.
    seed
        Random seed.
    progress
        Called with the number of completed steps and their total.

    Examples
    --------
    >>> from dissensus import Spans
    >>> spans = Spans.from_columns("aabb", "xyxy", [0, 0, 3, None], [2, 2, 5, None])
    >>> report_answers(spans).sentences[0]
    '2 annotators gave 4 answers to 2 items, 2.0 each on average.'
    """
    reading = examine(source)
    if reading.answers.kind not in KINDS:
        raise DataError("these are classes or numbers; `report` and `report_numbers` are for them")
    answers = reading.answers
    if len(answers) == 0:
        raise DataError("there are no answers to report on")
    item_texts: dict[str, str] = {}
    if texts is not None:
        item_texts = dict(read_texts(str(texts), show).select("item", "text").iter_rows())
        folder = Path(texts).parent
    progress = progress or (lambda _completed, _total: None)
    result = aggregate(answers, method, gold=gold, seed=seed)
    progress(1, _STEPS)
    scores: Any = identify(answers, result)
    progress(2, _STEPS)
    has_pairs = bool((answers.labels_per_item > 1).any())
    agreement = agree(answers, seed=seed) if has_pairs else None
    progress(3, _STEPS)
    evaluation = None if truth is None else evaluate(result, truth, seed=seed)
    progress(4, _STEPS)
    judged, n_changed = ~np.isin(scores.verdict, as_names([FEW, LIKE_OTHERS])), None
    if judged.any() and not judged.all():
        remaining = answers.keep(~judged[answers.annotator])
        n_changed = _n_changed(result, aggregate(remaining, method, gold=gold, seed=seed))
    progress(5, _STEPS)
    return AnswerReport(
        name=name or answers.kind,
        reading=reading,
        result=result,
        agreement=agreement,
        distance=Distances.of(answers).by_item(answers),
        scores=scores,
        evaluation=evaluation,
        n_changed=n_changed,
        texts=item_texts,
        seed=seed,
        folder=folder,
    )


def _n_changed(before: AnswerAggregation, after: AnswerAggregation) -> int:
    """Return on how many items, or for how many things, two results differ."""
    if before.kind == "rankings":
        return int((before.items["rank"] != after.items["rank"]).sum())
    answers, first, second = joined(before.truth, after.truth)
    return int((answers.distance(first, second) > _CHANGED).sum())
