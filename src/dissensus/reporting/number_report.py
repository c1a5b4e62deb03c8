"""A report on numbers: estimated values, annotators, and items on which answers scatter.

An item is wide if it has three answers or more and these scatter more than twice as much as usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..aggregation import aggregate
from ..aggregation.aggregation import NumberAggregation
from ..answers.numbers import Numbers
from ..base.arrays import Floats, Integers
from ..base.storage import as_plain
from ..errors import DataError
from ..formats import Reading, as_answers, as_truth, examine
from ..formats.side_tables import read_texts
from ..metrics import Agreement, Estimate, Evaluation, agree, evaluate
from ..pages.wording import amount
from ..quality import AnnotatorScores, identify
from ..quality.checks import Check, check
from ..quality.verdicts import LEFT_OUT
from ..result import Table
from .actions import number_actions
from .number_page import number_page
from .report import DataReport
from .sentences import agreement_sentence, annotator_sentences, volume

_STEPS = 5
_WIDE = 2.0  # times the usual scatter


@dataclass(frozen=True, eq=False, repr=False)
class NumberReport(DataReport):
    """Everything about numeric annotations, as numbers.

    Attributes
    ----------
    name, reading, result
        The data set, its numbers with texts and notes, and the estimated values.
    check, agreement, evaluation, annotator_scores
        Results of `check`, `agree`, `evaluate` and `identify`.
    changes
        By how much every value changes without random and constant annotators; `None` without any.
    truth
        Known values that were only used to score.
    folder
        Where images that texts name are looked for.
    """

    name: str
    reading: Reading
    result: NumberAggregation
    check: Check
    agreement: Agreement
    evaluation: Evaluation | None
    annotator_scores: AnnotatorScores
    changes: Floats | None = None  # (item)
    truth: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    folder: Path | None = None

    noun = "value"
    groups = None

    @property
    def annotations(self) -> Numbers:
        """The numbers."""
        return self.result.answers

    @property
    def items(self) -> Table:
        """Every item, as columns."""
        return {**self.result.items, "scatter": self.scatter}

    @cached_property
    def scatter(self) -> Floats:
        """Standard deviation of the answers on every item; NaN below two."""
        annotations, size = self.annotations, self.annotations.labels_per_item
        value = annotations.value - float(annotations.value.mean())
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(annotations.item, value, annotations.n_items) / size
            error = value - mean[annotations.item]
            squares = np.bincount(annotations.item, error**2, annotations.n_items)
            return np.where(size > 1, np.sqrt(squares / (size - 1)), np.nan)

    @cached_property
    def usual(self) -> float:
        """The scatter of answers on an ordinary item."""
        return float(np.nanmedian(self.scatter)) if np.isfinite(self.scatter).any() else math.nan

    @cached_property
    def wide(self) -> Integers:
        """Items of three answers or more that scatter widely, by code, the widest first."""
        order = np.argsort(-np.nan_to_num(self.scatter), kind="stable")
        limit = _WIDE * self.usual * (1 + 1e-9)  # exactly twice as much is not more
        wide = (self.scatter > limit) & (self.annotations.labels_per_item > 2)
        return order[wide[order]]

    @cached_property
    def variance(self) -> Floats:
        """Variance of answers on every item, shrunk to the mean as far as it varies by chance.

        The variance of n normal answers has a sampling variance of 2 σ⁴ / (n - 1).
        """
        size, square = self.annotations.labels_per_item, self.scatter**2
        has_pairs = size > 1
        observed, n = square[has_pairs], size[has_pairs]
        mean = float(np.average(observed, weights=n - 1)) if has_pairs.any() else math.nan
        spread = float(observed.var()) if has_pairs.any() else 0.0
        by_chance = float((2 * observed**2 / (n + 1)).mean()) if has_pairs.any() else 0.0
        share_kept = max(1 - by_chance / spread, 0.0) if spread > 0 else 0.0
        return np.where(has_pairs, mean + share_kept * (square - mean), mean)

    @property
    def alpha(self) -> Estimate:
        """Krippendorff's alpha for numbers."""
        return self.agreement["alpha"]

    @property
    def effect(self) -> str:
        """What leaving out random and constant annotators changes; empty without any."""
        if self.changes is None:
            return ""
        changed = np.abs(self.changes[self.changes != 0])
        if not len(changed):
            return "this changes no value"
        by = self.form(float(changed.mean()))
        return f"this changes {amount(len(changed), 'value')} by {by} on average"

    def form(self, value: float) -> str:
        """Return a value as text, with as many decimals for all."""
        return f"{value:.{self._decimals}f}"

    @cached_property
    def _decimals(self) -> int:
        spread = float(self.annotations.value.std())
        return 2 if spread == 0 else max(2 - math.floor(math.log10(spread)), 0)

    @cached_property
    def sentences(self) -> list[str]:
        """The report in a few sentences."""
        annotations, value = self.annotations, self.annotations.value
        numbers_each = len(annotations) / max(annotations.n_items, 1)
        sentences = [
            f"{volume(annotations, 'number')}, {numbers_each:.1f} each on average, from "
            f"{value.min():g} to {value.max():g}."
        ]
        if self.evaluation is not None:
            error, fit = (self.evaluation.scores[name] for name in ("mae", "pearson"))
            if error is not None and fit is not None:
                sentences.append(
                    f"Of {amount(self.evaluation.n_scored, 'item')} whose value is known, the "
                    f"estimates are off by {self.form(error.value)} on average (correlation "
                    f"{fit.value:.2f})."
                )
        deviation = self.result.deviation[np.isfinite(self.result.deviation)]
        if len(deviation):
            sentences.append(
                f"The standard error of a value is {self.form(float(np.median(deviation)))} "
                "(median over items)."
            )
        if not math.isnan(self.usual):
            sentences.append(
                f"Answers on an item usually scatter by {self.form(self.usual)}; on "
                f"{amount(len(self.wide), 'item')} by more than twice as much."
            )
        agreement = agreement_sentence(self.agreement, "no two numbers on an item, or all the same")
        return [*sentences, agreement, *annotator_sentences(self)]

    actions = cached_property(number_actions)
    layout = number_page

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return {
            "name": self.name,
            "sentences": self.sentences,
            "actions": [action.sentence for action in self.actions],
            "method": self.result.method,
            "check": self.check.as_dict(),
            "agreement": self.agreement.as_dict(),
            "annotators": self.annotator_scores.as_dict(),
            "relabel": self.annotations.items[self.wide].tolist(),
            "evaluation": as_plain(self.evaluation),
        }


