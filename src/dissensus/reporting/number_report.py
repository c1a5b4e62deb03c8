"""A report on numbers: estimated values, biased annotators, and items on which answers scatter.

An item is wide if it has three answers or more and these scatter more than twice as much as usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._plain import as_plain
from .._relation import Floats, Integers
from ..aggregation.numeric import estimate
from ..agreement import Agreement, Estimate, agree
from ..answers.numbers import Numbers
from ..checking import Check, check
from ..errors import DataError
from ..metrics import Evaluation, evaluate
from ..readers import as_annotations, as_numbers, as_truth
from ..result import Estimation, Table
from .annotator_bias import WIDE, AnnotatorBias, annotator_bias, scatter_of_items
from .number_page import number_page
from .sections import PageReport
from .sentences import agreement_sentence, amount, verdict_sentences, volume

_STEPS = 4
_VERDICTS = {  # what one such annotator does, and several
    "random": ("answers at random", "answer at random"),
    "constant": ("always gives the same answer", "always give the same answer"),
    "reversed": ("contradicts the others", "contradict the others"),
    "likely random": ("may answer at random", "may answer at random"),
    "harsh": ("answers lower than the others", "answer lower than the others"),
    "lenient": ("answers higher than the others", "answer higher than the others"),
    "noisy": ("scatters widely", "scatter widely"),
}


@dataclass(frozen=True, eq=False, repr=False)
class NumberReport(PageReport):
    """Everything about numeric annotations, as numbers.

    Attributes
    ----------
    name, annotations, result
        The data set, its numbers, and the estimated values.
    check, agreement, evaluation
        Results of `check`, `agree` and `evaluate`.
    bias
        Every annotator compared with the others.
    scatter
        Standard deviation of the answers on every item; NaN below two.
    """

    name: str
    annotations: Numbers
    result: Estimation
    check: Check
    agreement: Agreement
    evaluation: Evaluation | None
    bias: AnnotatorBias
    scatter: Floats  # (item)
    seed: int = 0

    @property
    def annotators(self) -> Table:
        """Every annotator, as columns."""
        return {
            "annotator": self.annotations.annotators,
            "n_answers": self.annotations.labels_per_annotator,
            "bias": self.bias.bias,
            "scatter": self.bias.scatter,
            "correlation": self.bias.correlation,
            "verdict": np.array(self.bias.verdict),
        }

    @property
    def items(self) -> Table:
        """Every item, as columns."""
        return {**self.result.items, "scatter": self.scatter}

    @cached_property
    def usual(self) -> float:
        """The scatter of answers on an ordinary item."""
        return float(np.nanmedian(self.scatter)) if np.isfinite(self.scatter).any() else math.nan

    @cached_property
    def wide(self) -> Integers:
        """Items of three answers or more that scatter widely, by code, the widest first."""
        order = np.argsort(-np.nan_to_num(self.scatter), kind="stable")
        wide = (self.scatter > WIDE * self.usual) & (self.annotations.labels_per_item > 2)
        return order[wide[order]]

    @property
    def alpha(self) -> Estimate:
        """Krippendorff's alpha for numbers."""
        return self.agreement["alpha"]

    @cached_property
    def sentences(self) -> list[str]:
        """The report in a few sentences."""
        annotations, value = self.annotations, self.annotations.value
        each = len(annotations) / max(annotations.n_items, 1)
        sentences = [
            f"{volume(annotations, 'number')}, {each:.1f} each on average, from {value.min():g} to "
            f"{value.max():g}.",
            agreement_sentence(self.agreement, "no two numbers on an item, or all the same"),
            *verdict_sentences(annotations.annotators, self.bias.verdict, _VERDICTS),
        ]
        if not math.isnan(self.usual):
            sentences.append(
                f"Answers on an item usually scatter by {self.usual:.3g}; on "
                f"{amount(len(self.wide), 'item')} by more than twice as much."
            )
        if self.evaluation is not None:
            error, fit = (self.evaluation.scores[name] for name in ("mae", "pearson"))
            if error is not None and fit is not None:
                sentences.append(
                    f"Of {amount(self.evaluation.n_scored, 'item')} whose value is known, the "
                    f"estimates are off by {error.value:.3g} on average (correlation "
                    f"{fit.value:.2f})."
                )
        return sentences

    layout = number_page

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return {
            "name": self.name,
            "sentences": self.sentences,
            "method": self.result.method,
            "check": self.check.as_dict(),
            "agreement": self.agreement.as_dict(),
            "annotators": as_plain(self.annotators),
            "wide": self.annotations.items[self.wide].tolist(),
            "evaluation": as_plain(self.evaluation),
        }


def report_numbers(
    source: Any,
    method: str = "mean",
    *,
    name: str = "numbers",
    gold: Any = None,
    truth: Any = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> NumberReport:
    """Return everything about numeric annotations.

    Parameters
    ----------
    source
        `Numbers`, or what `read` takes, with labels that are numbers.
    method
        How to estimate the value of an item.
    name
        Of the data set, for titles.
    gold
        Known values that methods may use, `{item: value}` or a table.
    truth
        Known values to score with.
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
    annotations = source
    if not isinstance(source, Numbers):
        annotations = as_numbers(as_annotations(source), source)
    if len(annotations) == 0:
        raise DataError("there are no numbers to report on")
    progress = progress or (lambda _done, _total: None)
    checked = check(annotations)
    progress(1, _STEPS)
    known = None if gold is None else as_truth(gold)
    result = estimate(annotations, method, gold=known, seed=seed)
    progress(2, _STEPS)
    agreement = agree(annotations, seed=seed)
    progress(3, _STEPS)
    known_truth = None if truth is None else as_truth(truth)
    evaluation = None if known_truth is None else evaluate(result, known_truth, seed=seed)
    progress(4, _STEPS)
    return NumberReport(
        name,
        annotations,
        result,
        checked,
        agreement,
        evaluation,
        annotator_bias(annotations, {**(known_truth or {}), **(known or {})}),
        scatter_of_items(annotations),
        seed,
    )