def report_numbers(
    source: Any,
    method: str = "mean",
    *,
    name: str = "numbers",
    gold: Any = None,
    truth: Any = None,
    texts: str | Path | None = None,
    show: Sequence[str] | None = None,
    folder: Path | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> NumberReport:
    """Return everything about numeric annotations.

    Parameters
    ----------
    source
        `Numbers`, what `readers.examine` returned, or what `read` takes, with labels that are
        numbers.
    method
        How to estimate the value of an item.
    name
        Of the data set, for titles.
    gold
        Known values that methods may use, `{item: value}` or a table.
    truth
        Known values to score with.
    texts
        A file with the text of every item, or with the name of an image next to it.
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
    >>> annotations = Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 9, 4, 5, 6])
    >>> report_numbers(annotations).sentences[0]
    '3 annotators gave 6 numbers to 2 items, 3.0 each on average, from 1 to 9.'
    """
    annotations: Any = source
    if isinstance(source, Numbers):
        reading = Reading(annotations, "annotations")
    else:
        reading = examine(source, kind="numbers")
        annotations = as_answers(reading.answers, kind="numbers")
    if len(annotations) == 0:
        raise DataError("there are no numbers to report on")
    if texts is not None:
        reading = replace(reading, texts=read_texts(str(texts), show))
        folder = Path(texts).parent
    progress = progress or (lambda _completed, _total: None)
    checked = check(annotations)
    progress(1, _STEPS)
    gold_values = None if gold is None else as_truth(gold)
    reading = replace(reading, gold=gold_values or {})
    result = aggregate(annotations, method, gold=gold_values, seed=seed)
    progress(2, _STEPS)
    agreement = agree(annotations, seed=seed)
    progress(3, _STEPS)
    scored = None if truth is None else as_truth(truth)
    evaluation = None if scored is None else evaluate(result, scored, seed=seed)
    progress(4, _STEPS)
    scores = identify(annotations, gold={**(scored or {}), **(gold_values or {})}, seed=seed)
    left_out = scores.judged(*LEFT_OUT)
    changes = None
    if left_out.any() and not left_out.all():
        remaining = annotations.keep(~left_out[annotations.annotator])
        changes = np.nan_to_num(
            aggregate(remaining, method, gold=gold_values, seed=seed).value - result.value
        )
    progress(5, _STEPS)
    return NumberReport(
        name=name,
        reading=reading,
        result=result,
        check=checked,
        agreement=agreement,
        evaluation=evaluation,
        annotator_scores=scores,
        changes=changes,
        truth=scored or {},
        seed=seed,
        folder=folder,
    )
